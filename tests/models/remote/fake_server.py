"""An OpenAI-compatible server in a thread: answers from a vocabulary of words, and misbehaves on demand."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTINUED = "is, on the Seine."
WORDS = (" yes", " no", " maybe", " Paris", " Rome")


class FakeServer:
    """What it can do, how it fails, and what it was asked."""

    def __init__(self) -> None:
        self.mode = "continue"
        """continue (vLLM), prefill (llama.cpp, Ollama), closed (a reply always begins anew), strict (refuses unknown
        fields).
        """
        self.top = 20
        """Most top_logprobs; 0: the field is ignored and nothing comes."""
        self.chosen_only = False
        self.prompt_logprobs = False
        self.ids = ["served"]
        self.about: dict[str, Any] = {"max_model_len": 512}
        self.props: dict[str, Any] | None = None
        self.key = ""
        self.reply: list[str] = ["Fritz", " Lang", " was", " born", " in", " Vienna", "."]
        self.finish = "stop"
        self.pace = 0.0
        self.status: list[tuple[int, str]] = []
        """Refusals of the next chat requests, each given once."""
        self.cut_after = -1
        """Break the connection after so many events, once."""
        self.usage = True
        self.stream_usage = True
        """Whether a stream ends with token counts, if they are asked for; llama-cpp-python gives them outside a stream
        only.
        """
        self.per_request = 99
        self.asked: list[dict[str, Any]] = []
        self.written = 0
        self.broken = threading.Event()
        """Set when a client has gone in the middle of a stream."""
        self.hostile: Callable[[BaseHTTPRequestHandler, dict[str, Any]], None] | None = None
        """Answers instead, whatever is asked."""
        self.url = ""

    def tokens_for(self, body: dict[str, Any]) -> list[str]:
        last = body["messages"][-1]
        opened = last["role"] == "assistant" and self.mode != "closed"
        if opened and last["content"].endswith("Par"):
            return ["is", ",", " on"]
        return self.reply

    def tops(self, token: str, k: int) -> list[dict[str, Any]]:
        """0.6 for the token itself, the rest halving over the known words."""
        others = [word for word in WORDS if word != token]
        shares = [(token, 0.6), *((word, 0.2 / 2**i) for i, word in enumerate(others))][:k]
        return [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in shares]


def handler(fake: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            if fake.hostile is not None:
                return fake.hostile(self, {})
            return self.about()

        def about(self) -> None:
            """The good answer to a question without a body."""
            if self.path == "/v1/models":
                return self._json(200, {"data": [{"id": id, **fake.about} for id in fake.ids]})
            if self.path == "/props" and fake.props is not None:
                return self._json(200, fake.props)
            return self._json(404, {"error": {"message": "nothing here"}})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.asked.append(body)
            if fake.hostile is not None:
                return fake.hostile(self, body)
            return self.replay(body)

        def replay(self, body: dict[str, Any]) -> None:
            """The good answer to a body."""
            if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
                return self._json(401, {"error": {"message": f"wrong key {self.headers.get('Authorization')}"}})
            if fake.status:
                status, message = fake.status.pop(0)
                return self._json(status, {"error": {"message": message}})
            if fake.mode == "strict" and "continue_final_message" in body:
                return self._json(400, {"error": {"message": "Unrecognized request argument: continue_final_message"}})
            if fake.mode == "strict" and body["messages"][-1]["role"] == "assistant":
                return self._json(400, {"error": {"message": "the last message must be the user's"}})
            if body.get("top_logprobs", 0) > fake.top > 0:
                return self._json(400, {"error": {"message": f"top_logprobs must be at most {fake.top}"}})
            return self._stream(body) if body.get("stream") else self._whole(body)

        def _tokens(self, body: dict[str, Any]) -> tuple[list[str], str]:
            limit, tokens = body["max_tokens"], fake.tokens_for(body)
            return tokens[:limit], "length" if len(tokens) > limit else fake.finish

        def _logprobs(self, body: dict[str, Any], tokens: list[str]) -> dict[str, Any]:
            if not body.get("logprobs") or not fake.top:
                return {}
            k = 1 if fake.chosen_only else body["top_logprobs"]
            return {
                "logprobs": {
                    "content": [
                        {**fake.tops(t, k)[0], "top_logprobs": [] if fake.chosen_only else fake.tops(t, k)}
                        for t in tokens
                    ]
                }
            }

        def _usage(self, made: int) -> dict[str, Any]:
            return {
                "usage": {
                    "prompt_tokens": 40,
                    "completion_tokens": made,
                    "prompt_tokens_details": {"cached_tokens": 30},
                }
            }

        def _stream(self, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            tokens, finish = self._tokens(body)
            events: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
            events += [{"choices": [{"delta": {"content": t}, **self._logprobs(body, [t])}]} for t in tokens]
            events.append({"choices": [{"delta": {}, "finish_reason": finish}]})
            if fake.usage and fake.stream_usage and "stream_options" in body:
                events.append({"choices": [], **self._usage(len(tokens))})
            fake.written = 0
            try:
                for event in events:
                    if fake.cut_after == fake.written:
                        fake.cut_after = -1
                        return
                    self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()
                    fake.written += 1
                    time.sleep(fake.pace)
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                fake.broken.set()

        def _whole(self, body: dict[str, Any]) -> None:
            tokens, finish = self._tokens(body)
            n = min(body.get("n", 1), fake.per_request)
            choice = {"message": {"content": "".join(tokens)}, "finish_reason": finish, **self._logprobs(body, tokens)}
            more: dict[str, Any] = {}
            if fake.prompt_logprobs and "prompt_logprobs" in body:
                words = body["messages"][-1]["content"].split(" ")
                more = {
                    "prompt_logprobs": [
                        None,
                        *({"7": {"logprob": -float(len(w)), "decoded_token": " " + w}} for w in words[1:]),
                    ]
                }
            self._json(200, {"choices": [choice] * n, **more, **(self._usage(len(tokens) * n) if fake.usage else {})})

        def _json(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


class Served:
    """A fake server that runs."""

    def __init__(self) -> None:
        self.fake = FakeServer()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self.fake))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.fake.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

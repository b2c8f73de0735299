"""HTTP to a model server: requests that can always be left, retries, refusals in a user's words.

Owns: the connection, time-outs, back-off, server-sent events, what a status code means. Does not own: what is asked
(server, connect). How: each request runs in a thread of its own and hands over lines, whose length is bounded
(exchange); who waits looks at the cancel token ten times a second, and leaving shuts the socket down, so that the
server stops generating at once, also while it has not sent a byte. What has another shape than the protocol's is
refused here (shapes). The key is in no message.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2

from mindchat.errors import MindChatError, ServerError, WindowError
from mindchat.models.remote.exchange import EVENTS, POLL, WHOLE, Bounds, Exchange, Head
from mindchat.models.remote.shapes import flaw, parse
from mindchat.ports import NEVER, Cancel
from mindchat.text.addresses import MASK, secrets_of, shown_address
from mindchat.text.clean import clean_line

TRIES = 4
"""Attempts at a request that may pass later."""
PASSING = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses that may pass: too many requests, a worker that restarts, a model that is still being loaded."""
LONGEST_WAIT = 30.0
"""Most seconds between two attempts, also if the server asks for more."""
CONNECT_SECONDS = 10.0
SPARE = 256
"""Events without words that a stream may hold: roles, counts, ends."""
_WINDOW_WORDS = (
    "context length",
    "context window",
    "context size",
    "context_length",
    "n_ctx",
    "max_model_len",
    "too many tokens",
)


class Wire:
    """A server's address and how to talk to it."""

    def __init__(self, url: str, key: str = "", timeout: float = 120.0, pause: float = 0.5) -> None:
        """`timeout`: seconds to wait for a line that says something (0: for ever). `pause`: seconds before the second
        attempt, doubled for each further one.
        """
        self.url = url
        self.shown = shown_address(url)
        """The address for messages, without credentials."""
        self._secrets = tuple(part for part in (key, *secrets_of(url)) if part)
        self._key, self._timeout, self._pause = key, timeout, pause
        limits = httpx2.Limits(
            max_keepalive_connections=0
        )  # each request its own connection: leaving one disturbs no other
        waits = httpx2.Timeout(timeout or None, connect=CONNECT_SECONDS)
        headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._client = httpx2.Client(headers=headers, timeout=waits, limits=limits)

    @property
    def keyed(self) -> bool:
        """Whether a key is sent."""
        return bool(self._key)

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def get(self, path: str, cancel: Cancel = NEVER) -> Any:
        """The JSON behind a path; one that begins with / is taken from the server's root. Raises ServerError."""
        return self._whole("GET", path, None, cancel)

    def post(self, path: str, body: Mapping[str, Any], cancel: Cancel = NEVER) -> Any:
        """The JSON that answers a body. Raises ServerError, WindowError."""
        return self._whole("POST", path, body, cancel)

    def stream(self, path: str, body: Mapping[str, Any], most: int, cancel: Cancel = NEVER) -> Iterator[dict[str, Any]]:
        """The server-sent events that answer a body, up to [DONE]; closing the iterator closes the connection. `most`:
        tokens asked for.

        Raises ServerError (also if the connection breaks, or the stream ends, before its end is announced, or if there
        are far more events than tokens), WindowError.
        """
        ended, count = False, 0
        lines = self._lines("POST", path, body, EVENTS, cancel)
        try:
            for line in lines:
                count += 1
                if count > 4 * most + SPARE:
                    raise ServerError(
                        f"The server {self.shown} does not end its answer.",
                        "It ignores the limit of tokens; its log may say why.",
                    )
                data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if data == "[DONE]":
                    return
                if data:
                    event = self._decode(data)
                    if event.get("error"):
                        raise self._refusal(int(_code(event)), data)
                    ended = ended or any(choice.get("finish_reason") for choice in event.get("choices") or ())
                    yield event
        finally:
            lines.close()  # type: ignore[attr-defined]  # a generator
        if not ended:
            raise ServerError(
                f"The server {self.shown} broke off in the middle of its answer.",
                "Ask again; the server's log may say why.",
            )

    # ── inside ──

    def _whole(self, method: str, path: str, body: Any, cancel: Cancel) -> Any:
        return self._decode("\n".join(self._lines(method, path, body, WHOLE, cancel)))

    def _decode(self, text: str) -> Any:
        try:
            found = parse(text)
        except ValueError as error:
            raise self._nonsense(text) from error
        if not isinstance(found, dict):
            raise self._nonsense(text)
        if wrong := flaw(found):
            raise ServerError(
                f"The server {self.shown} answers in another form than clients expect: {self._shown(wrong)}.",
                "server.url must speak OpenAI's chat protocol; another version of the server may.",
            )
        return found

    def _nonsense(self, text: str) -> ServerError:
        return ServerError(
            f"The server {self.shown} answers something that is no JSON object: {self._shown(text)}",
            "server.url is the address that OpenAI-compatible clients use; it usually ends in /v1.",
        )

    def _lines(self, method: str, path: str, body: Any, bounds: Bounds, cancel: Cancel) -> Iterator[str]:
        """Lines of a good answer. What may pass is tried again, as long as nothing has been handed over."""
        url = f"{self.url.rstrip('/')}/{path}" if not path.startswith("/") else str(httpx2.URL(self.url).join(path))
        for attempt in range(1, TRIES + 1):
            call = Exchange(self._client, method, url, body, bounds, self._timeout)
            given = False
            try:
                items = call.items(cancel)
                head = next(items)
                assert isinstance(head, Head)
                if head.status == 200:
                    for line in items:
                        given = True
                        yield str(line)
                    if given:
                        return
                error: MindChatError = self._refusal(head.status, "".join(str(line) for line in items))
                wait = _seconds(head.headers.get("retry-after", "")) if head.status in {200, *PASSING} else None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as broken:
                error, wait = self._failure(broken), 0.0 if _may_pass(broken) and not given else None
            finally:
                call.leave()
            if wait is None or attempt == TRIES:
                raise error
            _pause(max(wait, self._pause * 2 ** (attempt - 1)), cancel)

    def _failure(self, broken: Exception) -> ServerError:
        """A connection that failed, in words."""
        if isinstance(broken, httpx2.ConnectError | httpx2.ConnectTimeout):
            return ServerError(
                f"The server {self.shown} cannot be reached.", "Check server.url, and that the server is running."
            )
        if isinstance(broken, httpx2.TimeoutException):
            return ServerError(
                f"The server {self.shown} sent nothing for {self._timeout:g} s.",
                "Raise server.timeout, or ask for less.",
            )
        detail = self._shown(str(broken)) or type(broken).__name__
        return ServerError(
            f"The connection to {self.shown} broke: {detail}.", "Ask again; the server's log may say why."
        )

    def _refusal(self, status: int, body: str) -> MindChatError:
        """A refusal, in words."""
        detail = self._shown(_detail(body))
        said = f": {detail}" if detail else "."
        if any(word in detail.lower() for word in _WINDOW_WORDS) and status not in (401, 403, 429):
            return WindowError(
                f"The prompt exceeds the server's window{said}",
                "Set model.window to the server's, lower -k or --repeat.",
            )
        return ServerError(
            f"The server {self.shown} {_MEANINGS.get(status, f'answers {status}')}{said}",
            _HINTS.get(status, _HINT),
            status,
        )

    def _shown(self, text: str) -> str:
        """A server's words: on one line, harmless, short, and without key and password, which some servers repeat."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return clean_line(text, 240)


_MEANINGS = {
    0: "reports an error",
    200: "broke off before its answer",
    401: "refuses the key (401)",
    301: "sends to another address (301)",
    302: "sends to another address (302)",
    307: "sends to another address (307)",
    308: "sends to another address (308)",
    403: "gives no access (403)",
    404: "knows no such address or model (404)",
    429: "asks to wait (429)",
    503: "is not ready (503)",
}
_MOVED = "Redirects are not followed, since they could lead the key elsewhere: set server.url to the final address."
_HINTS = {
    **dict.fromkeys((301, 302, 307, 308), _MOVED),
    401: "Put the key into an environment variable and its name into server.key_env.",
    403: "Check what the key may use; server.key_env names its environment variable.",
    404: (
        "server.url is the address that OpenAI-compatible clients use, usually ending in /v1; model.name is a model of"
        " that server."
    ),
    429: "Wait a while, or use a server with more room.",
    503: "It may still be loading its model: try again in a minute.",
}
_HINT = "The server's log may say more."


def _detail(body: str) -> str:
    """The sentence in an error's body, whichever way it is wrapped."""
    try:
        found = parse(body)
    except ValueError:
        return body
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    return found if isinstance(found, str) else json.dumps(found)


def _code(event: Mapping[str, Any]) -> int:
    """The status in an error that came as an event; 0 if it has none."""
    error = event["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else 0


def _may_pass(broken: Exception) -> bool:
    """A connection that was reset may come again; one that is refused or silent is not tried again: the user should
    hear of it.
    """
    return isinstance(broken, httpx2.ReadError | httpx2.WriteError | httpx2.RemoteProtocolError | ConnectionResetError)


def _seconds(header: str) -> float:
    """Retry-After in seconds; 0 if there is none or it is a date."""
    try:
        asked = float(header)
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(asked) else min(max(asked, 0.0), LONGEST_WAIT)


def _pause(seconds: float, cancel: Cancel, sleep: Callable[[float], None] = time.sleep) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        cancel.check()
        sleep(min(POLL, left))

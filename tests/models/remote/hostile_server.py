"""The ways in which a model server may answer badly: one table, used by every test that asks what then happens.

Each mode writes a raw answer. "text": the reply must nevertheless be an answer, and a bounded one; "sentence": it must
be a ServerError; "either": what matters is only that it ends.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from itertools import chain, repeat
from typing import Any, NamedTuple

Blocks = Iterable[bytes]
FAR = 3_000
"""Blocks that stand for endless ones; together with their lengths far beyond every bound, and an end if a bound is
missing.
"""


class Mode(NamedTuple):
    """One kind of bad answer."""

    stream: Callable[[], Blocks]
    """What answers a request for a stream."""
    whole: Callable[[], Blocks]
    """What answers any other one."""
    outcome: str = "sentence"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def said(text: Any = " Paris", finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "message": {"content": text}, "finish_reason": finish, **more}]}


END = event(said("", "stop")) + b"data: [DONE]\n\n"


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def both(value: Any, outcome: str = "sentence") -> Mode:
    """The same object as an event and as a body."""
    return Mode(lambda: [event(value), END], lambda: [_bytes(value)], outcome)


def raw(
    *blocks: bytes, outcome: str = "sentence", status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> Mode:
    """The same bytes for both."""
    return Mode(lambda: blocks, lambda: blocks, outcome, status, headers)


def endless(block: bytes, outcome: str = "sentence", first: bytes = b"", times: int = FAR) -> Mode:
    return Mode(lambda: chain([first], repeat(block, times)), lambda: chain([first], repeat(block, times)), outcome)


def slow(block: bytes, first: bytes = b"") -> Mode:
    def drip() -> Iterator[bytes]:
        yield first
        for _ in range(200):
            time.sleep(0.05)
            yield block

    return Mode(drip, drip)


def figures(logprob: Any, top: Any = None, **more: Any) -> dict[str, Any]:
    item = {
        "token": " Paris",
        "logprob": logprob,
        "top_logprobs": [{"token": " Paris", "logprob": logprob}] if top is None else top,
        **more,
    }
    return said(" Paris", None, logprobs={"content": [item]})


def _nested(depth: int) -> bytes:
    return b'{"choices":' + b"[" * depth + b"]" * depth + b"}"


MIB = b"x" * (1 << 20)
BOMB = gzip.compress(b"0" * (64 << 20))
HALVES = _bytes(said("a\ud800b", None, logprobs={"content": [{"token": "\ud801"}]}))
MODES: dict[str, Mode] = {
    # shapes
    "a list": both([]),
    "null": both(None),
    "a number": both(5),
    "choices is a string": both({"choices": "x"}),
    "choices is a number": both({"choices": 7}),
    "choices holds numbers": both({"choices": [1, 2]}),
    "choices holds null": both({"choices": [None]}),
    "delta is a string": both({"choices": [{"delta": "x", "message": "x"}]}),
    "content is a number": both(said(5)),
    "content is a list": both(said([{"type": "text", "text": "x"}])),
    "content is an object": both(said({"a": 1})),
    "finish_reason is a list": both(said("x", ["stop"])),
    "logprobs is a string": both(said(" x", logprobs="many")),
    "logprobs is a list": both(said(" x", logprobs=[1])),
    "figures are numbers": both(said(" x", logprobs={"content": [1]})),
    "figures are null": both(said(" x", logprobs={"content": [None]})),
    "tokens without an end": both(said(" x", logprobs={"tokens": 3, "token_logprobs": [0.0]})),
    "a log-probability is a word": both(figures("high")),
    "a log-probability is not a number": both(_bytes(figures(float("nan"))), "text"),
    "a log-probability is infinite": both(_bytes(figures(float("-inf"))), "text"),
    "a log-probability is positive": both(figures(12.5), "text"),
    "a log-probability is huge": both(_bytes(figures(0)).replace(b'"logprob": 0', b'"logprob": -1' + b"0" * 400)),
    "likeliest tokens are words": both(figures(-0.1, ["a", "b"])),
    "likeliest tokens are an object": both(figures(-0.1, {"a": -1})),
    "bytes beyond 255": both(figures(-0.1, bytes=[80, 999])),
    "bytes are words": both(figures(-0.1, bytes=["P"])),
    "figures of other tokens": both(
        said(" Paris", None, logprobs={"content": [{"token": " Rome", "logprob": -0.1, "top_logprobs": []}]}), "text"
    ),
    "half characters": both(HALVES, "text"),
    "usage is a string": both({**said(), "usage": "much"}),
    "usage counts in words": both({**said(), "usage": {"prompt_tokens": "many"}}),
    "usage is negative": both({**said(), "usage": {"prompt_tokens": -5, "completion_tokens": -1}}),
    "usage is huge": both(b'{"choices":[],"usage":{"prompt_tokens":1' + b"0" * 5000 + b"}}"),
    "missing fields": Mode(
        lambda: [event({}), event({"choices": [{}]}), b"data: [DONE]\n\n"], lambda: [b"{}"], "either"
    ),
    "an error without words": both({"error": {"code": "x", "message": None}}),
    # text
    "deep nesting": both(_nested(100_000)),
    "half an object": both(b'{"choices":[{"delta"'),
    "no JSON": raw(b"<html>sign in</html>"),
    "invalid UTF-8": raw(b"data: \xff\xfe\x00\n\n\xc3("),
    "nothing": raw(b""),
    # lengths
    "an endless body": endless(MIB, times=200),
    "an endless line": endless(MIB, first=b'data: {"choices":[{"delta":{"content":"', times=200),
    "endless comments": endless(b": wait\n\n" * 1000),
    "endless empty lines": endless(b"\n" * 10_000),
    "endless words": endless(event(said(" word")) * 20, "either"),
    "endless thoughts": endless(
        event({"choices": [{"delta": {"content": "", "reasoning_content": "hm"}}]}) * 20, "either"
    ),
    "endless events without words": endless(event({"choices": []}) * 20),
    "one event with a novel": both(said("word " * 40_000), "text"),
    "the same event again and again": Mode(
        lambda: chain(repeat(event(said(" a", "stop")), 50), [END]), lambda: [_bytes(said(" a", "stop"))], "text"
    ),
    # time
    "a slow drip": slow(b"x"),
    "a slow drip of comments": slow(b": wait\n\n"),
    # HTTP
    "a length that is too long": raw(event(said()), headers=(("Content-Length", "99999"),)),
    "a redirect": raw(b"", status=302, headers=(("Location", "http://127.0.0.1:9/v1"),)),
    "a compressed bomb": raw(BOMB, headers=(("Content-Encoding", "gzip"),)),
}


def answer(mode: Mode) -> Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]:
    """What the fake server calls instead of answering."""

    def write(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(mode.status)
        for name, value in mode.headers:
            handler.send_header(name, value)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        try:
            for block in mode.stream() if body.get("stream") else mode.whole():
                handler.wfile.write(block)
                handler.wfile.flush()
        except OSError:
            pass  # the client has gone, as it should

    return write

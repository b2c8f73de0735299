"""One request to a model server, in a thread of its own, with bounds on everything that comes back.

Owns: the thread, how it is left, lines and their lengths, silence. Does not own: what is asked, attempts and refusals
(wire). Whatever a server sends is bounded: a line, a body, the lines that say nothing, the time in which nothing is
said, and how far the thread reads ahead of who takes the lines. Bytes that are compressed are refused, because a few of
them can become gigabytes.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2
from msgspec import Struct

from mindchat.errors import ServerError
from mindchat.ports import Cancel

POLL = 0.1
"""Seconds between two looks at the cancel token."""
AHEAD = 64
"""Lines that may wait to be taken; then the thread stops reading."""
REFUSAL_BYTES = 65_536
"""What is read of an answer that is a refusal."""


class Bounds(Struct, frozen=True):
    """How much may come back."""

    line: int
    """Bytes of a line."""
    noise: int
    """Bytes of empty lines and comments before a line that says something."""
    comments: bool
    """Whether lines come one by one, and one that begins with a colon says nothing; else one body is handed over."""


WHOLE = Bounds(line=64 << 20, noise=1 << 20, comments=False)
"""A JSON object, which must be whole within the time of silence after its head."""
EVENTS = Bounds(line=1 << 20, noise=1 << 20, comments=True)
"""Server-sent events: each is one line."""


class Head(Struct, frozen=True):
    """What comes before the lines."""

    status: int
    headers: Mapping[str, str]


class Oversized(ServerError):
    """More came than is read."""


class Exchange:
    """One request under way."""

    def __init__(self, client: httpx2.Client, method: str, url: str, body: Any, bounds: Bounds, silence: float) -> None:
        """`silence`: seconds in which something must be said; 0: any time."""
        self._news: queue.Queue[Head | str | BaseException | None] = queue.Queue(AHEAD)
        self._sockets: list[socket.socket] = []
        self._gone = threading.Event()
        self._bounds, self._silence = bounds, silence
        self._request = (client, method, url, body)
        threading.Thread(target=self._work, name="mindchat-server", daemon=True).start()

    def leave(self) -> None:
        """Close the connection, whatever the server is doing."""
        self._gone.set()
        for each in self._sockets:
            with suppress(OSError, ValueError):
                each.shutdown(socket.SHUT_RDWR)

    def items(self, cancel: Cancel) -> Iterator[Head | str]:
        """The head, then lines that say something. Raises what the token raises, ServerError (too much), and the
        request's own exception.
        """
        heard = time.monotonic()
        while True:
            cancel.check()
            try:
                item = self._news.get(timeout=POLL)
            except queue.Empty:
                if self._silence and time.monotonic() - heard > self._silence:
                    raise httpx2.ReadTimeout("nothing was said") from None
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            heard = time.monotonic()  # the time that who takes the lines needs is not the server's

    # ── in the thread ──

    def _work(self) -> None:
        client, method, url, body = self._request
        try:
            with client.stream(method, url, json=body, extensions={"trace": self._trace}) as response:
                self._put(Head(response.status_code, dict(response.headers)))
                for line in self._lines(response):
                    if line and not self._put(line):
                        return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - carried over to the waiting thread and judged there
            self._put(error)

    def _put(self, item: Head | str | BaseException | None) -> bool:
        """Hand over as soon as there is room; False if nobody waits any more."""
        while not self._gone.is_set():
            with suppress(queue.Full):
                self._news.put(item, timeout=POLL)
                return True
        return False

    def _lines(self, response: httpx2.Response) -> Iterator[str]:
        """The lines that say something, within the bounds. Raises Oversized."""
        if response.status_code != 200:
            yield from self._refusal(response)
            return
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("identity", ""):
            raise Oversized(
                "The server sends compressed bytes, which were not asked for.",
                "Switch compression off, in the server or in its proxy.",
            )
        if not self._bounds.comments:
            yield self._whole(response)
            return
        noise = 0
        for line in self._split(response):
            says = line.strip() and not line.startswith(b":")
            noise = 0 if says else noise + len(line) + 1
            if noise > self._bounds.noise:
                raise _too_long(self._bounds.noise)
            if says:
                yield line.decode("utf-8", "replace")

    def _whole(self, response: httpx2.Response) -> str:
        """A body; of one that begins as no JSON object can, the beginning. Empty space before it keeps a connection
        alive.
        """
        held, size = bytearray(), 0
        for block in response.iter_raw():
            size += len(block)
            held += block if held else block.lstrip()
            if held and not held.startswith(b"{"):
                break
            if size > (self._bounds.line if held else self._bounds.noise):
                raise _too_long(self._bounds.line if held else self._bounds.noise)
            if self._gone.is_set():
                break
        return held.decode("utf-8", "replace")

    def _split(self, response: httpx2.Response) -> Iterator[bytes]:
        """Lines, split where JSON and events are: at line feeds, not at the other characters that end a line of text."""
        held: list[bytes] = []
        size = 0
        for block in response.iter_raw():
            if self._gone.is_set():
                return
            *ended, rest = block.split(b"\n")
            for line in ended:
                yield b"".join((*held, line)).rstrip(b"\r")
                held, size = [], 0
            held.append(rest)
            size += len(rest)
            if size > self._bounds.line:
                raise _too_long(self._bounds.line)
        yield b"".join(held)

    def _refusal(self, response: httpx2.Response) -> Iterator[str]:
        """The beginning of what a refusal says."""
        read = 0
        for block in response.iter_raw():
            read += len(block)
            yield block.decode("utf-8", "replace")
            if read > REFUSAL_BYTES:
                return

    def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Remember the socket, plain or encrypted, as soon as there is one: only shutting it down wakes a thread that
        reads from it.
        """
        if name.endswith(("connect_tcp.complete", "start_tls.complete")):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
            if self._gone.is_set():
                self.leave()


def _too_long(most: int) -> Oversized:
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return Oversized(
        f"The server sends more than {size} where an answer is expected.",
        "Check server.url; the server's log may say more.",
    )

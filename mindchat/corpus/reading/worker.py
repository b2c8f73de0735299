"""The reading worker: a child process that parses files which may hang, crash or eat memory, so that the parent need
not.

Owns: the child's side (`python -m mindchat.corpus.reading.worker`) and the messages between the two. Does not own: time
limits (reading). Frames on both pipes: four bytes of length, little-endian, then MessagePack. A crash of a parser ends
this process, never the parent.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from mindchat.errors import DocumentError
from mindchat.values import Chunk, Document


class Ask(Struct, frozen=True, tag="ask"):
    """Parent to child: read this file."""

    path: str


class Got(Struct, frozen=True, tag="got"):
    """One document."""

    document: Document
    chunks: tuple[Chunk, ...] | None
    whole: bool


class Complained(Struct, frozen=True, tag="complained"):
    """A part cannot be read."""

    reason: str


class Ended(Struct, frozen=True, tag="ended"):
    """The file is finished; with a reason, nothing more can be read of it."""

    failure: str = ""


Answer = Got | Complained | Ended
_encoder = msgspec.msgpack.Encoder()
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_asks: msgspec.msgpack.Decoder[Ask] = msgspec.msgpack.Decoder(Ask)


def send(pipe: IO[bytes], message: Ask | Answer) -> None:
    """Write one frame."""
    frame = _encoder.encode(message)
    pipe.write(len(frame).to_bytes(4, "little") + frame)
    pipe.flush()


def receive_ask(pipe: IO[bytes]) -> Ask | None:
    """Read one frame; None at the end of the pipe."""
    frame = _frame(pipe)
    return None if frame is None else _asks.decode(frame)


def receive_answer(pipe: IO[bytes]) -> Answer | None:
    """Read one frame; None at the end of the pipe."""
    frame = _frame(pipe)
    return None if frame is None else _answers.decode(frame)


def _frame(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "little")
    frame = pipe.read(size)
    return frame if len(frame) == size else None


def limit_memory(limit: int) -> None:
    """Let allocations beyond `limit` bytes fail here, where the operating system can do so."""
    try:
        import resource
    except ImportError:
        return  # Windows: the time limit still holds
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ValueError, OSError):
        return  # a stricter limit is in force already


def serve(inbox: IO[bytes], outbox: IO[bytes]) -> None:
    """Answer until the parent closes the pipe."""
    from mindchat.corpus.reading.file_reader import Entry, read_here

    while (ask := receive_ask(inbox)) is not None:
        failure, path = "", Path(ask.path)
        try:
            for item in read_here(path):
                if isinstance(item, Entry):
                    chunks = None if item.chunks is None else tuple(item.chunks)
                    send(outbox, Got(item.document, chunks, item.whole))
                else:
                    send(outbox, Complained(item.reason))
        except DocumentError as error:
            failure = error.message
        except MemoryError:
            failure = "needs too much memory to read"
        except RecursionError:
            failure = "is nested too deeply"
        except Exception as error:  # noqa: BLE001 - a parser may raise anything; the file is named, the next one goes on
            failure = f"cannot be read ({type(error).__name__}: {str(error)[:200]})"
        send(outbox, Ended(failure))


def main() -> None:
    """Take over the standard streams; nothing that a library prints may get between the frames."""
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = sys.stderr
    import warnings

    warnings.simplefilter("ignore")
    limit_memory(int(sys.argv[1]))
    serve(inbox, outbox)


if __name__ == "__main__":
    main()

"""Documents in other words, each written once: the model calls behind layout.as = paraphrase and summary, and the file
that keeps them.

Owns: reword(), the key of a rewording, RewordingFile. Does not own: the prompts (prompts.rewriting), where the words
stand (prompts.core).
Source: CoRe Appendix F: every document is reworded separately, by the model that answers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from filelock import FileLock

from mindchat import events as ev
from mindchat.engine.budget import leaving
from mindchat.errors import WindowError
from mindchat.events import Event
from mindchat.paths import private
from mindchat.prompts.rewriting import rewrite_document
from mindchat.text.clean import clean
from mindchat.text.foreign_json import decode_json
from mindchat.values import Finish, Passage

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

LONGER = {"paraphrase": 1.5, "summary": 1.0}
"""Most tokens of a rewording, as a multiple of the document's."""


def key_of(kind: str, text: str, model: str, arithmetic: str) -> str:
    """What a rewording depends on, as a hash: the kind with its very prompt, the document's text, the model and its
    number format.
    """
    wording = repr(rewrite_document(kind, ""))
    return hashlib.sha256("\0".join((kind, wording, text, model, arithmetic)).encode()).hexdigest()


def reword(
    turn: Turn, kind: str, staying: Callable[[Mapping[str, str]], Set[str]]
) -> Generator[Event, None, dict[str, str]]:
    """Every passage of the prompt in other words, by passage id. One that cannot be reworded stands as it is, which is
    said.

    `staying` tells from such words which passages the window keeps. A model call is made only for one that stays if the
    words not yet written were none at all (it is dropped all the more for its own words, which stand in for the call).
    The best come first and the window drops the worst, so at most one call is made for a passage that is dropped after
    all.
    """
    kept, model, passages = turn.parts.rewordings, turn.parts.model, turn.hop.passages
    keys = {p.id: key_of(kind, p.text, model.id, turn.config.model.arithmetic) for p in passages}
    known = {} if kept is None else {id: words for id, key in keys.items() if (words := kept.get(key)) is not None}
    told = {p.id: known.get(p.id, "") for p in passages}
    for i in reversed(leaving(passages)):
        passage = passages[i]
        if told[passage.id]:
            continue
        stays = passage.id in staying(told)
        told[passage.id] = words = (yield from _written(turn, kind, passage)) if stays else passage.text
        if stays and kept is not None and words != passage.text:
            try:
                kept.put(keys[passage.id], words)
            except OSError as error:
                yield ev.Notice(f"The {kind} is not kept for the next time: {error.strerror or error}.", "warning")
    return told


def _written(turn: Turn, kind: str, passage: Passage) -> Generator[Event, None, str]:
    yield turn.step(kind)
    most = int(turn.ask.count(passage.text) * LONGER[kind]) + 16
    try:
        draft = turn.ask.complete(rewrite_document(kind, passage.text), max_tokens=most, kind=kind)
    except WindowError:
        yield ev.Notice(
            f"{clean(passage.name) or passage.id} is too long for a {kind}; it is repeated as it stands.", "warning"
        )
        return passage.text
    finally:
        yield from turn.ask.drain()
    text = " ".join(clean(draft.text).split())
    if draft.finish is Finish.LENGTH:  # the last sentence is cut; the whole ones before it are worth keeping
        whole = turn.words.sentences(text)[:-1]
        text = "".join(whole).strip() or text
    if not text:
        yield ev.Notice(
            f"The model wrote no {kind} of {clean(passage.name) or passage.id}; it is repeated as it stands.", "warning"
        )
    return text or passage.text


class _Line(msgspec.Struct, frozen=True):
    key: str
    text: str


class RewordingFile:
    """ports.Rewordings in one file of JSON lines: appended under a lock and synced, so that a kill costs at most the
    line being written.

    A line that cannot be read (torn by a kill) is as if it were not there: its document is reworded again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        self._read = 0
        """Bytes of the file that are known."""

    def get(self, key: str) -> str | None:
        """What was kept under the key, by this or another process."""
        if key not in self._known:
            self._refresh()
        return self._known.get(key)

    def put(self, key: str, text: str) -> None:
        """Append and sync one line. Raises OSError."""
        private(self._path.parent)
        with FileLock(self._path.with_suffix(".lock")):
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                size = file.seek(0, os.SEEK_END)
                torn = b""
                if size:
                    file.seek(size - 1)
                    torn = b"" if file.read(1) == b"\n" else b"\n"
                file.write(torn + msgspec.json.encode(_Line(key, text)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self._known[key] = text

    def _refresh(self) -> None:
        """Read what was appended since the last look, whole lines only."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            if file.seek(0, os.SEEK_END) < self._read:
                self._read = 0
            file.seek(self._read)
            body = file.read()
        end = body.rfind(b"\n") + 1
        self._read += end
        for line in body[:end].splitlines():
            try:
                kept = decode_json(line, type=_Line)
            except msgspec.DecodeError:
                continue  # see the class: torn, and written again when it is needed
            self._known[kept.key] = kept.text

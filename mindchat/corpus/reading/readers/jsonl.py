"""JSON lines: a corpus of {"id", "title", "text"} lines, or any objects.

Owns: telling the two apart by the first line, and complaining about single lines. Does not own: the form of a corpus
line (DESIGN.md, Glossary).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.corpus.reading.encoding import decode, normalise, open_regular
from mindchat.corpus.reading.readers import BaseReader, Complain
from mindchat.corpus.reading.readers.flat import flatten
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

MAX_LINE_BYTES = 16_000_000
"""Bytes of a line; parsing takes many times as much memory."""


class JsonLinesReader(BaseReader):
    """Each line is one document. A corpus line is one passage, however long, and keeps its id."""

    suffixes = frozenset({".jsonl", ".ndjson"})
    simple = True
    whole = True
    streams = True

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """A line that is no JSON object, or misses what the first line has, is reported by its number; the others go
        on.
        """
        tell = complain or (lambda _: None)
        status = path.stat()
        corpus: bool | None = None
        seen: set[str] = set()
        good = 0
        for number, line in _lines(path):
            try:
                if line is None:
                    raise ValueError(f"line {number}: is longer than {MAX_LINE_BYTES // 1_000_000} MB")
                row = _parse(line, number)
                corpus = _is_corpus(row) if corpus is None else corpus
                id_, title, text = _corpus_line(row, number) if corpus else _any_line(row, number)
                if id_ in seen:
                    raise ValueError(f"line {number}: the id {id_!r} was used before")
            except ValueError as error:
                tell(str(error))
                continue
            seen.add(id_)
            good += 1
            document = Document(
                f"{path}#{id_}", title, text, external_id=id_, mtime_ns=status.st_mtime_ns, size=status.st_size
            )
            yield document, (Chunk(0, len(text)),) if corpus else None
        if not good:
            raise DocumentError(f"{path.name}: has no line that can be read.")


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) of each line that is not blank; None for one that is longer than MAX_LINE_BYTES."""
    try:
        with open_regular(path) as file:
            start = file.read(4)
            file.seek(0)
            if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
                decoded = decode(file.read(), path.name).split("\n")
                yield from ((number, line.encode()) for number, line in enumerate(decoded, 1) if line.strip())
                return
            number = 0
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                        pass
                    yield number, None
                elif line.strip():
                    yield number, line
    except OSError as error:
        raise DocumentError(f"{path.name}: cannot be read ({error.strerror or error}).") from error


def _parse(line: bytes, number: int) -> dict[str, Any]:
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"line {number}: is not JSON ({error})") from None
    except RecursionError:
        raise ValueError(f"line {number}: is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError(f"line {number}: is not an object")
    return row


def _is_corpus(row: dict[str, Any]) -> bool:
    return isinstance(row.get("id"), str | int) and isinstance(row.get("text"), str)


def _corpus_line(row: dict[str, Any], number: int) -> tuple[str, str, str]:
    id_, title, text = row.get("id"), row.get("title", ""), row.get("text")
    if not isinstance(id_, str | int) or isinstance(id_, bool) or not clean_line(str(id_)):
        raise ValueError(f'line {number}: has no "id"')
    if not isinstance(text, str) or not isinstance(title, str):
        raise ValueError(f'line {number}: "title" and "text" must be strings')
    text = normalise(text)
    if not text.strip():
        raise ValueError(f'line {number}: "text" is empty')
    return clean_line(str(id_)), clean_line(title, 300), text


def _any_line(row: dict[str, Any], number: int) -> tuple[str, str, str]:
    text = normalise(flatten(row))
    if not text.strip():
        raise ValueError(f"line {number}: holds no text")
    title = next((row[key] for key in ("title", "name", "subject") if isinstance(row.get(key), str)), f"line {number}")
    return (
        hashlib.sha1(f"{number}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16],
        clean_line(title, 300),
        text,
    )

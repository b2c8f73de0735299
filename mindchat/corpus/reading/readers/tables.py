"""Tables and JSON: each row says its column names, so that it can be found and understood alone.

Owns: their form as text. Does not own: JSON lines (jsonl).
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from mindchat.corpus.reading.encoding import read_text
from mindchat.corpus.reading.readers import BaseReader, Complain
from mindchat.corpus.reading.readers.flat import flatten
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.values import Chunk, Document

_SNIFF = 16_384
_MAX_CELL = 1_000_000


class TableReader(BaseReader):
    """CSV and TSV; the first row names the columns."""

    suffixes = frozenset({".csv", ".tsv", ".tab"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """A row that cannot be read is complained about by its number."""
        text, tell, script = read_text(path), complain or (lambda _: None), Script()
        csv.field_size_limit(_MAX_CELL)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path.suffix.lower()))
        names: list[str] | None = None
        for number in itertools.count(1):
            try:
                row = next(rows, None)
            except csv.Error as error:
                tell(f"row {number}: {error}")
                continue
            if row is None:
                break
            if names is None:
                names = [cell.strip() for cell in row]
                script.block(" | ".join(names))
                continue
            script.block(named_row(names, row))
        yield self.document(path, path.name, script.text()), script.chunks()


def _delimiter(text: str, suffix: str) -> str:
    if suffix in (".tsv", ".tab"):
        return "\t"
    try:
        return csv.Sniffer().sniff(text[:_SNIFF], ",;\t|").delimiter
    except csv.Error:
        return ","


def named_row(names: Sequence[str], row: Sequence[str]) -> str:
    """The cells that are not empty, each after its column's name; names beyond the row cost nothing."""
    pairs = itertools.zip_longest(names[: len(row)], row, fillvalue="")
    return "; ".join(f"{name}: {cell.strip()}" if name else cell.strip() for name, cell in pairs if cell.strip())


class JsonReader(BaseReader):
    """Any JSON: a block for each element of the outermost list or each key of the outermost object."""

    suffixes = frozenset({".json"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for what is no JSON."""
        try:
            value = msgspec.json.decode(read_text(path))
        except (msgspec.DecodeError, RecursionError) as error:
            raise DocumentError(f"is no JSON ({error})") from error
        script = Script()
        if isinstance(value, dict):
            for key, inner in value.items():
                script.block(flatten({key: inner}))
        else:
            for inner in value if isinstance(value, list) else [value]:
                script.block(flatten(inner))
        yield self.document(path, path.name, script.text()), script.chunks()

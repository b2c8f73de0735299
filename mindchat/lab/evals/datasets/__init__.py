"""Question files: which formats are known, how one is recognised, and sampling.

Owns: DATASETS (format name → "module:function"), load, sample. Does not own: the formats themselves (one small module
each) or scoring. A file without gold answers is refused: scoring it would print zeros that mean nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.examples import Item
from mindchat.plugins import Table, resolve
from mindchat.text.foreign_json import decode_json

Load = Callable[[Sequence[Mapping[str, Any]], Path], Iterator[Item]]

DATASETS = Table(
    "mindchat.datasets",
    {
        "normalised": "mindchat.lab.evals.datasets.normalised:load",
        "hotpotqa": "mindchat.lab.evals.datasets.hotpotqa:load",
        "2wikimultihopqa": "mindchat.lab.evals.datasets.wiki2:load",
        "musique": "mindchat.lab.evals.datasets.musique:load",
        "strategyqa": "mindchat.lab.evals.datasets.strategyqa:load",
        "iirc": "mindchat.lab.evals.datasets.iirc:load",
        "jsonl": "mindchat.lab.evals.datasets.plain:load",
    },
)

_TELLTALE: tuple[tuple[str, frozenset[str]], ...] = (
    ("normalised", frozenset({"question", "context", "dataset", "meta"})),
    ("musique", frozenset({"question", "paragraphs"})),
    ("iirc", frozenset({"questions", "text"})),
    ("2wikimultihopqa", frozenset({"_id", "context", "evidences"})),
    ("hotpotqa", frozenset({"_id", "context"})),
    ("strategyqa", frozenset({"qid", "term", "question"})),
    ("jsonl", frozenset({"question"})),
)
"""Format and the keys of a row that give it away; the first that fits wins."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a .json array or a .jsonl file. Raises UsageError naming the line that is broken."""
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Give the path of a question file.") from error
    if body.lstrip()[:1] == b"[":
        return list(_decode(body, path, 0, list[dict[str, Any]]))
    return [_decode(line, path, n, dict[str, Any]) for n, line in enumerate(body.splitlines(), 1) if line.strip()]


def _decode(body: bytes, path: Path, line: int, kind: Any) -> Any:
    try:
        return decode_json(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where = f"{path}:{line}" if line else str(path)
        raise UsageError(
            f"{where} is not valid JSON of questions: {error}.", "One JSON object a line, or one array of objects."
        ) from error


def recognise(row: Mapping[str, Any], path: Path) -> str:
    """The format's name of a file whose first row is this one."""
    for name, keys in _TELLTALE:
        if keys <= row.keys():
            return name
    raise UsageError(
        f"{path} is no question file: its first row has the keys {', '.join(sorted(row))[:120] or 'none'}.",
        f"Known formats: {', '.join(DATASETS)}; the plainest is a line of {{question, answers}}.",
    )


def load(path: Path, *, format: str = "auto") -> list[Item]:  # noqa: A002 - the word that users know
    """All labelled questions of a file, in file order. Raises UsageError for unlabelled, empty or broken files and
    repeated ids.
    """
    rows = read_rows(path)
    if not rows:
        raise UsageError(f"{path} holds no question.", "Give a file with at least one.")
    name = recognise(rows[0], path) if format == "auto" else format
    if name not in DATASETS:
        raise UsageError(f"Unknown format {name!r}.", f"Known: {', '.join(DATASETS)}.")
    loader: Load = resolve(DATASETS[name])
    try:
        items = list(loader(rows, path))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        detail = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"{path} is not a {name} file: {detail}.", f"Known formats: {', '.join(DATASETS)}.") from error
    return _checked(items, path)


def _checked(items: list[Item], path: Path) -> list[Item]:
    if not items:
        raise UsageError(f"{path} holds no question with an answer.", "Give a labelled file.")
    seen: set[str] = set()
    for item in items:
        if not item.example.question.strip():
            raise UsageError(f"{path}: question {item.example.id} is empty.", "Remove it.")
        if item.example.id in seen:
            raise UsageError(
                f"{path}: the id {item.example.id} stands twice.", "Records are kept by id; make ids unique."
            )
        seen.add(item.example.id)
    return items


def require_label(row: Mapping[str, Any], key: str, path: Path) -> Any:
    """row[key], or a clear refusal if this is a file without gold."""
    if row.get(key) is None:
        raise UsageError(
            f"{path} has no gold answers (no {key!r} in the row"
            f" {row.get('id') or row.get('_id') or row.get('qid') or ''!s}).",
            "This looks like a test file whose answers are withheld; use the dev file.",
        )
    return row[key]


def sample(items: Sequence[Item], n: int | None, seed: int) -> list[Item]:
    """The first n of a seeded order that depends on id and seed only, so that a larger n extends a smaller one. None:
    all.
    """
    key = {item.example.id: hashlib.sha256(f"{seed}:{item.example.id}".encode()).digest() for item in items}
    ordered = sorted(items, key=lambda item: key[item.example.id])
    return ordered if n is None else ordered[:n]

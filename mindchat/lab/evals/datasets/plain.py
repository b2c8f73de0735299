"""Any JSONL of questions, the bundled demo's included: {question, answers | answer} with optional id, type, dataset,
context, supporting.

Owns: its reading. `answers` may be a string, a list of alternatives, a number or a truth value; `supporting` lists
passage ids or titles; `context` lists {title, text} or plain strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, passage_id
from mindchat.text.clean import clean, clean_line


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; ids default to the line number; raises UsageError if a row has no answers."""
    for number, row in enumerate(rows, 1):
        answers = _answers(row.get("answers", row.get("answer")))
        if not answers:
            require_label({"id": row.get("id", number)}, "answers", path)
        pieces = row.get("context") or ()
        sources = tuple(_source(piece, n) for n, piece in enumerate(pieces, 1))
        marked = [
            s.pid
            for s, piece in zip(sources, pieces, strict=True)
            if isinstance(piece, Mapping) and piece.get("is_supporting")
        ]
        supporting = tuple(
            Support(str(name), str(name)) for name in dict.fromkeys([*map(str, row.get("supporting") or ()), *marked])
        )
        dataset = str(row.get("dataset") or (path.parent.name if path.stem == "questions" else path.stem))
        gold = Gold(
            answers, str(row.get("type") or ""), supporting=supporting, answerable=bool(row.get("answerable", True))
        )
        yield Item(Example(str(row.get("id", number)), dataset, clean_line(str(row["question"])), sources), gold)


def _answers(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, (list, tuple)):
        return tuple(answer for one in value for answer in _answers(one))
    return (clean_line(str(value)),)


def _source(piece: Any, number: int) -> Source:
    if isinstance(piece, Mapping):
        title, text = clean_line(str(piece.get("title") or f"Passage {number}")), clean(str(piece["text"]))
        return Source(title, text, str(piece.get("pid") or piece.get("id") or passage_id(title, text)))
    title, text = f"Passage {number}", clean(str(piece))
    return Source(title, text, passage_id(title, text))

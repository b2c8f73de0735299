"""The project's own normalised format: one object a line with id, question, answers, type, context, dataset, meta.

Owns: its reading, including the gold that stands in `meta` (evidences, decomposition). Does not own: where such files
come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, on_path
from mindchat.text.clean import clean, clean_line

_UNANSWERABLE = {("locomo", "adversarial")}
"""Types whose gold is a refusal."""


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; raises UsageError if one has no answers."""
    for row in rows:
        answers = tuple(clean_line(str(answer)) for answer in require_label(row, "answers", path))
        if not answers:
            require_label({"id": row["id"]}, "answers", path)
        sources = tuple(Source(clean_line(c["title"]), clean(c["text"]), str(c["pid"])) for c in row["context"])
        supporting = tuple(
            Support(source.title, source.pid)
            for source, c in zip(sources, row["context"], strict=True)
            if c.get("is_supporting")
        )
        dataset, kind, meta = str(row["dataset"]), str(row.get("type") or ""), row.get("meta") or {}
        facts = tuple((str(s), str(p), str(o)) for s, p, o in meta.get("evidences") or ())
        gold = Gold(
            answers=answers,
            type=kind,
            supporting=supporting,
            sentences=_sentences(meta, supporting),
            entities=on_path([support.title for support in supporting], facts),
            facts=facts,
            steps=_steps(meta),
            answerable=(dataset, kind) not in _UNANSWERABLE,
        )
        yield Item(Example(str(row["id"]), dataset, clean_line(row["question"]), sources), gold)


def _sentences(meta: Mapping[str, Any], supporting: tuple[Support, ...]) -> tuple[tuple[str, str], ...]:
    """The supporting sentences of HotpotQA and 2Wiki, where the file has them."""
    pids = {support.title: str(support.pid) for support in reversed(supporting)}
    rows = [row for row in meta.get("supporting_sentences") or () if isinstance(row, Mapping)]
    pairs = [(clean_line(str(row["title"])), clean_line(str(row.get("sentence") or ""))) for row in rows]
    return tuple(dict.fromkeys((pids.get(title, title), text) for title, text in pairs))


def _steps(meta: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Single hops of MuSiQue; StrategyQA's decomposition is a list of bare questions and has no step answers."""
    steps = meta.get("decomposition") or ()
    return tuple(
        (str(s["question"]), str(s["answer"]), str(s.get("support_pid") or "")) for s in steps if isinstance(s, Mapping)
    )

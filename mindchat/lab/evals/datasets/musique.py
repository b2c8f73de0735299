"""Official MuSiQue files (Trivedi et al. 2022), Answerable and Full: lines of {id, question, answer, answer_aliases,
answerable, paragraphs, …}.

Owns: their reading. Unanswerable items of MuSiQue-Full stay, marked: only a refusal is right for them. Their ids repeat
those of their answerable twin, so they get a suffix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, passage_id
from mindchat.text.clean import clean, clean_line

DATASET = "musique"


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; raises UsageError for the test files, which have no answers."""
    for row in rows:
        answer = str(require_label(row, "answer", path))
        sources = tuple(_source(paragraph) for paragraph in row["paragraphs"])
        by_number = {p["idx"]: source for p, source in zip(row["paragraphs"], sources, strict=True)}
        steps = tuple(_step(step, by_number) for step in row.get("question_decomposition") or ())
        marked = zip(row["paragraphs"], sources, strict=True)
        supporting = tuple(
            Support(source.title, source.pid) for paragraph, source in marked if paragraph.get("is_supporting")
        )
        answerable = bool(row.get("answerable", True))
        hops = re.match(r"\d+hop", str(row["id"]))
        gold = Gold(
            answers=tuple(dict.fromkeys([answer, *map(str, row.get("answer_aliases") or ())])),
            type=hops[0] if hops else "",
            supporting=supporting,
            entities=tuple(dict.fromkeys([*(s.title for s in supporting), *(step[1] for step in steps[:-1])])),
            steps=steps,
            answerable=answerable,
        )
        id_ = f"{row['id']}" if answerable else f"{row['id']}-unanswerable"
        yield Item(Example(id_, DATASET, clean_line(row["question"]), sources), gold)


def _source(paragraph: Mapping[str, Any]) -> Source:
    title, text = clean_line(paragraph["title"]), clean(paragraph["paragraph_text"])
    return Source(title, text, passage_id(title, text))


def _step(step: Mapping[str, Any], by_number: Mapping[Any, Source]) -> tuple[str, str, str]:
    source = by_number.get(step.get("paragraph_support_idx"))
    return (str(step["question"]), str(step["answer"]), source.pid if source else "")

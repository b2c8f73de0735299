"""Official StrategyQA files (Geva et al. 2021): an array of {qid, term, question, answer, facts, decomposition,
evidence}.

Owns: their reading. `evidence` holds, per annotator and step, paragraph ids or the words "operation" and "no_evidence";
the paragraphs stand in strategyqa_*_paragraphs.json beside the file. Without it questions have no context of their own
and need --open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, passage_id
from mindchat.text.clean import clean, clean_line
from mindchat.text.foreign_json import decode_json

DATASET = "strategyqa"


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; raises UsageError for the test file, which has no answers."""
    texts = _paragraphs(path)
    for row in rows:
        answer = require_label(row, "answer", path)
        ids = dict.fromkeys(_ids(row.get("evidence") or ()))
        sources = tuple(dict.fromkeys(_source(texts[id_]) for id_ in ids if id_ in texts))
        supporting = tuple(Support(source.title, source.pid) for source in sources)
        gold = Gold(
            answers=("yes" if answer else "no",),
            type=f"{len(row.get('decomposition') or ())}-step",
            supporting=supporting,
            entities=tuple(dict.fromkeys([str(row["term"]), *(s.title for s in supporting)])),
        )
        yield Item(Example(str(row["qid"]), DATASET, clean_line(row["question"]), sources), gold)


def _ids(evidence: Any) -> Iterator[str]:
    if isinstance(evidence, str):
        if evidence not in ("operation", "no_evidence"):
            yield evidence
    else:
        for part in evidence:
            yield from _ids(part)


def _paragraphs(path: Path) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted(path.parent.glob("*paragraphs.json")):
        try:
            found.update(decode_json(file.read_bytes(), type=dict[str, dict[str, Any]]))
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(
                f"{file} is not a paragraph file: {error}.", "Remove it, or restore the official one."
            ) from error
    return found


def _source(paragraph: Mapping[str, Any]) -> Source:
    title, text = clean_line(str(paragraph["title"])), clean(str(paragraph["content"]))
    return Source(title, text, passage_id(title, text))

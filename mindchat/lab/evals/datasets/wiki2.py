"""Official 2WikiMultihopQA files (Ho et al. 2020, v1.1): HotpotQA's shape with evidences, answer_id and, beside the
file, id_aliases.json.

Owns: their reading. The official scorer accepts aliases and demonyms of `answer_id`; without id_aliases.json only the
answer itself counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindchat.lab.evals.datasets import read_rows, require_label
from mindchat.lab.evals.datasets.hotpotqa import paragraphs, sentences, supports
from mindchat.lab.evals.examples import Example, Gold, Item, on_path
from mindchat.text.clean import clean_line

DATASET = "2wikimultihopqa"
ALIASES = "id_aliases.json"


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; raises UsageError for the test file, which has no answers."""
    beside = path.parent / ALIASES
    aliases = {str(row["Q_id"]): row for row in read_rows(beside)} if beside.is_file() else {}
    for row in rows:
        answer = str(require_label(row, "answer", path))
        known = aliases.get(str(row.get("answer_id") or ""), {})
        sources = tuple(paragraphs(row["context"]))
        supporting = supports(row.get("supporting_facts") or (), sources)
        facts = tuple((str(s), str(p), str(o)) for s, p, o in row.get("evidences") or ())
        gold = Gold(
            answers=tuple(dict.fromkeys([answer, *map(str, known.get("aliases") or ())])),
            type=str(row.get("type") or ""),
            demonyms=tuple(map(str, known.get("demonyms") or ())),
            supporting=supporting,
            sentences=sentences(row.get("supporting_facts") or (), row["context"], sources),
            entities=on_path([s.title for s in supporting], facts),
            facts=facts,
        )
        yield Item(Example(str(row["_id"]), DATASET, clean_line(row["question"]), sources), gold)

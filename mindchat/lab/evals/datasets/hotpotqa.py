"""Official HotpotQA files (Yang et al. 2018), distractor and fullwiki: an array of {_id, question, answer,
supporting_facts, context, type, level}.

Owns: their reading. In the fullwiki files a gold paragraph may be missing from the context; its support is then matched
by title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, passage_id
from mindchat.text.clean import clean_line

DATASET = "hotpotqa"


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every row; raises UsageError for the test files, which have no answers."""
    for row in rows:
        answer = str(require_label(row, "answer", path))
        sources = tuple(paragraphs(row["context"]))
        supporting = supports(row.get("supporting_facts") or (), sources)
        said = sentences(row.get("supporting_facts") or (), row["context"], sources)
        kind, titles = str(row.get("type") or ""), tuple(s.title for s in supporting)
        gold = Gold((answer,), kind, supporting=supporting, sentences=said, entities=titles)
        yield Item(Example(str(row["_id"]), DATASET, clean_line(row["question"]), sources), gold)


def paragraphs(context: Sequence[Any]) -> Iterator[Source]:
    """[[title, [sentence, …]], …] as passages: sentences joined, runs of spaces collapsed."""
    for title, sentences in context:
        name, text = clean_line(title), clean_line(" ".join(sentences))
        yield Source(name, text, passage_id(name, text))


def supports(facts: Sequence[Any], sources: Sequence[Source]) -> tuple[Support, ...]:
    """[[title, sentence number], …] as supporting passages, each once."""
    pids = {source.title: source.pid for source in reversed(sources)}
    titles = dict.fromkeys(clean_line(title) for title, _ in facts)
    return tuple(Support(title, pids.get(title)) for title in titles)


def sentences(facts: Sequence[Any], context: Sequence[Any], sources: Sequence[Source]) -> tuple[tuple[str, str], ...]:
    """[[title, sentence number], …] as (pid or title, text), each once; a number past the paragraph's end (the files
    have some) has no text.
    """
    pids = {source.title: source.pid for source in reversed(sources)}
    texts = {clean_line(title): [clean_line(part) for part in parts] for title, parts in reversed(list(context))}
    found = []
    for title, number in dict.fromkeys((clean_line(title), int(number)) for title, number in facts):
        parts = texts.get(title, [])
        found.append((pids.get(title, title), parts[number] if 0 <= number < len(parts) else ""))
    return tuple(found)

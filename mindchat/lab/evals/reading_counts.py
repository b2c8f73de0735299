"""How often readings by patterns and followed plans are right, counted over rows with gold triples (2WikiMultihopQA).

Owns: the counts of relations and of plans, writing chain/measured.json. Does not own: reading and following
(mindchat.chain).
    python -m mindchat.lab.evals.reading_counts DATA_FOLDER [measured.json]
Odd rows only: patterns were written on the even ones. A date is right if one is the other's beginning, a country if it
is the same one, any other value from an F1 of a half on. Plans are followed over the whole corpus, without a model;
those in which a model read a slot need one, so their count is kept as it is.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.chain.follow import Followed, Supplied, Unread, follow
from mindchat.chain.measured import Count, Measured, measured
from mindchat.chain.parse import parse
from mindchat.chain.reading import read
from mindchat.config import Config
from mindchat.evidence.sentences import head
from mindchat.lab.evals.metrics import token_f1
from mindchat.library import DocumentLibrary
from mindchat.memory.learning.slots import predicates
from mindchat.ports import Retriever
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.text.countries import RELATIONS, country_norm
from mindchat.text.foreign_json import decode_json
from mindchat.text.typed_spans import iso_date
from mindchat.values import Passage, Query

SETS = ("2wikimultihopqa_open", "2wikimultihopqa")
CORPUS = "2wikimultihopqa.corpus.jsonl"
NAMES = {"founded by": "founder"}
"""The data's name of a relation → memory's, where a blank is not all that differs."""
FOUND = 5


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The odd rows of both sets."""
    for name in SETS:
        lines = (folder / f"{name}.dev.jsonl").read_bytes().splitlines()
        yield from (decode_json(line) for number, line in enumerate(lines) if number % 2)


def agrees(relation: str, value: str, gold: str) -> bool:
    """Whether a reading is the gold value."""
    known = predicates().get(relation)
    if known is not None and known.range == "date":
        first, second = iso_date(value) or value, iso_date(gold) or gold
        return bool(value) and (first.startswith(second) or second.startswith(first))
    if relation in RELATIONS:
        return country_norm(value) == country_norm(gold)
    return token_f1(value, gold, polar=False) >= 0.5


def relations(found: Sequence[dict[str, Any]]) -> dict[str, Count]:
    """Of each relation, over the passages that bear a triple's subject; each triple once."""
    seen: set[tuple[str, str]] = set()
    right, total = Counter[str](), Counter[str]()
    for row in found:
        titled = {head(given["title"]): given for given in row["context"]}
        for subject, phrase, gold in row["meta"]["evidences"]:
            relation = NAMES.get(phrase, phrase.replace(" ", "_"))
            given = titled.get(head(subject))
            if given is None or (subject, phrase) in seen:
                continue
            seen.add((subject, phrase))
            passage = Passage("p", "d", given["title"], given["text"], 0, len(given["text"]))
            readings = read(relation, passage, head(given["title"]))
            if readings:
                total[relation] += 1
                right[relation] += agrees(relation, readings[0].value, gold)
    return {name: Count(right[name], total[name]) for name in sorted(total)}


def followed(question: str, retriever: Retriever) -> Followed:
    """The first plan that is answered without a model; an unanswered one if none is."""
    pool = retriever.search(Query(question, "question"), FOUND)
    end = Followed("", ())
    for plan in parse(question):
        way = follow(plan, pool)
        try:
            wanted = next(way)
            while True:
                asked = isinstance(wanted, Unread) or wanted.here
                given = () if asked else tuple(retriever.search(Query(wanted.subject, "slot"), FOUND))
                wanted = way.send(Supplied(given))
        except StopIteration as stop:
            end = stop.value
        if end.answer:
            break
    return end


def plans(found: Sequence[dict[str, Any]], retriever: Retriever) -> dict[str, Count]:
    """Of each kind of plan, how many were answered, and how many of these with an F1 over a half."""
    right, total = Counter[str](), Counter[str]()
    for row in found:
        end = followed(row["question"], retriever)
        if end.answer:
            total[end.how] += 1
            right[end.how] += max(token_f1(end.answer, gold, polar=True) for gold in row["answers"]) > 0.5
    return {name: Count(right[name], total[name]) for name in sorted(total)}


def count(folder: Path, date: str) -> Measured:
    """All of it."""
    found, config = list(rows(folder)), Config()
    with tempfile.TemporaryDirectory() as scratch:
        registry = DocumentRegistry(Path(scratch) / "registry.db")
        library = DocumentLibrary(Path(scratch) / "index", config.index, registry, retrieve=config.retrieve)
        for _ in library.add([folder / CORPUS]):
            pass
        counted = plans(found, library)
        library.close()
    sets = "odd rows of " + " and ".join(f"{name}.dev" for name in SETS)
    return Measured(date=date, sets=sets, relations=relations(found), plans={**measured().plans, **counted})


if __name__ == "__main__":
    result = msgspec.json.format(msgspec.json.encode(count(Path(sys.argv[1]), time.strftime("%Y-%m-%d"))), indent=1)
    sys.stdout.write(result.decode() + "\n")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_bytes(result + b"\n")

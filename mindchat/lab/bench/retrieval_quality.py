"""How well and how fast the index finds what a question needs.

Owns: Recall@k and nDCG@k over question files with supporting passages, latency, and the grid from which the defaults
were chosen.
Does not own: the command that shows them (bench), question answering (evals).
Sources: Recall@k as the share of a question's supporting passages among the first k; nDCG with binary gains, Järvelin
and Kekäläinen 2002.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.reading.readers.jsonl import JsonLinesReader
from mindchat.corpus.search.analyze import Analyzer
from mindchat.errors import UsageError
from mindchat.ports import Retriever
from mindchat.text.clean import clean_line
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage, Query


class Question(Struct, frozen=True):
    """A question with the ids of the passages that support its answer."""

    text: str
    gold: frozenset[str]


class Quality(Struct, frozen=True):
    """Means over questions; 0..1."""

    questions: int
    recall: float
    ndcg: float


class Latency(Struct, frozen=True):
    """Milliseconds a question: by the clock, and of processor time (which a busy machine does not stretch)."""

    questions: int
    p50: float
    p95: float
    cpu_p50: float
    cpu_p95: float


def load_corpus(path: Path) -> list[Passage]:
    """Passages of a corpus file, as ingest would store them."""
    return [
        Passage(
            document.external_id or document.uri, document.uri, document.title, document.text, 0, len(document.text)
        )
        for document, _ in JsonLinesReader().read(path)
    ]


def load_questions(path: Path) -> list[Question]:
    """Questions of a .dev.jsonl file in file order. Raises UsageError if it has none with supporting passages."""
    try:
        rows = [decode_json(line, dict[str, Any]) for line in path.read_bytes().splitlines() if line.strip()]
        questions = [Question(row["question"], frozenset(_gold(row))) for row in rows]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no file of questions: {clean_line(str(error), 120)}.",
            'One JSON object a line, with "question" and "context".',
        ) from error
    if not any(question.gold for question in questions):
        raise UsageError(
            f"{path} names no supporting passages.", "A question needs context entries with pid and is_supporting."
        )
    return questions


def _gold(row: dict[str, Any]) -> Iterator[str]:
    return (entry["pid"] for entry in row["context"] if entry.get("is_supporting") and entry.get("pid"))


def quality(retriever: Retriever, questions: Sequence[Question], k: int = 10) -> Quality:
    """Mean Recall@k and nDCG@k over the questions that have supporting passages."""
    return mean_quality(
        [
            recall_and_ndcg(
                [passage.id for passage in retriever.search(Query(question.text, "question"), k)], question.gold, k
            )
            for question in questions
            if question.gold
        ]
    )


def recall_and_ndcg(found: Sequence[str], gold: frozenset[str], k: int) -> tuple[float, float]:
    """Of one question, over the first k ids found; `gold` is not empty."""
    gains = [id in gold for id in found[:k]]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))
    return sum(gains) / len(gold), sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1)) / ideal


def mean_quality(rows: Sequence[tuple[float, float]]) -> Quality:
    """Means over questions of recall_and_ndcg(); zeros if there are none."""
    count = max(len(rows), 1)
    return Quality(len(rows), sum(row[0] for row in rows) / count, sum(row[1] for row in rows) / count)


def mean_latency(seconds: Sequence[tuple[float, float]]) -> Latency:
    """From (wall-clock, processor) seconds of at least one question."""
    wall, cpu = (sorted(row[at] * 1000 for row in seconds) for at in (0, 1))
    middle, high = len(wall) // 2, min(int(len(wall) * 0.95), len(wall) - 1)
    return Latency(len(wall), wall[middle], wall[high], cpu[middle], cpu[high])


def latency(retriever: Retriever, questions: Sequence[Question], k: int = 10) -> Latency:
    """Time of each search, after one that warms up."""
    times = []
    for question in [questions[0], *questions]:
        wall, cpu = time.perf_counter(), time.process_time()
        retriever.search(Query(question.text, "question"), k)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return mean_latency(times[1:])


class Cell(Struct, frozen=True):
    """One point of the grid on one dataset: chosen on the even rows, reported on the odd ones (0-based)."""

    dataset: str
    k1: float
    b: float
    title_boost: float
    even: Quality
    odd: Quality


def grid(
    datasets: Sequence[tuple[Path, Path]],
    k1s: Sequence[float],
    bs: Sequence[float],
    boosts: Sequence[float],
    language: str = "en",
    k: int = 10,
) -> Iterator[Cell]:
    """Every combination on every (corpus, questions) pair; one index in memory each, counted once."""
    from mindchat.corpus.search.memory_index import MemoryIndex

    for corpus, file in datasets:
        questions, base = (
            load_questions(file),
            MemoryIndex(load_corpus(corpus), None, Analyzer(language), RetrieveSection(links="off")),
        )
        for k1, b, boost in itertools.product(k1s, bs, boosts):
            index = base.with_section(IndexSection(k1=k1, b=b, title_boost=boost))
            yield Cell(file.name, k1, b, boost, quality(index, questions[::2], k), quality(index, questions[1::2], k))

"""The index beside other engines over the same passages and questions, in one run on one machine.

Owns: plain Whoosh as its own documentation uses it, and bm25s and tantivy with their defaults, if they are installed. Does not own: our own
index (index), the command (cli). Every engine gets title and text and answers the first k ids. The engines take turns question by question,
so that a busy minute falls on all of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.lab.bench.retrieval_quality import (
    Latency,
    Quality,
    Question,
    load_corpus,
    load_questions,
    mean_latency,
    mean_quality,
    recall_and_ndcg,
)
from mindchat.ports import Registry
from mindchat.values import Passage, Query

Ids = Callable[[str, int], Sequence[str]]
Build = Callable[[Sequence[Passage], Path], Ids]


Told = Callable[[str, int, int], None]
"""What is being done, how much of it is done, of how much."""


class Spent(Struct, frozen=True):
    """Seconds of one piece of work: by the clock, and of the process's processor time."""

    wall: float
    cpu: float


class Beside(Struct, frozen=True):
    """One engine's result."""

    engine: str
    passages: int
    indexing: Spent
    """Everything included that the engine needs to answer (for ours: reading, registry, index of record and matrix)."""
    latency: Latency
    quality: Quality
    open_seconds: float | None = None
    """Until the first answer of a built index; None for engines that were left open."""


class Comparison(Struct, frozen=True):
    """All engines of one run; the ratios are ours against plain Whoosh: above 1 is better."""

    questions: int
    k: int
    engines: tuple[Beside, ...]
    ratios: dict[str, float]


def compare(
    corpora: Sequence[Path], questions: Path, registry: Registry, index: Index, folder: Path, *, limit: int = 0, k: int = 10, told: Told | None = None
) -> Comparison:
    """Index the files with ours into an empty registry, then with every other engine; then ask all of them each question in turn.

    `limit`: only the first so many questions (0: all). `folder`: an empty one for the others' files.
    """
    told = told or (lambda what, done, total: None)
    asked = load_questions(questions)[: limit or None]
    told("indexing with mindchat", 0, 1)
    with _Clock() as ours:
        for _ in ingest(corpora, registry, index, index.section):
            pass
    passages = list({passage.id: passage for path in corpora for passage in load_corpus(path)}.values())
    built: dict[str, tuple[Ids, Spent, float | None]] = {"mindchat": (_ours(index), ours.spent, _opening(index, asked[0].text))}
    for name, (module, build) in _OTHERS.items():
        if importlib.util.find_spec(module) is not None:
            told(f"indexing with {name}", 0, 1)
            (folder / name).mkdir(parents=True)
            with _Clock() as clock:
                engine = build(passages, folder / name)
            built[name] = (engine, clock.spent, None)
    times, found = _ask_in_turn({name: engine for name, (engine, _, _) in built.items()}, asked, k, told)
    count = index.status().passages
    rows = tuple(
        Beside(name, count if name == "mindchat" else len(passages), spent, mean_latency(times[name]), _quality(found[name], asked, k), opening)
        for name, (_, spent, opening) in built.items()
    )
    return Comparison(len(asked), k, rows, _ratios(rows))


class _Clock:
    """Measures a with-block; `spent` is known afterwards."""

    def __enter__(self) -> _Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.spent = Spent(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def _ours(index: Index) -> Ids:
    return lambda text, k: [passage.id for passage in index.search(Query(text, "question"), k)]


def _opening(index: Index, text: str) -> float:
    """Seconds from a closed index to its first answer, checks of all files included."""
    index.close()
    with _Clock() as clock:
        index.search(Query(text), 1)
    return clock.spent.wall


def _ask_in_turn(
    engines: dict[str, Ids], asked: Sequence[Question], k: int, told: Told
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, list[Sequence[str]]]]:
    """(seconds of wall clock and processor, ids) a question and engine, after one question that warms up."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    found: dict[str, list[Sequence[str]]] = {name: [] for name in engines}
    for search in engines.values():
        search(asked[0].text, k)
    for number, question in enumerate(asked):
        told("questions", number, len(asked))
        for name, search in engines.items():
            with _Clock() as clock:
                ids = search(question.text, k)
            times[name].append((clock.spent.wall, clock.spent.cpu))
            found[name].append(ids)
    return times, found


def _quality(found: Sequence[Sequence[str]], asked: Sequence[Question], k: int) -> Quality:
    return mean_quality([recall_and_ndcg(ids, question.gold, k) for ids, question in zip(found, asked, strict=True) if question.gold])


def _ratios(rows: Sequence[Beside]) -> dict[str, float]:
    by_name = {row.engine: row for row in rows}
    ours, plain = by_name["mindchat"], by_name["whoosh"]
    return {
        "search_p50": plain.latency.p50 / ours.latency.p50,
        "search_p95": plain.latency.p95 / ours.latency.p95,
        "search_cpu_p50": plain.latency.cpu_p50 / ours.latency.cpu_p50,
        "indexing": plain.indexing.wall / ours.indexing.wall,
        "indexing_cpu": plain.indexing.cpu / ours.indexing.cpu,
    }


def _words(text: str) -> str:
    """The question without characters that these engines' query parsers take as syntax; their operators are upper-case words."""
    return " ".join(re.findall(r"\w+", text)).lower()


def _plain_whoosh(passages: Sequence[Passage], folder: Path) -> Ids:
    from whoosh import fields, index
    from whoosh.analysis import StemmingAnalyzer
    from whoosh.qparser import MultifieldParser, OrGroup

    field = fields.TEXT(analyzer=StemmingAnalyzer())
    schema = fields.Schema(id=fields.ID(stored=True, unique=True), title=field, text=field)
    opened = index.create_in(folder, schema)
    writer = opened.writer(limitmb=256)
    for passage in passages:
        writer.add_document(id=passage.id, title=passage.title, text=passage.text)
    writer.commit()
    searcher, parser = opened.searcher(), MultifieldParser(["title", "text"], schema, group=OrGroup)
    return lambda text, k: [hit["id"] for hit in searcher.search(parser.parse(_words(text)), limit=k)]


def _bm25s(passages: Sequence[Passage], _: Path) -> Ids:
    import bm25s
    import Stemmer

    ids, engine = [passage.id for passage in passages], bm25s.BM25()

    def tokens(texts: Any) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)

    engine.index(tokens([f"{passage.title} {passage.text}" for passage in passages]), show_progress=False)

    def search(text: str, k: int) -> list[str]:
        found, _ = engine.retrieve(tokens([text]), k=min(k, len(ids)), show_progress=False)
        return [ids[int(at)] for at in found[0]]

    return search


def _tantivy(passages: Sequence[Passage], _: Path) -> Ids:
    tantivy: Any = importlib.import_module("tantivy")
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    schema.add_text_field("body", tokenizer_name="en_stem")
    engine = tantivy.Index(schema.build())
    writer = engine.writer()
    for passage in passages:
        writer.add_document(tantivy.Document(id=passage.id, body=f"{passage.title} {passage.text}"))
    writer.commit()
    writer.wait_merging_threads()
    engine.reload()
    searcher = engine.searcher()

    def search(text: str, k: int) -> list[str]:
        hits = searcher.search(engine.parse_query(_words(text), ["body"]), k).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return search


_OTHERS: dict[str, tuple[str, Build]] = {
    "whoosh": ("whoosh", _plain_whoosh),
    "bm25s": ("bm25s", _bm25s),
    "tantivy": ("tantivy", _tantivy),
}

"""The index beside other engines over the same passages and questions, in one run on one machine.

Owns: plain Whoosh as its own documentation uses it, and bm25s and tantivy with their defaults, if they are installed;
our rankers beside one another. Does not own: our own index (index), the command (cli). Every engine gets title and text
and answers the first ten ids. The engines take turns question by question, so that a busy minute falls on all of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from mindchat.corpus.encoding import Encoding, encode
from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.weave import woven
from mindchat.document_ports import Registry
from mindchat.lab.bench.retrieval_quality import (
    Question,
    load_corpus,
    load_questions,
    mean_latency,
    mean_quality,
    recall_and_ndcg,
)
from mindchat.ports import NEVER, FindsEncoder
from mindchat.values import Passage, Query

Ids = Callable[[str, int], Sequence[str]]
Build = Callable[[Sequence[Passage], Path], Ids]


_OURS = {"mindchat": "links", "mindchat without links": "words", "mindchat pagerank": "pagerank"}
"""Our rows → their ranker; they share one index."""
WITH_DENSE = "mindchat with dense"
"""The row of the same index with vectors, where an encoder is at hand."""
DEEPEST = 10
"""Passages asked for."""

Told = Callable[[str, int, int], None]
"""What is being done, how much of it is done, of how much."""


class Spent(Struct, frozen=True):
    """Seconds of one piece of work: by the clock, and of the process's processor time."""

    wall: float
    cpu: float


class Beside(Struct, frozen=True):
    """One engine's result on one file of questions; recall and all in 0..1, over questions with supporting passages."""

    engine: str
    questions: str
    """The file's name."""
    asked: int
    recall_3: float = field(name="recall@3")
    recall_5: float = field(name="recall@5")
    recall_10: float = field(name="recall@10")
    all_5: float = field(name="all@5")
    """Share of questions of which all supporting passages are among the first five."""
    even_5: float = field(name="recall@5 even")
    """On even rows, counted from 0: settings are chosen there."""
    odd_5: float = field(name="recall@5 odd")
    p50: float
    """Milliseconds a question, by the clock."""
    p95: float
    cpu_p50: float
    """Milliseconds of processor time, which a busy machine does not stretch."""
    index_seconds: float
    """Everything included that the engine needs to answer; for ours reading, registry, index of record, matrix and
    names.
    """
    index_cpu_seconds: float


class Comparison(Struct, frozen=True):
    """All engines of one run; the ratios are ours against plain Whoosh (and one against bm25s): above 1 is better."""

    passages: int
    k: int
    names: Spent
    """Of our indexing: making the name graph, measured apart."""
    vectors: Spent | None
    """Of the row with dense: encoding what had no vector yet. None without an encoder."""
    made: int
    """How many vectors that were; the rest lay in a folder of an earlier run."""
    open_seconds: float
    """From a closed index of ours to its first answer, checks of all files included."""
    rows: tuple[Beside, ...]
    ratios: dict[str, float]


class _Engine(Struct, frozen=True):
    ask: Ids
    indexing: Spent


def compare(
    corpora: Sequence[Path],
    questions: Sequence[Path],
    registry: Registry,
    make: Callable[[str], Index],
    folder: Path,
    *,
    limit: int = 0,
    encoder: FindsEncoder | None = None,
    told: Told | None = None,
) -> Comparison:
    """Index the files with ours into an empty registry, then with every other engine; then ask all of them each
    question in turn.

    `make`: our index with a ranker of search.rankers. `limit`: only the first so many questions of each file (0: all).
    `folder`: an empty one for the others' files. `encoder`: None, or not on this machine: no row with dense.
    """
    told = told or (lambda what, done, total: None)
    asked = {path.name: load_questions(path)[: limit or None] for path in questions}
    told("indexing with mindchat", 0, 1)
    ours = {name: make(ranker) for name, ranker in _OURS.items()}
    index = ours["mindchat"]
    with _Clock() as clock:
        for _ in ingest(corpora, registry, index, index.section):
            pass
    with _Clock() as weaving:
        woven(registry, index.collection, Analyzer(index.section.language))
    engines = {name: _Engine(_asking(one), clock.spent) for name, one in ours.items()}
    encoded, made = None, 0
    if encoder is not None and (id_ := encoder.id()) is not None:
        ours[WITH_DENSE] = make("dense")
        with _Clock() as encoding:
            for step in encode(ours[WITH_DENSE], encoder.load, id_, NEVER):
                if isinstance(step, Encoding):
                    told("encoding", step.done, step.total)
                else:
                    made = step.made
        encoded = encoding.spent
        whole = Spent(clock.spent.wall + encoded.wall, clock.spent.cpu + encoded.cpu)
        engines[WITH_DENSE] = _Engine(_asking(ours[WITH_DENSE]), whole)
    opening = _opening(index, next(iter(asked.values()))[0].text)
    engines |= _others(
        list({passage.id: passage for path in corpora for passage in load_corpus(path)}.values()), folder, told
    )
    rows = [row for name, some in asked.items() for row in _asked(name, engines, some, told)]
    for one in ours.values():
        one.close()
    return Comparison(
        index.status().passages, DEEPEST, weaving.spent, encoded, made, opening, tuple(rows), _ratios(rows)
    )


def _others(passages: Sequence[Passage], folder: Path, told: Told) -> dict[str, _Engine]:
    """The engines that are installed, each with all passages."""
    found = {}
    for name, (module, build) in _OTHERS.items():
        if importlib.util.find_spec(module) is not None:
            told(f"indexing with {name}", 0, 1)
            (folder / name).mkdir(parents=True)
            with _Clock() as clock:
                engine = build(passages, folder / name)
            found[name] = _Engine(engine, clock.spent)
    return found


def _asked(name: str, engines: Mapping[str, _Engine], asked: Sequence[Question], told: Told) -> Iterator[Beside]:
    """One row an engine."""
    times, found = _ask_in_turn({engine: one.ask for engine, one in engines.items()}, asked, told)
    for engine, one in engines.items():
        took = mean_latency(times[engine])
        pairs = [(ids, question.gold) for ids, question in zip(found[engine], asked, strict=True)]
        recalls = [_recall(pairs, k) for k in (3, 5, DEEPEST)]
        halves = _recall(pairs[::2], 5), _recall(pairs[1::2], 5)
        spent = one.indexing
        yield Beside(
            engine, name, len(asked), recalls[0], recalls[1], recalls[2], _all(pairs, 5), halves[0], halves[1],
            took.p50, took.p95, took.cpu_p50, spent.wall, spent.cpu,
        )  # fmt: skip


Pairs = Sequence[tuple[Sequence[str], frozenset[str]]]
"""(ids found, ids of supporting passages) a question."""


def _recall(pairs: Pairs, k: int) -> float:
    return mean_quality([recall_and_ndcg(ids, gold, k) for ids, gold in pairs if gold]).recall


def _all(pairs: Pairs, k: int) -> float:
    whole = [gold <= set(ids[:k]) for ids, gold in pairs if gold]
    return sum(whole) / max(len(whole), 1)


class _Clock:
    """Measures a with-block; `spent` is known afterwards."""

    def __enter__(self) -> _Clock:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.spent = Spent(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def _asking(index: Index) -> Ids:
    return lambda text, k: [passage.id for passage in index.search(Query(text, "question"), k)]


def _opening(index: Index, text: str) -> float:
    """Seconds from a closed index to its first answer, checks of all files included."""
    index.close()
    with _Clock() as clock:
        index.search(Query(text), 1)
    return clock.spent.wall


def _ask_in_turn(
    engines: Mapping[str, Ids], asked: Sequence[Question], told: Told
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, list[Sequence[str]]]]:
    """(seconds of wall clock and processor, ids) a question and engine, after one question that warms up."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    found: dict[str, list[Sequence[str]]] = {name: [] for name in engines}
    for search in engines.values():
        search(asked[0].text, DEEPEST)
    for number, question in enumerate(asked):
        told("questions", number, len(asked))
        for name, search in engines.items():
            with _Clock() as clock:
                ids = search(question.text, DEEPEST)
            times[name].append((clock.spent.wall, clock.spent.cpu))
            found[name].append(ids)
    return times, found


def _ratios(rows: Sequence[Beside]) -> dict[str, float]:
    """On the first file of questions."""
    first: dict[str, Beside] = {}
    for row in rows:
        first.setdefault(row.engine, row)
    ours, plain = first["mindchat"], first["whoosh"]
    return {
        "search_p50": plain.p50 / ours.p50,
        "search_p95": plain.p95 / ours.p95,
        "search_cpu_p50": plain.cpu_p50 / ours.cpu_p50,
        "indexing": plain.index_seconds / ours.index_seconds,
        "indexing_cpu": plain.index_cpu_seconds / ours.index_cpu_seconds,
        "search_p50_bm25s": first["bm25s"].p50 / ours.p50 if "bm25s" in first else 0.0,
    }


def _words(text: str) -> str:
    """The question without characters that these engines' query parsers take as syntax; their operators are upper-case
    words.
    """
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

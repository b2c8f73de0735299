"""The index beside other engines over the same passages and questions, in one run on one machine.

Owns: plain Whoosh as its own documentation uses it, and bm25s and tantivy with their defaults, if they are installed. Does not own: our own
index (index), the command (bench). Every engine gets title and text and answers the first k ids.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.corpus.measure import Latency, Quality, Question, latency, load_corpus, load_questions, quality
from mindchat.ports import Registry
from mindchat.values import Passage, Query

Ids = Callable[[str, int], Sequence[str]]
Build = Callable[[Sequence[Passage], Path], Ids]


class Beside(Struct, frozen=True):
    """One engine's result."""

    engine: str
    passages: int
    index_seconds: float
    """CPU time of the process, everything included that the engine needs to answer (for ours: registry and matrix)."""
    open_seconds: float
    """Until the first answer of a built index; 0.0 for engines that were left open."""
    latency: Latency
    quality: Quality


class _Engine:
    """Another engine's answers in the shape of a retriever."""

    def __init__(self, search: Ids) -> None:
        self._search = search

    def search(self, query: Query, k: int) -> list[Passage]:
        return [Passage(id_, "", "", "", 0, 0, rank=rank) for rank, id_ in enumerate(self._search(query.text, k), 1)]


def compare(corpora: Sequence[Path], questions: Path, registry: Registry, index: Index, folder: Path, limit: int = 0) -> Iterator[Beside]:
    """Index the files with ours into an empty registry, then with every other engine; one result an engine as it is ready."""
    asked = load_questions(questions)[: limit or None]
    started = time.process_time()
    for _ in ingest(corpora, registry, index, index.section):
        pass
    spent, count = time.process_time() - started, index.status().passages
    index.close()
    started = time.perf_counter()
    index.search(Query(asked[0].text), 1)
    opened = time.perf_counter() - started
    yield Beside("mindchat", count, spent, opened, latency(index, asked), quality(index, asked))
    passages = list({passage.id: passage for path in corpora for passage in load_corpus(path)}.values())
    for name, (module, build) in _OTHERS.items():
        if importlib.util.find_spec(module) is not None:
            yield _measure(name, build, passages, asked, folder / name)


def _measure(name: str, build: Build, passages: Sequence[Passage], asked: Sequence[Question], folder: Path) -> Beside:
    folder.mkdir(parents=True, exist_ok=True)
    started = time.process_time()
    engine = _Engine(build(passages, folder))
    spent = time.process_time() - started
    return Beside(name, len(passages), spent, 0.0, latency(engine, asked), quality(engine, asked))


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

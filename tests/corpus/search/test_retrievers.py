"""What every retriever must do, whichever engine serves it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.corpus.search.queries import parse
from mindchat.errors import ConfigError, IndexMissingError, ResourceError
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Chunk, Document, Found, Passage, Query

ENGINES = ("matrix", "whoosh", "memory", "milvus")
SYNCED = ("matrix", "whoosh", "milvus")
TEXTS = {
    "/d/river.txt": ("Vézère", "The Vézère is a river in France; it joins the Dordogne."),
    "/d/castle.txt": ("Castle of Thouars", "An old castle above a river, built by the Trémoille family."),
    "/d/tokyo.txt": ("東京", "東京都は日本の首都である。"),
    "/d/sub/violin.txt": ("Violins", "Violins are made of spruce and maple."),
    "/dark/glacier.txt": ("Glaciers", "Glaciers are rivers of ice."),
}


def needs_milvus() -> None:
    for name in ("pymilvus", "milvus_lite"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f'{name} is not installed: pip install "mindchat[milvus]" milvus-lite')


class Board:
    """One engine over a registry."""

    def __init__(self, engine: str, home: Path) -> None:
        self.engine, self.home = engine, home
        self.registry = DocumentRegistry(home / "memory.db")
        self.notices: list[str] = []
        self.index: Any = None
        if engine != "memory":
            self.index = self.another()

    def section(self, **changes: Any) -> IndexSection:
        where = str(self.home / "milvus" / "lite.db") if self.engine == "milvus" else ""
        return IndexSection(
            **{"matrix": self.engine == "matrix", "milvus": where, "milvus_timeout": 20.0, "lock_seconds": 0.3}
            | changes
        )

    def another(self, **changes: Any) -> Any:
        """The same index, opened by another process or with other settings."""
        if self.engine == "milvus":
            from mindchat.corpus.search.milvus import MilvusIndex

            return MilvusIndex(self.home / "index", self.section(**changes), self.registry, notify=self.notices.append)
        return Index(self.home / "index", self.section(**changes), self.registry, notify=self.notices.append)

    def put(self, texts: dict[str, tuple[str, str]]) -> None:
        self.registry.put([(Document(uri, title, text), [Chunk(0, len(text))]) for uri, (title, text) in texts.items()])
        if self.index is None:
            return
        self.index.sync()

    def search(self, words: str, k: int = 10, within: Sequence[str] = ()) -> list[Passage]:
        return self.find(Query(words), k, within)

    def find(self, query: Query, k: int = 10, within: Sequence[str] = ()) -> list[Passage]:
        if self.engine == "memory":
            return MemoryIndex(list(self.registry.passages()), self.section()).search(query, k)
        return self.index.search(query, k, within=within)

    def names(self, words: str, k: int = 10, within: Sequence[str] = ()) -> list[str]:
        return [Path(passage.document).name for passage in self.search(words, k, within)]

    def close(self) -> None:
        if self.index is not None:
            self.index.close()
        self.registry.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Board]]:
    boards: list[Board] = []

    def build(engine: str) -> Board:
        if engine == "milvus":
            needs_milvus()
        boards.append(Board(engine, tmp_path))
        return boards[-1]

    yield build
    for board in boards:
        board.close()


@pytest.fixture(params=ENGINES)
def board(request: Any, make: Callable[[str], Board]) -> Board:
    """Every engine, over the same five documents."""
    board = make(request.param)
    board.put(TEXTS)
    return board


@pytest.fixture(params=SYNCED)
def synced(request: Any, make: Callable[[str], Board]) -> Board:
    """The engines that keep up with a registry."""
    board = make(request.param)
    board.put(TEXTS)
    return board


def test_finds_by_stem_title_folding_and_ngram(board: Board) -> None:
    assert board.names("castles")[0] == "castle.txt"
    assert board.names("vezere")[0] == "river.txt"
    assert board.names("VIOLIN") == ["violin.txt"]
    assert board.names("首都") == ["tokyo.txt"]


def test_best_first_ranked_from_one_and_no_more_than_k(board: Board) -> None:
    found = board.search("river castle Thouars")
    assert [passage.rank for passage in found] == [1, 2, 3]
    assert [passage.score for passage in found] == sorted((passage.score for passage in found), reverse=True)
    assert all(passage.score > 0 for passage in found)
    assert len(board.search("river", 1)) == 1
    assert board.search("river", 0) == []


def test_passages_come_whole_from_the_registry(board: Board) -> None:
    (found,) = board.search("spruce")
    title, text = TEXTS["/d/sub/violin.txt"]
    assert (found.document, found.title, found.text, found.start, found.end) == (
        "/d/sub/violin.txt",
        title,
        text,
        0,
        len(text),
    )
    assert board.registry.passage(found.id) is not None


def test_nothing_searchable_finds_nothing(board: Board) -> None:
    for words in ("", "   ", "the of and", "?!…", "\x00\x1b[2J", "zzzzqqqq"):
        assert board.search(words) == []


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.text(max_size=80))
def test_no_character_of_a_query_has_a_meaning(board: Board, words: str) -> None:
    for query in (words, f'castle" or key > "{words}', "title:river AND NOT (castle"):
        assert len(board.search(query, 3)) <= 3


def test_a_page_as_query(board: Board) -> None:
    assert board.names("word " * 20_000 + " ".join(f"w{n}" for n in range(400)) + " spruce") == ["violin.txt"]


def test_within_narrows_to_folders_not_to_prefixes_of_names(synced: Board) -> None:
    assert sorted(synced.names("river", within=["/d"])) == ["castle.txt", "river.txt"]
    assert synced.names("river", within=["/dar"]) == []
    assert synced.names("river", within=["/dark", "/d/castle.txt"]) != []
    assert synced.names("violin", within=["/d/sub"]) == ["violin.txt"]
    assert synced.names("violin", within=['/d" or uri > "']) == []


def found(board: Board, line: str, k: int = 10) -> set[str]:
    return {Path(passage.document).name for passage in board.find(parse(line), k)}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('"river in France"', {"river.txt"}),
        ('"RIVER in france"', {"river.txt"}),
        ('"a  river"', {"river.txt", "castle.txt"}),
        ('"rivers of ice"', {"glacier.txt"}),
        ('"river of ice"', set()),
        ('river "castle below"', set()),
        ('river "old castle"', {"castle.txt"}),
        ('"old castle" "by the"', {"castle.txt"}),
        ('"old castle" "rivers of"', set()),
        ('"by the"', {"castle.txt"}),
        ('"the by"', set()),
        ('"castle of thouars"', {"castle.txt"}),
        ('"Vezere"', {"river.txt"}),
        ('"Trémoille family." river', {"castle.txt"}),
        ('"iver in Fran"', set()),
        ('"日本の首都"', {"tokyo.txt"}),
        ('"京"', {"tokyo.txt"}),
        ('"京日"', set()),
    ],
)
def test_a_phrase_stands_in_the_passage_word_for_word(board: Board, line: str, names: set[str]) -> None:
    assert found(board, line) == names
    assert len(found(board, line, 1)) == min(len(names), 1)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("river type:txt", {"river.txt", "castle.txt", "glacier.txt"}),
        ("river type:pdf", set()),
        ("river path:DARK", {"glacier.txt"}),
        ("river path:/d/*.txt", {"river.txt", "castle.txt"}),
        ("river path:castle path:glacier", {"castle.txt", "glacier.txt"}),
        ("river in:/d", {"river.txt", "castle.txt"}),
        ("river in:/d path:castle", {"castle.txt"}),
        ("river after:2024", {"castle.txt", "glacier.txt"}),
        ("river before:2024", {"river.txt"}),
        ("river after:2024 before:2025-06-01", {"castle.txt"}),
        ('river after:2024 before:2025-06-01 "old castle"', {"castle.txt"}),
    ],
)
def test_filters_hold_for_every_engine(synced: Board, line: str, names: set[str]) -> None:
    days = {"river": 2020, "castle": 2025, "glacier": 2026}
    for uri, (title, text) in TEXTS.items():
        changed = int(datetime(days.get(Path(uri).stem, 2026), 1, 1).timestamp() * 1e9)
        synced.registry.put([(Document(uri, title, text, mtime_ns=changed), [Chunk(0, len(text))])])
    synced.index.sync()
    assert found(synced, line) == names
    assert found(synced, line) == names, "the second time may come from what was kept"


def test_given_paths_and_filters_must_both_hold(synced: Board) -> None:
    assert {Path(p.document).name for p in synced.find(parse("river in:/d"), within=["/d/castle.txt"])} == {
        "castle.txt"
    }
    assert synced.find(parse("river in:/dark"), within=["/d"]) == []


def test_the_type_of_a_corpus_line_is_that_of_its_file(synced: Board) -> None:
    texts = {"/c.d/C#/a.md": "One harp.", "/c.d/lines.jsonl#a.b": "Two harps."}
    synced.registry.put([(Document(uri, "T", text), [Chunk(0, len(text))]) for uri, text in texts.items()])
    synced.index.sync()
    assert found(synced, "harp type:md") == {"a.md"}
    assert found(synced, "harp type:jsonl") == {"lines.jsonl#a.b"}


def test_changed_removed_and_new_documents(synced: Board) -> None:
    synced.registry.remove(["/dark/glacier.txt"])
    assert "glacier.txt" not in synced.names("river"), "a removed document must not answer even before the sync"
    synced.put({"/d/river.txt": ("Vézère", "Now about zebras."), "/d/new.txt": ("New", "A harp.")})
    assert synced.names("rivers") == ["castle.txt"]  # "river" is the name of a file, and so a name
    assert synced.names("zebra") == ["river.txt"]
    assert synced.names("harp") == ["new.txt"]
    assert synced.index.verify() == []
    assert synced.index.status().passages == 5


def test_a_second_sync_sends_nothing(synced: Board) -> None:
    update = synced.index.sync()
    assert (update.added, update.deleted, update.rebuilt, update.passages) == (0, 0, False, 5)


def test_equal_passages_are_found_once_and_under_each_place(synced: Board) -> None:
    synced.put({f"/copy{n}/same.txt": ("Same", "One and the same harpsichord.") for n in range(60)})
    assert len(synced.search("harpsichord", 5)) == 1
    assert len(synced.search("harpsichord", 5, ["/copy7"])) == 1


def test_nothing_indexed_is_said(make: Callable[[str], Board]) -> None:
    for engine in SYNCED:
        with pytest.raises(IndexMissingError):
            make(engine).search("river")


def test_another_process_finds_the_same(synced: Board) -> None:
    synced.index.close()  # Milvus Lite's file belongs to one process at a time
    other = synced.another()
    assert [passage.id for passage in other.search(Query("river"), 5)] != []
    status = other.status()
    assert (status.passages, status.registered, status.pending) == (5, 5, False)
    assert status.served_by == synced.engine
    other.close()


def test_rebuild_gives_the_same_answers(synced: Board) -> None:
    before, name = synced.names("river castle"), synced.index.generation()
    assert synced.index.rebuild().rebuilt
    assert synced.names("river castle") == before
    assert synced.index.generation() != name


def test_interrupted_update_is_marked_and_resumed(synced: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    original = synced.registry.passages

    def broken(collection: str | None = None) -> Iterator[Passage]:
        stream = original(collection)
        yield next(stream)
        raise OSError(5, "the disk went away")

    synced.registry.put([(Document("/d/new.txt", "New", "A harp."), [Chunk(0, 7)])])
    synced.index.store.set_pending(True)
    monkeypatch.setattr(synced.registry, "passages", broken)
    with pytest.raises((OSError, ResourceError)):
        synced.index.sync()
    assert synced.index.pending
    assert synced.names("spruce") == ["violin.txt"], "the old state must answer"
    monkeypatch.setattr(synced.registry, "passages", original)
    synced.index.sync()
    assert not synced.index.pending
    assert synced.names("harp") == ["new.txt"]


# ── Milvus alone
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def milvus(make: Callable[[str], Board]) -> Board:
    board = make("milvus")
    board.put(TEXTS)
    return board


def test_milvus_ranks_like_the_index_on_this_machine(make: Callable[[str], Board], milvus: Board) -> None:
    memory = MemoryIndex(list(milvus.registry.passages()), milvus.section())
    for words in ("river castle", "Thouars", "ice river", "maple"):
        assert [passage.id for passage in milvus.search(words, 2)] == [
            passage.id for passage in memory.search(Query(words), 2)
        ]


def test_milvus_collection_gone_from_the_server_is_built_again(milvus: Board) -> None:
    from mindchat.corpus.search.milvus_client import Collection

    Collection(milvus.section(), milvus.index.generation()).drop()
    milvus.index.close()
    assert milvus.names("spruce") == ["violin.txt"]
    assert any("sent there from the registry" in notice for notice in milvus.notices)


def test_milvus_other_settings_build_another_collection_and_drop_the_old(milvus: Board) -> None:
    from mindchat.corpus.search.milvus_client import Collection

    old = milvus.index.generation()
    milvus.index.close()
    other = milvus.another(k1=0.9)
    assert other.sync().rebuilt
    assert other.generation() != old
    assert not Collection(other.section, old).exists()
    other.close()


CHILD = """
import sys
from pathlib import Path
from mindchat.config import IndexSection
from mindchat.corpus.search.milvus import MilvusIndex
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Query
home, where = Path(sys.argv[1]), sys.argv[2]
index = MilvusIndex(home / "index", IndexSection(milvus=where), DocumentRegistry(home / "memory.db"))
print(index.status().passages, Path(index.search(Query("spruce"), 1)[0].document).name, index.verify(), index.sync().added)
index.close()
"""


def test_milvus_of_a_server_that_was_started_anew(tmp_path: Path) -> None:
    needs_milvus()
    import subprocess
    import sys

    fill = CHILD.replace("print(", "index.sync(); print(")
    registry = DocumentRegistry(tmp_path / "memory.db")
    registry.put([(Document(uri, title, text), [Chunk(0, len(text))]) for uri, (title, text) in TEXTS.items()])
    registry.close()
    for code in (fill, CHILD):
        run = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "lite.db")], capture_output=True, text=True
        )
        assert run.stdout.strip() == "5 violin.txt [] 0", run.stderr


def test_milvus_reports_progress_in_batches(make: Callable[[str], Board]) -> None:
    board = make("milvus")
    board.registry.put([(Document(f"/d/{n}", "T", f"word{n}"), [Chunk(0, len(f"word{n}"))]) for n in range(1200)])
    with board.index.lock():
        steps = list(board.index.updates())
    assert [(step.phase, step.done) for step in steps[:-1]] == [
        ("index", 500),
        ("index", 1000),
        ("commit", 1200),
        ("names", 1200),
    ]
    assert steps[-1].added == 1200


def test_milvus_server_that_does_not_answer(tmp_path: Path) -> None:
    needs_milvus()
    from mindchat.corpus.search.milvus import MilvusIndex

    registry = DocumentRegistry(tmp_path / "memory.db")
    registry.put([(Document("/a", "t", "words"), [Chunk(0, 5)])])
    index = MilvusIndex(
        tmp_path / "index", IndexSection(milvus="http://user:secret@127.0.0.1:9", milvus_timeout=1.0), registry
    )
    with pytest.raises(ResourceError) as caught:
        index.sync()
    assert "127.0.0.1:9" in caught.value.message
    assert "secret" not in caught.value.message + caught.value.hint
    assert caught.value.hint
    assert index.pending
    registry.close()


def test_milvus_token_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_milvus()
    import pymilvus

    from mindchat.corpus.search.milvus_client import connect

    seen: dict[str, Any] = {}
    monkeypatch.setattr(pymilvus, "MilvusClient", lambda **options: seen.update(options))
    section = IndexSection(milvus="http://localhost:19530", milvus_token_env="SOME_TOKEN", milvus_timeout=7.0)
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="SOME_TOKEN"):
        connect(section)
    monkeypatch.setenv("SOME_TOKEN", "root:pass")
    connect(section)
    assert seen == {"uri": "http://localhost:19530", "token": "root:pass", "timeout": 7.0}


def test_milvus_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from mindchat.corpus.search.milvus_client import connect

    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(ResourceError) as caught:
        connect(IndexSection(milvus="http://localhost:19530"))
    assert "mindchat[milvus]" in caught.value.hint


LINKED = {
    "/n/film.txt": ("Metropolis (1927 film)", "Metropolis is a silent film directed by Fritz Lang."),
    "/n/lang.txt": ("Fritz Lang", "He was born in Vienna and died in Beverly Hills."),
    "/far/vienna.txt": ("Vienna", "A city on the Danube, once of the Habsburgs."),
    "/n/bread.txt": ("Bread", "Flour and water."),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_names_lead_on_whichever_engine_scores_the_words(make: Callable[[str], Board], engine: str) -> None:
    board = make(engine)
    board.put(LINKED)
    film, lang, city = board.search("silent film")
    assert [Path(passage.document).name for passage in (film, lang, city)] == ["film.txt", "lang.txt", "vienna.txt"]
    assert film.found == Found()
    assert lang.found == Found("link", "Fritz Lang", film.id)
    assert city.found == Found("link", "Vienna", lang.id)
    assert [passage.rank for passage in (film, lang, city)] == [1, 2, 3]
    assert film.score > lang.score > city.score > 0
    named, *_ = (passage for passage in board.search("flour, Fritz Lang?") if passage.title == "Bread")
    assert named.found == Found()


@pytest.mark.parametrize("engine", SYNCED)
def test_names_lead_to_no_place_that_is_not_searched_and_to_nothing_that_is_gone(
    make: Callable[[str], Board], engine: str
) -> None:
    board = make(engine)
    board.put(LINKED)
    assert board.names("silent film", within=["/n"]) == ["film.txt", "lang.txt"]
    board.registry.remove(["/n/lang.txt"])
    assert "lang.txt" not in board.names("silent film")
    board.put({"/n/film.txt": ("Metropolis", "A silent film of Berlin."), "/n/berlin.txt": ("Berlin", "A city.")})
    assert board.names("silent film", within=["/n"]) == ["film.txt", "berlin.txt"]
    assert board.index.verify() == []

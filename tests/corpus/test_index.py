from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.config import IndexSection
from mindchat.corpus.index import folder_name
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import Params, idf
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.corpus.search.open_generation import Opened
from mindchat.corpus.search.whoosh_index import Record
from mindchat.errors import IndexLockedError, IndexMissingError, Interrupted, ResourceError
from mindchat.ports import Cancel
from mindchat.values import Query

WORDS = [
    "river",
    "duke",
    "castle",
    "film",
    "magazine",
    "opera",
    "planet",
    "bridge",
    "poet",
    "violin",
    "harbour",
    "treaty",
    "glacier",
    "senator",
]


def fill(library, count: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    texts = {
        f"{chance.choice(WORDS)}_{n}": " ".join(chance.choices(WORDS, k=chance.randint(3, 40))) for n in range(count)
    }
    library.put(**texts)


def test_nothing_indexed_is_a_resource_error_with_a_hint(library):
    with pytest.raises(IndexMissingError) as caught:
        library.find("anything")
    assert caught.value.exit_code == 3
    assert "index add" in caught.value.hint


def test_title_and_text_are_found_and_ranked(library):
    library.put(poe="A writer of tales.", raven="Poe wrote it. Poe is famous.", bread="Flour and water.")
    library.index.build()
    assert library.find("Poe") == ["poe", "raven"] or library.find("Poe") == ["raven", "poe"]
    first = library.index.search(Query("flour"), 3)[0]
    assert (first.rank, first.text) == (1, "Flour and water.")
    assert first.score > 0


def test_score_is_bm25f_by_hand(make_library):
    library = make_library(IndexSection(k1=1.2, b=0.75, title_boost=1.0))
    library.put(alpha="red red blue", beta="green blue", gamma="black")
    library.index.build()
    got = library.index.search(Query("red"), 1)[0].score
    weight = 2 / (1 - 0.75 + 0.75 * 3 / 2)
    assert got == pytest.approx(idf(1, 3) * weight * 2.2 / (weight + 1.2), rel=1e-6)


def test_search_never_returns_more_than_k_and_none_for_stop_words(library):
    fill(library, 30)
    library.index.build()
    assert len(library.find("river duke", k=4)) == 4
    assert library.find("the of and !!") == []
    assert library.find("") == []
    assert library.find("river", k=0) == []


def test_query_characters_have_no_meaning(library):
    library.put(a="alpha OR beta NOT gamma", b='title:"delta" [x TO y] *')
    library.index.build()
    for query in (
        "title:alpha AND (",
        '"alpha',
        "alpha~2^9",
        "[alpha TO",
        "alp*",
        "NOT alpha",
        "a\0lpha alpha",
        "\ud800 alpha",
    ):
        library.find(query)
    assert library.find("alp*") == []
    assert library.find("NOT alpha") == ["a"]


@settings(deadline=None, max_examples=300)
@given(st.text(max_size=80))
def test_random_queries_raise_nothing(text):
    index = test_random_queries_raise_nothing.index
    assert isinstance(index.search(Query(text), 5), list)


test_random_queries_raise_nothing.index = MemoryIndex([])


@pytest.mark.soak
def test_ten_thousand_random_queries_raise_nothing(library):
    fill(library, 200)
    library.index.build()
    chance, syntax = random.Random(1), " abc:\"'()[]*?~^+-\\\n"
    for _ in range(10_000):
        length = chance.randint(0, 40)
        text = "".join(
            chr(chance.randrange(0x110000)) if chance.random() < 0.5 else chance.choice(syntax) for _ in range(length)
        )
        library.index.search(Query(text), 5)


def test_matrix_and_record_rank_alike(library):
    fill(library, 300)
    library.index.build()
    slow = library.another(IndexSection(matrix=False))
    chance = random.Random(2)
    for _ in range(60):
        query = Query(" ".join(chance.choices(WORDS, k=chance.randint(1, 6))))
        ours, theirs = library.index.search(query, 10), slow.search(query, 10)
        assert [p.score for p in ours] == pytest.approx([p.score for p in theirs], rel=1e-5)
        unlike = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.id != b.id]
        assert all(a.score == pytest.approx(b.score, rel=1e-5) for a, b in unlike)


def test_memory_index_scores_as_the_index_on_disk(library):
    fill(library, 50)
    library.index.build()
    memory = MemoryIndex(list(library.registry.passages()))
    query = Query("river castle glacier")
    assert [(p.id, p.rank) for p in memory.search(query, 8)] == [(p.id, p.rank) for p in library.index.search(query, 8)]


def test_incremental_equals_fresh(library):
    fill(library, 80)
    library.index.build()
    library.registry.remove([f"{row.uri}" for row in list(library.registry.documents())[:20]])
    library.put(river_new="river river river", duke_new="duke castle")
    update = library.index.sync()
    assert (update.added, update.deleted, update.rebuilt) == (2, 20, False)
    before = {p.id: p.score for p in library.index.search(Query("river duke castle"), 99)}
    library.index.rebuild()
    after = {p.id: p.score for p in library.index.search(Query("river duke castle"), 99)}
    assert after == pytest.approx(before, rel=1e-6)


def test_a_second_sync_changes_nothing_on_disk(library):
    fill(library, 20)
    first = library.index.build()
    again = library.index.sync()
    assert (again.added, again.deleted, again.generation) == (0, 0, first.generation)


def test_updated_text_replaces_the_old(library):
    library.put(note="old words here")
    library.index.build()
    library.put(note="fresh content there")
    library.index.sync()
    assert library.find("old") == []
    assert library.find("fresh") == ["note"]


def test_a_document_gone_from_the_registry_does_not_answer_before_the_sync(library):
    library.put(a="river", b="river bank")
    library.index.build()
    library.registry.remove(["/nowhere/a"])
    assert library.find("river", k=1) == ["b"]


def test_identical_passages_stand_once_and_are_found_under_each_place(library):
    from mindchat.values import Chunk, Document

    text = "The very same words."
    library.registry.put(
        [(Document(f"/{folder}/note.txt", "note", text), [Chunk(0, len(text))]) for folder in ("one", "two")]
    )
    library.index.build()
    assert len(library.find("same words")) == 1
    assert len(library.find("same words", within=["/two"])) == 1
    assert library.find("same words", within=["/three"]) == []
    library.registry.remove(["/one/note.txt"])
    library.index.sync()
    assert [p.document for p in library.index.search(Query("same words"), 5)] == ["/two/note.txt"]


def test_within_narrows_by_folder_not_by_prefix_of_a_name(library):
    from mindchat.values import Chunk, Document

    for uri in ("/a/x.txt", "/ab/y.txt", "/a/c.jsonl#7"):
        library.registry.put([(Document(uri, uri, f"river {uri}"), [Chunk(0, 5)])])
    library.index.build()
    for index in (library.index, library.another(IndexSection(matrix=False))):
        assert {p.document for p in index.search(Query("river"), 9, within=["/a"])} == {"/a/x.txt", "/a/c.jsonl#7"}
        assert {p.document for p in index.search(Query("river"), 9, within=["/a/c.jsonl"])} == {"/a/c.jsonl#7"}


@pytest.mark.parametrize("how", ["truncate", "flip", "delete"])
def test_every_kind_of_damage_to_the_record_is_found_and_mended(library, how):
    fill(library, 40)
    library.index.build()
    want = library.find("river duke", k=5)
    folder = library.index.store.root / library.index.store.current()
    victim = max((folder / "record").glob("*.seg"), key=lambda path: path.stat().st_size)
    damage(victim, how)
    assert any("Damaged" in line for line in library.another().verify())
    library.notices.clear()
    fresh = library.another()
    assert [p.document.rpartition("/")[2] for p in fresh.search(Query("river duke"), 5)] == want
    assert any("damaged" in notice and victim.name in notice for notice in library.notices)
    assert fresh.verify() == []
    assert (library.index.store.root / "damaged").is_dir()


def damage(path, how: str) -> None:
    if how == "truncate":
        os.truncate(path, path.stat().st_size // 2)
    elif how == "flip":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    else:
        path.unlink()


def test_a_damaged_matrix_falls_back_to_the_record_and_says_so(library):
    fill(library, 40)
    library.index.build()
    want = library.find("river duke", k=5)
    folder = library.index.store.root / library.index.store.current() / "matrix"
    damage(folder / "row_impacts.npy", "truncate")
    library.index.close()
    assert library.find("river duke", k=5) == want
    assert any("slower" in notice for notice in library.notices)
    library.index.rebuild()
    library.notices.clear()
    assert library.find("river duke", k=5) == want
    assert library.notices == []


def test_a_lost_index_is_rebuilt_because_the_registry_knows(library):
    import shutil

    fill(library, 10)
    library.index.build()
    want = library.find("river", k=3)
    shutil.rmtree(library.folder)
    fresh = library.another()
    assert [p.document.rpartition("/")[2] for p in fresh.search(Query("river"), 3)] == want
    assert "missing" in library.notices[0]


def test_other_parameters_are_used_at_once_and_kept_by_sync(library):
    fill(library, 60)
    library.index.build()
    other = IndexSection(k1=0.1, b=0.0, title_boost=3.0)
    changed = library.another(other)
    scores = [p.score for p in changed.search(Query("river duke"), 5)]
    assert any("recomputed" in notice for notice in library.notices)
    changed.sync()
    library.notices.clear()
    assert [p.score for p in library.another(other).search(Query("river duke"), 5)] == scores
    assert library.notices == []


def test_another_language_rebuilds_at_sync(library):
    library.put(a="running dogs")
    library.index.build()
    german = library.another(IndexSection(language="de"))
    german.sync()
    assert any("rebuilt" in notice for notice in library.notices)
    assert german.search(Query("running"), 1)


def test_cancel_leaves_the_old_index(library):
    fill(library, 10)
    library.index.build()
    library.put(**{f"late_{n}": "zebra" for n in range(500)})
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        library.index.sync(cancel=cancel)
    assert library.find("zebra") == []
    assert not list(library.index.store.root.glob("building-*"))


def test_full_disk_is_refused_before_and_explained_during(library, monkeypatch):
    import errno

    from mindchat.corpus.search import generations

    fill(library, 5)
    library.index.build()
    monkeypatch.setattr(generations.shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(ResourceError, match="MB are free"):
        library.index.rebuild()
    monkeypatch.undo()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mindchat.corpus.search.impact_matrix.Matrix.save", full)
    with pytest.raises(ResourceError, match="disk is full"):
        library.index.rebuild()
    assert library.find("river", k=1) is not None
    assert not list(library.index.store.root.glob("building-*"))


HOLD = """
import sys, time
from pathlib import Path
from mindchat.corpus.search.generations import Store
with Store(Path(sys.argv[1])).lock(5):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_writes(library):
    fill(library, 5)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(library.index.store.root)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(IndexLockedError, match=str(holder.pid)) as caught:
            library.index.sync()
        assert caught.value.exit_code == 3
        assert library.index.status().writer == holder.pid
    finally:
        holder.kill()
        holder.communicate()
    library.index.sync()
    assert library.index.status().writer is None


def test_search_goes_on_in_another_thread_while_a_generation_is_built(library):
    fill(library, 50)
    library.index.build()
    stop, failures = threading.Event(), []

    def keep_searching() -> None:
        while not stop.is_set():
            try:
                assert library.index.search(Query("river"), 3)
            except Exception as error:  # noqa: BLE001 - whatever it is fails the test
                failures.append(error)
                return

    searcher = threading.Thread(target=keep_searching)
    searcher.start()
    for round_ in range(3):
        library.put(**{f"more_{round_}": "river bridge"})
        library.index.sync()
    stop.set()
    searcher.join()
    assert failures == []


def test_status_and_verify_tell_what_is_behind(library):
    fill(library, 10)
    library.index.build()
    library.put(extra="zebra")
    status = library.index.status()
    assert (status.passages, status.registered, status.served_by) == (10, 11, "matrix")
    assert any("1 passages are missing" in line for line in library.index.verify())


def test_collections_live_apart_and_their_folders_are_harmless():
    names = ["user", "demo", "../../etc", "a/b", "a_b", "", "ü" * 300]
    folders = [folder_name(name) for name in names]
    assert len(set(folders)) == len(names)
    assert all("/" not in folder and folder not in ("", ".", "..") and len(folder) < 100 for folder in folders)


def test_whoosh_itself_can_search_the_record(library):
    from whoosh import index as whoosh_index
    from whoosh.query import Or, Term

    library.put(a="river duke", b="castle", c="river castle castle castle castle")
    library.index.build()
    folder = library.index.store.root / library.index.store.current() / "record"
    opened = whoosh_index.open_dir(folder)
    with opened.searcher() as searcher:
        hits = searcher.search(Or([Term("text", b"castl"), Term("title", b"castl")]), limit=5)
        assert len(hits) == 2
        assert b"/nowhere/c" in searcher.reader().column_reader("row", translate=False)[hits[0].docnum]
    opened.close()


def test_postings_of_the_record_are_those_of_the_texts(library):
    fill(library, 200)
    library.index.build()
    record = Record(library.index.store.root / library.index.store.current() / "record")
    analyzer, passages = Analyzer(), list(library.registry.passages())
    found, tf = record.postings("text", b"river")
    want = {p.id: analyzer.counts(p.text)[b"river"] for p in passages if b"river" in analyzer.counts(p.text)}
    assert {record.rows.ids[at]: int(count) for at, count in zip(found, tf, strict=True)} == want
    assert np.all(record.scores([b"no such term"], Params()) == 0)
    record.close()


def test_manifest_names_every_file(library):
    fill(library, 5)
    library.index.build()
    folder = library.index.store.root / library.index.store.current()
    named = set(json.loads((folder / "manifest.json").read_bytes())["files"])
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there - named == {"manifest.json"}


def test_opened_prefers_the_matrix(library):
    fill(library, 5)
    library.index.build()
    store = library.index.store
    assert Opened.open(store, store.current(), library.section, print).served_by == "matrix"

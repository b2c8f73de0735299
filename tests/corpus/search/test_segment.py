"""Segments that are written from arrays hold what the texts hold, to Whoosh's own reading too, and can be stopped."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from whoosh import index as whoosh_index
from whoosh.writing import NO_MERGE

from mindchat.corpus.index import Progress, Update
from mindchat.corpus.search import segment
from mindchat.corpus.search import whoosh_index as record_file
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.whoosh_index import Record, Writer
from mindchat.errors import Interrupted
from mindchat.ports import NEVER, Cancel
from mindchat.values import Passage, Query

WORDS = [f"w{number}" for number in range(300)]


def texts(count: int, seed: int = 3) -> dict[str, str]:
    """Common words, rare words, and one that a passage has 70,000 times: more than two bytes count."""
    chance = random.Random(seed)
    made = {f"p{at}": " ".join(chance.choices(WORDS, range(300, 0, -1), k=20)) for at in range(count)}
    return {**made, "many": "castle " * 70_000, "some": "castle " * 300 + "duke"}


def passages(made: dict[str, str]) -> list[Passage]:
    return [Passage(id_, f"/d/{id_}", f"Title of {id_}", text, 0, len(text)) for id_, text in made.items()]


def written(folder, made: dict[str, str]) -> Record:
    writer = Writer(folder, Analyzer(), create=True)
    for passage in passages(made):
        writer.add(passage)
    writer.commit()
    return Record(folder)


def expected(made: dict[str, str]) -> dict[bytes, dict[str, int]]:
    analyzer, found = Analyzer(), dict[bytes, dict[str, int]]()
    for id_, text in made.items():
        for term, tf in analyzer.counts(text).items():
            found.setdefault(term, {})[id_] = tf
    return found


def held(record: Record) -> dict[bytes, dict[str, int]]:
    """What a record says of its texts, by its dump."""
    dump, found = record.dump(), dict[bytes, dict[str, int]]()
    names = {number: term for term, number in dump.vocabulary.items()}
    for term, field, passage, tf in zip(dump.term, dump.field, dump.passage, dump.tf, strict=True):
        if field == 1:
            found.setdefault(names[int(term)], {})[record.rows.ids[int(passage)]] = int(tf)
    return found


@pytest.mark.parametrize("block", [1, 7, 1 << 15])
def test_a_record_says_what_the_texts_say(tmp_path, monkeypatch, block):
    monkeypatch.setattr(segment, "_BLOCK", block)
    made = texts(400)
    record, want = written(tmp_path / "record", made), expected(made)
    assert held(record) == want
    for term in (b"castl", b"w0", b"w299", b"duke"):
        found, tf = record.postings("text", term)
        assert {record.rows.ids[at]: int(count) for at, count in zip(found, tf, strict=True)} == want.get(term, {})
    record.close()


def test_whoosh_reads_the_same_by_its_own_cursor(tmp_path, monkeypatch):
    monkeypatch.setattr(segment, "_BLOCK", 16)
    made = texts(200)
    written(tmp_path / "record", made).close()
    ids = list(made)
    opened = whoosh_index.open_dir(tmp_path / "record")
    with opened.reader() as reader:
        for term, want in expected(made).items():
            cursor, found = reader.postings("text", term), Counter[str]()
            while cursor.is_active():
                found[ids[cursor.id()]] = int(cursor.weight())
                cursor.next()
            assert found == want, term
            assert reader.doc_frequency("text", term) == len(want)
            assert int(reader.frequency("text", term)) == sum(want.values())
    opened.close()


def test_a_large_index_has_several_segments_and_the_same_ranks(library, monkeypatch):
    made = texts(120)
    library.put(**made)
    library.index.build()
    questions = [" ".join(random.Random(seed).sample(WORDS, 4)) for seed in range(20)]
    before = [[(p.id, p.score) for p in library.index.search(Query(text), 10)] for text in questions]
    monkeypatch.setattr(record_file, "SEGMENT_POSTINGS", 300)
    monkeypatch.setattr("whoosh.writing.MERGE_SMALL", NO_MERGE)  # segments as large as real ones are not merged
    library.index.rebuild()
    folder = library.index.store.root / library.index.store.current() / "record"
    opened = whoosh_index.open_dir(folder)
    assert len(opened._segments()) > 3
    opened.close()
    assert [[(p.id, p.score) for p in library.index.search(Query(text), 10)] for text in questions] == before
    assert library.index.verify() == []


def test_small_segments_are_merged_without_the_passages_that_were_deleted(library):
    made = texts(30)
    for number in range(12):
        library.put(**{f"extra{number}": f"castle w{number} w{number + 1}"})
        if number >= 6:
            library.registry.remove([f"/nowhere/extra{number - 6}"])
        library.index.sync()
    library.put(**made)
    library.index.sync()
    assert library.index.verify() == []
    folder = library.index.store.root / library.index.store.current() / "record"
    opened = whoosh_index.open_dir(folder)
    assert len(opened._segments()) < 10
    opened.close()
    record = Record(folder)
    stay = {f"extra{number}": f"castle w{number} w{number + 1}" for number in range(6, 12)} | made
    text_of = {p.id: p.text for p in library.registry.passages()}
    assert {id_ for holding in held(record).values() for id_ in holding} == set(text_of)
    assert held(record) == expected(text_of)
    assert len(text_of) == len(stay)
    record.close()


class After(Cancel):
    """Set in the middle: at the n-th look."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.left = looks

    def check(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.set()
        super().check()


def looks_of(library) -> dict[str, int]:
    """Looks at the token by the time that each phase begins, and at the end."""
    cancel, seen = After(1 << 30), dict[str, int]()
    with library.index.lock():
        for step in library.index.updates(full=True, cancel=cancel):
            if isinstance(step, Progress):
                seen.setdefault(step.phase, (1 << 30) - cancel.left)
            elif isinstance(step, Update):
                seen["end"] = (1 << 30) - cancel.left
    return seen


@pytest.mark.parametrize("phase", ["commit", "matrix", "names"])
def test_a_stop_is_heard_in_the_middle_of_each_phase(library, monkeypatch, phase):
    for module in (segment, record_file):
        monkeypatch.setattr(module, "_EVERY", 20)
    monkeypatch.setattr("mindchat.corpus.search.weave._EVERY", 20)
    library.put(**texts(150))
    library.index.build()
    seen = looks_of(library)
    order = ["index", "commit", "matrix", "names", "end"]
    begins, ends = seen.get(phase, 0), seen[order[order.index(phase) + 1]]
    assert ends - begins > 4, "looks in this phase"
    before, phases = library.index.store.current(), list[str]()
    with pytest.raises(Interrupted), library.index.lock():
        phases.extend(step.phase for step in library.index.updates(full=True, cancel=After((begins + ends) // 2)))
    assert phases[-1] == phase
    assert library.index.store.current() == before
    assert not list(library.index.store.root.glob("building-*"))
    assert library.index.search(Query("castle"), 5)
    assert library.index.rebuild().passages == library.index.sync(cancel=NEVER).passages


def test_a_stop_is_heard_while_a_document_of_many_passages_is_stored(tmp_path):
    from mindchat.storage.document_registry import DocumentRegistry
    from mindchat.values import Chunk, Document

    registry = DocumentRegistry(tmp_path / "memory.db")
    text = "a castle " * 4_000
    chunks = [Chunk(start, start + 8) for start in range(0, len(text), 9)]
    with pytest.raises(Interrupted):
        registry.put([(Document("/d", "d", text), chunks)], After(4))
    assert registry.count() == (0, 0)
    assert registry.put([(Document("/d", "d", text), chunks)]) == ["added"]
    assert registry.count() == (1, 4_000)
    registry.close()


def test_words_that_never_come_twice_go_into_several_segments(library, monkeypatch):
    made = {f"p{at}": " ".join(f"r{at}x{number}" for number in range(50)) for at in range(40)}
    monkeypatch.setattr(record_file, "SEGMENT_TERMS", 400)
    monkeypatch.setattr(record_file, "_SMALL", 0)
    library.put(**made)
    library.index.build()
    folder = library.index.store.root / library.index.store.current() / "record"
    opened = whoosh_index.open_dir(folder)
    assert len(opened._segments()) >= 4
    opened.close()
    assert library.find("r7x3") == ["p7"]
    assert library.index.verify() == []

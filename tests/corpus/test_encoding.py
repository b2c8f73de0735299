"""Making vectors, beside everything else that happens to an index: pauses, kills, damage, changes, missing encoders."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.encoding import Encoded, Encoding, encode, pause, running, state_of
from mindchat.corpus.index import Index
from mindchat.errors import IndexLockedError
from mindchat.ports import Cancel
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Chunk, Document, Found, Passage, Query

from .encoders import Here

TEXTS = {
    "clinic": "A physician works here.",
    "garage": "The automobile is mended.",
    "cinema": "A silent picture is shown.",
    "harbour": "Ships and cranes.",
}


class Home:
    """A registry and an index that searches by meaning too."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.here, self.notices = folder, Here(), list[str]()
        self.registry = DocumentRegistry(folder / "memory.db")
        self.index = self.another()

    def another(self, here: Here | None = None, **retrieve) -> Index:
        settings = RetrieveSection(**({"dense": "on"} | retrieve))
        return Index(
            self.folder / "index",
            IndexSection(lock_seconds=0.3),
            self.registry,
            retrieve=settings,
            encoder=here or self.here,
            notify=self.notices.append,
        )

    def put(self, texts: dict[str, str]) -> None:
        self.registry.put(
            [(Document(f"/n/{name}.txt", name, text), [Chunk(0, len(text))]) for name, text in texts.items()]
        )
        self.index.sync()

    def encode(self, cancel: Cancel | None = None) -> list[Encoding | Encoded]:
        return list(encode(self.index, self.here.load, self.here.id(), cancel or Cancel()))

    def find(self, words: str, k: int = 3, index: Index | None = None) -> list[Passage]:
        return (index or self.index).search(Query(words), k)

    @property
    def blocks(self) -> list[Path]:
        return sorted(self.index.vectors.rglob("block-*.npy"))


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    home.index.close()
    home.registry.close()


@pytest.fixture
def full(home):
    home.put(TEXTS)
    home.encode()
    return home


def test_a_passage_without_a_word_of_the_question_is_found_by_its_meaning(full):
    first = full.find("who cures")[0]
    assert (first.title, first.found) == ("clinic", Found("dense"))
    assert full.find("who cures", index=full.another(dense="off")) == []
    assert full.index.status().vectors == 4
    assert full.index.verify() == []
    assert not full.notices


def test_words_count_as_before_where_they_say_more(full):
    assert full.find("ships and cranes")[0].found == Found("words")


def test_progress_counts_up_to_all_and_ends_with_what_was_made(home):
    home.put({f"note {n}": f"text {n}" for n in range(600)})
    *steps, last = home.encode()
    assert [(step.done, step.total) for step in steps] == [(0, 600), (256, 600), (512, 600), (600, 600)]
    assert (last.vectors, last.passages, last.made, last.paused) == (600, 600, 600, False)
    assert state_of(home.index.vectors) == ""
    assert home.encode()[-1].made == 0


def test_paused_it_keeps_what_is_finished_uses_it_says_so_and_goes_on(home):
    home.put({f"note {n:03}": f"text {n:03}" for n in range(600)})
    cancel, seen = Cancel(), []
    for step in encode(home.index, home.here.load, home.here.id(), cancel):
        seen.append(step)
        if isinstance(step, Encoding) and step.done:
            cancel.set()
    assert (seen[-1].vectors, seen[-1].paused) == (256, True)
    home.find("text")
    assert any("256 of 600 passages have a vector" in notice for notice in home.notices)
    assert home.encode()[-1].made == 600 - 256
    assert len(home.here.encoder.read) == 600 == len(set(home.here.encoder.read))


def test_another_process_may_ask_for_a_pause_and_a_second_one_is_refused(home):
    home.put({f"note {n}": f"text {n}" for n in range(600)})
    assert not pause(home.index.vectors)
    steps, last = encode(home.index, home.here.load, home.here.id(), Cancel()), None
    next(steps), next(steps)
    assert running(home.index.vectors).done == 256
    with pytest.raises(IndexLockedError, match="256 of 600"):
        next(encode(home.another(), home.here.load, home.here.id(), Cancel()))
    assert pause(home.index.vectors)
    for last in steps:  # noqa: B007
        pass
    assert (last.vectors, last.paused) == (256, True)
    assert home.encode()[-1].vectors == 600  # the wish is gone with the run that it stopped


def test_documents_come_change_and_go_while_their_vectors_are_kept(full):
    read = len(full.here.encoder.read)
    full.put({"clinic": "A physician works there.", "lorry": "A heavy vehicle."})
    assert full.find("movie")[0].title == "cinema"
    assert any("3 of 5 passages have a vector" in notice for notice in full.notices)
    assert full.encode()[-1].made == 2
    assert len(full.here.encoder.read) == read + 2
    full.registry.remove(["/n/cinema.txt"])
    full.index.sync()
    assert full.index.verify() == []
    assert "cinema" not in [passage.title for passage in full.find("movie")]


def test_the_vectors_of_what_is_removed_leave_the_disk(full):
    (before,) = full.blocks
    content = before.read_bytes()
    full.registry.remove([f"/n/{name}.txt" for name in TEXTS if name != "harbour"])
    full.index.sync()
    (after,) = full.blocks
    assert len(after.read_bytes()) < len(content)


def test_missing_vectors_or_a_missing_encoder_are_told_and_search_goes_on(home):
    home.put(TEXTS)
    assert home.find("physician")[0].title == "clinic"
    assert any("no passage has a vector yet" in notice for notice in home.notices)
    home.encode()
    home.notices.clear()
    gone = home.another(Here(missing=True))
    assert home.find("physician", index=gone)[0].title == "clinic"
    assert any("concepts is not on this machine" in notice for notice in home.notices)
    other = home.another(Here("other"))
    assert home.find("who cures", index=other) == []
    assert any("no passage has a vector yet" in notice for notice in home.notices)


def test_an_index_that_syncs_without_the_encoder_keeps_its_vectors(full):
    full.registry.put([(Document("/n/x.txt", "x", "Words."), [Chunk(0, 6)])])
    full.another(Here(missing=True)).sync()
    assert full.find("who cures")[0].title == "clinic"


def test_a_damaged_array_is_made_again_from_the_blocks(full):
    generation = full.index.store.root / full.index.generation()
    file = generation / "vectors" / "row_vectors.npy"
    file.write_bytes(file.read_bytes()[:-1])
    again = full.another()
    assert full.find("physician", index=again)[0].title == "clinic"
    assert any("vectors are damaged" in notice for notice in full.notices)
    assert full.index.verify()
    full.index.rebuild()
    assert full.index.verify() == []
    assert full.find("who cures")[0].title == "clinic"


def test_a_damaged_block_is_encoded_again(full):
    (block,) = full.blocks
    block.write_bytes(b"nothing")
    assert full.index.verify()
    assert full.encode()[-1].made == 4
    assert full.index.verify() == []


def test_a_rebuild_encodes_nothing(full):
    read = len(full.here.encoder.read)
    full.index.rebuild()
    assert full.find("who cures")[0].title == "clinic"
    assert len(full.here.encoder.read) == read


def test_filters_hold_for_what_is_found_by_meaning(full):
    from mindchat.corpus.search.queries import parse

    assert [p.title for p in full.index.search(parse("the vehicle path:garage"), 5)] == ["garage"]
    assert full.index.search(parse("movie path:garage"), 5) == []
    assert full.index.search(parse('who cures "physician works"'), 5)[0].title == "clinic"


def test_equal_texts_are_encoded_once(home):
    home.put({"a": "Same words.", "b": "Same words."})
    shutil.rmtree(home.index.vectors, ignore_errors=True)
    assert home.encode()[-1].made == 1
    assert home.encode()[-1].made == 0


CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import numpy as np
from encoders import Here
from mindchat.config import IndexSection
from mindchat.corpus.encoding import encode
from mindchat.corpus.index import Index
from mindchat.ports import Cancel
from mindchat.storage import atomic
from mindchat.storage.document_registry import DocumentRegistry
home, left = Path(sys.argv[1]), int(sys.argv[2])

def fall(path):
    global left
    left -= 1
    if left < 0:
        with open(path, "r+b") as file:
            file.truncate(file.seek(0, 2) // 2)
        os.kill(os.getpid(), signal.SIGKILL)

def saving(path, array, **options):
    save(path, array, **options)
    if isinstance(path, Path) and path.parent.name == "vectors":
        fall(path)

def syncing(descriptor):
    sync(descriptor)
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if "/vectors/" in path and os.path.isfile(path):
        fall(path)

save, sync = np.save, os.fsync
np.save, os.fsync = saving, syncing
here = Here()
index = Index(home / "index", IndexSection(), DocumentRegistry(home / "memory.db"), encoder=here)
for step in encode(index, here.load, here.id(), Cancel()):
    pass
"""
POINTS = 7
"""Moments of one run at which it is killed: notes, the block, the array's two files, and their flushing."""


def kill_and_check(home: Home, rounds: int) -> None:
    """Killed in the middle of each write in turn: the old generation answers, by meaning too, and a later run is whole."""
    home.put(TEXTS)
    home.encode()
    for number in range(rounds):
        home.put({f"ward {number}": f"Doctor number {number}."})
        command = [sys.executable, "-c", CHILD, str(home.folder), str(number % POINTS), str(Path(__file__).parent)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        old = home.another()
        assert home.find("picture", index=old)[0].title == "cinema"
        assert home.find("movie", index=old)[0].found == Found("dense")
        assert not [notice for notice in home.notices if "damaged" in notice]
    assert home.encode()[-1].vectors == len(TEXTS) + rounds
    assert home.index.verify() == []


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds files by /proc")


@needs_proc
def test_killed_at_each_write_of_the_vectors(home):
    kill_and_check(home, POINTS)


@needs_proc
@pytest.mark.soak
def test_killed_fifty_times_while_vectors_are_written(home):
    kill_and_check(home, 50)


def test_an_index_in_memory_finds_the_same_by_meaning(full):
    from mindchat.corpus.search.memory_index import MemoryIndex

    memory = MemoryIndex(list(full.registry.passages()), IndexSection(), None, RetrieveSection(dense="on"), full.here)
    for question in ("who cures", "a movie about ships", "vehicle cranes"):
        found = [(p.title, p.found, round(p.score, 5)) for p in memory.search(Query(question), 4)]
        assert found == [(p.title, p.found, round(p.score, 5)) for p in full.find(question, 4)]

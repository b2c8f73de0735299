"""The name graph as part of an index: with its generation, through kills and damage, over folders that people have."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.corpus.search import names
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Found, Passage, Query


class Home:
    """A registry and an index under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.notices = folder, list[str]()
        self.registry = DocumentRegistry(folder / "memory.db")
        self.index = self.another()

    def another(self, **retrieve) -> Index:
        section = RetrieveSection(**retrieve)
        return Index(self.folder / "index", IndexSection(), self.registry, retrieve=section, notify=self.notices.append)

    def add(self, *roots: Path) -> None:
        for _ in ingest(roots, self.registry, self.index, self.index.section):
            pass

    def find(self, words: str, k: int = 3) -> list[Passage]:
        return self.index.search(Query(words), k)

    @property
    def graph(self) -> Path:
        return self.index.store.root / self.index.generation() / "graph"


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    home.index.close()
    home.registry.close()


def write(folder: Path, notes: dict[str, str]) -> Path:
    for name, text in notes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


NOTES = {
    "projects/harbour.md": "# Harbour crane\n\nThe crane's budget was signed by [[Mira Okafor|our sponsor]].\n",
    "people/mira-okafor.md": (
        "---\naliases: [The Sponsor]\n---\n# Mira Okafor\n\nReaches her desk from [the annex](../places/annex.md).\n"
    ),
    "places/annex.md": "# Eastern annex\n\nThird floor, room 12; badge needed.\n",
    "places/cellar.md": "# Cellar\n\nNobody goes there, but The Sponsor once did.\n",
}


def test_in_three_hundred_notes_the_answer_is_found_along_their_links(home, tmp_path):
    others = {
        f"log/day-{n}.md": f"# Day {n}\n\nWe moved boxes, lunch at {n % 12}. See [[Day {n + 1}]].\n" for n in range(296)
    }
    home.add(write(tmp_path / "notes", NOTES | others))
    crane, sponsor, annex = home.find("who signed the budget of the harbour crane")
    assert [Path(passage.document).name for passage in (crane, sponsor, annex)] == [
        "harbour.md",
        "mira-okafor.md",
        "annex.md",
    ]
    assert sponsor.found == Found("link", "Mira Okafor", crane.id)
    assert annex.found == Found("link", "annex", sponsor.id)
    assert home.find("who went to the cellar")[1].found.name == "The Sponsor"
    assert home.index.verify() == []


def test_plain_texts_lead_on_by_their_headings_and_file_names(home, tmp_path):
    texts = {
        "letter.txt": "Dear all,\n\nthe lighthouse keeper handed the keys to Ada Brennan.\n",
        "staff.txt": "Ada Brennan\n===========\n\nOffice hours on Tuesday.\n",
        "bread.txt": "Flour and water.\n",
    }
    home.add(write(tmp_path / "texts", texts))
    letter, staff = home.find("the lighthouse keeper's keys")
    assert (Path(staff.document).name, staff.found) == ("staff.txt", Found("link", "Ada Brennan", letter.id))


def test_links_off_is_search_by_words(home, tmp_path):
    home.add(write(tmp_path / "notes", NOTES))
    plain = home.another(links="off")
    assert [Path(passage.document).name for passage in plain.search(Query("budget signed"), 3)] == ["harbour.md"]
    plain.close()


def test_a_changed_folder_gives_the_graph_of_a_rebuild(home, tmp_path):
    folder = write(tmp_path / "notes", NOTES)
    home.add(folder)
    write(folder, {"people/new.md": "# Harbour\n\nCrane.", "places/annex.md": "# Western annex\n\nThird floor."})
    (folder / "places/cellar.md").unlink()
    home.add(folder)
    kept = {path.name: path.read_bytes() for path in home.graph.iterdir()}
    assert home.index.verify() == []
    home.index.rebuild()
    rebuilt = {path.name: path.read_bytes() for path in home.graph.iterdir()}
    assert kept["names.bin"] == rebuilt["names.bin"]
    assert home.index.verify() == []


@pytest.mark.parametrize("name", ["row_mentions.npy", "names.bin", "row_shares.npy"])
@pytest.mark.parametrize("how", ["gone", "cut", "other"])
def test_a_damaged_graph_is_told_and_words_answer_until_a_sync_mends_it(home, tmp_path, name, how):
    home.add(write(tmp_path / "notes", NOTES))
    file = home.graph / name
    content = file.read_bytes()
    file.unlink()
    if how != "gone":
        file.write_bytes(content[:-3] if how == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    home.index.close()
    assert [Path(passage.document).name for passage in home.find("budget signed")] == ["harbour.md"]
    assert any(name in notice and "rebuild" in notice for notice in home.notices)
    home.index.sync()
    assert len(home.find("budget signed")) == 3
    assert home.index.verify() == []


def test_an_index_from_before_there_were_graphs_gets_one_before_it_is_searched(home, tmp_path):
    home.add(write(tmp_path / "notes", NOTES))
    manifest = home.graph.parent / "manifest.json"
    fields = json.loads(manifest.read_bytes())
    assert fields.pop("graph") == names.VERSION
    fields["files"] = {path: entry for path, entry in fields["files"].items() if not path.startswith("graph/")}
    manifest.write_text(json.dumps(fields))
    home.index.close()
    assert len(home.find("budget signed")) == 3
    assert any("without today's name graph" in notice for notice in home.notices)
    assert home.index.verify() == []


CHILD = """
import os, signal, sys
from pathlib import Path
import numpy as np
from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.storage.document_registry import DocumentRegistry
home, left, root = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
save = np.save
def dying(path, array):
    global left
    save(path, array)
    if Path(path).parent.name == "graph":
        left -= 1
        if left < 0:
            with open(path, "r+b") as file:
                file.truncate(file.seek(0, 2) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
np.save = dying
registry = DocumentRegistry(home / "memory.db")
index = Index(home / "index", IndexSection(), registry)
for event in ingest([root], registry, index, index.section):
    pass
"""


def kill_and_check(home: Home, tmp_path: Path, rounds: int) -> None:
    """Killed in the middle of each file of the graph in turn: the old graph answers, and a later run is whole."""
    folder = write(tmp_path / "notes", NOTES)
    home.add(folder)
    for number in range(rounds):
        write(
            folder,
            {"places/annex.md": f"# Eastern annex\n\nThird floor, room {number}.\n", f"new-{number}.md": "# New\n"},
        )
        command = [sys.executable, "-c", CHILD, str(home.folder), str(number % 10), str(folder)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert [passage.found.by for passage in home.find("harbour crane budget")][:2] == ["words", "link"]
        assert home.index.pending
    home.add(folder)
    assert home.index.verify() == []
    assert home.find("harbour crane budget")[2].text.endswith(f"room {rounds - 1}.")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_while_each_file_of_the_graph_is_written(home, tmp_path):
    kill_and_check(home, tmp_path, 10)


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_fifty_times_while_the_graph_is_written(home, tmp_path):
    kill_and_check(home, tmp_path, 50)

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.ingest import ingest, remove, sync
from mindchat.corpus.ingest_report import FileFailed, FileRead, FileSkipped, IngestDone, IngestProgress
from mindchat.corpus.roots import load_roots
from mindchat.errors import IndexMissingError, Interrupted, UsageError
from mindchat.ports import Cancel
from mindchat.values import Query


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "river.txt").write_text("The Vézère is a river in France.\n\nIt joins the Dordogne.", encoding="utf-8")
    (folder / "a b ü.md").write_text("# Castles\n\nIntro.\n\n## Old ones\n\nThe castle of Thouars.\n", encoding="utf-8")
    lines = [
        '{"id": "p1", "title": "Poe", "text": "Edgar Poe wrote tales."}',
        '{"id": "p2", "title": "Raven", "text": "A bird."}',
    ]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_add_reports_by_the_contract(library, docs):
    report = library.add(docs)
    result = report.to_json()
    assert result["added"] == sorted(str(docs / name) for name in ("river.txt", "a b ü.md", "corpus.jsonl"))
    assert (result["updated"], result["removed"], result["unchanged"], result["failed"]) == ([], [], 0, [])
    assert result["passages"] == 5
    assert result["types"] == {".txt": 1, ".md": 1, ".jsonl": 1}
    assert library.find("castle Thouars")[0] == "a b ü.md"


def test_offsets_are_exact_and_headings_travel(library, docs):
    library.add(docs)
    for passage in library.registry.passages():
        assert library.registry.text(passage.document)[passage.start : passage.end] == passage.text
    hit = library.index.search(Query("Thouars"), 1)[0]
    assert (hit.title, hit.heading) == ("Castles", "Old ones")


def test_corpus_lines_keep_their_id(library, docs):
    library.add(docs)
    hit = library.index.search(Query("tales"), 1)[0]
    assert (hit.id, hit.document, hit.start, hit.end) == ("p1", f"{docs / 'corpus.jsonl'}#p1", 0, 22)


def test_adding_twice_changes_nothing(library, docs):
    library.add(docs)
    generation = library.index.store.current()
    report = library.add(docs)
    assert (report.added, report.updated, report.removed, report.unchanged) == ((), (), (), 3)
    assert library.index.store.current() == generation


def test_touching_a_file_without_changing_it_is_unchanged(library, docs):
    library.add(docs)
    os.utime(docs / "river.txt", (1, 1))
    report = library.sync()
    assert (report.updated, report.unchanged) == ((), 3)


def test_sync_finds_changed_deleted_new_and_moved_files(library, docs):
    library.add(docs)
    (docs / "river.txt").write_text("Now about glaciers.")
    (docs / "corpus.jsonl").unlink()
    (docs / "new.txt").write_text("A violin.")
    (docs / "a b ü.md").rename(docs / "renamed.md")
    report = library.sync()
    assert report.updated == (str(docs / "river.txt"),)
    assert report.removed == (str(docs / "corpus.jsonl"),)
    assert report.added == (str(docs / "new.txt"),)
    assert report.moved == (str(docs / "renamed.md"),)
    assert library.find("tales") == []
    assert library.find("glacier") == ["river.txt"]
    assert library.find("Thouars") == ["renamed.md"]


def test_a_line_taken_out_of_a_corpus_is_forgotten(library, docs):
    library.add(docs)
    (docs / "corpus.jsonl").write_text('{"id": "p1", "title": "Poe", "text": "Edgar Poe wrote tales."}\n')
    report = library.sync()
    assert report.updated == (str(docs / "corpus.jsonl"),)
    assert library.find("bird") == []
    assert library.find("tales") != []


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_root_that_is_gone_keeps_its_documents_until_pruned(library, docs, tmp_path, how):
    other = tmp_path / "other.txt"
    other.write_text("A violin.")
    library.add(docs, other)
    docs.rename(tmp_path / "elsewhere")
    if how == "empty":  # what stands at the place of a disk that is not mounted
        docs.mkdir()
    report = library.sync()
    assert (report.removed, report.missing_roots, report.skipped) == ((), (str(docs),), ())
    assert report.to_json()["missing_roots"] == [str(docs)]
    assert library.find("tales") == ["corpus.jsonl#p1"]
    assert str(docs) in load_roots(library.index.store.root)
    if how == "empty":
        docs.rmdir()
    (tmp_path / "elsewhere").rename(docs)
    report = library.sync()
    assert (report.removed, report.missing_roots, report.unchanged) == ((), (), 4)
    docs.rename(tmp_path / "elsewhere")
    *_, done = sync(library.registry, library.index, library.section, prune=True)
    assert (len(done.report.removed), done.report.missing_roots) == (3, ())
    assert load_roots(library.index.store.root) == [str(other)]
    assert library.find("tales") == []
    assert library.find("violin") == ["other.txt"]


def test_files_deleted_in_a_root_that_is_there_are_forgotten(library, docs):
    library.add(docs)
    (docs / "corpus.jsonl").unlink()
    assert library.sync().removed == (str(docs / "corpus.jsonl"),)


def test_passages_are_cut_by_the_tokens_of_a_model_if_there_is_one(library, tmp_path):
    def count(text: str) -> int:
        return len(text.encode())

    path = tmp_path / "long.txt"
    path.write_text("A short sentence stands here. " * 20 + "\n\n" + "x" * 500 + "\n\nAnd 東京都は日本の首都である。")
    section = IndexSection(chunk_tokens=64)
    list(ingest([path], library.registry, library.index, section, count=count))
    passages = [passage.text for passage in library.registry.passages()]
    assert max(map(count, passages)) <= 64 + 1  # the blank between two sentences
    assert sum(map(count, passages)) > 1000
    list(ingest([path], library.registry, library.index, section))
    assert [passage.text for passage in library.registry.passages()] == passages, "an unchanged file is not cut again"


def test_broken_lines_are_named_by_number_while_others_go_on(library, tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"id":"a","title":"A","text":"alpha"}\n{broken\n[1]\n{"id":"b","text":""}\n{"title":"x","text":"no id"}\n'
        b'{"id":"a","title":"A","text":"again"}\n\xff\xfe{}\n{"id":"c","title":7,"text":"x"}\n{"id":"z","title":"Z","text":"omega"}\n'
    )
    report = library.add(path)
    reasons = [reason for _, reason in report.failed]
    assert [reason.split(":")[0] for reason in reasons] == [f"line {n}" for n in (2, 3, 4, 5, 6, 7, 8)]
    assert sorted(passage.id for passage in library.registry.passages()) == ["a", "z"]


def test_a_corpus_without_a_single_good_line_fails(library, tmp_path):
    (tmp_path / "bad.jsonl").write_text("7\n")
    report = library.add(tmp_path / "bad.jsonl")
    assert [reason for _, reason in report.failed] == ["line 1: is not an object", "has no line that can be read."]


@pytest.mark.parametrize(
    ("name", "data", "want"),
    [
        (
            "latin.txt",
            "Die Gräfin ließ Käse für die Vögel übrig, als es draußen schon dämmerte.".encode("latin-1"),
            "Gräfin",
        ),
        ("cyr.txt", ("Москва является столицей России и крупнейшим городом страны. " * 5).encode("cp1251"), "Москва"),
        ("bom.txt", "Trémoille".encode("utf-16"), "Trémoille"),
        ("bare.txt", "A plain sentence about castles in Poitou.".encode("utf-16-le"), "castles"),
        ("sig.txt", "naïve".encode("utf-8-sig"), "naïve"),
        ("mac.txt", b"one\rtwo\r\nthree", "one\ntwo\nthree"),
    ],
)
def test_encodings(library, tmp_path, name, data, want):
    (tmp_path / name).write_bytes(data)
    assert library.add(tmp_path / name).failed == ()
    assert want in library.registry.text(str(tmp_path / name))


def test_binary_in_a_text_file_is_named(library, tmp_path):
    (tmp_path / "b.txt").write_bytes(bytes(range(256)) * 20)
    report = library.add(tmp_path / "b.txt")
    assert [reason for _, reason in report.failed] == ["is a binary file, not text."]


def test_escape_sequences_never_reach_the_registry(library, tmp_path):
    (tmp_path / "evil\x1b]52;c;x\x07.txt").write_text(
        "safe \x1b[2J\x9b31m words and more of them, " * 20 + "\x00\u202e"
    )
    library.add(tmp_path)
    (document,) = library.registry.rows.values()
    assert document.document.text.startswith("safe  words and")
    assert not set("\x1b\x9b\x00\u202e") & set(document.document.text)
    assert "\x1b" not in document.title


def test_what_is_skipped_and_why(library, tmp_path):
    root = tmp_path / "r"
    for folder in (".git", "node_modules", "sub", "build"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x.txt").write_text("river")
    (root / ".hidden.txt").write_text("river")
    (root / ".env").write_text("SECRET=river")
    (root / "id_rsa").write_text("river")
    (root / "server.pem").write_text("river")
    (root / "keyed.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nriver\n")
    (root / "app.min.js").write_text("river")
    (root / "dense.js").write_text("river;" * 1000)
    (root / "empty.txt").write_text("")
    (root / "photo.xyz").write_bytes(b"river")
    (root / "big.txt").write_text("river " * 400_000)
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (root / "a.log").write_text("river")
    (root / "keep.log").write_text("kept river")
    (root / "sub" / ".mindchatignore").write_text("y.txt\n")
    (root / "sub" / "y.txt").write_text("river")
    (root / "sub" / "loop").symlink_to(root)
    (root / "twice.txt").symlink_to(root / "sub" / "x.txt")
    (root / "dangling.txt").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe.txt")
    section = IndexSection(max_file_mb=2)
    events = list(ingest([root], library.registry, library.index, section))
    skipped = {event.path.removeprefix(f"{root}/"): event.reason for event in events if isinstance(event, FileSkipped)}
    failed = {event.path.removeprefix(f"{root}/"): event.reason for event in events if isinstance(event, FileFailed)}
    assert sorted(uri.removeprefix(f"{root}/") for uri in library.registry.rows) == ["keep.log", "sub/x.txt"]
    assert skipped.pop("node_modules") == "dependencies or generated files"
    assert (
        skipped.pop("build")
        == skipped.pop("a.log")
        == skipped.pop("sub/y.txt")
        == "ignored by .gitignore or .mindchatignore"
    )
    assert skipped.pop(".env") == skipped.pop("id_rsa") == skipped.pop("server.pem") == "secret"
    assert skipped.pop("sub/loop") == "read already (a link), or MindChat's own files"
    assert skipped.pop("twice.txt") == "link to a file that was read already"
    assert "larger than" in skipped.pop("big.txt")
    assert skipped.pop("app.min.js") == "minified or generated"
    assert skipped.pop("empty.txt") == "empty"
    assert skipped.pop("photo.xyz") == "type .xyz is not supported"
    assert "broken link" in skipped.pop("dangling.txt")
    assert "pipe" in skipped.pop("pipe.txt")
    assert skipped == {}
    assert "minified" in failed.pop("dense.js")
    assert "private key" in failed.pop("keyed.txt")
    assert failed == {}


def test_a_secret_is_refused_even_when_named(library, tmp_path):
    (tmp_path / ".env").write_text("KEY=1")
    report = library.add(tmp_path / ".env")
    assert [reason for _, reason in report.skipped] == ["secret"]


def test_a_missing_root_is_a_usage_error(library, tmp_path):
    with pytest.raises(UsageError, match="There is no"):
        library.add(tmp_path / "nowhere")


def test_remove_forgets_documents_and_root(library, docs):
    library.add(docs)
    *_, done = remove(docs / "corpus.jsonl", library.registry, library.index, library.section)
    assert isinstance(done, IngestDone)
    assert done.report.removed == (str(docs / "corpus.jsonl"),)
    assert library.find("tales") == []
    list(remove(docs, library.registry, library.index, library.section))
    assert library.registry.rows == {}
    assert load_roots(library.index.store.root) == []
    with pytest.raises(UsageError):
        list(remove(docs, library.registry, library.index, library.section))


def test_progress_and_one_final_event(library, docs):
    events = list(ingest([docs], library.registry, library.index, library.section))
    assert sum(isinstance(event, IngestDone) for event in events) == 1
    assert isinstance(events[-1], IngestDone)
    assert {event.phase for event in events if isinstance(event, IngestProgress)} >= {"commit", "matrix"}
    assert sum(isinstance(event, FileRead) for event in events) == 3


def test_batches_are_bounded(library, tmp_path):
    lines = "".join(f'{{"id":"{n}","title":"t","text":"word {n}"}}\n' for n in range(1234))
    (tmp_path / "c.jsonl").write_text(lines)
    library.add(tmp_path / "c.jsonl")
    assert library.registry.puts == [500, 500, 234]


def test_cancel_keeps_what_was_stored_and_the_next_run_resumes(library, tmp_path):
    lines = "".join(f'{{"id":"{n}","title":"t","text":"word {n}"}}\n' for n in range(1300))
    (tmp_path / "c.jsonl").write_text(lines)
    cancel = Cancel()
    events = ingest([tmp_path / "c.jsonl"], library.registry, library.index, library.section, cancel=cancel)
    original = library.registry.put

    def put(batch, _):
        cancel.set()
        return original(batch)

    library.registry.put = put
    with pytest.raises(Interrupted):
        list(events)
    assert library.index.pending
    library.registry.put = original
    library.index.rebuild()
    library.index.store.set_pending(True)
    library.find("word")
    assert any("did not finish" in notice for notice in library.notices)
    report = library.sync()
    assert report.passages == 1300
    assert not library.index.pending


CHILD = """
import sys
from pathlib import Path
from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest
from mindchat.storage.document_registry import DocumentRegistry
home, *roots = map(Path, sys.argv[1:])
registry = DocumentRegistry(home / "memory.db")
section = IndexSection()
index = Index(home / "index", section, registry)
for event in ingest(roots, registry, index, section):
    print(type(event).__name__, flush=True)
"""


def kill_and_check(tmp_path, rounds: int) -> None:
    """A first corpus is indexed; then a second one is added and killed at random moments; the first must answer, and a
    resumed run be whole.
    """
    memory = pytest.importorskip("mindchat.storage.document_registry")
    from mindchat.corpus.index import Index

    chance, home = random.Random(rounds), tmp_path / "home"
    home.mkdir()
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("".join(f'{{"id":"a{n}","title":"first {n}","text":"river castle {n}"}}\n' for n in range(50)))
    run = [sys.executable, "-c", CHILD, str(home)]
    subprocess.run([*run, str(first)], check=True, stdout=subprocess.DEVNULL)
    for number in range(rounds):
        second.write_text(
            "".join(f'{{"id":"b{n}","title":"second {number} {n}","text":"zebra {number} {n}"}}\n' for n in range(1500))
        )
        child = subprocess.Popen([*run, str(second)], stdout=subprocess.PIPE)
        time.sleep(chance.uniform(0.05, 1.3))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        registry = memory.DocumentRegistry(home / "memory.db")
        index = Index(home / "index", IndexSection(), registry)
        assert index.search(Query("river castle"), 3), f"round {number}: the old index must answer"
        known = registry.count("user")[1]
        assert index.pending or (index.status().passages == known and index.verify() == []), (
            f"round {number}: silently incomplete"
        )
        index.close()
        registry.close()
    subprocess.run([*run, str(second)], check=True, stdout=subprocess.DEVNULL)
    registry = memory.DocumentRegistry(home / "memory.db")
    index = Index(home / "index", IndexSection(), registry)
    assert index.verify() == []
    assert index.status().passages == 1550
    assert len(index.search(Query(f"zebra {rounds - 1}"), 5)) == 5
    index.close()
    registry.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_five_times_while_indexing(tmp_path):
    kill_and_check(tmp_path, 5)


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_fifty_times_while_indexing(tmp_path):
    kill_and_check(tmp_path, 50)


def test_nothing_found_is_no_index(library, tmp_path):
    (tmp_path / "x.xyz").write_text("x")
    report = library.add(tmp_path / "x.xyz")
    assert report.passages == 0
    with pytest.raises(IndexMissingError):
        library.another(IndexSection()).search(Query("x"), 1)


def test_files_in_a_folder_that_cannot_be_opened_now_are_not_forgotten(library, docs, monkeypatch):
    inner = docs / "inner"
    inner.mkdir()
    (inner / "deep.txt").write_text("zebra")
    library.add(docs)
    original = os.scandir

    def scandir(path):
        if str(path) == str(inner):
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = library.sync()
    assert report.removed == ()
    assert report.skipped == ((str(inner), "folder cannot be read (Permission denied)"),)
    assert library.find("zebra") == ["deep.txt"]


def test_importing_the_room_imports_no_heavy_library():
    heavy = [
        "whoosh",
        "numpy",
        "bm25s",
        "lxml",
        "pypdf",
        "docx",
        "docutils",
        "pathspec",
        "charset_normalizer",
        "filelock",
        "Stemmer",
    ]
    names = (
        "mindchat.corpus.ingest, mindchat.corpus.index, mindchat.corpus.reading.readers, mindchat.corpus.reading.walk"
    )
    code = f"import sys, {names}; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )

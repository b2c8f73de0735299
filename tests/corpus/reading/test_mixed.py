"""A folder as people have it: every format, hostile files among them; the rest goes on, and every failure is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat.commands.documents import index
from mindchat.config import IndexSection
from mindchat.library import DocumentLibrary
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Query

from .test_readers import EPUB, HOSTILE, HTML, MAIL, ODT, RST, make_docx, make_pdf, make_zip, write_hostile

SKIPPED = {
    "zero.md": "empty",
    "secret.pem": "secret",
    "photo.xyz": "type .xyz",
    "huge.log": "larger than",
    "dangling.txt": "broken link",
    "pipe.txt": "pipe",
}
"""Six more hostile ones: not read at all, with their reasons."""
BAD_LINES = 40


def write_good(folder: Path, count: int) -> Counter[str]:
    """`count` readable files of every format in turn, each with words of its own; how many of each suffix."""
    kinds: dict[str, bytes] = {
        ".txt": "Grüße vom Fluß.".encode("latin-1"), ".md": b"# Rivers\n\nThe Thouet.", ".rst": RST.encode(), ".html": HTML.encode(),
        ".pdf": make_pdf(["The Thouet flows."]), ".docx": make_docx(), ".odt": make_zip(dict(ODT)), ".epub": make_zip(dict(EPUB)),
        ".csv": b"name,length\nThouet,142\n", ".tsv": b"name\tlength\nThouet\t142\n", ".json": b'{"name": "Thouet"}',
        ".jsonl": b'{"id": "%d", "title": "Thouet", "text": "A river."}\n', ".eml": MAIL, ".mbox": b"From ann Mon Jan  1 00:00:00 2024\n" + MAIL,
        ".py": b"def river() -> str:\n    return 'Thouet'\n", ".go": b"package river\n",
    }  # fmt: skip
    written: Counter[str] = Counter()
    for number in range(count):
        suffix = list(kinds)[number % len(kinds)]
        home = folder / f"part {number // 30}"
        home.mkdir(exist_ok=True)
        data = kinds[suffix].replace(b"%d", str(number).encode())
        (home / f"file {number}{suffix}").write_bytes(data)
        written[suffix] += 1
    return written


def write_bad(folder: Path) -> None:
    """Thirty hostile files and a corpus with forty broken lines."""
    write_hostile(folder)
    (folder / "zero.md").touch()
    (folder / "secret.pem").write_text("x")
    (folder / "photo.xyz").write_bytes(b"x")
    (folder / "huge.log").write_bytes(b"river " * 400_000)
    (folder / "dangling.txt").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.txt")
    (folder / "loop").symlink_to(folder)
    (folder / "lines.jsonl").write_text('{"id": "good", "title": "T", "text": "A weir."}\n' + "{broken\n" * BAD_LINES)


def check(counts: Counter[str], report: dict[str, list[dict[str, str]]]) -> None:
    failed = Counter(Path(entry["path"]).name for entry in report["failed"])
    assert failed.pop("lines.jsonl") == BAD_LINES
    assert set(failed) == set(HOSTILE)
    for entry in report["failed"]:
        assert HOSTILE.get(Path(entry["path"]).name, (b"", "line "))[1] in entry["reason"]
    skipped = {Path(entry["path"]).name: entry["reason"] for entry in report["skipped"]}
    assert {name: skipped[name] for name, reason in SKIPPED.items() if reason not in skipped[name]} == {}
    assert len(HOSTILE) + len(SKIPPED) >= 30
    assert report["types"] == dict(counts + Counter({".jsonl": 1}))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_index_command_lists_every_failure_of_a_mixed_folder(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    counts = write_good(docs, 40)
    write_bad(docs)
    registry = DocumentRegistry(tmp_path / "memory.db")
    library = DocumentLibrary(tmp_path / "index", IndexSection(max_file_mb=2), registry)
    seen: list[Any] = []

    def add(paths):
        for event in library.add(paths):
            seen.append(event)
            yield event

    *_, reply = index(SimpleNamespace(rooms=SimpleNamespace(library=SimpleNamespace(add=add))), f'"{docs}"')
    check(counts, seen[-1].report.to_json())
    lines = reply.text.splitlines()
    for name in HOSTILE:
        assert sum(line.startswith(f"failed: {docs / name}: ") for line in lines) == 1, name
    assert sum(line.startswith(f"failed: {docs / 'lines.jsonl'}: line ") for line in lines) == BAD_LINES
    assert f"{len(HOSTILE) + BAD_LINES} failed" in lines[0]
    for reason in SKIPPED.values():
        assert any(line.startswith("skipped ") and reason in line for line in lines), reason
    assert any(line.startswith("by type: ") and f".epub {counts['.epub']}" in line for line in lines)
    events = list(library.sync())
    again = {Path(event.path).name for event in events if type(event).__name__ == "FileFailed"}
    assert again == set(HOSTILE), (
        "what gave nothing is tried again; the corpus, read but for its broken lines, has not changed"
    )
    assert events[-1].report.added == events[-1].report.updated == ()
    assert library.search(Query("weir"), 1)[0].id == "good"
    library.close()
    registry.close()


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_more_than_two_hundred_files_by_the_command_line(tmp_path):
    import resource

    docs = tmp_path / "docs"
    docs.mkdir()
    counts = write_good(docs, 220)
    write_bad(docs)
    environ = {**os.environ, "MINDCHAT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "mindchat", "index", "add", str(docs), "--json", "--set", "index.max_file_mb=2"]
    run = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    check(counts, json.loads(run.stdout))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert peak < 1_500_000_000

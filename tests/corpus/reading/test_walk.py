"""The walk trusts nothing: whatever stands in a folder is a file's or a folder's named failure, never the walk's end,
never a hang.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.reading.encoding import read_bytes
from mindchat.corpus.reading.file_reader import Reading
from mindchat.corpus.reading.ignoring import MAX_BYTES, MAX_PATTERNS
from mindchat.corpus.reading.walk import Found, Passed, walk
from mindchat.errors import DocumentError
from mindchat.ports import Cancel

from ..conftest import Library


def seen(root: Path, **options: bool) -> tuple[list[str], dict[str, str]]:
    """(names of found files, name → reason of what was passed)."""
    items = list(walk(root, 10**9, **options))
    passed = {Path(item.path).name: item.reason for item in items if isinstance(item, Passed)}
    return [item.path.name for item in items if isinstance(item, Found)], passed


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("river")
    (folder / f"{'a' * 40}.md").write_text("river")
    return folder


BAD = ["[z-a]*", "\\", "!", "a" * 600, "**" * 200 + "[", "\x00*", "[[:nope:]]", "(((("]


@pytest.mark.parametrize("line", BAD)
def test_a_bad_pattern_costs_itself_only(docs: Path, line: str) -> None:
    (docs / "b.md").write_text("hidden river")
    (docs / ".gitignore").write_text(f"{line}\nb.md\n")
    names, passed = seen(docs)
    assert "b.md" not in names
    assert "a.md" in names
    assert passed["b.md"].startswith("ignored")


@pytest.mark.parametrize(
    "line", ["*a" * 40 + "*b", "**/" * 60 + "x", "*" * 400 + "b", "?*" * 100 + "z", "[a-z]*" * 80 + "9"]
)
def test_a_pattern_that_backtracks_takes_no_time(docs: Path, line: str) -> None:
    (docs / ".mindchatignore").write_text(line)
    began = time.perf_counter()
    names, _ = seen(docs)
    assert "a.md" in names
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize("content", [b"x\n" * (MAX_PATTERNS + 1), b"#" * (MAX_BYTES + 1)])
def test_an_ignore_file_that_cannot_be_used_closes_its_folder(docs: Path, content: bytes) -> None:
    """Nobody knows what it protects."""
    inner = docs / "inner"
    inner.mkdir()
    (inner / "secret-plan.md").write_text("river")
    (inner / ".mindchatignore").write_bytes(content)
    names, passed = seen(docs)
    assert "secret-plan.md" not in names
    assert "a.md" in names
    assert passed["inner"].startswith("left out: its .mindchatignore")


def test_patterns_mean_what_git_means_by_them(docs: Path) -> None:
    (docs / "sub").mkdir()
    for name in ("keep.md", "drop.md", "sub/drop.md", "sub/x.md"):
        (docs / name).write_text("river")
    (docs / ".gitignore").write_text("# mine\n*.md\n!keep.md\n/sub/x.md\n")
    (docs / "sub" / ".gitignore").write_text("!x.md\n")
    assert seen(docs)[0] == ["keep.md", "x.md"]


def test_folders_nested_deeper_than_pythons_calls(tmp_path: Path) -> None:
    here = os.getcwd()
    (tmp_path / "z.md").write_text("river")
    try:
        os.chdir(tmp_path)
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.md").write_text("river")
        names, passed = seen(tmp_path)
        Path("deep.md").unlink()
        for _ in range(1500):  # pytest's own clean-up would call itself as deeply
            os.chdir("..")
            os.rmdir("d")
    finally:
        os.chdir(here)
    assert "z.md" in names
    assert "deep.md" in names or any("cannot be read" in reason or "unreadable" in reason for reason in passed.values())


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "to a folder outside": lambda docs, outside: (docs / "x").symlink_to(outside),
    "to a file outside": lambda docs, outside: (docs / "x.md").symlink_to(outside / "secret.md"),
    "through another link": lambda docs, outside: [
        (docs / "y").symlink_to(outside),
        (docs / "x").symlink_to(docs / "y"),
    ][0],
    "by a relative path": lambda docs, outside: (docs / "x").symlink_to("../outside"),
}


@pytest.mark.parametrize("kind", LINKS)
def test_links_out_of_a_root_are_followed_only_when_asked(docs: Path, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("river")
    LINKS[kind](docs, outside)
    names, passed = seen(docs)
    assert "secret.md" not in names
    assert any("leads out of the folder" in reason for reason in passed.values())
    assert "secret.md" in seen(docs, follow_links=True)[0]


def test_links_inside_a_root_and_a_root_that_is_a_link_are_followed(docs: Path, tmp_path: Path) -> None:
    (docs / "inner").mkdir()
    (docs / "inner" / "b.md").write_text("river")
    (docs / "again").symlink_to(docs / "inner")
    (docs / "loop").symlink_to(docs)
    root = tmp_path / "root"
    root.symlink_to(docs)
    assert sorted(name for name in seen(root)[0] if len(name) < 9) == ["a.md", "b.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "suffix", [".md", ".txt", ".jsonl", ".html", ".docx", ".pdf", ".eml", ".mbox", ".csv", ".py", ".rst"]
)
def test_a_file_that_became_a_pipe_is_named_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    section = IndexSection(read_seconds=1)
    began = time.perf_counter()
    with Reading(section, Cancel()) as reading, pytest.raises(DocumentError):
        list(reading.read(path))
    assert time.perf_counter() - began < 60
    with pytest.raises(DocumentError, match="no regular file"):
        read_bytes(path)


@pytest.mark.parametrize("suffix", [".md", ".jsonl", ".py", ".html", ".mbox", ".docx"])
def test_a_file_that_vanished_is_named(tmp_path: Path, suffix: str) -> None:
    with Reading(IndexSection(), Cancel()) as reading, pytest.raises(DocumentError):
        list(reading.read(tmp_path / f"gone{suffix}"))


def test_what_changes_between_walk_and_read_does_not_end_the_run(
    docs: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "gone.md").write_text("river")
    (docs / "pipe.md").write_text("river")
    from mindchat.corpus import ingest as room

    real = room.walk

    def and_then(*arguments: object, **options: object) -> list[Found | Passed]:
        items = list(real(*arguments, **options))  # type: ignore[arg-type]
        (docs / "gone.md").unlink()
        (docs / "pipe.md").unlink()
        os.mkfifo(docs / "pipe.md")
        return items

    monkeypatch.setattr(room, "walk", and_then)
    report = library.add(docs)
    assert {Path(path).name for path, _ in report.failed} == {"gone.md", "pipe.md"}
    assert "a.md" in {Path(path).name for path in report.added}

"""Files that a user names, or that lie in the home, and that are not what they should be: a sentence, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from .board import Run

DEEP = {"list": "[" * 200_000 + "\n", "object": '{"a":' * 50_000 + "1" + "}" * 50_000 + "\n"}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("command", [["memory", "import"], ["trace"], ["trace", "--json"]])
def test_a_file_that_is_nested_deeply_is_a_sentence(run: Run, tmp_path: Path, command: list[str], kind: str) -> None:
    file = tmp_path / "deep.jsonl"
    file.write_text(DEEP[kind])
    ended = run(*command, str(file))
    assert ended.code == 2, ended.err
    assert "report them" not in ended.err + ended.out


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("name", ["index/user/roots.json", "index/user/write.lock.json", "trusted.json", "pace.json"])
def test_a_small_file_of_the_home_that_is_nested_deeply_is_a_sentence_or_made_anew(
    run: Run, tmp_path: Path, home: Path, name: str, kind: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("The weir is old.")
    assert run("index", "add", str(tmp_path / "docs")).code == 0
    (home / name).write_text(DEEP[kind])
    for command in (["index", "sync"], ["index", "search", "weir"], ["index", "status"], ["doctor"]):
        ended = run(*command)
        assert "report them" not in ended.err + ended.out, (command, ended.err)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = 1", b"[[reply]]\ntext = 5", b"v = " + b"[" * 90_000])
def test_a_tape_that_is_none_is_a_sentence(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tape.toml").write_bytes(content)
    ended = run("ask", "Who?", "-m", "scripted:tape.toml", "--policy", "none")
    assert (ended.code, "is no tape" in ended.err) == (2, True), ended.err


def test_a_question_without_end_is_refused_before_it_is_written(
    run: Run, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    from types import SimpleNamespace

    from mindchat.values import MAX_QUESTION

    (tmp_path / "tape.toml").write_text('[[reply]]\ntext = " Paris"\n')

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            assert 0 <= size < 10 * MAX_QUESTION
            self.given += size
            return b"a" * size

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Endless(), isatty=lambda: False))
    ended = run("ask", "-", "-m", "scripted:tape.toml", "--policy", "none")
    assert (ended.code, "are read" in ended.err) == (2, True), ended.err
    chats = home / "chats.db"
    assert not chats.exists() or chats.stat().st_size < 1_000_000

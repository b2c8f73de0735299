"""Growing files of JSON lines, for every room that keeps one: cut anywhere they lose a line at most, and nobody writes
into another's.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from msgspec import Struct

from mindchat.errors import IndexLockedError, ResourceError, UsageError
from mindchat.storage.json_lines import appending, drop_torn_line, read


class Row(Struct, frozen=True):
    n: int
    text: str = ""


def write(path: Path, *rows: Row) -> None:
    with appending(path, "Wait.") as out:
        for row in rows:
            out.append(row)


def numbers(path: Path) -> list[int]:
    return [row.n for row in read(path, Row, "a row", "Remove it.")]


def test_a_cut_at_any_byte_costs_the_last_line_only(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write(path, *(Row(n, "Zürich … \u2028 \n line") for n in range(3)))
    whole = path.read_bytes()
    assert whole.count(b"\n") == 3
    start = whole[:-1].rfind(b"\n") + 1
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        # a complete line without its newline is still read, but written again: nothing says that it was synced
        assert numbers(path) == ([0, 1, 2] if cut == len(whole) - 1 else [0, 1])
        write(path, Row(3))
        assert numbers(path) == [0, 1, 3]


def test_the_first_line_may_be_the_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n":')
    assert numbers(path) == []
    drop_torn_line(path)
    assert path.read_bytes() == b""
    drop_torn_line(tmp_path / "none.jsonl")
    assert numbers(tmp_path / "none.jsonl") == []
    assert not (tmp_path / "none.jsonl").exists()


@pytest.mark.parametrize("broken", [b"{broken", b'{"n": "one"}', b"\xff\xfe"])
def test_a_broken_line_inside_is_named(broken: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write(path, Row(0), Row(1))
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first, b"", broken, second, b""]))
    with pytest.raises(UsageError, match=r"rows\.jsonl:3 is not a row") as error:
        numbers(path)
    assert error.value.hint == "Remove it."


def test_each_line_is_on_disk_before_the_next_piece_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced = tmp_path / "rows.jsonl", list[int]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(path.stat().st_size))
    with appending(path, "Wait.") as out:
        assert out.empty
        out.append(Row(0))
        assert not out.empty
        out.append(Row(1))
    assert synced == [len(b'{"n":0,"text":""}\n'), path.stat().st_size]
    with appending(path, "Wait.") as out:
        assert not out.empty


def test_one_process_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with appending(path, "Wait."), appending(tmp_path / "others.jsonl", "Wait."):
        with pytest.raises(IndexLockedError, match=r"rows\.jsonl") as error, appending(path, "Wait."):
            pass
        assert error.value.hint == "Wait."
    write(path, Row(1))
    assert numbers(path) == [1]


def test_a_disk_that_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResourceError, match="No space left on device"):
        write(tmp_path / "rows.jsonl", Row(0))
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(ResourceError, match=r"folder\.jsonl"):
        write(tmp_path / "folder.jsonl", Row(0))

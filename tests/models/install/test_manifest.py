"""Whether an installed model still holds what was installed: read when something changed, never otherwise, always when
asked.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mindchat.errors import ResourceError
from mindchat.models.install import manifest as room
from mindchat.models.install.manifest import (
    MARKER,
    Manifest,
    damaged,
    is_plain,
    read_manifest,
    require_sound,
    write_manifest,
)
from mindchat.models.install.model_store import Store

WEIGHTS = bytes(range(256)) * 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An installed model: weights and a config."""
    made = tmp_path / "models" / "tiny"
    made.mkdir(parents=True)
    (made / "model.safetensors").write_bytes(WEIGHTS)
    (made / "config.json").write_text('{"hidden_size": 16}')
    files = {name: (made / name).stat().st_size for name in ("model.safetensors", "config.json")}
    write_manifest(made, Manifest(1, "tiny@c0ffee", "a" * 64, "float32", 1000, 64, "5", files))
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read for their hash."""
    seen: list[str] = []
    real = room.sha256_of

    def hashed(path: Path) -> str:
        seen.append(path.name)
        return real(path)

    monkeypatch.setattr(room, "sha256_of", hashed)
    return seen


def spoil(folder: Path, *, quietly: bool = False) -> None:
    """Other bytes of the same length; quietly: with the old time."""
    file = folder / "model.safetensors"
    before = file.stat()
    with file.open("r+b") as handle:
        handle.write(b"\xff" * 4096)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + (0 if quietly else 1)))


def test_a_load_of_checked_files_reads_nothing(folder: Path, read: list[str]) -> None:
    require_sound(folder, "tiny")
    assert read == []


def test_other_bytes_of_the_same_length_are_a_sentence(folder: Path) -> None:
    spoil(folder)
    for _ in range(2):  # and stay one: nothing of it is taken for checked
        with pytest.raises(ResourceError, match=r"tiny is damaged: model\.safetensors") as caught:
            require_sound(folder, "tiny")
        assert "models pull tiny" in caught.value.hint


@pytest.mark.parametrize("change", ["time", "inode"])
def test_a_file_that_seems_changed_is_read_once(folder: Path, read: list[str], change: str) -> None:
    file = folder / "config.json"
    if change == "time":
        os.utime(file, ns=(1, 1))
    else:
        before, copy = file.stat(), folder / "copy"
        copy.write_bytes(file.read_bytes())
        os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
        copy.replace(file)
    for _ in range(2):
        require_sound(folder, "tiny")
    assert read == ["config.json"]


def test_the_doctor_reads_everything(folder: Path, read: list[str]) -> None:
    assert damaged(folder, again=True) == ()
    assert sorted(read) == ["config.json", "model.safetensors"]
    spoil(folder, quietly=True)
    assert damaged(folder) == ()  # nothing shows it but the bytes
    assert damaged(folder, again=True) == ("model.safetensors",)


def test_a_folder_of_an_older_version_is_read_once_and_known_then(folder: Path, read: list[str]) -> None:
    told = msgspec.json.decode((folder / MARKER).read_bytes())
    del told["hashes"], told["checked"]
    (folder / MARKER).write_bytes(msgspec.json.encode(told))
    require_sound(folder, "tiny")
    require_sound(folder, "tiny")
    assert sorted(read) == ["config.json", "model.safetensors"]
    spoil(folder)
    with pytest.raises(ResourceError, match="damaged"):
        require_sound(folder, "tiny")


ELSEWHERE = [
    "/etc/passwd",
    "../../secret",
    "a/b.json",
    "..",
    ".hidden",
    "",
    "a\\b",
    "C:x",
    "a\nb",
    "a\x1b]0;b",
    "x" * 300,
    "é.json",
]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_manifest_names_files_of_its_folder_only(folder: Path, name: str) -> None:
    assert not is_plain(name)
    told: dict[str, Any] = msgspec.json.decode((folder / MARKER).read_bytes())
    told["files"] = {name: 0}
    (folder / MARKER).write_bytes(msgspec.json.encode(told))
    assert read_manifest(folder) is None


def test_the_doctor_says_what_is_damaged_and_what_helps(
    converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from mindchat.cli.command_runner import run
    from mindchat.paths import find_paths

    def told() -> list[str]:
        findings = msgspec.json.decode(capsys.readouterr().out)["findings"]
        return [found["text"] for found in findings if (found["about"], found["verdict"]) == ("model", "fail")]

    monkeypatch.setenv("MINDCHAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MINDCHAT_MODEL__NAME", "smollm2-135m")
    monkeypatch.chdir(tmp_path)
    folder = find_paths().models / "smollm2-135m"
    shutil.copytree(converted, folder)
    run(["doctor", "--json"])
    assert told() == []
    spoil(folder, quietly=True)
    assert Store(folder.parent).findings("smollm2-135m")
    assert run(["doctor", "--json"]) == 1
    found, *_ = told()
    assert "mindchat models pull smollm2-135m" in found


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", [MARKER, "tokenizer.json", "model.safetensors", "config.json"])
def test_a_pipe_in_a_model_folder_keeps_nobody_waiting(folder: Path, name: str) -> None:
    """Whoever opened it would wait for a writer for ever."""
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert (read_manifest(folder) is None) is (name != "tokenizer.json")
    with pytest.raises(ResourceError, match="is no file"):
        require_sound(folder, "tiny")


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format":' * 50_000 + "1" + "}" * 50_000])
def test_a_marker_that_is_nested_deeply_is_none(folder: Path, text: str) -> None:
    (folder / MARKER).write_text(text)
    assert read_manifest(folder) is None

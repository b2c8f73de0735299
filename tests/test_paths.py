"""Where things are kept: one folder if asked, the system's places otherwise."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from mindchat.paths import find_paths, packaged, private


def test_home_puts_everything_under_one_folder(home: Path) -> None:
    paths = find_paths()
    for place in (
        paths.config_file,
        paths.memory_db,
        paths.chats_db,
        paths.index,
        paths.log_file,
        paths.cache,
        paths.models,
    ):
        assert place.is_relative_to(home)
    assert list(home.iterdir()) == []


def test_home_may_be_relative_or_below_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINDCHAT_HOME", "mine")
    assert find_paths().data == tmp_path.resolve() / "mine"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MINDCHAT_HOME", "~/mine")
    assert find_paths().data == tmp_path.resolve() / "mine"


def test_without_home_each_kind_has_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDCHAT_HOME")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    paths = find_paths()
    assert all("mindchat" in part.as_posix().lower() for part in (paths.config, paths.data, paths.state, paths.cache))
    if sys.platform == "linux":
        assert paths.config == tmp_path / "XDG_CONFIG_HOME" / "mindchat"
        assert len({paths.config, paths.data, paths.state, paths.cache}) == 4


def test_models_folder_can_be_elsewhere(tmp_path: Path) -> None:
    assert find_paths(str(tmp_path / "weights")).models == (tmp_path / "weights").resolve()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
def test_private_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    made = private(tmp_path / "a" / "b" / "c")
    for folder in (
        made,
        made.parent,
        made.parent.parent,
    ):  # also those on the way: a home is often made on the way to its models
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert private(made) == made
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"exists|directory"):
        private(tmp_path / "file")


def test_packaged_files_are_found() -> None:
    assert packaged("config.toml").is_file()
    assert packaged("corpora").is_dir()

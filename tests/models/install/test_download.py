"""Downloads that are cut, refused, changed and resumed."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mindchat.errors import DownloadError
from mindchat.models.install import download
from mindchat.models.install.download import Eta, Remote, fetch, megabytes, require_space

BODY = os.urandom(300_000)
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=5, trust_env=False) as made:
        yield made


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_pause", lambda idle, held: iter([held]))


def test_a_whole_file(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    remote = Remote("x", site.put("/x", BODY), DIGEST, len(BODY))
    seen = list(fetch(client, remote, tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY
    assert seen[-1] == len(BODY)
    assert seen == sorted(seen)
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_a_whole_file_is_not_asked_for_again(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    remote = Remote("x", site.put("/x", BODY), DIGEST)
    for _ in range(2):
        assert list(fetch(client, remote, tmp_path / "x"))[-1] == len(BODY)
    assert len(site.asked) == 1


def test_a_broken_connection_is_continued(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    remote = Remote("x", site.put("/x", BODY), DIGEST)
    site.cut["/x"] = 100_000
    list(fetch(client, remote, tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY
    first, second = site.asked_for("/x")
    assert first == ""
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 100_000


def test_a_server_without_ranges_starts_again(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    remote = Remote("x", site.put("/x", BODY), DIGEST)
    site.ranges, site.cut["/x"] = False, 100_000
    list(fetch(client, remote, tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY


def test_an_earlier_part_is_continued(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(BODY[:70_000])
    list(fetch(client, Remote("x", site.put("/x", BODY), DIGEST), tmp_path / "x"))
    assert site.asked_for("/x") == ["bytes=70000-"]
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_part_of_another_file_is_thrown_away(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"other" * 1000)
    list(fetch(client, Remote("x", site.put("/x", BODY), DIGEST), tmp_path / "x"))
    assert site.asked_for("/x") == ["bytes=5000-", ""]
    assert (tmp_path / "x").read_bytes() == BODY


@pytest.mark.parametrize("held", [len(BODY), len(BODY) + 7])
def test_a_part_as_long_or_longer_than_the_file(site: Any, client: httpx2.Client, tmp_path: Path, held: int) -> None:
    (tmp_path / "x.part").write_bytes((BODY + b"too long")[:held])
    list(fetch(client, Remote("x", site.put("/x", BODY), DIGEST), tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY


def test_wrong_bytes_leave_nothing(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="other bytes") as caught:
        list(
            fetch(
                client, Remote("x", site.put("/x", BODY[:-1] + b"!"), hashlib.sha256(b"").hexdigest()), tmp_path / "x"
            )
        )
    assert caught.value.exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_closed_download_keeps_its_part_and_goes_on(
    site: Any, client: httpx2.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "TICK", 0.0)
    site.pace = 0.002
    remote = Remote("x", site.put("/x", BODY), DIGEST)
    running = fetch(client, remote, tmp_path / "x")
    held = next(running)
    running.close()
    assert not (tmp_path / "x").exists()
    assert (tmp_path / "x.part").stat().st_size >= held > 0
    list(fetch(client, remote, tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY
    assert site.asked_for("/x")[1].startswith("bytes=")


def test_a_busy_server_is_asked_again(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    site.status["/x"] = [503, 429]
    list(fetch(client, Remote("x", site.put("/x", BODY), DIGEST), tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == BODY


def test_a_server_that_stays_busy_is_given_up(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    site.status["/x"] = [503] * 20
    with pytest.raises(DownloadError, match="503"):
        list(fetch(client, Remote("x", site.put("/x", BODY)), tmp_path / "x"))
    assert len(site.asked) == download.ATTEMPTS


@pytest.mark.parametrize(("status", "word"), [(401, "Sign in"), (403, "conditions"), (404, "withdrawn")])
def test_a_refusal_says_what_to_do(site: Any, client: httpx2.Client, tmp_path: Path, status: int, word: str) -> None:
    site.status["/x"] = [status]
    with pytest.raises(DownloadError) as caught:
        list(fetch(client, Remote("x", site.url + "/x"), tmp_path / "x"))
    assert word in caught.value.hint


def test_nobody_listening_is_found_out_quickly(client: httpx2.Client, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="cannot be fetched"):
        list(fetch(client, Remote("x", "http://127.0.0.1:9/x"), tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_names_file_and_size(site: Any, client: httpx2.Client, tmp_path: Path) -> None:
    (tmp_path / "x.part").symlink_to("/dev/full")
    with pytest.raises(DownloadError, match="disk is full") as caught:
        list(fetch(client, Remote("x", site.put("/x", BODY), DIGEST, len(BODY)), tmp_path / "x"))
    assert str(tmp_path / "x.part") in caught.value.message
    assert megabytes(len(BODY)) in caught.value.message
    assert not (tmp_path / "x").exists()


def test_space_is_checked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 9 * 10**8, 10**8))
    require_space(tmp_path / "not" / "there" / "yet", 10**8)
    with pytest.raises(DownloadError, match=r"needs 5\.0 GB of free disk space and has 100 MB"):
        require_space(tmp_path, 5 * 10**9)


def test_eta_follows_the_recent_rate() -> None:
    eta = Eta(span=10)
    assert eta(0, 1000, now=0.0) is None
    assert eta(100, 1000, now=1.0) == pytest.approx(9.0)
    for second in range(2, 40):  # it slows down to 10 a second: soon only that rate counts
        left = eta(100 + 10 * second, 1000, now=float(second))
    assert left == pytest.approx((1000 - 490) / 10)
    assert eta(500, 0, now=41.0) is None


@pytest.mark.parametrize("bound", [{"size": 1000}, {"most": 1000}])
def test_a_file_that_goes_on_is_given_up(site: Any, client: Any, tmp_path: Path, bound: dict[str, int]) -> None:
    url = site.put("/file", BODY)
    with pytest.raises(DownloadError, match="does not end where it should"):
        list(fetch(client, Remote("file", url, **bound), tmp_path / "file"))
    assert not list(tmp_path.iterdir())

"""Bytes from a URL to a file that is either whole or visibly unfinished.

Owns: resumable download (`.part` files, HTTP ranges), hashes, disk preflight, rate and ETA, the progress value of a
pull.
Does not own: which URLs (registry, hub) and what happens to the files (store).
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from mindchat.errors import DownloadError
from mindchat.models.install.manifest import settle, sha256_of
from mindchat.text.clean import clean_line

if TYPE_CHECKING:
    import httpx2

Phase = Literal["waiting", "looking", "downloading", "joining", "converting", "done"]
TICK = 0.1
"""Seconds between two reports: also how late a cancelled download may notice."""
ATTEMPTS = 4
"""Tries without a single new byte before a download is given up."""


class PullProgress(Struct, frozen=True):
    """Where a pull stands; the last one has phase "done" and the path."""

    phase: Phase
    done: int = 0
    """Bytes; in phase converting, steps."""
    total: int = 0
    """0 if unknown."""
    eta_seconds: float | None = None
    """Estimated time to the end of this phase; None if unknown."""
    seconds: float = 0.0
    """Since the pull began."""
    note: str = ""
    """What is being worked on: a file's name, a step."""
    path: Path | None = None


class Remote(Struct, frozen=True):
    """One file to fetch."""

    name: str
    """File name, without folders."""
    url: str
    sha256: str = ""
    """Empty if the server names none."""
    size: int = 0
    """0 if unknown."""
    most: int = 0
    """Bytes that are taken at most where the size is unknown; 0: any number."""
    headers: dict[str, str] = {}


class Eta:
    """Time to the end, from the rate of the last seconds."""

    def __init__(self, span: float = 15.0) -> None:
        self._span = span
        self._seen: deque[tuple[float, int]] = deque()

    def __call__(self, done: int, total: int, now: float | None = None) -> float | None:
        """Seconds left at the recent rate; None before there is a rate or without a total."""
        now = time.monotonic() if now is None else now
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[0][0] > self._span:
            self._seen.popleft()
        then, before = self._seen[0]
        elapsed = now - then
        rate = (done - before) / elapsed if elapsed > 0 else 0.0
        return max(0.0, (total - done) / rate) if total and rate > 0 else None


def megabytes(size: int) -> str:
    """A size for people: 98 MB, 2.5 GB (decimal units)."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def require_space(folder: Path, needed: int) -> None:
    """Raise DownloadError if the disk that holds `folder` has fewer than `needed` bytes free."""
    place = folder
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise DownloadError(
            f"{folder} needs {megabytes(needed)} of free disk space and has {megabytes(free)}.",
            "Free some space, remove a model (mindchat models remove NAME), or set paths.models to another disk.",
        )


def disk_error(error: OSError, path: Path, needed: int) -> DownloadError:
    """What to tell people when writing failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DownloadError(
            f"The disk is full: {path} needs {megabytes(needed)}.",
            "What was fetched is kept; free some space and pull again, it goes on from there.",
        )
    return DownloadError(
        f"{path} cannot be written: {error.strerror or error}.", "Check the folder's permissions, or set paths.models."
    )


def fetch(client: httpx2.Client, remote: Remote, target: Path) -> Iterator[int]:
    """Download into `target`; yields the bytes held so far, at least every TICK seconds. A whole `target` is taken as
    it is.

    Bytes gather in `target.part`; an earlier part is continued. The file gets its name only after size and hash are
    right; a continued part whose hash is wrong is fetched anew once. Raises DownloadError. Closing the iterator keeps
    the part for next time.
    """
    if target.is_file():
        yield target.stat().st_size
        return
    part = target.with_name(target.name + ".part")
    resumed = part.is_file() and part.stat().st_size > 0
    yield from _fill(client, remote, part)
    if not _whole(part, remote) and resumed:
        part.unlink()
        yield from _fill(client, remote, part)
    if not _whole(part, remote):
        part.unlink()
        raise DownloadError(
            f"{remote.name} arrived with other bytes than expected.",
            "Try again; if it repeats, the registry serves another file.",
        )
    settle(part)
    os.replace(part, target)


def _whole(part: Path, remote: Remote) -> bool:
    if remote.size and part.stat().st_size != remote.size:
        return False
    return not remote.sha256 or sha256_of(part) == remote.sha256.lower()


def _fill(client: httpx2.Client, remote: Remote, part: Path) -> Iterator[int]:
    """Bring the part to its full length, going on after interruptions."""
    import httpx2

    idle = 0
    while True:
        held = part.stat().st_size if part.is_file() else 0
        if remote.size and held == remote.size:
            return
        try:
            yield from _request(client, remote, part, held)
            return
        except (httpx2.TransportError, httpx2.StreamError, _RetryLater) as error:
            grown = (part.stat().st_size if part.is_file() else 0) > held
            idle = 0 if grown else idle + 1
            if idle >= (2 if isinstance(error, httpx2.ConnectError) else ATTEMPTS):
                raise DownloadError(
                    f"{remote.name} cannot be fetched: {clean_line(str(error), 200) or type(error).__name__}.", _AGAIN
                ) from error
        except OSError as error:
            raise disk_error(error, part, remote.size or held) from error
        yield from _pause(idle, held)


_AGAIN = "Check the network; what was fetched is kept, and the next pull goes on from there."


class _RetryLater(Exception):
    """The server is busy."""


def _pause(idle: int, held: int) -> Iterator[int]:
    """Wait 0.5, 1, 2 … seconds, but stay cancellable."""
    until = time.monotonic() + 0.5 * 2**idle
    while time.monotonic() < until:
        time.sleep(TICK)
        yield held


def _request(client: httpx2.Client, remote: Remote, part: Path, held: int) -> Iterator[int]:
    """One request, from byte `held` on; appends to the part, or begins it again where the server sends everything."""
    # identity: a compressed transfer would make lengths and ranges speak of other bytes than the file's.
    headers = {**remote.headers, "Accept-Encoding": "identity", **({"Range": f"bytes={held}-"} if held else {})}
    with client.stream("GET", remote.url, headers=headers) as response:
        status = response.status_code
        if status == 416:  # nothing beyond what is held: either all of it, or a part of something else
            if response.headers.get("Content-Range", "").rpartition("/")[2] != str(held):
                part.unlink()
                raise _RetryLater("the server holds another file")
            return
        if status == 429 or status >= 500:
            raise _RetryLater(f"the server answers {status}")
        if status not in (200, 206):
            raise _refused(remote, status)
        goes_on = status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {held}-")
        if status == 206 and held and not goes_on:
            part.unlink()
            raise _RetryLater("the server sent another range")
        yield from _receive(response, remote, part, held if goes_on else 0)


def _receive(response: httpx2.Response, remote: Remote, part: Path, held: int) -> Iterator[int]:
    last, most = 0.0, remote.size or remote.most
    with part.open("ab" if held else "wb") as handle:
        for block in response.iter_raw():
            held += len(block)
            if most and held > most:
                break
            handle.write(block)
            if (now := time.monotonic()) - last >= TICK:
                handle.flush()
                last = now
                yield held
    if most and held > most:
        part.unlink()
        raise DownloadError(
            f"{remote.name} does not end where it should: more than {megabytes(most)} arrive.",
            "Try again; if it repeats, do not trust that server.",
        )
    yield held


def _refused(remote: Remote, status: int) -> DownloadError:
    hint = {
        401: "Sign in first: the page of the model says how (for the hub, set HF_TOKEN).",
        403: "Accept the model's conditions on its page, and sign in (for the hub, set HF_TOKEN).",
        404: "The file has been moved or withdrawn.",
    }.get(status, "Try again later.")
    return DownloadError(f"{remote.name} cannot be fetched: the server answers {status}.", hint)

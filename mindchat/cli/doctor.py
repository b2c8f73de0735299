"""`mindchat paths` and `mindchat doctor`: where everything is, and whether it works.

Owns: the list of places, the checks and their verdicts. Does not own: what is checked (each room knows).
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

from mindchat import __version__
from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.command_runner import Reported, as_failure, log
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.output import is_terminal, megabytes, write, write_json, write_table
from mindchat.text.addresses import shown_address
from mindchat.text.clean import clean_line

paths_app = command_app()
doctor_app = command_app()

SHOWN = 5
"""Faults of the index listed singly."""
LOW_SPACE = 2_000_000_000
"""Bytes: less free space than this is worth a warning (the default model needs about 2.5 GB while it is converted)."""


@paths_app.command()
def paths(json: options.Json = False) -> None:
    """Where everything is kept; nothing is created."""
    found = load(strict=False).paths
    places = {
        "config": found.config_file,
        "data": found.data,
        "memory": found.memory_db,
        "chats": found.chats_db,
        "index": found.index,
        "models": found.models,
        "state": found.state,
        "log": found.log_file,
        "cache": found.cache,
    }
    if json:
        write_json({name: str(path) for name, path in places.items()})
    else:
        write_table(list(places.items()))


class Finding(Struct, frozen=True):
    """One line of the doctor."""

    verdict: Literal["ok", "info", "warn", "fail"]
    about: str
    text: str


@doctor_app.command()
def doctor(json: options.Json = False) -> None:
    """Check this installation and say what to do; exit code 1 if something is broken."""
    setup = load(strict=False)
    findings = [finding for check in CHECKS for finding in _guarded(check, setup)]
    if json:
        write_json({"version": __version__, "findings": findings})
    else:
        for finding in findings:
            write(f"{finding.verdict:<5} {finding.about:<9} {clean_line(finding.text)}")
    if any(finding.verdict == "fail" for finding in findings):
        raise Reported(1)


def _guarded(check: Callable[[Setup], Iterator[Finding]], setup: Setup) -> Iterator[Finding]:
    """The findings of one check; a check that fails is a finding, so that the others still speak."""
    about = check.__name__.removeprefix("_")
    try:
        yield from check(setup)
    except Exception as error:  # noqa: BLE001 - an edge: what broke is what the user asked about
        failure = as_failure(error)
        if failure is None:
            log.error("doctor: %s", about, exc_info=error)
        yield Finding(
            "fail",
            about,
            f"{failure.message} {failure.hint}".strip() if failure else f"{type(error).__name__}: {error}",
        )


def _program(setup: Setup) -> Iterator[Finding]:
    yield Finding(
        "ok",
        "program",
        f"mindchat {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    )


def _settings(setup: Setup) -> Iterator[Finding]:
    for problem in setup.loaded.problems:
        yield Finding("fail", "settings", str(problem))
    for note in setup.loaded.notes:
        yield Finding("info", "settings", note)
    if not setup.loaded.problems:
        yield Finding(
            "ok",
            "settings",
            f"{len(setup.loaded.origins)} changed from their defaults (mindchat config show --changed)",
        )


def _places(setup: Setup) -> Iterator[Finding]:
    for name, folder in (
        ("config", setup.paths.config),
        ("data", setup.paths.data),
        ("state", setup.paths.state),
        ("models", setup.paths.models),
    ):
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            yield Finding("fail", "places", f"{name}: {nearest} cannot be written.")
    yield from _space(setup.paths.models)


def _space(folder: Path) -> Iterator[Finding]:
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(nearest).free
    yield Finding("ok" if free > LOW_SPACE else "warn", "places", f"{megabytes(free)} free at {folder}")


def _terminal(setup: Setup) -> Iterator[Finding]:
    encoding = sys.stdout.encoding or "unknown"
    fine = encoding.lower().replace("-", "") == "utf8"
    yield Finding(
        "ok" if fine else "warn",
        "terminal",
        f"encoding {encoding}" + ("" if fine else "; set PYTHONUTF8=1 to see every character"),
    )
    if not is_terminal(sys.stdout):
        yield Finding("info", "terminal", "standard output is not a screen: the chat runs in line mode here")


def _model(setup: Setup) -> Iterator[Finding]:
    from mindchat import wiring

    name = setup.config.model.name
    if setup.config.server.url:
        variable = setup.config.server.key_env
        if variable and not os.environ.get(variable):
            yield Finding(
                "fail",
                "model",
                f"The environment variable {variable} is empty; put the server's key into it, or clear server.key_env.",
            )
        yield Finding("info", "model", f"{name} on the server {shown_address(setup.config.server.url)}")
        return
    yield from (
        Finding("fail", "model", found) for found in wiring.open_store(setup.config, setup.paths).findings(name)
    )
    present = wiring.open_store(setup.config, setup.paths).info(name)
    if present.installed:
        yield Finding("ok", "model", f"{name} is here")
    else:
        yield Finding(
            "warn", "model", f"{name} is not here yet; the first question fetches it (mindchat models pull {name})"
        )


def _stores(setup: Setup) -> Iterator[Finding]:
    """Before anything opens them: opening repairs, and then nobody would hear what was broken."""
    from mindchat.storage.backups import complaint, newest_sound
    from mindchat.storage.erasing import left_over
    from mindchat.storage.sqlite_file import stamp_of

    for path in (setup.paths.memory_db, setup.paths.chats_db):
        if not path.is_file():
            continue
        if wrong := complaint(path):
            stamp_of(path).unlink(missing_ok=True)  # so that the next start checks the file and does what is said here
            good = newest_sound(path)
            helps = (
                f"the next start restores {good.name}"
                if good
                else f"no sound backup; move {path} and its -wal and -shm away to start afresh"
            )
            yield Finding("fail", "stores", f"{path.name} is damaged ({wrong}): {helps}.")
        else:
            yield Finding("ok", "stores", f"{path.name} is sound")
        for told in left_over(path):
            yield Finding("warn", "stores", told)


def _memory(setup: Setup) -> Iterator[Finding]:
    """What `mindchat memory doctor` finds wrong; a damaged file is named by the check before."""
    from mindchat import wiring
    from mindchat.memory.verbs.soundness import doctor as examine
    from mindchat.storage.backups import complaint

    if not setup.paths.memory_db.is_file() or complaint(setup.paths.memory_db) or complaint(setup.paths.chats_db):
        return
    memory = wiring.open_facts(setup.config, setup.paths, wiring.project_name())
    try:
        for found in examine(memory).findings:
            if found.level in ("bad", "warn"):
                yield Finding(
                    "fail" if found.level == "bad" else "warn",
                    "memory",
                    f"{found.text} ({found.fix})" if found.fix else found.text,
                )
    finally:
        memory.close()


def _index(setup: Setup) -> Iterator[Finding]:
    from mindchat import wiring
    from mindchat.storage.backups import complaint

    if setup.paths.memory_db.is_file() and complaint(setup.paths.memory_db):
        return
    library = wiring.open_library(setup.config, setup.paths)
    try:
        status, broken = library.status(), library.verify()
        for problem in broken[:SHOWN]:
            yield Finding("fail", "documents", problem)
        if len(broken) > SHOWN:
            yield Finding("fail", "documents", f"… and {len(broken) - SHOWN:,} more (mindchat index verify lists all)")
        if broken:
            helps = "mindchat index sync" if status.get("pending") and len(broken) == 1 else "mindchat index rebuild"
            yield Finding("info", "documents", f"{helps} mends this from the stored documents; no file is read again.")
        for text in library.take_notices():
            yield Finding("warn", "documents", text)
        counts = (
            f"{status.get('documents', 0):,} documents, {status.get('passages', 0):,} passages in"
            f" {status.get('collection', '')}"
        )
        yield Finding("info" if broken else "ok", "documents", counts)
    finally:
        library.close()


CHECKS: tuple[Callable[[Setup], Iterator[Finding]], ...] = (
    _program,
    _settings,
    _places,
    _terminal,
    _model,
    _stores,
    _memory,
    _index,
)
"""In the order of the report."""

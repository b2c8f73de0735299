"""From flags, files and environment to a configuration and its paths; and which project folders are trusted.

Owns: Setup, load, the list of trusted folders. Does not own: merging and checking (mindchat.config).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mindchat.cli.output import Narrator
from mindchat.config import Config, Loaded, load_config
from mindchat.errors import MindChatError
from mindchat.paths import Paths, find_paths, private

PROJECT_FILE = "mindchat.toml"


class Setup(Struct, frozen=True):
    """What every command starts from."""

    config: Config
    paths: Paths
    loaded: Loaded


def project_file() -> Path | None:
    """./mindchat.toml, if there is one."""
    file = Path.cwd() / PROJECT_FILE
    return file if file.is_file() else None


def load(assignments: Sequence[str] = (), flags: Mapping[str, object] | None = None, *, strict: bool = True) -> Setup:
    """All sources merged; `flags` maps section.key to a value, None meaning "not given". Raises ConfigError."""
    paths = find_paths()
    given = [f"{key}={_text(value)}" for key, value in (flags or {}).items() if value is not None]
    loaded = load_config(
        user_file=paths.config_file,
        project_file=project_file(),
        trusted=is_trusted(paths, Path.cwd()),
        assignments=assignments,
        flags=given,
        strict=strict,
    )
    for note in loaded.notes:
        Narrator().warn(note)
    return Setup(loaded.config, find_paths(loaded.config.paths.models), loaded)


def for_people(setup: Setup) -> Setup:
    """The same with answers in sentences, unless the user chose a style."""
    if setup.config.answer.style != "auto":
        return setup
    config = replace(setup.config, answer=replace(setup.config.answer, style="full"))
    return replace(setup, config=config)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


# ── trust ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trust_file(paths: Paths) -> Path:
    return paths.state / "trusted.json"


def trusted_folders(paths: Paths) -> list[str]:
    """Absolute paths of all folders whose mindchat.toml may say anything."""
    try:
        return msgspec.json.decode(_trust_file(paths).read_bytes(), type=list[str])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise MindChatError(f"{_trust_file(paths)} cannot be read: {error}.", "Delete it; then no folder is trusted.") from error


def is_trusted(paths: Paths, folder: Path) -> bool:
    """Whether the user has trusted this very folder."""
    return str(folder.resolve()) in trusted_folders(paths)


def set_trust(paths: Paths, folder: Path, trusted: bool) -> None:
    """Remember or forget that the folder is trusted."""
    folders = [known for known in trusted_folders(paths) if known != str(folder.resolve())]
    if trusted:
        folders.append(str(folder.resolve()))
    file = _trust_file(paths)
    private(file.parent)
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(folders))
    os.replace(partial, file)

"""From flags, files and environment to a configuration and its paths; and which project files are trusted.

Owns: Setup, load, the list of trusted files. Does not own: merging and checking (mindchat.config).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mindchat.cli.output import Narrator
from mindchat.config import Config, Loaded, content_hash, load_config
from mindchat.errors import MindChatError
from mindchat.paths import Paths, find_paths, private
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json

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
        trusted=trusted_hash(paths, Path.cwd()),
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


# ── trust
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _trust_file(paths: Paths) -> Path:
    return paths.state / "trusted.json"


def trusted_files(paths: Paths) -> dict[str, str]:
    """Absolute path of a folder → content_hash of its mindchat.toml as the user trusted it. Raises MindChatError."""
    file = _trust_file(paths)
    try:
        content = file.read_bytes()
        if content.lstrip().startswith(
            b"["
        ):  # a list of folders, as earlier versions kept it: it says nothing about contents
            return {}
        return decode_json(content, type=dict[str, str])
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise MindChatError(f"{file} cannot be read: {error}.", "Delete it; then no folder is trusted.") from error


def trusted_hash(paths: Paths, folder: Path) -> str:
    """The content_hash under which the user has trusted this very folder's mindchat.toml; "" if none."""
    return trusted_files(paths).get(str(folder.resolve()), "")


def set_trust(paths: Paths, folder: Path, trusted: bool) -> None:
    """Remember the folder's mindchat.toml as it is now, or forget it. Raises MindChatError."""
    here = str(folder.resolve())
    known = {name: content for name, content in trusted_files(paths).items() if name != here}
    if trusted:
        try:
            known[here] = content_hash((folder / PROJECT_FILE).read_bytes())
        except OSError as error:
            raise MindChatError(
                f"{folder / PROJECT_FILE} cannot be read: {error.strerror}.", "Trust is given to a file's content."
            ) from error
    file = _trust_file(paths)
    try:
        private(file.parent)
        write_atomic(file, msgspec.json.encode(known))
    except OSError as error:
        raise MindChatError(
            f"{file} cannot be written: {error.strerror}.", "Free some space, then try again."
        ) from error

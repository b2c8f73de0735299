"""Where MindChat keeps things.

Owns: the homes (the folders of models, data, settings and caches). Does not own: what is in them.
MINDCHAT_HOME puts everything under one folder; without it platformdirs decides. Folders are created 0700 on demand.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct


class Paths(Struct, frozen=True):
    """Absolute paths of all homes."""

    config: Path
    """Folder of the user's config.toml."""
    data: Path
    """memory.db, chats.db, the index."""
    state: Path
    """Logs, locks, prompt history."""
    cache: Path
    """What can be made again."""
    models: Path
    """Downloaded and converted models."""

    @property
    def config_file(self) -> Path:
        """The user's settings."""
        return self.config / "config.toml"

    @property
    def memory_db(self) -> Path:
        """Facts and the document registry."""
        return self.data / "memory.db"

    @property
    def chats_db(self) -> Path:
        """Sessions and turns."""
        return self.data / "chats.db"

    @property
    def index(self) -> Path:
        """Index generations."""
        return self.data / "index"

    @property
    def log_file(self) -> Path:
        """The rotating log."""
        return self.state / "mindchat.log"


def private(folder: Path) -> Path:
    """The folder; it and every parent that is missing are created with mode 0700."""
    # not parents=True: that gives the mode to the last folder only, and a home made on the way to its models would be
    # open to all
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)  # raises if something else has its name
    return folder


def find_paths(models: str = "") -> Paths:
    """The homes of this user; nothing is created. `models` overrides the models folder (setting paths.models)."""
    if home := os.environ.get("MINDCHAT_HOME"):
        root = Path(home).expanduser().resolve()
        config = data = state = root
        cache, store = root / "cache", root / "models"
    else:
        import platformdirs

        dirs = platformdirs.PlatformDirs("mindchat", appauthor=False)
        config, data, state, cache = (
            dirs.user_config_path,
            dirs.user_data_path,
            dirs.user_state_path,
            dirs.user_cache_path,
        )
        store = data / "models"
    return Paths(config, data, state, cache, Path(models).expanduser().resolve() if models else store)


def packaged(*parts: str) -> Path:
    """A file that travels with the package: config.toml, corpora/… (in a checkout they stand at its top level)."""
    inside = Path(__file__).parent / "_bundled"
    root = inside if inside.is_dir() else Path(__file__).parent.parent
    return root.joinpath(*parts)

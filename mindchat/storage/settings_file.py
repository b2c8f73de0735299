"""The user's config.toml, changed one setting at a time; everything else in it stays as the user wrote it.

Owns: writing a setting. Does not own: what settings there are and what they may be (config).
tomlkit keeps comments, order and layout, and knows every way in which TOML can write a table.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mindchat.config import Config, change
from mindchat.errors import ConfigError, RefusedError
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.text.addresses import ADDRESSES, holds_secret


def save_setting(path: Path, key: str, value: str) -> None:
    """Write `section.name` with the value as the user typed it. Raises ConfigError if the file or the value is wrong;
    OSError.

    RefusedError for an address that carries a password: this file is read, copied and shown more often than a user
    expects.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if key in ADDRESSES and holds_secret(value):
        raise RefusedError(
            f"{key} holds a password or key, which is not written into {path.name}.",
            f"Put it into an environment variable and name that in {ADDRESSES[key]}.",
        )
    section, _, name = key.partition(".")
    converted = msgspec.to_builtins(getattr(change(Config(), key, value), section))[name]
    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8") if path.is_file() else "")
        table = document.setdefault(section, tomlkit.table())
        table[name] = converted
        written = tomlkit.dumps(document)
        if tomlkit.parse(written)[section][name] != converted:
            raise ConfigError(f"{path} could not take {key}.", "Write the setting into the file by hand.")
    except (TOMLKitError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} cannot be changed: {error}.", "`mindchat config validate` names the faults of the file."
        ) from error
    private(path.parent)
    write_atomic(path, written)

"""`mindchat config`: what is set, by whom, and whether it is right.

Owns: its verbs and their output. Does not own: merging and checking (mindchat.config), trust (settings.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import Reported
from mindchat.cli.load_settings import load, project_file, set_trust, trusted_files
from mindchat.cli.output import Narrator, write, write_json, write_table
from mindchat.config import Config, Origin, keys, load_config
from mindchat.paths import find_paths
from mindchat.text.addresses import without_secrets

app = sub_app("Show, check and explain settings.")


@app.command()
def show(
    prefix: Annotated[str, typer.Argument(metavar="[KEY]", help="Only keys that begin like this.")] = "",
    changed: Annotated[bool, typer.Option("--changed", help="Only what differs from the default.")] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Print every value and who set it."""
    setup = load(sets or [], strict=False)
    narrator = Narrator()
    for problem in setup.loaded.problems:
        narrator.warn(f"ignored: {problem}")
    defaults, values = keys(), _flat(setup.config)
    shown = [key for key in values if key.startswith(prefix) and (not changed or values[key] != defaults[key])]
    origins = {key: setup.loaded.origins.get(key, Origin("default")) for key in shown}
    if json:
        write_json(
            {key: {"value": values[key], "source": origins[key].source, "line": origins[key].line} for key in shown}
        )
        return
    write_table([(key, msgspec.json.encode(values[key]).decode(), _where(origins[key])) for key in shown])


def _flat(config: Config) -> dict[str, Any]:
    return without_secrets(
        {
            f"{section}.{key}": value
            for section, table in msgspec.to_builtins(config).items()
            for key, value in table.items()
        }
    )


def _where(origin: Origin) -> str:
    return f"{origin.source}:{origin.line}" if origin.line else origin.source


@app.command()
def validate(
    file: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="Check this file instead of everything in force.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Report every unknown key and bad value, with file, line and nearest key; exit code 2 if there is one."""
    loaded = load(strict=False).loaded if file is None else load_config(user_file=file, environ={}, strict=False)
    if json:
        write_json({"problems": loaded.problems})
    for problem in loaded.problems if not json else ():
        write(str(problem))
    if loaded.problems:
        raise Reported(2)
    if not json:
        Narrator().note("Every setting is known and in range.")


@app.command()
def path(json: options.Json = False) -> None:
    """Print where your settings file is (or would be), and the project's if there is one."""
    user, project = find_paths().config_file, project_file()
    if json:
        write_json({"user": str(user), "exists": user.exists(), "project": str(project) if project else None})
        return
    write(str(user))
    if project is not None:
        write(str(project))


@app.command()
def schema() -> None:
    """Print the JSON Schema of config.toml."""
    write(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Config)), indent=2).decode())


@app.command()
def trust(
    folder: Annotated[
        Path, typer.Argument(exists=True, file_okay=False, help="The project's folder; default: this one.")
    ] = Path("."),
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer.")] = False,
    json: options.Json = False,
) -> None:
    """Let this folder's mindchat.toml, as it is now, set everything: model, server, paths, memory. A change of the file
    ends the trust.
    """
    paths = find_paths()
    set_trust(paths, folder, not revoke)
    if json:
        write_json({"folder": str(folder.resolve()), "trusted": not revoke, "all": sorted(trusted_files(paths))})
    else:
        verb = "no longer trusted" if revoke else "trusted"
        write(f"{folder.resolve()} is {verb}.")

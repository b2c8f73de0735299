"""`mindchat plugins`: what installed packages bring to MindChat's tables.

Owns: its output. Does not own: finding and loading them (mindchat.plugins).
"""

from __future__ import annotations

from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.output import Narrator, write_json, write_table

app = command_app()


@app.command()
def plugins(json: options.Json = False) -> None:
    """List plug-ins: group, name, package, and whether each can be used."""
    from mindchat.plugins import all_plugins

    found = all_plugins()
    if json:
        rows = [{"group": p.group, "name": p.name, "package": p.package, "state": p.refused or "ok"} for p in found]
        write_json(rows)
        return
    if not found:
        Narrator().note("No package brings a plug-in.")
        return
    write_table([(p.group, p.name, p.package, p.refused or "ok") for p in found])

"""`mindchat eval study` and `mindchat eval keep`: the result tables of the documents, and the small folders they come
from.

Owns: their flags, which files are written, what is out of date. Does not own: tables (evals.study), the compact form
(evals.keep).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindchat.cli.output import write
from mindchat.errors import MindChatError, UsageError

Results = Annotated[
    Path | None,
    typer.Option("--results", metavar="DIR", help="Folder of study.toml and kept runs; default: the shipped one."),
]


class OutOfDateError(MindChatError):
    """A document or a figure does not say what the results say."""

    code = "out_of_date"


def study(
    documents: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE.md...]", exists=True, dir_okay=False, help="Documents whose marked tables are rewritten."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if a document or a figure would change.")
    ] = False,
    results: Results = None,
) -> None:
    """Render every result table from the kept results: print them, or put them between the markers of documents, with
    the figures.
    """
    from mindchat.lab.evals import study as room
    from mindchat.storage.atomic import write_atomic

    folder = results or room.home()
    blocks = room.blocks(folder)
    if not documents and not check:
        write("\n\n".join(f"<!-- table: {name} -->\n{body}\n<!-- /table -->" for name, body in blocks.items()))
        return
    wanted = {folder / name: body for name, body in room.figures(folder).items()}
    wanted |= {path: room.fill(path.read_text(encoding="utf-8"), blocks) for path in documents or ()}
    stale = [path for path, body in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != body]
    if check:
        if stale:
            names = ", ".join(path.name for path in stale)
            raise OutOfDateError(
                f"Out of date: {names}.", "mindchat eval study README.md mindchat/MEASUREMENTS.md writes them anew."
            )
        return
    for path in stale:
        write_atomic(path, wanted[path].encode())
        write(f"{path}")


def keep(
    folder: Annotated[Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Output folder of eval.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called among the results.")],
    results: Results = None,
) -> None:
    """Keep a finished run for the tables: its description and its records without texts."""
    from mindchat.lab.evals import kept_results as room
    from mindchat.lab.evals.study import home

    if not name or Path(name).name != name or name.startswith("."):
        raise UsageError(f"{name!r} is no name of a folder.", "For example 2wiki-open.")
    target = (results or home()) / name
    room.keep(folder, target)
    size = sum(path.stat().st_size for path in target.iterdir())
    write(f"{target}: {size / 1000:.0f} kB")

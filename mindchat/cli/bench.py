"""`mindchat bench`: how fast this machine is, each time beside a reference in the same run.

Owns: its verbs' flags and output; what a start costs. Does not own: the other measurements (mindchat.bench).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mindchat.clean import clean_line
from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.output import Narrator, write, write_json
from mindchat.cli.settings import load
from mindchat.errors import UsageError

app = sub_app("Measure speed, each time beside a reference in the same run.")

STARTS = {
    "bare interpreter": ["-c", "pass"],
    "mindchat --version": ["-m", "mindchat", "--version"],
    "mindchat paths": ["-m", "mindchat", "paths"],
    "mindchat --help": ["-m", "mindchat", "--help"],
    "screens imported": ["-c", "import mindchat.tui.app"],
}
"""What is started, by the name it has in the report; the first one is the reference."""


def _show(found: Any, json: bool) -> None:
    if json:
        write_json(found)
    else:
        import msgspec

        write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())


@app.command()
def startup(runs: Annotated[int, typer.Option("-n", min=1, help="Starts of each kind.")] = 9, json: options.Json = False) -> None:
    """Seconds from a command to its end, and how many times a bare interpreter's start that is."""
    narrator = Narrator()
    seconds: dict[str, list[float]] = {name: [] for name in STARTS}
    for turn in range(runs):
        for name, arguments in STARTS.items():
            narrator.progress(f"start {turn + 1} of {runs}: {name}")
            seconds[name].append(_start(arguments))
    narrator.clear()
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    bare = medians["bare interpreter"]
    rows = {name: {"seconds": taken, "times_bare": taken / bare} for name, taken in medians.items()}
    _show({"runs": runs, "startup": rows}, json)


def _start(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


@app.command()
def retrieve(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Corpus files (.jsonl): id, title and text a line.")],
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions that name their supporting passages.")],
    limit: Annotated[int, typer.Option("-n", min=0, help="Only the first so many questions; 0: all.")] = 200,
    k: Annotated[int, typer.Option("-k", min=1, help="Passages a question.")] = 10,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Search and indexing, beside plain Whoosh (and bm25s and tantivy, if installed) over the same passages; needs no model."""
    import tempfile

    import msgspec

    from mindchat.corpus.beside import compare
    from mindchat.corpus.index import Index
    from mindchat.memory.documents import DocumentRegistry

    for path in (*corpora, questions):
        if not path.is_file():
            raise UsageError(f"There is no file {clean_line(str(path))}.", "Check the path.")
    section, narrator = load(sets or []).config.index, Narrator()
    with tempfile.TemporaryDirectory(prefix="mindchat-bench-") as home:
        registry = DocumentRegistry(Path(home) / "registry.db")
        index = Index(Path(home) / "index", section, registry, notify=narrator.warn)
        try:
            found = compare(
                [path.resolve() for path in corpora], questions, registry, index, Path(home) / "others", limit=limit, k=k,
                told=lambda what, done, total: narrator.progress(f"{what}: {done:,} of {total:,}"),
            )  # fmt: skip
        finally:
            index.close()
            registry.close()
    narrator.clear()
    _show(msgspec.to_builtins(found), json)


@app.command()
def decode(
    model: options.ModelName = None,
    tokens: Annotated[int, typer.Option("--tokens", min=2, help="Tokens written per measurement.")] = 64,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Measurements of each kind; the median counts.")] = 3,
    lengths: Annotated[str, typer.Option("--lengths", metavar="N[,N…]", help="Prompt lengths in tokens.")] = "500,1500",
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Generation with all signals, beside generate() without any and beside a second pass with attentions."""
    from mindchat import bench

    sizes = [int(part) for part in lengths.split(",") if part.strip().isdecimal()]
    if not sizes:
        raise UsageError(f"--lengths {lengths} holds no number.", "For example --lengths 500,1500.")
    loaded = _load(sets or [], model)
    _show(bench.bench_decode(loaded, _text(), lengths=sizes, tokens=tokens, repeats=repeats), json)


def _load(sets: Sequence[str], model: str | None) -> Any:
    """The model that a question would get, with the progress that a question would show."""
    from mindchat import wiring
    from mindchat.cli.narrate import TurnNarrator

    setup = load(sets, {"model.name": model})
    options.check_names(setup)
    narrator = Narrator()
    loaded = wiring.load_model(setup.config, TurnNarrator(narrator).tell)
    narrator.clear()
    return loaded


def _text() -> str:
    """English prose to read: the documents of the demo."""
    from mindchat.paths import packaged

    files = sorted(packaged("corpora", "demo").rglob("*.md"))
    return "\n\n".join(file.read_text(encoding="utf-8") for file in files)

"""`mindchat bench`: how fast this machine is, each time beside a reference in the same run.

Owns: its verbs' flags and output; what a start costs. Does not own: the other measurements (mindchat.lab.bench).
"""

from __future__ import annotations

import functools
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mindchat import child_process
from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.load_settings import load
from mindchat.cli.output import Narrator
from mindchat.errors import ModelMissingError, UsageError
from mindchat.lab.commands.bench_pairs import pairs, show
from mindchat.ports import Settles
from mindchat.text.clean import clean_line
from mindchat.values import Message, Passage, Prompt, Text, TurnState

if TYPE_CHECKING:
    from mindchat.config import Config

app = sub_app("Measure speed, each time beside a reference in the same run.")
app.command()(pairs)

QUESTION = "Where was the director of Metropolis born?"
"""What is asked over the demo's documents."""
STARTS = {
    "bare interpreter": ["-c", "pass"],
    "mindchat --version": ["-m", "mindchat", "--version"],
    "mindchat paths": ["-m", "mindchat", "paths"],
    "mindchat --help": ["-m", "mindchat", "--help"],
    "screens imported": ["-c", "import mindchat.tui.app"],
}
"""What is started, by the name it has in the report; the first one is the reference."""

_READY = """
import sys
from mindchat import wiring
from mindchat.cli.load_settings import load
model = wiring.load_model(load(sys.argv[1:]).config, lambda news: None)
"""
_READ = """
from mindchat.values import Message, Prompt, Text
model.warm(Prompt((Message("user", (Text("Where is Rome?"),)),)))
"""
_LEAVE = """
import os
os._exit(0)  # unloading torch takes seconds
"""
LOADS = {
    "torch and transformers imported": [
        "-c",
        "import torch; from transformers import AutoModelForCausalLM, AutoTokenizer, AttentionInterface",
    ],
    "model ready": ["-c", _READY + _LEAVE],
    "first prompt read": ["-c", _READY + _READ + _LEAVE],
}
"""The same with `--load`: what any program with these libraries pays, ours with the model ready for a prompt, and with
a short one read: weights that are arranged after the load are waited for.
"""


@app.command()
def startup(
    runs: Annotated[int, typer.Option("-n", min=1, help="Starts of each kind.")] = 9,
    loading: Annotated[bool, typer.Option("--load", help="Load the model too, each time in a new process.")] = False,
    model: options.ModelName = None,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Seconds from a command to its end, and how many times a bare interpreter's start that is."""
    narrator = Narrator()
    chosen = [*(sets or []), *([f"model.name={model}"] if model else [])]
    starts = {**STARTS, **({name: [*arguments, *chosen] for name, arguments in LOADS.items()} if loading else {})}
    seconds: dict[str, list[float]] = {name: [] for name in starts}
    for turn in range(runs):
        for name, arguments in starts.items():
            narrator.progress(f"start {turn + 1} of {runs}: {name}")
            seconds[name].append(_start(arguments))
    narrator.clear()
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    bare = medians["bare interpreter"]
    rows = {name: {"seconds": taken, "times_bare": taken / bare} for name, taken in medians.items()}
    show({"runs": runs, "startup": rows}, json)


def _start(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    child_process.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


@app.command()
def retrieve(
    corpora: Annotated[
        list[Path], typer.Argument(metavar="CORPUS...", help="Corpus files (.jsonl): id, title and text a line.")
    ],
    questions: Annotated[
        list[Path],
        typer.Option(
            "--questions", metavar="FILE", help="Questions that name their supporting passages; may be given again."
        ),
    ],
    limit: Annotated[
        int, typer.Option("-n", min=0, help="Only the first so many questions of each file; 0: all.")
    ] = 200,
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", metavar="FOLDER", help="Keep passages' vectors there, and use those that are there."),
    ] = None,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Search with and without links, by PageRank, and with dense (if index.encoder is here), beside plain Whoosh
    (bm25s and tantivy, if installed); needs no language model.
    """
    import tempfile

    import msgspec

    from mindchat import wiring
    from mindchat.corpus.index import Index
    from mindchat.lab.bench.search_engines import compare
    from mindchat.storage.document_registry import DocumentRegistry

    for path in (*corpora, *questions):
        if not path.is_file():
            raise UsageError(f"There is no file {clean_line(str(path))}.", "Check the path.")
    setup, narrator = load(sets or []), Narrator()
    config, encoder = setup.config, wiring.find_encoder(setup.config, setup.paths)
    with tempfile.TemporaryDirectory(prefix="mindchat-bench-") as home:
        registry = DocumentRegistry(Path(home) / "registry.db")

        def make(ranker: str) -> Index:
            place = Path(home) / "index"
            return Index(
                place, config.index, registry, retrieve=config.retrieve, ranker=ranker, encoder=encoder,
                vectors=vectors, notify=narrator.warn,
            )  # fmt: skip

        try:
            found = compare(
                [path.resolve() for path in corpora], questions, registry, make, Path(home) / "others", limit=limit, encoder=encoder,
                told=lambda what, done, total: narrator.progress(f"{what}: {done:,} of {total:,}"),
            )  # fmt: skip
        finally:
            registry.close()
    narrator.clear()
    show(msgspec.to_builtins(found), json)


@app.command()
def decode(
    model: options.ModelName = None,
    tokens: Annotated[int, typer.Option("--tokens", min=2, help="Tokens written per measurement.")] = 64,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Measurements of each kind; the median counts.")] = 3,
    lengths: Annotated[str, typer.Option("--lengths", metavar="N[,N…]", help="Prompt lengths in tokens.")] = "500,1500",
    gguf: Annotated[
        Path | None,
        typer.Option(
            "--gguf", metavar="FILE", help="The model's GGUF file, for llama.cpp beside it (MINDCHAT_LLAMA_GGUF)."
        ),
    ] = None,
    llama_python: Annotated[
        str,
        typer.Option(
            "--llama-python", metavar="PYTHON", help="An interpreter that has llama-cpp-python (MINDCHAT_LLAMA_PYTHON)."
        ),
    ] = "",
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Generation with all signals, beside generate() without any, a second pass with attentions, and llama.cpp on the
    same file.
    """
    from mindchat.lab import bench
    from mindchat.lab.bench import llama

    sizes = [int(part) for part in lengths.split(",") if part.strip().isdecimal()]
    if not sizes:
        raise UsageError(f"--lengths {lengths} holds no number.", "For example --lengths 500,1500.")
    found = llama.find(llama_python, gguf)
    loaded = _load(sets or [], model)
    measure = functools.partial(bench.bench_decode, loaded, _text(), lengths=sizes, tokens=tokens, repeats=repeats)
    if isinstance(found, llama.Absent):
        show({**measure(), "llama_cpp": {"absent": found.why}}, json)
        return
    with llama.Llama(found, threads=bench.threads(), window=max(sizes) + tokens + 512) as other:
        report = measure(llama=other)
    show(
        {
            **report,
            "llama_cpp": {
                "version": other.version,
                "file": found.file.name,
                "same_weights": _is_source(loaded.id, found.file),
            },
        },
        json,
    )


def _is_source(model: str, gguf: Path) -> bool | None:
    """Whether the model was made from this very file, by its SHA-256; None: where it came from is not known."""
    import hashlib

    from mindchat import wiring
    from mindchat.models.install.manifest import read_manifest

    setup = load()
    try:
        made = read_manifest(wiring.open_store(setup.config, setup.paths).path(model))
    except ModelMissingError:
        return None
    if made is None or not made.sha256:
        return None
    with gguf.open("rb") as file:
        return made.sha256 == hashlib.file_digest(file, "sha256").hexdigest()


@app.command()
def cache(
    model: options.ModelName = None,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens written per call.")] = 32,
    turns: Annotated[
        Path | None, typer.Option("--turns", metavar="FILE", help="Events of recorded turns (.jsonl) to use instead.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Measurements of a second copy's cost; the median counts.")
    ] = 5,
    live: Annotated[
        bool,
        typer.Option(
            "--recorded/--composed",
            help="Record real turns of this model first; else calls composed in their likeness.",
        ),
    ] = True,
    scores: Annotated[
        list[Path] | None,
        typer.Option("--f1-of", metavar="DIR", help="Evaluation folders whose arms' F1 stands beside the layouts."),
    ] = None,
    only_copy: Annotated[
        bool, typer.Option("--only-copy", help="Only what a second copy of the documents costs.")
    ] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """A five-hop question under each layout, and second turns, with reuse and without; what a second copy of the
    documents costs.
    """
    from mindchat.lab import bench
    from mindchat.lab.bench import turns as turns_of
    from mindchat.lab.bench.repetition import bench_repetition
    from mindchat.lab.commands import bench_turns

    if turns is not None and only_copy:
        raise UsageError("--turns and --only-copy exclude each other.", "Leave one of them out.")
    if turns is not None and not turns.is_file():
        raise UsageError(f"There is no file {clean_line(str(turns))}.", "Check the path.")
    lines = None if turns is None else turns.read_bytes().splitlines()
    recorded = None if lines is None else bench.recorded(lines)
    loaded = _load(sets or [], model)
    config, narrator, found = load(sets or []).config, Narrator(), dict[str, Any]()
    if recorded is None:
        narrator.progress("a second copy, beside a plain prefill of its tokens")
        composer, passages = _laid(config)
        found["a second copy"] = bench_repetition(
            loaded, composer, TurnState(0, QUESTION, passages=passages[:6]), repeats=repeats
        )
    if recorded is None and live and not only_copy:
        for name, conversation in bench_turns.conversations(config, loaded, narrator.progress):
            narrator.progress(f"{name}: with reuse and without")
            found[name] = turns_of.bench_turns(loaded, conversation)
    composed = not (only_copy or live)
    calls, fixed = (
        ({"recorded": recorded}, ()) if recorded is not None else _calls(config, loaded) if composed else ({}, ())
    )
    for name, prompts in calls.items():
        narrator.progress(f"{name}: {len(prompts)} calls, twice")
        found[name] = bench.bench_cache(loaded, prompts, tokens=tokens, fixed=fixed)
    narrator.clear()
    show({"cache": found, **({"layouts": bench_turns.layout_scores(scores)} if scores else {})}, json)


def _calls(config: Config, model: Any) -> tuple[dict[str, list[Prompt]], Sequence[int]]:
    """The built-in rows of calls by name, and the ids of the instructions that all of them begin with."""
    from mindchat.lab import bench
    from mindchat.models.network.kv_cache import shared

    composer, passages = _laid(config)
    first, second = (
        model.format.render(composer.reasoning(TurnState(0, question), (), ())).ids for question in ("One?", "Two?")
    )
    turn = (QUESTION, "The director was born in Vienna.")
    followed = [composer.reasoning(TurnState(0, turn[0], passages=passages[:6]), (), ())]
    followed.append(
        Prompt(
            (
                *followed[0].messages,
                Message("assistant", (Text(turn[1]),)),
                Message("user", (Text("And when?", "question"),)),
            )
        )
    )
    rows = {
        f"five hops, documents {['once', 'twice'][copies]}": bench.five_hops(composer, model, passages, copies)
        for copies in (0, 1)
    }
    return {**rows, "a second turn": followed}, first[: shared(first, second)]


def _laid(config: Config) -> tuple[Any, tuple[Passage, ...]]:
    """The composer that a question would get, and passages of the demo's documents."""
    from mindchat import wiring
    from mindchat.prompts import COMPOSERS

    texts = [text for text in _text().split("\n\n") if len(text) > 200 and ". " in text]
    passages = tuple(
        Passage(f"p{i}", f"demo/{i}", f"Document {i}", text, 0, len(text), rank=i)
        for i, text in enumerate(texts[:12], 1)
    )
    return wiring.plug(COMPOSERS, config.layout.role, "role")(config), passages


@app.command()
def arithmetic(
    model: options.ModelName = None,
    tokens: Annotated[int, typer.Option("--tokens", min=32, help="Tokens of text that are read.")] = 320,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Steps and prefill in fewer bytes beside fp32: speed, KL divergence, change of entropy, share of equal top tokens."""
    from mindchat.lab import bench

    show(bench.bench_arithmetic(_load([*(sets or []), "model.arithmetic=fp32"], model), _text(), tokens=tokens), json)


def _load(sets: Sequence[str], model: str | None) -> Any:
    """The model that a question would get, with the progress that a question would show."""
    from mindchat import wiring
    from mindchat.cli.narrate import TurnNarrator

    setup = load(sets, {"model.name": model})
    options.check_names(setup)
    narrator = Narrator()
    loaded = wiring.load_model(setup.config, TurnNarrator(narrator).tell)
    if isinstance(loaded, Settles):
        loaded.settle()
    narrator.clear()
    return loaded


def _text() -> str:
    """English prose to read: the documents of the demo."""
    from mindchat.paths import packaged

    files = sorted(packaged("corpora", "demo").rglob("*.md"))
    return "\n\n".join(file.read_text(encoding="utf-8") for file in files)

"""`mindchat memory`: read and change what MindChat remembers.

Owns: its verbs' flags, asking before something is erased, printing. Does not own: the verbs themselves (memory.verbs).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import Reported
from mindchat.cli.confirm import confirm as ask_first
from mindchat.cli.load_settings import load
from mindchat.cli.narrate import tell_notices
from mindchat.cli.output import write, write_json
from mindchat.errors import UsageError

COMMAND = "mindchat memory"
"""What stands before a verb here; in a conversation it is /memory."""

app = sub_app("Read and change what MindChat remembers. Without a verb: how much there is.", bare=True)

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Facts by id, or enough of its beginning.")]
One = Annotated[str, typer.Argument(metavar="ID", help="A fact by id, or enough of its beginning.")]
Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        help="session, project, global or all.",
        autocompletion=options.choices("session", "project", "global", "all"),
    ),
]
Status = Annotated[
    str,
    typer.Option(
        "--status",
        help="active, candidate, disputed, stale, superseded or all.",
        autocompletion=options.choices("active", "candidate", "disputed", "stale", "superseded", "all"),
    ),
]
Number = Annotated[int, typer.Option("-n", min=1, help="How many.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and change nothing.")]


@contextmanager
def _facts() -> Iterator[Any]:
    from mindchat import wiring

    setup = load()
    memory = wiring.open_facts(setup.config, setup.paths, wiring.project_name())
    try:
        yield memory
    finally:
        tell_notices(memory)
        memory.close()


def _do(json: bool, verb: Callable[[Any, Any], Any]) -> None:
    """Run a verb over the open memory, print its result, and leave with its exit code."""
    from mindchat.memory import verbs

    with _facts() as memory:
        result = verb(verbs, memory)
    if json:
        write_json(result)
    else:
        write(result.render(COMMAND))
    if result.exit_code:
        raise Reported(result.exit_code)


@app.callback(invoke_without_command=True)
def status(context: typer.Context, json: options.Json = False) -> None:
    """Read and change what MindChat remembers. Without a verb: how much there is."""
    if context.invoked_subcommand is None:
        _do(json, lambda verbs, memory: verbs.status(memory))


@app.command("list")
def list_(
    n: Number = 20,
    scope: Scope = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="document or user.", autocompletion=options.choices("document", "user"))
    ] = None,
    status: Status = "active",
    doc: Annotated[str | None, typer.Option("--doc", metavar="PATH", help="Learned from this document.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="NAME", help="About this.")] = None,
    sort: Annotated[
        str,
        typer.Option(
            "--sort", help="recent, confidence or used.", autocompletion=options.choices("recent", "confidence", "used")
        ),
    ] = "recent",
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Go on after this fact.")] = None,
    json: options.Json = False,
) -> None:
    """Facts with their confidence and source."""
    found = {
        "n": n,
        "scope": scope,
        "kind": kind,
        "status": status,
        "doc": doc,
        "entity": entity,
        "sort": sort,
        "after": after,
    }
    _do(json, lambda verbs, memory: verbs.list_facts(memory, **found))


@app.command()
def search(
    words: Annotated[list[str], typer.Argument()], n: Number = 20, status: Status = "active", json: options.Json = False
) -> None:
    """Facts that hold every word; accents and case do not matter."""
    _do(json, lambda verbs, memory: verbs.search(memory, " ".join(words), n=n, status=status))


@app.command()
def show(fact: One, json: options.Json = False) -> None:
    """Everything about one fact: evidence, history, former values."""
    _do(json, lambda verbs, memory: verbs.show(memory, fact))


@app.command()
def why(fact: Annotated[str | None, typer.Argument(metavar="[ID]")] = None, json: options.Json = False) -> None:
    """What memory did in the last answer; with an id, everything about that fact."""
    _do(json, lambda verbs, memory: verbs.why(memory, fact))


@app.command()
def add(
    text: Annotated[list[str], typer.Argument(help='A sentence, or "SUBJECT | PREDICATE | OBJECT".')],
    resolve: Annotated[
        str,
        typer.Option(
            "--resolve",
            help="On a contradiction: ask, keep (both) or replace.",
            autocompletion=options.choices("ask", "keep", "replace"),
        ),
    ] = "ask",
    scope: Annotated[str, typer.Option("--scope", help="session, project or global.")] = "project",
    json: options.Json = False,
) -> None:
    """Remember something you say."""
    options.one_of("way to resolve", ("ask", "keep", "replace"), resolve)
    _do(json, lambda verbs, memory: _add(verbs, memory, " ".join(text), resolve, scope))


def _add(verbs: Any, memory: Any, text: str, resolve: str, scope: str) -> Any:
    """Add; on a terminal a contradiction is decided at once."""
    result = verbs.add(memory, text, resolve=resolve, scope=scope)
    if result.saved is not None or not sys.stdin.isatty():
        return result
    write(result.render(COMMAND))
    answers = {"k": "keep", "r": "replace"}
    answer = typer.prompt("k, r or c", default="c", err=True).strip().lower()[:1]
    return verbs.add(memory, text, resolve=answers[answer], scope=scope) if answer in answers else result


@app.command()
def edit(
    fact: One, changes: Annotated[list[str], typer.Argument(metavar="FIELD=VALUE...")], json: options.Json = False
) -> None:
    """Change object, valid-from, valid-to or scope; the old value is kept as history."""
    pairs = [change.partition("=") for change in changes]
    if any(not equals for _, equals, _ in pairs):
        raise UsageError(
            "A change is written FIELD=VALUE.", 'For example: mindchat memory edit f7k object="Xawery Żuławski"'
        )
    _do(json, lambda verbs, memory: verbs.edit(memory, fact, {name.strip(): value.strip() for name, _, value in pairs}))


@app.command()
def pin(facts: Ids, json: options.Json = False) -> None:
    """Keep facts from ever being changed or evicted automatically."""
    _do(json, lambda verbs, memory: verbs.pin(memory, facts))


@app.command()
def unpin(facts: Ids, json: options.Json = False) -> None:
    """Undo pin."""
    _do(json, lambda verbs, memory: verbs.unpin(memory, facts))


@app.command()
def confirm(facts: Ids, json: options.Json = False) -> None:
    """Make candidates active, and decide disputes."""
    _do(json, lambda verbs, memory: verbs.confirm(memory, facts))


@app.command()
def reject(facts: Ids, json: options.Json = False) -> None:
    """Forget candidates and sides of disputes for good."""
    _do(json, lambda verbs, memory: verbs.reject(memory, facts))


@app.command()
def forget(
    facts: Annotated[list[str] | None, typer.Argument(metavar="[ID...]")] = None,
    match: Annotated[str | None, typer.Option("--match", metavar="WORDS", help="Facts that hold these words.")] = None,
    entity: Annotated[str | None, typer.Option("--entity", metavar="NAME", help="Everything about this.")] = None,
    doc: Annotated[
        str | None, typer.Option("--doc", metavar="PATH", help="Everything learned from this document.")
    ] = None,
    session: Annotated[bool, typer.Option("--session", help="Everything learned in the newest conversation.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="AGE", help="Everything learned in the last 30m, 2h, 7d …")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything of this project.")] = False,
    hard: Annotated[bool, typer.Option("--hard", help="Leave no byte behind; cannot be undone.")] = False,
    chats: Annotated[bool, typer.Option("--chats", help="With --hard: erase all conversations too.")] = False,
    dry_run: DryRun = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Forget facts; they are not learned again from the same source."""
    if chats and not hard:
        raise UsageError("--chats goes with --hard only.", "mindchat sessions delete erases single conversations.")
    chosen = {
        "match": match,
        "entity": entity,
        "doc": doc,
        "session": session,
        "since": since,
        "everything": all_,
        "hard": hard,
    }
    _do(json, lambda verbs, memory: _forget(verbs, memory, facts or [], chosen, chats, dry_run, yes))


def _forget(
    verbs: Any, memory: Any, facts: list[str], chosen: dict[str, Any], chats: bool, dry_run: bool, yes: bool
) -> Any:
    """Forget; what is large or final is shown and asked about first."""
    if not dry_run and not yes and (chosen["hard"] or chosen["everything"]):
        found = verbs.forget(memory, facts, **chosen, dry_run=True)
        final = " for good, with all conversations" if chats else " for good" if chosen["hard"] else ""
        ask_first(f"Forget {len(found.facts)} facts{final}?", yes)
        yes = True
    if not chats:
        return verbs.forget(memory, facts, **chosen, dry_run=dry_run, yes=yes)
    from mindchat import wiring

    store = wiring.open_chats(load().paths)
    try:
        return verbs.forget(memory, facts, **chosen, dry_run=dry_run, yes=yes, chats=store)
    finally:
        store.close()


@app.command()
def undo(n: Annotated[int, typer.Argument(metavar="[N]", min=1)] = 1, json: options.Json = False) -> None:
    """Take back the last N changes of the newest conversation."""
    _do(json, lambda verbs, memory: verbs.undo(memory, n))


@app.command()
def alias(
    words: Annotated[list[str], typer.Argument(metavar="NAME = NAME2 | rm NAME2")], json: options.Json = False
) -> None:
    """Let another name stand for the same thing, or take such a name away."""
    text = " ".join(words)
    if words[0] == "rm" and len(words) > 1 and "=" not in text:
        _do(json, lambda verbs, memory: verbs.alias_rm(memory, " ".join(words[1:])))
        return
    name, equals, other = text.partition("=")
    if not equals:
        raise UsageError(
            "An alias is written NAME = NAME2.", 'For example: mindchat memory alias "Fritz Lang" = "F. Lang"'
        )
    _do(json, lambda verbs, memory: verbs.alias(memory, name.strip(), other.strip()))


@app.command()
def merge(words: Annotated[list[str], typer.Argument(metavar="NAME into NAME2")], json: options.Json = False) -> None:
    """Say that two names mean one thing; the facts of the first move to the second."""
    at = next((number for number, word in enumerate(words) if word.lower() == "into"), None)
    if at is None:
        raise UsageError(
            "It is written NAME into NAME2.", 'For example: mindchat memory merge "F. Lang" into "Fritz Lang"'
        )
    _do(json, lambda verbs, memory: verbs.merge(memory, " ".join(words[:at]), " ".join(words[at + 1 :])))


@app.command("export")
def export_(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl|FILE.md", dir_okay=False)],
    scope: Scope = None,
    json: options.Json = False,
) -> None:
    """Write facts with their evidence to a file: .jsonl can be imported, .md is for reading."""
    _do(json, lambda verbs, memory: verbs.export(memory, file, scope=scope))


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", exists=True, dir_okay=False)],
    dry_run: DryRun = False,
    json: options.Json = False,
) -> None:
    """Read an export; everything arrives as a candidate."""
    _do(json, lambda verbs, memory: verbs.import_(memory, file, dry_run=dry_run))


@app.command()
def stats(since: Annotated[str, typer.Option("--since", metavar="AGE")] = "30d", json: options.Json = False) -> None:
    """Hits, skipped searches, audits, what was saved and what was not."""
    _do(json, lambda verbs, memory: verbs.stats(memory, since=since))


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired.")] = False, json: options.Json = False
) -> None:
    """Check memory.db."""
    _do(json, lambda verbs, memory: verbs.doctor(memory, fix=fix))


@app.command()
def path(json: options.Json = False) -> None:
    """Print where memory.db is."""
    _do(json, lambda verbs, memory: verbs.path(memory))


@app.command("on")
def on(json: options.Json = False) -> None:
    """Read and learn facts in this project."""
    _do(json, lambda verbs, memory: verbs.set_mode(memory, "on"))


@app.command()
def readonly(json: options.Json = False) -> None:
    """Use facts in this project, learn none."""
    _do(json, lambda verbs, memory: verbs.set_mode(memory, "readonly"))


@app.command()
def off(json: options.Json = False) -> None:
    """Neither use nor learn facts in this project."""
    _do(json, lambda verbs, memory: verbs.set_mode(memory, "off"))

"""What the commands that change memory return, as results.py does for those that only read.

Owns: the outputs' shapes. Does not own: making the changes (editing.py, forgetting.py, transfer.py, undo.py).
"""

from __future__ import annotations

from mindchat.memory.verbs.results import COMMAND, Item, Result, plural, size, within
from mindchat.text.clean import clean_line


class Added(Result, frozen=True):
    """/memory add, /remember"""

    saved: Item | None
    new: bool = True
    conflicts: tuple[Item, ...] = ()
    """Facts it contradicts. If `saved` is None, a decision is needed: keep both, replace, or cancel."""
    project: str = ""

    @property
    def exit_code(self) -> int:
        """1 if a decision is missing."""
        return 0 if self.saved else 1

    def render(self, command: str = COMMAND) -> str:
        """What was saved, or the conflict."""
        if self.saved is None:
            lines = [
                f"conflict with {c.id} ({clean_line(c.object, 40)}, {plural(c.support, 'source')})."
                for c in self.conflicts
            ]
            return "\n".join([*lines, "  [k]eep both as disputed  [r]eplace  [c]ancel ?"])
        if not self.new:
            return f"known already: {self.saved.id}  {clean_line(self.saved.statement, 66)}"
        if self.conflicts and self.saved.status == "disputed":
            return f"saved {self.saved.id}, both marked disputed; neither will replace a search."
        if self.conflicts:
            return f"saved {self.saved.id}; it replaces {', '.join(c.id for c in self.conflicts)}."
        scope = f'project "{clean_line(self.project, 30)}"' if self.saved.scope == "project" else self.saved.scope
        return f"saved {self.saved.id}  {self.saved.statement}   ({scope})"


class Edited(Result, frozen=True):
    """/memory edit"""

    old: Item
    now: Item
    merged: bool = False
    settled: bool = False
    """A dispute ended with it."""

    def render(self, command: str = COMMAND) -> str:
        """One line."""
        if self.merged:
            return f"{self.old.id} merged into {self.now.id} (same fact){'; dispute closed' if self.settled else ''}."
        if self.old.id != self.now.id:
            return f"{self.now.id} replaces {self.old.id}: {self.now.statement}"
        return f"changed {self.now.id}  {self.now.statement}"


class Changed(Result, frozen=True):
    """/memory pin, unpin, confirm, reject"""

    done: str
    """pinned, unpinned, confirmed, rejected."""
    facts: tuple[Item, ...]

    def render(self, command: str = COMMAND) -> str:
        """One line a fact."""
        return "\n".join(f"{self.done} {fact.id}  {clean_line(fact.statement, 62)}" for fact in self.facts)


class Forgotten(Result, frozen=True):
    """/memory forget"""

    facts: tuple[Item, ...]
    dry_run: bool = False
    hard: bool = False
    everything: bool = False
    project: str = ""
    before: int = 0
    after: int = 0
    """Bytes of the file before and after a hard forget."""
    chats: int | None = None
    """Erased chats."""
    left: tuple[str, ...] = ()
    """Files that still hold bytes of what was erased, one sentence each."""

    @property
    def exit_code(self) -> int:
        """1 if nothing matched."""
        return 0 if self.facts or self.chats else 1

    def render(self, command: str = COMMAND) -> str:
        """What went, or would go."""
        if not self.facts and not self.chats:
            return "nothing matched"
        if self.dry_run:
            lines = [
                f"would forget {plural(len(self.facts), 'fact')} (dry run)",
                *(f"  {fact.line()}".rstrip() for fact in self.facts),
            ]
            return "\n".join(
                [
                    *lines,
                    "run again without --dry-run"
                    + ("; pinned facts also need --yes" if any(f.pinned for f in self.facts) else ""),
                ]
            )
        if self.hard:
            what = (
                f'{plural(len(self.facts), "fact")} of project "{clean_line(self.project, 30)}"'
                if self.everything
                else plural(len(self.facts), "fact")
            )
            kept = "Documents are untouched." if self.chats is not None else "Chat logs and documents are untouched."
            erased = f" Erased {plural(self.chats, 'chat')}." if self.chats is not None else ""
            done = "removed" if self.left else "erased"
            return "\n".join(
                [f"{done} {what}, compacted ({size(self.before)} → {size(self.after)}).{erased} {kept}", *self.left]
            )
        if len(self.facts) == 1:
            return within(
                f"forgot {self.facts[0].id}. It will not be saved again from the same source.", f"{command} undo"
            )
        return within(
            f"forgot {plural(len(self.facts), 'fact')}. They will not be saved again from the same sources.",
            f"{command} undo",
        )


class Undone(Result, frozen=True):
    """/memory undo"""

    changes: tuple[str, ...]
    note: str = ""

    @property
    def exit_code(self) -> int:
        """1 if there was nothing to undo."""
        return 0 if self.changes else 1

    def render(self, command: str = COMMAND) -> str:
        """One line a change."""
        return (
            "\n".join([*(f"undone: {change}" for change in self.changes), *([self.note] if self.note else [])])
            or "nothing to undo"
        )


class Aliased(Result, frozen=True):
    """/memory alias, merge"""

    text: str

    def render(self, command: str = COMMAND) -> str:
        """One line."""
        return self.text


class Exported(Result, frozen=True):
    """/memory export"""

    path: str
    facts: int

    def render(self, command: str = COMMAND) -> str:
        """One line."""
        return f"exported {plural(self.facts, 'fact')} to {self.path}"


class Imported(Result, frozen=True):
    """/memory import"""

    candidates: int
    known: int
    refused: dict[str, int]
    dry_run: bool

    def render(self, command: str = COMMAND) -> str:
        """Counts."""
        reasons = f" ({', '.join(f'{name} {n}' for name, n in sorted(self.refused.items()))})" if self.refused else ""
        head = (
            f"{'would import' if self.dry_run else 'imported'} {plural(self.candidates, 'candidate')}, {self.known}"
            " known already"
        )
        return f"{head}, {sum(self.refused.values())} refused{reasons}\n{command} confirm ID makes one active"


class ModeSet(Result, frozen=True):
    """/memory on, readonly, off"""

    mode: str
    project: str

    def render(self, command: str = COMMAND) -> str:
        """One line."""
        return f'Memory is {self.mode} for project "{clean_line(self.project, 40)}".'

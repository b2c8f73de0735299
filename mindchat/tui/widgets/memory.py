"""The Memory pane: what this turn remembered and learned.

Owns: drawing facts of the turn, and the list of all facts that a search brought. Does not own: changing facts (slash
commands do).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from mindchat.text.clean import clean_line
from mindchat.trace import Trace
from mindchat.tui.drawable import ACCENT, FAINT, GOOD, MUTED, STRUCK, TITLE, WARN, bar, block, line, lines
from mindchat.tui.widgets.pane import Pane


class Row(Struct, frozen=True):
    """A fact as a row of this pane, from a turn or from a memory command."""

    id: str
    statement: str
    confidence: float
    source: str
    status: str = "active"
    pinned: bool = False
    sign: str = "·"
    style: str = MUTED


def row_of(fact: Any, sign: str = "·", style: str = MUTED) -> Row:
    """A row of a values.Fact, or of a command's item (which has a phrase and a pin besides)."""
    phrase = getattr(fact, "phrase", "") or fact.predicate
    return Row(
        fact.id,
        clean_line(f"{fact.subject} – {phrase} – {fact.object}"),
        float(fact.confidence),
        clean_line(fact.source or fact.kind),
        str(fact.status),
        bool(getattr(fact, "pinned", False)),
        sign,
        style,
    )


def rows_of(data: Any) -> list[Row] | None:
    """Rows of what a memory command returned; None if it is no list of facts."""
    facts = getattr(data, "facts", data)
    if not isinstance(facts, list | tuple) or not all(
        hasattr(fact, "subject") and hasattr(fact, "predicate") for fact in facts
    ):
        return None
    return [row_of(fact) for fact in facts]


def painted_row(row: Row, chosen: bool = False) -> Content:
    """Two lines: the statement, then id, confidence and source."""
    gone = row.status in ("withdrawn", "forgotten", "rejected", "superseded")
    first = line(
        (f"{row.sign} ", row.style), (row.statement, STRUCK if gone else ""), ("  pinned" if row.pinned else "", ACCENT)
    )
    note = "" if row.status == "active" else f"  {row.status}"
    second = line(
        ("  " + row.id, MUTED),
        (f"  {bar(row.confidence, 5)} {row.confidence:.2f}  ", MUTED),
        (row.source, FAINT),
        (note, WARN),
    )
    return lines([line(("▸", f"bold {ACCENT}"), first) if chosen else line(" ", first), line(" ", second)])


def section(title: str, note: str, rows: Sequence[Content]) -> list[Content]:
    """A titled group with a blank row before it."""
    return [line((title, TITLE), (f"  {note}", MUTED)), *rows, line("")] if rows else []


def turn_rows(trace: Trace) -> list[tuple[str, str, list[Row]]]:
    """(title, note, rows) of what a turn recalled, learned and withdrew."""
    recalled = [row_of(fact, "◉", ACCENT) for hop in trace.hops for fact in hop.facts]
    learned = [row_of(item.fact, "+" if item.new else "=", GOOD) for item in trace.learned]
    new = sum(item.new for item in trace.learned)
    return [
        ("Recalled", f"{len(recalled)}", recalled),
        ("Learned", f"{new} new, {len(learned) - new} confirmed", learned),
        ("Withdrawn", "their source changed", [row_of(fact, "✗", WARN) for fact in trace.withdrawn]),
    ]


class MemoryWish(Message):
    """The pane wants a memory command run: name and arguments of a slash line."""

    def __init__(self, name: str, args: str, *, typed: bool = False) -> None:
        super().__init__()
        self.name, self.args, self.typed = name, args, typed


class MemoryPane(Pane):
    """What is remembered."""

    NAME, KEY = "Memory", "F5"
    EMPTY = "Facts that a turn recalls or learns stand here. /memory lists all, /remember adds one."
    HELP = """\
# Memory
`◉` recalled for a sub-query · `+` learned · `=` known already, its support grew · `✗` withdrawn because its source changed.

`a` lists all facts, `/` searches, `↑` `↓` choose one; then `w` why it is known, `p` pins, `f` forgets it, `u` undoes.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Up", show=False, id="memory.up"),
        Binding("down,j", "choose(1)", "Down", show=False, id="memory.down"),
        Binding("a", "wish('memory', 'list', False)", "All", id="memory.all"),
        Binding("slash", "search", "Search", id="memory.search"),
        Binding("w,enter", "wish('memory', 'why', True)", "Why", id="memory.why"),
        Binding("p", "pin", "Pin", id="memory.pin"),
        Binding("f,delete", "wish('forget', '', True)", "Forget", id="memory.forget"),
        Binding("u", "wish('undo', '', False)", "Undo", id="memory.undo"),
    ]

    def __init__(self, *, id: str = "memory") -> None:
        super().__init__(id=id)
        self._listed: tuple[str, list[Row]] | None = None
        self._mode = ""
        self._chosen: int | None = None

    def set_mode(self, mode: str) -> None:
        """on, readonly, off or incognito, for the title."""
        if mode != self._mode:
            self._mode = mode
            self.border_title = line(self.NAME, (f" {mode}", MUTED) if mode and mode != "on" else "")

    def list_facts(self, title: str, rows: list[Row]) -> None:
        """Show the result of a memory command under the turn's facts."""
        self._listed = (title, rows)
        self._chosen = None
        self.repaint()

    @property
    def listing(self) -> bool:
        """Whether a list is shown that a change may have made old."""
        return self._listed is not None

    def _sections(self) -> list[tuple[str, str, list[Row]]]:
        listed = [(self._listed[0], f"{len(self._listed[1])}", self._listed[1])] if self._listed is not None else []
        return [*turn_rows(self.trace), *listed]

    @property
    def chosen(self) -> Row | None:
        """The chosen fact."""
        rows = [row for _, _, rows in self._sections() for row in rows]
        return rows[self._chosen] if self._chosen is not None and self._chosen < len(rows) else None

    def action_choose(self, by: int) -> None:
        """Choose the next or previous fact."""
        count = sum(len(rows) for _, _, rows in self._sections())
        if count:
            self._chosen = (
                (0 if by > 0 else count - 1) if self._chosen is None else max(0, min(count - 1, self._chosen + by))
            )
            self.repaint()
            self._bring_chosen_into_view()

    def _bring_chosen_into_view(self) -> None:
        shown = self.painted()
        if shown is not None and "▸" in shown.plain:
            row = len(block(shown.plain[: shown.plain.index("▸")]).wrap(self.body_width)) - 1
            self.scroll_to(y=max(0, row - self.size.height // 2), animate=False)

    def action_wish(self, name: str, verb: str, needs_fact: bool) -> None:
        """Ask for a memory command, over the chosen fact if it needs one."""
        row = self.chosen
        if needs_fact and row is None:
            self.app.notify("Choose a fact first (up and down).")
            return
        self.post_message(
            MemoryWish(
                name, " ".join(word for word in (verb, row.id if needs_fact and row is not None else "") if word)
            )
        )

    def action_pin(self) -> None:
        """Pin, or unpin a pinned one."""
        row = self.chosen
        self.action_wish("memory", "unpin" if row is not None and row.pinned else "pin", True)

    def action_search(self) -> None:
        """The prompt takes the words."""
        self.post_message(MemoryWish("memory", "search ", typed=True))

    def painted(self) -> Content | None:
        """The turn's facts, what memory was asked without having an answer, then what was not stored."""
        drawn: list[Content] = []
        number = 0
        for title, note, facts in self._sections():
            drawn += section(
                title, note, [painted_row(row, number + place == self._chosen) for place, row in enumerate(facts)]
            )
            number += len(facts)
        asked = [
            line((f" {hop.subquery}", MUTED), (f"  {hop.why}", FAINT))
            for hop in self.trace.hops
            if hop.subquery and not hop.facts and hop.why
        ]
        drawn += section("Asked in vain", "", asked)
        refused = [line((f" – {count} × ", WARN), (reason, MUTED)) for reason, count in self.trace.refused]
        drawn += section("Not stored", "", refused)
        if not drawn and self.trace.state in ("running", "answered"):
            done = self.trace.state == "answered"
            drawn = [line(("Nothing recalled or learned " + ("in this turn." if done else "yet."), FAINT))]
        return lines(drawn) if drawn else None

"""The Memory pane: what this turn remembered and learned.

Owns: drawing facts of the turn, and the list of all facts that a search brought. Does not own: changing facts (slash commands do).
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from mindchat.trace import Trace
from mindchat.tui.ink import ACCENT, FAINT, GOOD, MUTED, STRUCK, TITLE, WARN, bar, block, line, lines
from mindchat.tui.widgets.pane import Pane
from mindchat.values import Fact


def painted_fact(fact: Fact, sign: str, style: str) -> Content:
    """Two rows: the statement, then id, confidence and source."""
    statement = f"{fact.subject} – {fact.predicate} – {fact.object}"
    first = line((f"{sign} ", style), (statement, STRUCK if fact.status in ("withdrawn", "forgotten", "rejected") else ""))
    source = fact.source or fact.kind
    return lines([first, line(("  " + fact.id, MUTED), (f"  {bar(fact.confidence, 5)} {fact.confidence:.2f}  ", MUTED), (source, FAINT))])


def section(title: str, note: str, rows: Sequence[Content]) -> list[Content]:
    """A titled group with a blank row before it."""
    return [line((title, TITLE), (f"  {note}", MUTED)), *rows, line("")] if rows else []


def painted_turn(trace: Trace) -> list[Content]:
    """Recalled, learned, refused and withdrawn facts of a turn."""
    recalled = [fact for hop in trace.hops for fact in hop.facts]
    rows = section("Recalled", f"{len(recalled)}", [painted_fact(fact, "◉", ACCENT) for fact in recalled])
    learned = [painted_fact(item.fact, "+" if item.new else "=", GOOD) for item in trace.learned]
    rows += section("Learned", f"{sum(item.new for item in trace.learned)} new, {sum(not item.new for item in trace.learned)} confirmed", learned)
    rows += section("Not stored", "", [line((f"– {count} × ", WARN), (reason, MUTED)) for reason, count in trace.refused])
    rows += section("Withdrawn", "their source changed", [painted_fact(fact, "✗", WARN) for fact in trace.withdrawn])
    return rows


class MemoryPane(Pane):
    """What is remembered."""

    NAME, KEY = "Memory", "F5"
    EMPTY = "Facts that a turn recalls or learns stand here. /memory lists all, /remember adds one."
    HELP = """\
# Memory
`◉` recalled for a sub-query · `+` learned · `=` known already, its support grew · `✗` withdrawn because its source changed.

`/memory search WORDS`, `/remember …`, `/forget ID`, `/undo`.
"""

    def __init__(self, *, id: str = "memory") -> None:
        super().__init__(id=id)
        self._listed: tuple[str, tuple[Fact, ...]] | None = None
        self._mode = ""

    def set_mode(self, mode: str) -> None:
        """on, readonly, off or incognito, for the title."""
        if mode != self._mode:
            self._mode = mode
            self.border_title = line(self.NAME, (f" {mode}", MUTED) if mode and mode != "on" else "")

    def list_facts(self, title: str, facts: Sequence[Fact]) -> None:
        """Show the result of a memory command under the turn's facts."""
        self._listed = (title, tuple(facts))
        self.repaint()

    def painted(self) -> Content | None:
        """The turn's facts, then the list."""
        rows = painted_turn(self.trace)
        if not rows and self.trace.state in ("running", "answered"):
            done = self.trace.state == "answered"
            rows = [line(("Nothing recalled or learned " + ("in this turn." if done else "yet."), FAINT)), line("")]
        if self._listed is not None:
            title, facts = self._listed
            rows += section(title, f"{len(facts)}", [painted_fact(fact, "·", MUTED) for fact in facts])
        return block(lines(rows)) if rows else None

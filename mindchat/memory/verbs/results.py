"""What the memory commands return: frozen values with a text form of at most 80 columns; JSON is msgspec's encoding of
the same values.

Owns: the outputs' shapes. Does not own: computing them (verbs.py and its neighbours), colour or markup (cli, tui).
"""

from __future__ import annotations

from msgspec import Struct

from mindchat.text.clean import clean_line

WIDTH = 80
COMMAND = "/memory"
"""What stands before a verb in a conversation; on the command line it is "mindchat memory"."""


def size(count: float) -> str:
    """Bytes for people: 1.2 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"


def plural(count: int, noun: str) -> str:
    """ "1 fact", "2 facts"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def within(text: str, tail: str) -> str:
    """Both on one line where they fit, else on two."""
    return f"{text}   {tail}" if len(text) + 3 + len(tail) <= WIDTH else f"{text}\n{tail}"


def moment(text: str | None) -> str:
    """An ISO time to the minute."""
    return (text or "–")[:16].replace("T", " ")


class Result(Struct, frozen=True):
    """Base of all results."""

    def render(self, command: str = COMMAND) -> str:
        """The text form; `command` is what stands before a verb where the reader is."""
        raise NotImplementedError

    @property
    def exit_code(self) -> int:
        """0; 1 if nothing matched or a decision is missing."""
        return 0


class Item(Struct, frozen=True):
    """One fact in a list."""

    id: str
    subject: str
    predicate: str
    phrase: str
    object: str
    confidence: float
    used: int
    source: str
    status: str
    kind: str
    pinned: bool
    scope: str
    support: int
    recorded_at: str
    closed_at: str | None = None
    """When it stopped being served."""

    @property
    def statement(self) -> str:
        """subject — relation — object, on one line."""
        return clean_line(f"{self.subject} — {self.phrase} — {self.object}")

    def line(self, width: int = WIDTH) -> str:
        """id and statement, for confirmations."""
        room = width - 18 if self.pinned else width - 10
        text = f"{self.id}{'*' if self.pinned else ' '} {clean_line(self.statement, room)}"
        return f"{text:<{width - 8}}  pinned" if self.pinned else text


class Status(Result, frozen=True):
    """/memory"""

    mode: str
    project: str
    path: str
    bytes: int
    active: int
    candidate: int
    disputed: int
    stale: int
    pinned: int
    saved: int
    used: int
    skipped: int
    audited: int
    wrong: int
    notices: tuple[str, ...] = ()

    def render(self, command: str = COMMAND) -> str:
        """Five lines."""
        lines = [
            f'Memory {self.mode} · project "{clean_line(self.project, 40)}" · {self.path} ({size(self.bytes)})',
            (
                f"  active {self.active}   candidate {self.candidate}   disputed {self.disputed}   stale {self.stale}  "
                f" pinned {self.pinned}"
            ),
            (
                f"  this session: {self.saved} saved, {self.used} used,"
                f" {plural(self.skipped, 'search').replace('searchs', 'searches')} skipped ({self.wrong} of"
                f" {self.audited} audited wrong)"
            ),
            f"  {command} list · why · forget · off",
        ]
        return "\n".join([*lines, *self.notices])


class Listing(Result, frozen=True):
    """/memory list, /memory search"""

    facts: tuple[Item, ...]
    total: int
    what: str
    """Which facts were asked for."""
    after: str | None = None
    """Id from which the next page goes on; None: this is the last one."""
    verb: str = "list"
    """The verb that lists them, with its words."""

    @property
    def exit_code(self) -> int:
        """1 if nothing matched."""
        return 0 if self.facts else 1

    def render(self, command: str = COMMAND) -> str:
        """A table of 80 columns."""
        if not self.facts:
            return f"no facts ({self.what})"
        width = min(43, max(len("fact"), *(len(fact.statement) for fact in self.facts)))
        lines = [f"{'ID':<8} conf  used  {'fact':<{width}}  source"]
        for fact in self.facts:
            mark = fact.id + ("*" if fact.pinned else "")
            sure = "user" if fact.kind == "user" else f"{fact.confidence:.2f}"
            line = (
                f"{mark:<8} {sure:<4} {fact.used:>4}   {clean_line(fact.statement, width):<{width}} "
                f" {clean_line(fact.source, 14)}"
            )
            lines.append(clean_line_keep(line))
        tail = f"{len(self.facts)} of {self.total} ({self.what})" + (
            " · * pinned" if any(fact.pinned for fact in self.facts) else ""
        )
        return "\n".join(
            [
                *lines,
                tail
                + (f" · next: {command} {self.verb} -n {len(self.facts)} --after {self.after}" if self.after else ""),
            ]
        )


def clean_line_keep(line: str) -> str:
    """The line without trailing blanks; its parts were cleaned before."""
    return line.rstrip()


class Source(Struct, frozen=True):
    """One evidence of a fact."""

    where: str
    document: str | None
    passage: str | None
    start: int | None
    end: int | None
    """Characters in the document's text: text[start:end] == quote."""
    quote: str
    status: str
    subquery: str
    grounding: int
    conf_max: float | None
    conf_min: float | None
    p_true: float | None
    margin: float | None
    extractor: str
    hop: int | None


class Note(Struct, frozen=True):
    """One line of a fact's history."""

    at: str
    what: str


class Shown(Result, frozen=True):
    """/memory show"""

    fact: Item
    etype: str
    calibrated: bool
    valid_from: str | None
    valid_to: str | None
    last_used_at: str | None
    closed_at: str | None
    closed_why: str | None
    replaced_by: str | None
    sources: tuple[Source, ...]
    history: tuple[Note, ...]
    superseded: tuple[Item, ...] = ()
    """Former values of the same slot."""

    def render(self, command: str = COMMAND) -> str:
        """Everything about the fact."""
        fact, best = self.fact, self.sources[0] if self.sources else None
        sure = f"{fact.confidence:.2f} ({'calibrated' if self.calibrated else 'not calibrated'})"
        lines = [
            f"{fact.id}  {fact.statement}",
            (
                f"  status {fact.status}   confidence {sure}   support {plural(fact.support, 'source')}   scope"
                f" {fact.scope}"
            ),
            (
                f"  saved {moment(fact.recorded_at)}   used"
                f" {fact.used}×{f', last {moment(self.last_used_at)}' if self.last_used_at else ''}   valid:"
                f" {_valid(self.valid_from, self.valid_to)}"
            ),
        ]
        if best is not None and best.document is not None:
            kind = ("none", "after folding", "exact")[best.grounding]
            measured = f"conf(e) {_number(best.conf_max)}  min {_number(best.conf_min)}  p(true) {_number(best.p_true)}"
            lines.append(f"  {measured}  grounding {kind}  extractor {best.extractor}")
        if self.closed_at:
            by = f" by {self.replaced_by}" if self.replaced_by else ""
            lines.append(f"  closed {moment(self.closed_at)}: {(self.closed_why or '').replace('_', ' ')}{by}")
        lines.append("  evidence")
        for source in self.sources:
            at = f" [{source.start}–{source.end}]" if source.start is not None else ""
            quote = f'  "{clean_line(source.quote, 60)}"' if source.quote else ""
            lines.append(f"    {clean_line(source.where, 40)}{at}{quote}  {source.status}")
        if self.superseded:
            lines += [
                "  former values",
                *(
                    f"    {item.id} {clean_line(item.object, 50)} (until {moment(item.closed_at)})"
                    for item in self.superseded
                ),
            ]
        lines.append("  history  " + " · ".join(f"{note.at[11:16]} {note.what}" for note in self.history))
        return "\n".join(lines)


def _valid(first: str | None, last: str | None) -> str:
    return "–" if not first and not last else f"{first or '…'} – {last or 'now'}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


class WhyHop(Struct, frozen=True):
    """What memory did in one hop."""

    hop: int
    query: str
    outcome: str
    """hit, miss, skip or audit."""
    fact: str | None
    confidence: float | None
    reason: str
    saved: tuple[str, ...]
    facts: tuple[str, ...] = ()


class Why(Result, frozen=True):
    """/memory why"""

    turn: int
    hops: tuple[WhyHop, ...]

    @property
    def exit_code(self) -> int:
        """1 if there was no turn yet."""
        return 0 if self.turn else 1

    def render(self, command: str = COMMAND) -> str:
        """One line a hop."""
        if not self.turn:
            return "no answer in this session yet"
        lines = [f"Last answer (turn {self.turn}, {plural(len(self.hops), 'hop')})"]
        width = min(38, max((len(hop.query) for hop in self.hops), default=0))
        for hop in self.hops:
            saved = f", saved {', '.join(hop.saved)}" if hop.saved else ""
            lines.append(f"  hop {hop.hop}  {clean_line(hop.query, width):<{width}} {_outcome(hop)}{saved}")
        return "\n".join(lines)


def _outcome(hop: WhyHop) -> str:
    if hop.outcome == "skip":
        return f"memory {hop.fact} → search skipped"
    if hop.outcome == "audit":
        return f"memory {hop.fact} → searched all the same (audit)"
    if hop.fact is not None:
        return f"memory {hop.fact} ({hop.reason}) → searched"
    shown = f"memory showed {', '.join(hop.facts)}" if hop.facts else (hop.reason or "not in memory")
    return f"{shown} → searched"


class Stats(Result, frozen=True):
    """/memory stats"""

    since: str
    hops: int
    hits: int
    skipped: int
    audited: int
    wrong: int
    saved: int
    dropped: dict[str, int]
    verified: int
    """Model calls that checked claims."""
    lookup_ms: float | None
    write_ms: float | None
    verify_s: float | None
    """Each the 95th percentile."""

    def render(self, command: str = COMMAND) -> str:
        """Four lines."""
        reasons = ", ".join(
            f"{name.replace('_', ' ')} {n}" for name, n in sorted(self.dropped.items(), key=lambda item: -item[1])
        )
        per = f" ({self.verified / self.saved:.1f} per saved fact)" if self.saved else ""
        times = [
            f"lookup {_ms(self.lookup_ms)} p95",
            f"write {_ms(self.write_ms)} p95",
            f"verify {_number(self.verify_s)} s p95",
        ]
        return "\n".join(
            [
                (
                    f"hops {self.hops} · memory hit {self._share(self.hits)} · searches skipped"
                    f" {self._share(self.skipped)} · audited {self.audited}, wrong {self.wrong}"
                ),
                f"saved {self.saved} · dropped {sum(self.dropped.values())}" + (f" ({reasons})" if reasons else ""),
                f"extra model passes {self.verified}{per}",
                f"time: {' · '.join(times)}",
            ]
        )

    def _share(self, count: int) -> str:
        return f"{count} ({100 * count / self.hops:.0f} %)" if self.hops else str(count)


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} ms"


class Finding(Struct, frozen=True):
    """One line of the doctor."""

    level: str
    """ok, info, warn or bad."""
    text: str
    fix: str = ""
    """What helps, as on the command line."""


class Diagnosis(Result, frozen=True):
    """/memory doctor"""

    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """1 if something is broken."""
        return 1 if any(finding.level == "bad" for finding in self.findings) else 0

    def render(self, command: str = COMMAND) -> str:
        """One line a finding."""
        fixes = [f" Fix: {f.fix.replace('mindchat memory', command)}" if f.fix else "" for f in self.findings]
        return "\n".join(f"{f.level:<5} {f.text}{fix}" for f, fix in zip(self.findings, fixes, strict=True))


class Where(Result, frozen=True):
    """/memory path"""

    path: str

    def render(self, command: str = COMMAND) -> str:
        """The path."""
        return self.path

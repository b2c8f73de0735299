"""The Hops pane: what each retrieval was about.

Owns: how a HopView is drawn: trigger, entities kept and dropped, sub-query, memory hits, passages with scores, what was
withdrawn.
"""

from __future__ import annotations

from textual.content import Content

from mindchat.trace import HopView, SentenceView, found_words
from mindchat.tui.drawable import ACCENT, BAD, FAINT, GOOD, MUTED, STRUCK, TITLE, WARN, bar, block, line, lines, short
from mindchat.tui.widgets.pane import Pane
from mindchat.values import Fact, Filled, Passage, Sifted

LABEL = 9
"""Cells of the left column."""


def row(label: str, *parts: Content | tuple[str, str] | str) -> Content:
    """A labelled row."""
    return line((f"{label:<{LABEL}}", MUTED), *parts)


def painted_title(hop: HopView) -> Content:
    """What started the hop."""
    trigger = hop.trigger
    if trigger is None:
        return line((f"Hop {hop.n}", TITLE), ("  before the first word", MUTED) if hop.n == 0 else ("", ""))
    score = f"  S {trigger.score:.2f}" if trigger.score is not None else ""
    over = f" ≥ θ {trigger.threshold:.2f}" if trigger.threshold is not None else ""
    return line((f"Hop {hop.n}", TITLE), ("  ◆ ", BAD), (f"“{trigger.word}”", "bold"), (score + over, MUTED))


def painted_entity(sifted: Sifted, width: int) -> Content:
    """✓ or ✗, confidence bar and number, and why."""
    sign, style = ("✓", GOOD) if sifted.kept else ("✗", BAD)
    confidence = sifted.entity.confidence
    gauge = f"{bar(confidence, 6)} {confidence:.2f}" if confidence is not None else "anchor     "
    name = (short(sifted.entity.text, max(8, width - LABEL - 14)), "bold" if sifted.kept else STRUCK)
    return (
        lines(
            [
                line(" " * LABEL, (f"{sign} ", style), (gauge + "  ", MUTED), name),
                line(" " * (LABEL + 2), (sifted.why, FAINT)),
            ]
        )
        if sifted.why
        else line(" " * LABEL, (f"{sign} ", style), (gauge + "  ", MUTED), name)
    )


def painted_passage(passage: Passage, best: float, width: int) -> Content:
    """Rank, score bar, score, title."""
    share = passage.score / best if best > 0 else 0.0
    rank = f"{passage.rank}." if passage.rank else "·"
    place = f" p. {passage.page}" if passage.page is not None else ""
    return line(
        " " * LABEL,
        (f"{rank:<3}", MUTED),
        (f"{bar(share, 6)} {passage.score:5.2f}  ", MUTED),
        short(passage.name or passage.document, max(8, width - LABEL - 18)),
        (place, FAINT),
    )


def painted_fact(fact: Fact) -> Content:
    """A remembered statement."""
    return line(
        " " * LABEL,
        ("◉ ", ACCENT),
        f"{fact.subject} – {fact.predicate} – {fact.object}",
        (f"  {fact.confidence:.2f}", MUTED),
    )


def painted_slot(slot: Filled) -> Content:
    """A relation that was read from a sentence, and who read it."""
    by = {"pattern": "", "memory": "  from memory", "model": "  by the model"}[slot.by]
    return line(" " * LABEL, ("✓ ", GOOD), f"{slot.subject} – {slot.phrase}: ", (slot.value, "bold"), (by, FAINT))


def painted_hop(hop: HopView, withdrawn: SentenceView | None, width: int) -> Content:
    """All of one hop."""
    rows = [painted_title(hop)]
    if withdrawn is not None:
        rows.append(row("withdrew", (withdrawn.retracted.strip(), STRUCK)))
    if hop.sifted:
        rows.append(row("entities", (f"filter {hop.filter}" + (", one rescued" if hop.rescued else ""), FAINT)))
        rows += [painted_entity(sifted, width) for sifted in hop.sifted]
    elif hop.extracted:
        rows.append(row("entities", ", ".join(hop.extracted)))
    if hop.fallback:
        rows.append(row("", ("! the model's list could not be read; spans were used", WARN)))
    for relation in hop.relations:
        rows.append(
            row(
                "relation",
                f"{relation.subject} – {relation.predicate}" + (f" – {relation.object}" if relation.object else ""),
            )
        )
    if hop.subquery:
        rows.append(
            row(
                "asks",
                (hop.subquery, "bold"),
                (f"  by {hop.by}" if hop.by else "", FAINT),
                ("  asked before", WARN) if hop.repeated else ("", ""),
            )
        )
    if hop.facts:
        rows += [row("memory", (f"{len(hop.facts)} known", MUTED)), *(painted_fact(fact) for fact in hop.facts)]
    if hop.skipped:
        rows.append(row("search", ("skipped, memory's sources stand in", ACCENT)))
    if hop.why:
        rows.append(row("", (hop.why, FAINT)))
    if hop.passages:
        best = max(passage.score for passage in hop.passages)
        rows += [
            row(
                "found",
                (
                    f"{len(hop.passages)}, {hop.fresh} new" if not hop.skipped else f"{len(hop.passages)} from memory",
                    MUTED,
                ),
            )
        ]
        for passage in hop.passages:
            rows.append(painted_passage(passage, best, width))
            if why := found_words(passage, hop.passages):
                rows.append(row("", (why, FAINT)))
    if hop.slots:
        rows += [row("read", ("from its sentences", MUTED)), *map(painted_slot, hop.slots)]
    return lines(rows)


class Hops(Pane):
    """Each retrieval."""

    NAME, KEY = "Hops", "F3"
    EMPTY = "Nothing was looked up yet."
    FOLLOWS = True
    HELP = """\
# Hops
One block for each retrieval: the word that triggered it, what was withdrawn, the entities the filter kept (✓) and dropped (✗) with their
confidence, the sub-query, what memory knew, the passages found with their scores, and the relations that were read from their sentences.
"""

    def painted(self) -> Content | None:
        """Hops under one another."""
        trace = self.trace
        if not trace.hops:
            return None
        gone = [view for view in trace.sentences if view.retracted]
        triggered = [hop for hop in trace.hops if hop.trigger is not None]
        pairs = dict(zip((id(hop) for hop in triggered), gone, strict=False)) if len(gone) == len(triggered) else {}
        rows = [painted_hop(hop, pairs.get(id(hop)), self.body_width) for hop in trace.hops]
        return block(Content("\n\n").join(rows))

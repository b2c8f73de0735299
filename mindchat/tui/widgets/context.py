"""The Context pane: exactly what the model was given.

Owns: drawing PromptBuilt: copies of the context (CoRe), each document's position in each copy, new and cached tokens,
what was dropped, and every character that was sent, with its origin. Does not own: composing prompts. The text shown is
PromptBuilt.sent itself: segments are located in it in order, and what lies between them is the chat template's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from mindchat.events import EvidenceChosen, PromptBuilt
from mindchat.trace import Trace, found_words
from mindchat.tui.drawable import (
    ACCENT,
    FAINT,
    MUTED,
    STRUCK,
    TITLE,
    WARN,
    bar,
    block,
    grouped,
    line,
    lines,
    seconds,
    short,
)
from mindchat.tui.widgets.columns import Piece, cells_needed, parted, side_by_side
from mindchat.tui.widgets.pane import Pane
from mindchat.values import Kept, Passage, Segment, Text

ORIGINS = {
    "instruction": ("· instruction", MUTED),
    "question": ("? question", f"bold {ACCENT}"),
    "passage": ("¶ passage", ""),
    "memory": ("◉ memory", ACCENT),
    "history": ("↺ earlier turn", MUTED),
    "reasoning": ("… reasoning", "italic"),
    "exemplar": ("e exemplar", MUTED),
    "template": ("", FAINT),
}
"""Origin of a stretch → its label (symbol and word, so that colour is never needed) and style."""


def stretches(built: PromptBuilt) -> Iterator[tuple[str, str, int, str]]:
    """Cut `sent` into (text, origin, copy, passage) pieces that join to exactly `sent`."""
    at, sent = 0, built.sent
    for segment in (segment for message in built.prompt.messages for segment in message.segments):
        found = sent.find(segment.text, at) if segment.text else -1
        if found < 0:  # a template may trim what it is given
            stripped = segment.text.strip()
            found = sent.find(stripped, at) if stripped else -1
            length = len(stripped)
        else:
            length = len(segment.text)
        if found < 0:
            continue
        if found > at:
            yield sent[at:found], "template", 0, ""
        yield sent[found : found + length], *_origin(segment)
        at = found + length
    if at < len(sent):
        yield sent[at:], "template", 0, ""


def _origin(segment: Segment) -> tuple[str, int, str]:
    if isinstance(segment, Kept):
        return "reasoning", 0, ""
    assert isinstance(segment, Text)
    return segment.origin, segment.copy, segment.passage or ""


def painted_pieces(pieces: Iterable[Piece]) -> Content:
    """Stretches one after the other, each under its origin."""
    parts: list[Content] = []
    label_now = ""
    for text, origin, _, passage in pieces:
        label, style = ORIGINS.get(origin, ORIGINS["template"])
        if label and label != label_now:
            parts.append(block((f"\n{label}{f' {passage}' if passage else ''}\n", f"bold {MUTED}")))
        label_now = "" if origin == "passage" else label
        parts.append(block((text, style)))
    return block(*parts)


def painted_beside(built: PromptBuilt, width: int) -> Content | None:
    """What was sent, its copies side by side; None where that is impossible: one copy, or too little room."""
    before, copies, after = parted(list(stretches(built)))
    if not copies or width < cells_needed(len(copies)):
        return None
    beside = side_by_side([painted_pieces(copy) for copy in copies], width)
    return block(painted_pieces(before), "\n\n", beside, "\n", painted_pieces(after))


def painted_sent(built: PromptBuilt, unfolded: bool) -> Content:
    """What was sent, with a rule where a copy begins; a repeated copy is folded to one line a passage unless
    `unfolded`.
    """
    parts: list[Content] = []
    copies = max(1, len(built.copies))
    copy_now, label_now = -1, ""
    for text, origin, copy, passage in stretches(built):
        label, style = ORIGINS.get(origin, ORIGINS["template"])
        if origin in ("passage", "memory") and copy != copy_now and copies > 1:
            copy_now = copy
            folded = copy > 0 and not unfolded
            parts.append(_rule(copy, copies, folded))
        if copy > 0 and origin == "passage" and not unfolded:
            parts.append(block((f"  ¶ {short(text, 60)}\n", FAINT)))
            continue
        if label and label != label_now:
            parts.append(block((f"\n{label}{f' {passage}' if passage else ''}\n", f"bold {MUTED}")))
        label_now = "" if origin == "passage" else label
        parts.append(block((text, style)))
    return block(*parts)


def _rule(copy: int, copies: int, folded: bool) -> Content:
    way = f" (folded: x opens; side by side from {cells_needed(copies)} columns on)" if folded else ""
    return block((f"\n━━ Copy {copy + 1} of {copies}{way} ━━\n", TITLE))


def painted_positions(trace: Trace, built: PromptBuilt, width: int) -> Content:
    """Each document's place in each copy."""
    known = {passage.id: passage for passage in trace.passages}
    order = list(dict.fromkeys(passage for copy in built.copies for passage in copy))
    head = "".join(f"{f'copy {n + 1}':>8}" for n in range(len(built.copies)))
    room = max(10, width - 8 * len(built.copies) - 2)
    rows = [line((f"{'position of':<{room}}{head}", MUTED))]
    for passage in order:
        places = "".join(f"{f'#{copy.index(passage) + 1}' if passage in copy else '–':>8}" for copy in built.copies)
        here = known.get(passage)
        title = here.title if here is not None else ""
        rows.append(line(f"{short(title or passage, room - 1):<{room}}", (places, ACCENT)))
        if here is not None and (why := found_words(here, [known[id] for id in order if id in known])):
            rows.append(line((f"  {short(why, room - 3)}", FAINT)))
    return lines(rows)


def painted_whole(chosen: EvidenceChosen, passages: Sequence[Passage]) -> Content:
    """The passages that the prompt has evidence of, whole: what the prompt holds plain, the rest faint."""
    parts: list[Content] = []
    for passage in passages:
        stretches = [
            (e.start - passage.start, e.end - passage.start) for e in chosen.evidence if e.passage == passage.id
        ]
        if not stretches:
            continue
        parts.append(block((f"\n¶ {short(passage.title or passage.id, 60)}\n", f"bold {MUTED}")))
        at = 0
        for start, end in stretches:
            parts += [block((passage.text[at:start], FAINT)), block((passage.text[start:end], "$foreground"))]
            at = end
        parts.append(block((passage.text[at:] + "\n", FAINT)))
    return block(*parts)


class Evidence(Pane):
    """What was sent."""

    NAME, KEY = "Context", "F4"
    EMPTY = "What is sent to the model will stand here, character for character."
    HELP = """\
# Context
Exactly what the newest prompt contains, with the origin of every stretch. The context may stand there more than once (CoRe). Where
there is room the copies stand side by side; `s` puts them under one another, where `x` opens and folds the repeated ones. `[` and `]` go to
earlier and later prompts of the turn. The answer is read from the sentences that promise most; `w` shows them in their whole passages.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "beside", "Side by side", id="context.beside"),
        Binding("x", "fold", "Fold copies", id="context.fold"),
        Binding("w", "whole", "Whole passages", id="context.whole", show=False),
        Binding("left_square_bracket", "prompt(-1)", "Earlier", id="context.earlier"),
        Binding("right_square_bracket", "prompt(1)", "Later", id="context.later"),
    ]

    def __init__(self, *, id: str = "context") -> None:
        super().__init__(id=id)
        self._unfolded, self._beside, self._whole = False, True, False
        self._back = 0
        self._drawn: tuple[tuple[int, int, bool, bool], PromptBuilt, Content] | None = None
        """The text as it was last drawn, for which prompt and how."""

    def show(self, trace: Trace) -> None:
        """News that does not concern the context is no reason to paint."""
        old = self.trace
        same = (
            trace.contexts == old.contexts
            and trace.prefill is old.prefill
            and trace.dropped == old.dropped
            and trace.hops == old.hops
        )
        same = same and trace.evidence is old.evidence
        if len(trace.contexts) != len(old.contexts):
            self._back = 0
        if same and trace.started is old.started:
            self._trace = trace
            return
        super().show(trace)

    def action_beside(self) -> None:
        """Put the copies side by side, or under one another."""
        self._beside = not self._beside
        self.repaint()

    def action_fold(self) -> None:
        """Open or fold the repeated copies."""
        self._unfolded = not self._unfolded
        self.repaint()

    def action_whole(self) -> None:
        """Show the chosen sentences within their passages, or what was sent."""
        self._whole = not self._whole
        self.repaint()

    def action_prompt(self, by: int) -> None:
        """Look at another prompt of this turn."""
        self._back = max(0, min(len(self.trace.contexts) - 1, self._back - by))
        self.repaint()

    def painted(self) -> Content | None:
        """Numbers, positions, drops, text."""
        trace, contexts = self.trace, self.trace.contexts
        if not contexts:
            return None
        built = contexts[-1 - self._back]
        share = built.tokens / built.window if built.window else 0.0
        rows = [
            line(
                (built.purpose.capitalize(), TITLE),
                (f"  prompt {len(contexts) - self._back} of {len(contexts)}", MUTED),
            ),
            line((bar(share, 10), ACCENT), f" {grouped(built.tokens)} ", (f"of {grouped(built.window)} tokens", MUTED)),
        ]
        if trace.prefill is not None and self._back == 0:
            rows.append(self._prefill())
        if built.copies and any(built.copies):
            rows += [line(""), painted_positions(trace, built, self.body_width)]
        for dropped in trace.dropped:
            rows.append(line(("✗ left out ", WARN), (short(dropped.passage, 40), STRUCK), (f"  {dropped.why}", MUTED)))
        chosen = trace.evidence if trace.evidence is not None and trace.evidence.evidence else None
        if chosen is not None:
            read = (
                (f" of the passages' {grouped(chosen.of)} words; ", MUTED),
                ("w", ACCENT),
                (" what was sent" if self._whole else " whole", MUTED),
            )
            rows.append(line(("reads ", MUTED), grouped(chosen.words), *read))
            if self._whole:
                return block(lines(rows), "\n", painted_whole(chosen, trace.passages))
        copies = len(built.copies)
        if copies > 1 and self.body_width >= cells_needed(copies):
            how = " puts the copies under one another" if self._beside else " puts the copies side by side"
            rows.append(line(("s", ACCENT), (how, MUTED)))
        return block(lines(rows), "\n", self._text(built))

    def _text(self, built: PromptBuilt) -> Content:
        """What was sent; drawn anew only for another prompt, width or way (progress comes ten times a second)."""
        how = (id(built), self.body_width, self._beside, self._unfolded)
        if self._drawn is None or self._drawn[0] != how:
            beside = painted_beside(built, self.body_width) if self._beside else None
            self._drawn = how, built, beside or painted_sent(built, self._unfolded)
        return self._drawn[2]

    def _prefill(self) -> Content:
        prefill = self.trace.prefill
        assert prefill is not None
        new = prefill.total - prefill.cached
        return line(
            ("new ", MUTED),
            (grouped(new), "bold"),
            ("  cached ", MUTED),
            grouped(prefill.cached),
            (f"  read {grouped(prefill.done)} in {seconds(prefill.seconds)}", FAINT),
        )

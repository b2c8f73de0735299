"""The transcript: questions, reasoning, answers, citations, and what commands say.

Owns: TurnView (drawn from a Trace; answer text goes to a MarkdownStream as it grows), Note, the welcome text's place,
following the tail.
Does not own: which turn is whose (the chat screen), opening citations (a message goes up).
"""

from __future__ import annotations

import re
from typing import ClassVar

from markdown_it import MarkdownIt
from msgspec.structs import replace as replace_fields
from textual import events as tev
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Markdown, Static
from textual.widgets.markdown import MarkdownStream

from mindchat.text.clean import Cleaner, clean
from mindchat.trace import Trace, absent_words, counts, cut_words, page_words, verdict_words
from mindchat.tui.drawable import (
    ACCENT,
    BAD,
    FAINT,
    GOOD,
    MUTED,
    STRUCK,
    TITLE,
    WARN,
    block,
    line,
    lines,
    seconds,
    short,
)
from mindchat.values import Citation

LINK = "mindchat://citation/"
_MARK = re.compile(r"\[(\d{1,3})\](?![(\[:])")


def parser() -> MarkdownIt:
    """Markdown without raw HTML: tags that a model writes are shown, not swallowed."""
    return MarkdownIt("gfm-like", {"html": False, "linkify": False})


def linked(text: str, known: set[int]) -> str:
    """The answer with each citation mark as a link of ours; a mark without a citation is called unverified."""

    def replace(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"[\\[{number}\\]]({LINK}{number})" if number in known else f"\\[{number}: unverified\\]"

    outside = re.split(r"(```.*?(?:```|\Z)|`[^`\n]*`)", text, flags=re.DOTALL)
    return "".join(piece if index % 2 else _MARK.sub(replace, piece) for index, piece in enumerate(outside))


def painted_reasoning(trace: Trace) -> Content:
    """Accepted reasoning in order, with withdrawn stretches struck where they stood, then the draft."""
    parts: list[tuple[str, str]] = []
    at, reasoning = 0, trace.reasoning
    for view in trace.sentences:
        stays = (
            view.text[: -len(view.retracted)]
            if view.retracted and view.text.endswith(view.retracted)
            else ""
            if view.retracted
            else view.text
        )
        found = reasoning.find(stays.strip(), at) if stays.strip() else -1
        if found >= 0:
            end = found + len(stays.strip())
            parts.append((reasoning[at:end], MUTED))
            at = end
        if view.retracted:
            parts += [(" ⟨", WARN), (view.retracted.strip(), STRUCK), ("⟩↩", WARN)]
    parts.append((reasoning[at:], MUTED))
    if parts[0][0].startswith(" "):
        parts[0] = (parts[0][0].lstrip(), parts[0][1])
    if trace.channel == "reasoning" and trace.drafting and trace.state == "running":
        parts += [(trace.draft_text, f"italic {MUTED}"), ("▌", ACCENT)]
    return block(*parts)


def painted_summary(trace: Trace, opened: bool) -> Content:
    """The one line over the reasoning."""
    gone = sum(1 for view in trace.sentences if view.retracted)
    hops = sum(1 for hop in trace.hops if hop.subquery)
    words = [f"{len(trace.sentences)} sentence{'s' * (len(trace.sentences) != 1)}"] if trace.sentences else []
    words += [f"{gone} withdrawn"] if gone else []
    words += [f"{hops} looked up"] if hops else []
    return line(
        ("▾ " if opened else "▸ ", ACCENT), ("reasoning", MUTED), ("  " + " · ".join(words) if words else "", FAINT)
    )


def painted_notices(trace: Trace) -> list[Content]:
    """What the turn wants the user to know."""
    return [
        line(
            ("! " if notice.level == "warning" else "· ", WARN if notice.level == "warning" else FAINT),
            (notice.text, MUTED),
        )
        for notice in trace.notices
    ]


def painted_absent(trace: Trace) -> Content:
    """Names of the question that no document has, a line each."""
    return lines([line(("! ", WARN), (absent_words(item), MUTED)) for item in trace.absent])


def painted_outcome(trace: Trace) -> Content | None:
    """The lines under an answer, or what went wrong."""
    shown = _painted_end(trace)
    return None if shown is None else lines([shown, *painted_notices(trace)])


SIGNS = {"sourced": ("✓", GOOD), "doubtful": ("?", WARN), "unresolved": ("∅", WARN), "not_in_documents": ("∅", WARN)}
"""Answer.verdict → sign and style; the word stands beside the sign, so that neither shape nor colour carries the
meaning alone.
"""


def _painted_end(trace: Trace) -> Content | None:
    if trace.failed is not None:
        failed = trace.failed
        rows = [line(("✗ ", BAD), (failed.message, BAD))]
        return lines([*rows, line(("  " + failed.hint, MUTED))] if failed.hint else rows)
    if trace.state == "cancelled":
        return line(("■ stopped; what was written stays. ", WARN), ("/retry asks again", FAINT))
    if trace.answer is None:
        return None
    answer, tally = trace.answer, counts(trace)
    words = [f"{tally['retrievals']} retrieval{'s' * (tally['retrievals'] != 1)}"]
    words += [f"{tally['memory_hits']} from memory"] if tally["memory_hits"] else []
    words += [seconds(trace.seconds), trace.stop.replace("_", " ")]
    sign, style = SIGNS[answer.verdict]
    rows = [line((f"✂ {cut_words(answer)}", WARN))] if answer.cut else []
    rows.append(line((f"{sign} {verdict_words(answer)}", style)))
    rows += (
        [line(("  Ctrl+Y or /retry anyway asks the model all the same", FAINT))]
        if answer.verdict == "not_in_documents"
        else []
    )
    rows += (
        [line(("  " + answer.why, MUTED))] if answer.why and (answer.verdict != "sourced" or answer.unsupported) else []
    )
    return lines([*rows, line(("  " + " · ".join(words), FAINT))])


class CitationOpened(Message):
    """The user wants to see where [n] of a turn stands; citation None: the mark has no citation."""

    def __init__(self, trace: Trace, number: int) -> None:
        super().__init__()
        self.trace, self.number = trace, number


class CitationLine(Static, can_focus=True):
    """One source: [n] title, quote."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter", "open", "Open passage")]

    def __init__(self, trace: Trace, citation: Citation) -> None:
        self._trace_shown, self._citation = trace, citation
        source = trace.source(citation)
        name = (source.name if source is not None else "") or citation.document
        page = page_words(source.page) if source is not None else ""
        quote = (f"  “{short(citation.quote, 80)}”", FAINT)
        shown = line((f"[{citation.n}] ", f"bold {ACCENT}"), (short(name, 60), "underline"), (page, FAINT), quote)
        super().__init__(shown, markup=False, classes="citation")

    def action_open(self) -> None:
        """Show the passage."""
        self.post_message(CitationOpened(self._trace_shown, self._citation.n))

    def on_click(self) -> None:
        """A click opens it too."""
        self.action_open()


class Reasoning(Vertical):
    """The model's reasoning: dim, apart from the answer, foldable."""

    def __init__(self) -> None:
        super().__init__(classes="reasoning")
        self.opened = True
        self._trace = Trace()

    def compose(self) -> ComposeResult:
        """Summary line and body."""
        yield Static(markup=False, classes="reasoning-title")
        yield Static(markup=False, classes="reasoning-body")

    def on_click(self, event: tev.Click) -> None:
        """The summary line folds."""
        if event.widget is not None and event.widget.has_class("reasoning-title"):
            self.fold(not self.opened)

    def fold(self, opened: bool) -> None:
        """Open or close."""
        self.opened = opened
        self.show(self._trace)

    def show(self, trace: Trace) -> None:
        """Draw the trace's reasoning."""
        self._trace = trace
        self.display = bool(trace.reasoning or trace.sentences or (trace.drafting and trace.channel == "reasoning"))
        if not self.display:
            return
        self.query_one(".reasoning-title", Static).update(painted_summary(trace, self.opened))
        body = self.query_one(".reasoning-body", Static)
        body.display = self.opened
        if self.opened:
            body.update(painted_reasoning(trace))


class TurnView(Vertical):
    """One question and everything that came of it."""

    def __init__(self, question: str) -> None:
        super().__init__(classes="turn")
        self.question = question
        self.trace = Trace()
        self._stream: MarkdownStream | None = None
        self._cleaner = Cleaner()
        self._taken = ""
        self._finished = False

    def compose(self) -> ComposeResult:
        """Question, names that no document has, waiting line, reasoning, answer, outcome, sources."""
        yield Static(block(self.question), markup=False, classes="question")
        yield Static(markup=False, classes="absent")
        yield Static(markup=False, classes="asked-as")
        yield Reasoning()
        yield Markdown(classes="answer", parser_factory=parser, open_links=False)
        yield Static(markup=False, classes="outcome")
        yield Vertical(classes="citations")

    def on_mount(self) -> None:
        """Nothing is shown before there is something."""
        for name in (".absent", ".asked-as", ".reasoning", ".answer", ".citations"):
            self.query_one(name).display = False
        self.query_one(".outcome", Static).update(line(("… waiting for the model", FAINT)))

    async def show(self, trace: Trace) -> None:
        """Draw a newer trace."""
        if self._finished:
            return
        if trace.absent != self.trace.absent:
            told = self.query_one(".absent", Static)
            told.display = bool(trace.absent)
            told.update(painted_absent(trace))
        self.trace = trace
        if trace.rewritten:
            asked = self.query_one(".asked-as", Static)
            asked.display = True
            asked.update(line(("asked as: ", FAINT), (trace.rewritten, MUTED), ("  Ctrl+O asks it as typed", FAINT)))
        self.query_one(Reasoning).show(trace)
        if trace.state in ("answered", "failed", "cancelled"):
            await self._finish(trace)
            return
        self.query_one(".outcome").display = not (trace.reasoning or trace.answer_text or trace.drafting)
        await self._stream_answer(trace.answer_text + (trace.draft_text if trace.channel == "answer" else ""))

    def go_on(self) -> None:
        """More of the same answer is about to come."""
        self._finished, self._taken = False, ""
        self.trace = replace_fields(self.trace, state="waiting", drafting=(), failed=None)
        self.query_one(".outcome", Static).update(line(("… going on", FAINT)))

    async def _stream_answer(self, text: str) -> None:
        if not text or text == self._taken:
            return
        answer = self.query_one(".answer", Markdown)
        answer.display = True
        if not text.startswith(self._taken):
            await self._stop_stream()
            self._cleaner, self._taken = Cleaner(), ""
            await answer.update("")
        if self._stream is None:
            self._stream = Markdown.get_stream(answer)
        await self._stream.write(self._cleaner.feed(text[len(self._taken) :]))
        self._taken = text

    async def _stop_stream(self) -> None:
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None

    async def _finish(self, trace: Trace) -> None:
        self._finished = True
        await self._stop_stream()
        answer = trace.answer
        text = (
            answer.text
            if answer is not None
            else trace.answer_text + (trace.draft_text if trace.channel == "answer" else "")
        )
        known = {citation.n for citation in answer.citations} if answer is not None else set()
        markdown = self.query_one(".answer", Markdown)
        markdown.display = bool(text.strip())
        if text.strip():
            await markdown.update(linked(clean(text), known))
        outcome = self.query_one(".outcome", Static)
        outcome.display = True
        outcome.update(painted_outcome(trace) or line(""))
        if answer is not None:
            self.query_one(Reasoning).fold(False)
            holder = self.query_one(".citations")
            holder.display = bool(answer.citations)
            await holder.remove_children()
            await holder.mount_all([CitationLine(trace, citation) for citation in answer.citations])

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """Only our own links lead anywhere by themselves; others are asked about by the screen."""
        if event.href.startswith(LINK):
            event.stop()
            self.post_message(CitationOpened(self.trace, int(event.href.removeprefix(LINK) or 0)))


UNFINISHED = {"cancelled": "■ stopped", "failed": "✗ failed", "running": "■ not finished"}
"""Status of a stored turn → what stands under it. One that still runs was cut off with its program, or is being written
by another one.
"""


class PastTurn(Vertical):
    """A question and answer of a resumed session, from the store."""

    def __init__(self, question: str, answer: str, status: str = "done") -> None:
        super().__init__(classes="turn past")
        self.question, self.answer, self.status = question, answer, status

    def compose(self) -> ComposeResult:
        """Question, answer, and what kept it from its end."""
        yield Static(block(self.question), markup=False, classes="question")
        if self.answer.strip():
            yield Markdown(clean(self.answer), classes="answer", parser_factory=parser, open_links=False)
        if self.status in UNFINISHED:
            yield Static(
                line((UNFINISHED[self.status], WARN), ("; /retry asks again", FAINT)), markup=False, classes="outcome"
            )


class Note(Static):
    """What a command said."""

    def __init__(self, title: str, text: str, *, ok: bool = True) -> None:
        super().__init__(markup=False, classes="note" if ok else "note failed")
        self._title = title
        self.say(text, ok=ok)

    def say(self, text: str, *, ok: bool = True) -> None:
        """Replace the text (progress of a long command)."""
        self.set_class(not ok, "failed")
        head = [line((self._title, TITLE if ok else f"bold {BAD}"))] if self._title else []
        self.update(lines([*head, block(text)]) if text else lines(head))


class Transcript(VerticalScroll, can_focus=True):
    """Everything said in this session."""

    HELP = """\
# Chat
Answers stream in; the model's reasoning stands dim above each answer, withdrawn words are struck. Click `[n]` or a source line to read the
passage where it stands. `PgUp` holds the view while text arrives, `End` follows again.
"""

    def on_mount(self) -> None:
        """Follow the tail."""
        self.anchor()

    @property
    def following(self) -> bool:
        """Whether new text scrolls into view."""
        return self.max_scroll_y - self.scroll_offset.y <= 1 or not self._anchor_released

    def follow(self) -> None:
        """Back to the tail."""
        self.anchor()
        self.scroll_end(animate=False)

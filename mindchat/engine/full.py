"""Answers in sentences (answer.style = full), and going on with an answer that was cut.

Owns: the calls that write sentences, what is made of their words, more(). Does not own: the short answer
(engine.answer_steps), the marks and what they may claim (engine.claims), wording (prompts.core).
Source: ours. The short answer is asked for first, by the papers' prompt, and the sentences continue that very prompt:
so the answer that is scored and remembered is the one of style = short. Only a question that a few words cannot answer
("how do I …") is answered in sentences at once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.answers import extract_short
from mindchat.engine.answering import locate
from mindchat.engine.claims import check, unmarked
from mindchat.engine.drafting import UNFINISHED
from mindchat.engine.generation import generate
from mindchat.engine.reading import Reading, answer_room, full_layout
from mindchat.engine.verdict import carrying
from mindchat.errors import WindowError
from mindchat.events import Event
from mindchat.prompts.core import continued, explanation
from mindchat.text.clean import clean
from mindchat.values import Answer, Citation, Cut, Draft, Finish, Kept, Message, Passage, Prompt, Text

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

NEXT = ("\nQuestion:", "\nDocuments:", "\nDocument [", "\nAnswer:")
"""Where a model begins a turn that nobody asked for."""


class Written(Struct, frozen=True):
    """Sentences, checked."""

    prompt: Prompt
    """What the draft continues."""
    draft: Draft
    text: str
    short: str
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[str, ...] = ()
    """Its sentences that stand in no passage."""

    @property
    def cut(self) -> bool:
        """Whether a limit ended them."""
        return self.draft.finish is Finish.LENGTH


def explain(turn: Turn, prompt: Prompt, draft: Draft, short: str, overruled: bool) -> Generator[Event, None, Written]:
    """The sentences behind a short answer; one that its own limit cut is written to its end instead."""
    yield turn.step("explain")
    if draft.finish is Finish.LENGTH and not overruled:
        return (yield from _longer(turn, prompt, draft))
    said = Text(f" {short}") if overruled or not draft.tokens else Kept(draft.ids, draft.text)
    asked = explanation(prompt, said)
    yield turn.built(asked, "full", turn.parts.model.count(asked))
    wanted = turn.config.answer.full_tokens
    sentences = yield from generate(turn, asked, kind="explain", max_tokens=wanted, stop=(*NEXT, "\n\n"))
    return written(turn, asked, sentences, sentences.text, short)


def _longer(turn: Turn, prompt: Prompt, draft: Draft) -> Generator[Event, None, Written]:
    longer = continued(prompt, draft)
    yield ev.DraftAccepted(clean(draft.text), "answer", 0)  # was not shown yet
    yield turn.built(longer, "full", turn.parts.model.count(longer))
    rest = yield from generate(turn, longer, kind="explain", max_tokens=turn.config.answer.full_tokens, stop=NEXT)
    return written(turn, longer, rest, draft.text + rest.text)


def in_sentences(turn: Turn, reading: Reading) -> Generator[Event, None, Written]:
    """The answer to a question that a few words cannot answer: one call; its first sentence is the short answer."""
    prompt = yield from turn.compose("full", answer_room(turn), full_layout(turn, reading.copies, reading.told))
    draft = yield from generate(turn, prompt, kind="answer", max_tokens=turn.config.answer.full_tokens, stop=NEXT)
    return written(turn, prompt, draft, draft.text)


def written(turn: Turn, prompt: Prompt, draft: Draft, whole: str, short: str = "") -> Written:
    """The sentences with marks that hold. `whole`: all words of the answer, of which the draft may be only the end;
    `short`: "" if unknown.
    """
    raw = without_repeats(clean(whole).strip(), turn)
    if not short:
        short = extract_short(f"Answer: {next(iter(turn.words.sentences(raw)), '')}")
    elif locate(short, raw) is None:
        raw = f"{short[:1].upper()}{short[1:]}{'' if turn.words.finished(short) else '.'} {raw}".strip()
    done, tail = raw, ""
    if draft.finish is Finish.LENGTH:
        *sentences, last = turn.words.sentences(raw) or [""]
        done, tail = (
            ("".join(sentences), f"{unmarked(last)}{UNFINISHED}") if not turn.words.finished(raw) else (raw, UNFINISHED)
        )
    found = check(done, _citable(turn), turn.words, turn.hop.question)
    between = "\n" * (len(done) - len(done.rstrip("\n")))
    text = (
        f"{found.text}{between}{tail if between or not found.text else ' ' + tail.lstrip()}".strip()
        if tail
        else found.text
    )
    return Written(prompt, draft, text, short, found.citations, found.unsupported)


def _citable(turn: Turn) -> tuple[Passage, ...]:
    """What was read, by the prompt's numbers; a passage that is not about the question carries no sentence."""
    read = turn.grounds(turn.hop).passages
    about = carrying(turn.hop.question, read, turn.words)
    return tuple(
        passage if passage.id in about else replace(passage, title="", heading="", text="", shown=())
        for passage in read
    )


def without_repeats(text: str, turn: Turn) -> str:
    """Small models say a sentence twice, or fifty times: later copies go. Lines of code and lists may repeat."""
    out, seen = [], set()
    for line in text.split("\n"):
        kept = []
        for sentence in turn.words.sentences(line):
            key = " ".join(sentence.split()).casefold()
            if len(key.split()) < 4 or key not in seen:
                kept.append(sentence)
            seen.add(key)
        if kept or not line:
            out.append("".join(kept))
    return "\n".join(out)


def more(turn: Turn, cut: Cut) -> Generator[Event, None, Answer]:
    """A cut answer, continued by its own token ids up to answer.full_tokens more. Raises WindowError if the window has
    no room for one.
    """
    yield turn.step("more")
    turn.hop = replace(turn.hop, question=cut.standalone, passages=cut.passages)
    *before, last = cut.prompt.messages
    prompt = Prompt((*before, Message(last.role, (*last.segments, cut.kept)))) if cut.kept.ids else cut.prompt
    tokens, model = turn.parts.model.count(prompt), turn.parts.model
    if tokens >= model.window:
        raise WindowError(
            f"The answer fills the model's window of {model.window} tokens.",
            "Ask for the rest in a question of its own.",
        )
    yield turn.built(prompt, "full", tokens)
    draft = yield from generate(turn, prompt, kind="more", max_tokens=turn.config.answer.full_tokens, stop=NEXT)
    own = cut.text.strip().startswith(
        cut.answer.short
    )  # then the short answer is the beginning of these words, and may have been cut too
    found = written(turn, prompt, draft, cut.text + draft.text, "" if own else cut.answer.short)
    yield ev.DraftAccepted(clean(draft.text), "answer", len(draft.tokens))
    after = cut.answer.cut_after + len(draft.tokens) if found.cut else 0
    citations = joined_citations(found.citations, cut.answer.citations)
    ended = replace(cut.answer, text=found.text, short=found.short, citations=citations)
    return replace(ended, cut_after=after, unsupported=len(found.unsupported))


def joined_citations(marked: Sequence[Citation], others: Sequence[Citation]) -> tuple[Citation, ...]:
    """The sentences' citations, and behind them those of passages that no sentence names, numbered on."""
    known = {citation.passage for citation in marked}
    rest = [citation for citation in others if citation.passage not in known]
    return (*marked, *(replace(citation, n=n) for n, citation in enumerate(rest, len(marked) + 1)))

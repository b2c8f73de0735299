"""The steps from the end of the reasoning to the answer; each yields events and returns its result.

Owns: the answer call (after thinking, if wished), what is made of its words, what people read when there is no answer.
Does not own: how often the documents are read (engine.reading), the reasoning before it (engine.turn), wording (prompts), citations and
confidence (engine.answering).
Source: MIND §3.4; CoRe Tables 4 and 11; Table 7 for thinking first.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.answers import extract_short, says_unknown
from mindchat.engine.answering import FREE, abstains, cite, confidence, unread
from mindchat.engine.drafting import joined
from mindchat.engine.evidence_steps import choose
from mindchat.engine.generation import generate, shown
from mindchat.engine.picking import echoes, pick
from mindchat.engine.reading import Probe, Reading, answer_layout, decide, thinking_layout, thinking_room
from mindchat.events import Event
from mindchat.prompts.core import extraction
from mindchat.text.clean import clean, clean_line
from mindchat.text.names import find_names
from mindchat.values import Answer, Draft, Finish, Harvest, Kept, Message, Prompt

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

NOTHING_SAID = "Your documents do not say."
"""What people read when the documents hold no answer; `short` keeps the model's words."""


def answer(turn: Turn) -> Generator[Event, None, Answer]:
    """One answer over question, facts, passages and reasoning (MIND §3.4), the context repeated (CoRe)."""
    yield turn.step("answer")
    if turn.hop.sentences and turn.hop.passages and not turn.dropped:
        turn.basis = turn.parts.policy.basis(turn.hop, turn.ask)
        yield from turn.ask.drain()
    yield from choose(turn)
    reading = yield from decide(turn)
    prompt, draft = yield from _draft(turn, reading)
    text = clean(draft.text).strip()
    short, sure, measured = extract_short(f"Answer: {text}") if text else "", confidence(draft), FREE
    mode = turn.config.answer.short
    choosing = mode == "span" or (mode == "auto" and echoes(short, turn.hop.question, turn.words))
    picked = (yield from pick(turn, prompt, short)) if choosing else None
    overruled = picked is not None and picked.text != short
    if picked is not None:
        if overruled:
            yield ev.Notice(f"span: {picked.text!r} was chosen among {picked.candidates} candidates instead of {clean_line(short, 80)!r}.")
            text = short = picked.text
        sure, measured = picked.share, f"share among {picked.candidates} candidate answers"
    abstained, why = abstains(short, sure, turn.config.answer.abstain_below, measured)
    given, grounds = turn.hop.question.casefold(), turn.grounds(turn.hop).passages
    parts = [name for name, _, _, _ in find_names(short, turn.words) if name.casefold() not in given]
    citations = () if abstained else cite(short, text, grounds, parts)
    # words that were overruled are nothing to remember
    if not (turn.harvests or abstained or overruled) and turn.pending is not None:
        turn.harvests.append(Harvest(turn.hop.number, turn.pending[0], draft, turn.pending[1]))
    if grounds and not abstained and (missing := unread(turn.question, grounds, turn.words)):
        named = ", ".join(f"“{clean_line(name, 60)}”" for name in missing)
        yield ev.Notice(f"Nothing that was read names {named}.", "warning")
    yield ev.DraftAccepted(text, "answer", 0 if overruled else len(draft.tokens))
    unsaid = abstained and (says_unknown(short) or not turn.hop.passages)
    return Answer(NOTHING_SAID if unsaid else text, short, abstained, sure, citations, why)


def _draft(turn: Turn, reading: Reading) -> Generator[Event, None, tuple[Prompt, Draft]]:
    """The answer's words, by the way that settings and reading ask for, and the prompt ending in "Answer:" that they continue."""
    if reading.probe is not None:
        return reading.probe.prompt, (yield from _completed(turn, reading.probe))
    if turn.config.layout.cot:
        return (yield from _thought(turn, reading))
    limit = turn.config.answer.max_tokens
    prompt = yield from turn.compose("answer", limit, answer_layout(turn, reading.copies, reading.told))
    return prompt, (yield from generate(turn, prompt, kind="answer", max_tokens=limit))


def _completed(turn: Turn, probed: Probe) -> Generator[Event, None, Draft]:
    """The probe's words become the answer; if the probe's limit cut them, they are continued by their own ids."""
    draft = probed.draft
    for token in draft.tokens:
        yield shown(turn, token, "answer")
    left = turn.config.answer.max_tokens - len(draft.tokens)
    if draft.finish is not Finish.LENGTH or left <= 0:
        return draft
    *before, prefill = probed.prompt.messages
    prompt = Prompt((*before, Message("assistant", (*prefill.segments, Kept(draft.ids, draft.text)))))
    yield turn.built(prompt, "answer", turn.parts.model.count(prompt))
    rest = yield from generate(turn, prompt, kind="answer", max_tokens=left, after=len(draft.tokens))
    return joined(draft, rest) if rest.tokens else replace(draft, finish=rest.finish)


def _thought(turn: Turn, reading: Reading) -> Generator[Event, None, tuple[Prompt, Draft]]:
    """Table 7: think step by step, then give the short answer; the second call only appends to the first."""
    limit, thinking = turn.config.answer.max_tokens, turn.config.engine.reasoning_tokens
    prompt = yield from turn.compose("thinking", thinking_room(turn), thinking_layout(turn, reading.copies, reading.told))
    thought = yield from generate(turn, prompt, kind="thinking", max_tokens=thinking, stop=(), channel="reasoning")
    yield ev.DraftAccepted(clean(thought.text), "reasoning", len(thought.tokens))
    second = extraction(prompt, thought)
    yield turn.built(second, "answer", turn.parts.model.count(second))
    return second, (yield from generate(turn, second, kind="answer", max_tokens=limit))

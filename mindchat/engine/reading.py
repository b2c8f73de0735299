"""How often the documents are read before the answer, and what the later readings say.

Owns: repeat = "auto" (probe, repeat only while unsure), as = "core" (which passages the first reading used), the choice of rewordings.
Does not own: layouts (prompts.core), the window (engine.budget), the generation itself (engine.answer_steps).
Source: CoRe Theorem 1 and its Limitations, which ask to repeat "only the core contents"; Table 1 for comparisons. The rules are ours:
* auto never repeats a comparison (in HotpotQA four of five models lose there; forgoing what 2WikiMultihopQA's gain is the price) and never
  beyond what order can need: k copies for k documents, k at most SUPPORTING, because no question of the paper's data sets rests on more.
* core repeats a passage if the probe's answer stands in it, or if it received more than an equal share of the attention that the probe's
  answer paid to all passages (last layer, mean over heads). Without attention the answer's place alone decides.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence, Set
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from mindchat import events as ev
from mindchat.answers import extract_short, says_unknown
from mindchat.engine.answering import answer_entropy, answer_tokens, citable, locate
from mindchat.engine.budget import History, Layout, fit
from mindchat.engine.generation import generate
from mindchat.engine.rewording import reword
from mindchat.events import Event
from mindchat.prompts.core.orders import orders_covered
from mindchat.prompts.rewriting import KINDS
from mindchat.text.clean import clean_line
from mindchat.values import Budget, Draft, Passage, Piece, Prompt, Signal, Span, TurnState

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

PROBE_TOKENS = 8
EXTRACTION_TOKENS = 64
"""Kept free for the request that follows the thinking (Table 7) and the template around it."""
SUPPORTING = 4
"""Most documents that one question of HotpotQA, 2WikiMultihopQA or MuSiQue rests on."""
ORDERED_LIKE_THE_FIRST = ("same", "paraphrase", "summary")
"""Values of layout.as whose copies have the first one's order, so that the count of covered orders holds."""


class Probe(Struct, frozen=True):
    """A short answer after some copies."""

    prompt: Prompt
    draft: Draft


class Reading(Struct, frozen=True):
    """What was decided."""

    copies: int
    """Repetitions."""
    told: Mapping[str, str] | None = None
    probe: Probe | None = None
    """Of exactly this reading, if there was one: its words are the beginning of the answer."""


def decide(turn: Turn) -> Generator[Event, None, Reading]:
    """How often, and what. Probes the model only for auto and core."""
    layout = turn.config.layout
    if not turn.grounds(turn.hop).passages or layout.repeat == 0 or turn.parts.policy.further:
        return Reading(0)
    if layout.repeat == "auto":
        return (yield from _while_unsure(turn))
    first = (yield from probe(turn, 0, None)) if layout.as_ == "core" else None
    return Reading(layout.repeat, (yield from retell(turn, first, layout.repeat)))


def thinking_layout(turn: Turn, copies: int, told: Mapping[str, str] | None) -> Layout:
    """The prompt that asks to think first (Table 7), as a function of what fits."""

    def layout(hop: TurnState, history: History) -> Prompt:
        return turn.parts.composer.think(turn.grounds(hop), copies, history, told)

    return layout


def thinking_room(turn: Turn) -> int:
    """Tokens kept free behind that prompt: for the thought, the request that follows it, and the answer."""
    return turn.config.engine.reasoning_tokens + answer_room(turn) + EXTRACTION_TOKENS


def answer_room(turn: Turn) -> int:
    """Tokens kept free behind the answer prompt: for the short answer, and for the sentences that explain it if they are wanted."""
    options = turn.config.answer
    return options.max_tokens + (options.full_tokens + EXTRACTION_TOKENS if options.style == "full" else 0)


def full_layout(turn: Turn, copies: int, told: Mapping[str, str] | None) -> Layout:
    """The prompt for an answer in sentences as a function of what fits."""

    def layout(hop: TurnState, history: History) -> Prompt:
        return turn.parts.composer.full(turn.grounds(hop), copies, history, told)

    return layout


def answer_layout(turn: Turn, copies: int, told: Mapping[str, str] | None) -> Layout:
    """The answer prompt as a function of what fits."""

    def layout(hop: TurnState, history: History) -> Prompt:
        return turn.parts.composer.answer(turn.grounds(hop), copies, history, told)

    return layout


def probe(turn: Turn, copies: int, told: Mapping[str, str] | None) -> Generator[Event, None, Probe]:
    """At most PROBE_TOKENS words of the answer, shown only if they stay."""
    limit = turn.config.answer.max_tokens
    prompt = yield from turn.compose("probe", answer_room(turn), answer_layout(turn, copies, told))
    draft = yield from generate(turn, prompt, kind="probe", max_tokens=min(PROBE_TOKENS, limit), channel=None)
    return Probe(prompt, draft)


# ── auto ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _while_unsure(turn: Turn) -> Generator[Event, None, Reading]:
    """One copy, then one more as long as the short answer is unsure and another copy can help."""
    if turn.words.comparison(turn.hop.question):
        yield ev.Notice("auto: a comparison is answered from one copy; HotpotQA's lose by repeating (CoRe, Table 1).")
        return Reading(0)
    if Signal.ENTROPY not in turn.parts.model.provides:
        yield ev.Notice(
            f"auto: {turn.parts.model.id} measures no entropy, so the documents are repeated once.", "warning"
        )
        return Reading(1, (yield from retell(turn, None, 1)))
    copies, told, first = 0, None, (yield from probe(turn, 0, None))
    latest = first
    while unsure := _unsure(turn, latest):
        if reason := _enough(turn, copies, told):
            yield ev.Notice(f"auto: {unsure}; {reason}.")
            return Reading(copies, told, None if turn.config.layout.cot else latest)
        copies += 1
        yield ev.Notice(f"auto: {unsure}; copy {copies + 1} follows{_covered(turn, copies)}.")
        if copies == 1:
            told = yield from retell(turn, first, copies)
        latest = yield from probe(turn, copies, told)
    entropy = answer_entropy(latest.draft)
    threshold = turn.config.layout.auto_entropy
    yield ev.Notice(
        f"auto: the answer after {_number(copies + 1)} is sure: entropy {entropy or 0.0:.2f} of at most {threshold:g}"
        " nats."
    )
    return Reading(copies, told, latest)


def _unsure(turn: Turn, latest: Probe) -> str:
    """Why the short answer is not taken; "" if it is."""
    threshold, entropy = turn.config.layout.auto_entropy, answer_entropy(latest.draft)
    if entropy is None or says_unknown(extract_short(f"Answer: {latest.draft.text}")):
        return "the short answer says nothing"
    return f"the short answer has an entropy of {entropy:.2f}, over {threshold:g} nats" if entropy > threshold else ""


def _enough(turn: Turn, copies: int, told: Mapping[str, str] | None) -> str:
    """Why no further copy is laid out; "" if one may be."""
    documents = len(turn.hop.passages)
    if copies + 1 >= min(documents, SUPPORTING):
        return (
            f"{_number(copies + 1)} hold every order of {min(documents, SUPPORTING)} documents, which is all that order"
            " can need"
        )
    model = turn.parts.model
    needed = model.count(answer_layout(turn, copies + 1, told)(turn.hop, turn.history)) + answer_room(turn)
    return f"another copy needs {needed} tokens, the window has {model.window}" if needed > model.window else ""


def _covered(turn: Turn, copies: int) -> str:
    """The share of orders that the copies hold, for the documents at hand."""
    if turn.config.layout.as_ not in ORDERED_LIKE_THE_FIRST:
        return ""
    documents = len(turn.hop.passages)
    covered, orders = orders_covered(documents, copies + 1)
    return f", with it {covered:,} of {orders:,} orders of {documents} documents are covered"


def _number(copies: int) -> str:
    return "1 copy" if copies == 1 else f"{copies} copies"


# ── what is repeated ─────────────────────────────────────────────────────────────────────────────────────────────────────


def retell(turn: Turn, first: Probe | None, copies: int) -> Generator[Event, None, Mapping[str, str] | None]:
    """What the repeated copies say, by passage id; None: the same again. `first` is the probe of the first reading, for core."""
    kind = turn.config.layout.as_
    if kind in KINDS:
        return (yield from reword(turn, kind, lambda told: staying(turn, copies, told)))
    if kind == "core" and first is not None:
        return (yield from _core(turn, first))
    if kind == "core":
        yield ev.Notice("core: without a first reading every document is repeated.", "warning")
    return None


def staying(turn: Turn, copies: int, told: Mapping[str, str]) -> Set[str]:
    """The passages that the window keeps in the prompt that comes next, if the repeated copies say this."""
    thinks = turn.config.layout.cot and turn.config.layout.repeat != "auto"  # auto asks for the short answer first
    layout = (thinking_layout if thinks else answer_layout)(turn, copies, told)
    model, room = turn.parts.model, thinking_room(turn) if thinks else answer_room(turn)
    fitted = fit(layout, turn.hop, turn.history, model.count, Budget(model.window, room))
    return {passage.id for passage in fitted.hop.passages}


def _core(turn: Turn, first: Probe) -> Generator[Event, None, Mapping[str, str] | None]:
    passages = turn.hop.passages
    short = extract_short(f"Answer: {first.draft.text}")
    holding = {p.id for p in passages if citable(short) and locate(short, p.read)}
    shares: tuple[float, ...] = ()
    tokens = answer_tokens(first.draft)
    if Signal.ATTENTION in turn.parts.model.provides and tokens:
        span = Span(tokens[0].index, tokens[-1].index + 1)
        shares = attention_shares(turn.ask.attention(first.prompt, first.draft, span, kind="attention"), len(passages))
        yield from turn.ask.drain()
    attended = {p.id: share for p, share in zip(passages, shares, strict=False) if share > 1 / len(passages)}
    used = {p.id: p.read for p in passages if p.id in holding or p.id in attended}
    if not used:
        yield ev.Notice("core: the first reading shows no passage that it used; every document is repeated.")
        return None
    why = "; ".join(_reason(p, p.id in holding, attended.get(p.id)) for p in passages if p.id in used)
    yield ev.Notice(
        f"core: {len(used)} of {len(passages)} documents are repeated, those that the first reading used: {why}."
    )
    return used


def _reason(passage: Passage, holds: bool, share: float | None) -> str:
    reasons = ["holds the short answer"] * holds + ([] if share is None else [f"{share:.0%} of the attention"])
    return f"{clean_line(passage.name or passage.id, 40)} ({', '.join(reasons)})"


def attention_shares(pieces: Sequence[Piece], passages: int) -> tuple[float, ...]:
    """Each passage's share of the attention paid to all passages, in the order in which they stand; sums to 1.

    Passages are told apart by the words between them. () if there is no attention on passages, or their number is not the expected one.
    """
    masses = [
        sum(piece.weight for piece in run)
        for of_passage, run in groupby(pieces, key=lambda piece: piece.origin == "passage")
        if of_passage
    ]
    total = sum(masses)
    return tuple(mass / total for mass in masses) if len(masses) == passages and total > 0 else ()

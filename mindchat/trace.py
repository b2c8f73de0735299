"""What a stream of events says: fold(trace, event) -> trace, and the report made from a finished trace.

Owns: Trace and its parts, fold, report (the shape of `ask --json`), what steps are called, how missing
names and pages are told. Does not own: rendering, storage, metrics.
Screens, the command line and the evaluation all read a Trace; none of them keeps state from events by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.events import Event
from mindchat.text.clean import clean_line
from mindchat.values import (
    Absent,
    Answer,
    Citation,
    Cut,
    Fact,
    Filled,
    Found,
    Kept,
    Passage,
    Relation,
    Sifted,
    Token,
    Verdict,
    foreign_id,
)

State = Literal["waiting", "running", "answered", "failed", "cancelled"]
STEPS = {
    "start": "starting",
    "trigger": "looking it up",
    "extract": "finding entities",
    "filter": "filtering entities",
    "query": "writing the sub-query",
    "recall": "asking memory",
    "search": "searching",
    "rewrite": "reading the question",
    "judge": "weighing the sentence",
    "choose": "choosing among the passages' words",
    "learn": "remembering",
    "chain": "following the names",
    "prefill": "reading",
    "reasoning": "reasoning",
    "answer": "answering",
    "explain": "writing it out",
    "more": "going on",
}
"""Steps and phases → words for people."""


VERDICTS = {
    "sourced": "sourced",
    "doubtful": "doubtful",
    "unresolved": "unresolved",
    "not_in_documents": "not in your documents",
}
"""Answer.verdict → words for people."""
CANNOT_TELL = "this model cannot tell; check the source"


def verdict_words(answer: Answer) -> str:
    """The verdict, what it rests on, and how often such answers are right if that is known for the model."""
    said = VERDICTS[answer.verdict]
    if answer.abstained:
        return said
    return (
        f"{said} · about {round(10 * answer.trust.p)} of 10 such answers are right"
        if answer.trust
        else f"{said} · {CANNOT_TELL}"
    )


def cut_words(answer: Answer) -> str:
    """What is said of an answer that a limit ended; "" for one that came to its own end."""
    return f"cut after {answer.cut_after} tokens; /more goes on" if answer.cut else ""


def phase_words(phase: str) -> str:
    """What a step or a phase ("prefill answer") is called before people; "" if it has no words."""
    return STEPS.get(phase.partition(" ")[0], "")


def absent_words(absent: Absent) -> str:
    """A missing name in a sentence for people, with the nearest names that exist; one line, not cleaned for a screen."""
    near = ", ".join(f"“{name}”" for name in absent.near)
    return f"No document names “{absent.name}”." + (f" Near: {near}." if near else "")


def slot_words(slot: Filled) -> str:
    """A filled slot before people, not cleaned for a screen: “Metropolis – director: Fritz Lang”."""
    return f"{slot.subject} – {slot.phrase}: {slot.value}"


def page_words(page: int | None) -> str:
    """A page as it follows the place of a passage; "" without pages."""
    return "" if page is None else f", page {page}"


class SentenceView(Struct, frozen=True):
    """One judged sentence."""

    text: str
    verdict: Verdict
    hop: int
    accepted: bool = False
    retracted: str = ""
    """What was withdrawn of it; "" if nothing."""
    tokens: tuple[Token, ...] = ()
    received: tuple[float, ...] = ()


class HopView(Struct, frozen=True):
    """One retrieval hop."""

    n: int
    trigger: ev.RetrievalTriggered | None = None
    extracted: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    fallback: bool = False
    filter: str = ""
    sifted: tuple[Sifted, ...] = ()
    rescued: bool = False
    subquery: str = ""
    by: str = ""
    repeated: bool = False
    facts: tuple[Fact, ...] = ()
    passages: tuple[Passage, ...] = ()
    fresh: int = 0
    skipped: bool = False
    searched: bool = False
    """Whether the index was asked."""
    why: str = ""
    slots: tuple[Filled, ...] = ()
    """Relations that were read from what this hop brought."""


class Trace(Struct, frozen=True):
    """Everything known about one turn so far."""

    started: ev.TurnStarted | None = None
    state: State = "waiting"
    phase: str = ""
    loading: ev.ModelLoading | None = None
    prefill: ev.PromptPrefilled | None = None
    drafting: tuple[Token, ...] = ()
    """Tokens on screen that are neither accepted nor retracted."""
    channel: str = "reasoning"
    received: tuple[float, ...] = ()
    reasoning: str = ""
    answer_text: str = ""
    """Answer words as they stream; the final form is in `answer`."""
    answer_tokens: tuple[Token, ...] = ()
    """The tokens of the accepted answer with their entropies; empty if the answer was picked from the passages instead.
    """
    newest_tokens: tuple[Token, ...] = ()
    """Those of them that continue the newest prompt."""
    before_prompt: int = 0
    """How many tokens were being drafted when the newest prompt was sent."""
    sentences: tuple[SentenceView, ...] = ()
    absent: tuple[Absent, ...] = ()
    """Names of the question that no document has."""
    hops: tuple[HopView, ...] = ()
    slots: tuple[Filled, ...] = ()
    """Relations of the question that were read from sentences, in order."""
    evidence: ev.EvidenceChosen | None = None
    contexts: tuple[ev.PromptBuilt, ...] = ()
    dropped: tuple[ev.DocumentDropped, ...] = ()
    calls: tuple[ev.ModelAsked, ...] = ()
    learned: tuple[ev.FactLearned, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()
    withdrawn: tuple[Fact, ...] = ()
    notices: tuple[ev.Notice, ...] = ()
    kept_tokens: int = 0
    discarded_tokens: int = 0
    answer: Answer | None = None
    stop: str = ""
    seconds: float = 0.0
    first_token_seconds: float = 0.0
    failed: ev.TurnFailed | None = None

    @property
    def draft_text(self) -> str:
        """Words being drafted now."""
        return "".join(token.text for token in self.drafting)

    @property
    def question(self) -> str:
        """As the user typed it."""
        return self.started.question if self.started else ""

    @property
    def rewritten(self) -> str:
        """The standalone form that was asked in the question's place; "" if it was asked as typed."""
        return self.started.standalone if self.started and self.started.standalone != self.started.question else ""

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Every passage found in this turn, first found first, without repeats."""
        seen: dict[str, Passage] = {}
        for hop in self.hops:
            for passage in hop.passages:
                seen.setdefault(passage.id, passage)
        return tuple(seen.values())

    def source(self, citation: Citation) -> Passage | None:
        """The found passage that a citation stands in."""
        return next((passage for passage in self.passages if passage.id == citation.passage), None)

    @property
    def context(self) -> ev.PromptBuilt | None:
        """The newest prompt."""
        return self.contexts[-1] if self.contexts else None


def _hop(trace: Trace, **changes: Any) -> Trace:
    """Change the running hop; a hop without trigger (before the first word) is opened on the way."""
    hops = trace.hops or (HopView(0),)
    return replace(trace, hops=(*hops[:-1], replace(hops[-1], **changes)))


def _slot(trace: Trace, slot: Filled) -> Trace:
    """A filled slot stands at the hop that brought its passage."""
    at = next((n for n, hop in enumerate(trace.hops) if any(p.id == slot.passage for p in hop.passages)), -1)
    hops = tuple(
        replace(hop, slots=(*hop.slots, slot)) if n == at % max(1, len(trace.hops)) else hop
        for n, hop in enumerate(trace.hops)
    )
    return replace(trace, hops=hops, slots=(*trace.slots, slot))


def _sentence(trace: Trace, **changes: Any) -> Trace:
    if not trace.sentences:
        return trace
    return replace(trace, sentences=(*trace.sentences[:-1], replace(trace.sentences[-1], **changes)))


def _retracted(trace: Trace, event: ev.TextRetracted) -> Trace:
    trace = _sentence(trace, retracted=event.text)
    reasoning = trace.reasoning + event.kept
    return replace(trace, drafting=(), reasoning=reasoning, discarded_tokens=trace.discarded_tokens + event.tokens)


def _accepted(trace: Trace, event: ev.DraftAccepted) -> Trace:
    kept = trace.kept_tokens + event.tokens
    if event.channel == "answer":
        words = trace.drafting if event.tokens else ()  # none: other words than the drafted ones became the answer
        newest, text = words[trace.before_prompt :], trace.answer_text + event.text
        return replace(
            trace,
            drafting=(),
            answer_tokens=words,
            newest_tokens=newest,
            before_prompt=0,
            answer_text=text,
            kept_tokens=kept,
        )
    judged = (
        trace.sentences[-1:] and trace.sentences[-1].text == event.text
    )  # thinking before the answer is accepted without a verdict
    return replace(
        _sentence(trace, accepted=True) if judged else trace,
        drafting=(),
        reasoning=trace.reasoning + event.text,
        kept_tokens=kept,
    )


def _opened(trace: Trace, number: int, trigger: ev.RetrievalTriggered | None) -> Trace:
    return replace(trace, hops=(*trace.hops, HopView(number, trigger=trigger)), phase="trigger")


def fold(trace: Trace, event: Event) -> Trace:
    """The trace after one more event. Pure; the input stays as it is."""
    match event:
        case ev.TurnStarted():
            return replace(trace, started=event, state="running", phase="start")
        case ev.QuestionRewritten():
            return replace(trace, started=trace.started and replace(trace.started, standalone=event.standalone))
        case ev.NamesAbsent():
            return replace(trace, absent=event.absent)
        case ev.ModelLoading():
            return replace(trace, loading=event, phase=event.phase)
        case ev.StepStarted():
            return replace(trace, phase=event.step)
        case ev.PromptBuilt():
            return replace(
                trace,
                contexts=(*trace.contexts, event),
                phase=f"prefill {event.purpose}",
                prefill=None,
                before_prompt=len(trace.drafting),
            )
        case ev.DocumentsDropped():
            return replace(trace, dropped=(*trace.dropped, *event.dropped))
        case ev.PromptPrefilled():
            return replace(trace, prefill=event)
        case ev.TokenDrafted():
            return replace(trace, drafting=(*trace.drafting, event.token), channel=event.channel, phase=event.channel)
        case ev.AttentionSettled():
            return replace(trace, received=event.received)
        case ev.SentenceJudged():
            view = SentenceView(
                event.sentence, event.verdict, event.hop, tokens=trace.drafting, received=trace.received
            )
            return replace(trace, sentences=(*trace.sentences, view))
        case ev.TextRetracted():
            return _retracted(trace, event)
        case ev.RetrievalTriggered():
            return _opened(trace, event.hop, event)
        case ev.EntitiesExtracted():
            return _hop(trace, extracted=event.entities, relations=event.relations, fallback=event.fallback)
        case ev.EntitiesFiltered():
            return _hop(trace, filter=event.filter, sifted=event.sifted, rescued=event.rescued)
        case ev.QueryFormed():
            opened = trace if trace.hops and trace.hops[-1].n == event.hop else _opened(trace, event.hop, None)
            return _hop(opened, subquery=event.query.text, by=event.query.by, repeated=event.repeated)
        case ev.FactsRecalled():
            return _hop(trace, facts=event.facts, why=event.why)
        case ev.SearchSkipped():
            return _hop(trace, passages=event.passages, skipped=True, why=event.why)
        case ev.PassagesFound():
            return _hop(trace, passages=event.passages, fresh=event.fresh, searched=True)
        case ev.EvidenceChosen():
            return replace(trace, evidence=event)
        case ev.SlotFilled():
            return _slot(trace, event.slot)
        case ev.FactsLearned():
            return replace(trace, learned=(*trace.learned, *event.learned), refused=(*trace.refused, *event.refused))
        case ev.FactsWithdrawn():
            return replace(trace, withdrawn=(*trace.withdrawn, *event.facts))
        case ev.DraftAccepted():
            return _accepted(trace, event)
        case ev.ModelAsked():
            return replace(trace, calls=(*trace.calls, event))
        case ev.Notice():
            return replace(trace, notices=(*trace.notices, event))
        case ev.AnswerReady():
            ended = replace(trace, answer=event.answer, stop=event.stop, state="answered", phase="done", drafting=())
            return replace(ended, seconds=event.seconds, first_token_seconds=event.first_token_seconds)
        case ev.TurnFailed():
            return replace(trace, failed=event, state="failed", phase="failed")
        case ev.TurnCancelled():
            return replace(trace, state="cancelled", phase="cancelled")


def fold_all(events: Iterable[Event]) -> Trace:
    """The trace of a whole stream."""
    trace = Trace()
    for event in events:
        trace = fold(trace, event)
    return trace


def cut_of(trace: Trace) -> Cut | None:
    """What going on with the turn's answer takes; None if no limit ended it."""
    started, context, answer = trace.started, trace.context, trace.answer
    if started is None or context is None or answer is None or not answer.cut:
        return None
    known = {passage.id: passage for passage in trace.passages}
    read = tuple(known[id] for id in (context.copies[0] if context.copies else ()) if id in known)
    kept = Kept(tuple(token.id for token in trace.newest_tokens), "".join(token.text for token in trace.newest_tokens))
    return Cut(
        started.question, started.standalone, context.prompt, kept, trace.answer_text, answer, read, started.model
    )


def counts(trace: Trace) -> dict[str, Any]:
    """The object `counts` of `ask --json`. `generated_discarded` are retracted tokens; tokens of side calls are in
    `generated_side`.
    """
    calls = Counter(call.kind for call in trace.calls)
    generated = sum(call.generated for call in trace.calls)
    return {
        "retrievals": sum(1 for hop in trace.hops if hop.searched),
        "memory_hits": sum(1 for hop in trace.hops if hop.facts),
        "retrievals_skipped": sum(1 for hop in trace.hops if hop.skipped),
        "model_calls": dict(sorted(calls.items())),
        "prompt_tokens_new": sum(call.prompt_tokens_new for call in trace.calls),
        "prompt_tokens_cached": sum(call.prompt_tokens_cached for call in trace.calls),
        "generated_kept": trace.kept_tokens,
        "generated_discarded": trace.discarded_tokens,
        "generated_side": max(0, generated - trace.kept_tokens - trace.discarded_tokens),
        "sentences": len(trace.sentences),
        "triggers": sum(1 for hop in trace.hops if hop.trigger is not None),
        "extraction_fallbacks": sum(1 for hop in trace.hops if hop.fallback),
        "entities_rescued": sum(1 for hop in trace.hops if hop.rescued),
    }


def _hop_report(hop: HopView) -> dict[str, Any]:
    trigger = hop.trigger
    return {
        "n": hop.n,
        "subquery": hop.subquery,
        "by": hop.by,
        "trigger": (
            None
            if trigger is None
            else {
                "word": trigger.word,
                "score": trigger.score,
                "threshold": trigger.threshold,
                "entropy": trigger.entropy,
                "attention": trigger.attention,
                "reason": trigger.reason,
            }
        ),
        "entities": [
            {"text": s.entity.text, "confidence": s.entity.confidence, "kept": s.kept, "why": s.why} for s in hop.sifted
        ],
        "relations": [msgspec.to_builtins(relation) for relation in hop.relations],
        "passages": [foreign_id(passage) for passage in hop.passages],
        "found": [found_report(passage) for passage in hop.passages if passage.found is not None],
        "memory": [fact.id for fact in hop.facts],
        "skipped": hop.skipped,
        "repeated": hop.repeated,
    }


def found_report(passage: Passage) -> dict[str, Any]:
    """Why a passage was found, as `ask --json` prints it."""
    found = passage.found or Found()
    return {"passage": foreign_id(passage), "by": found.by, "name": found.name, "from": found.source}


def found_words(passage: Passage, shown: Sequence[Passage], title: str = "") -> str:
    """Why a passage was found, where its own words did not bring it, else "": “named in [1]: Fritz Lang”, “near in
    meaning”.

    The number is a place among those shown; a source that is not there is told by its title.
    """
    found = passage.found
    if found is not None and found.by == "dense":
        return "near in meaning"
    if found is None or found.by != "link":
        return ""
    place = next((f"[{n}]" for n, other in enumerate(shown, 1) if other.id == found.source), title or "another passage")
    return f"named in {place if found.source is not None else 'the question'}: {clean_line(found.name, 60)}"


def _citation_report(trace: Trace, citation: Citation) -> dict[str, Any]:
    source = trace.source(citation)
    return {**msgspec.to_builtins(citation), "page": source.page if source is not None else None}


def _layout_report(started: ev.TurnStarted) -> dict[str, Any]:
    repeat = started.repeat if started.repeat >= 0 else "auto"
    return {"repeat": repeat, "role": started.role, "as": started.as_, "cot": started.cot}


def _context_report(trace: Trace) -> dict[str, Any]:
    """The newest prompt: passages of each copy, their places (from 1) in each copy, what was left out, and how much of
    it was computed anew.
    """
    context, prefill = trace.context, trace.prefill
    copies = context.copies if context else ()
    passages = dict.fromkeys(passage for copy in copies for passage in copy)
    return {
        "copies": [list(copy) for copy in copies],
        "positions": {
            passage: [copy.index(passage) + 1 if passage in copy else None for copy in copies] for passage in passages
        },
        "dropped": [{"passage": d.passage, "why": d.why} for d in trace.dropped],
        "tokens": context.tokens if context else 0,
        "tokens_new": prefill.total - prefill.cached if prefill else 0,
        "tokens_cached": prefill.cached if prefill else 0,
        "window": context.window if context else 0,
    }


def _evidence_report(trace: Trace) -> dict[str, Any]:
    """Where the sentences stand that the prompt held of its passages ([]: they stood there whole), and what the search
    alone said of the question.
    """
    chosen = trace.evidence
    answerable = chosen.answerable if chosen else None
    return {
        "evidence": [msgspec.to_builtins(stretch) for stretch in chosen.evidence] if chosen else [],
        "answerable": {"p": round(answerable.p, 4), "enough": answerable.enough} if answerable else None,
    }


def report(trace: Trace) -> dict[str, Any]:
    """The object of `ask --json`. Only "timing" may differ between two equal runs."""
    started, answer = trace.started, trace.answer
    shown = {
        "question": trace.question,
        "standalone": started.standalone if started else "",
        "answer": answer.text if answer else trace.answer_text,
        "short": answer.short if answer else "",
        "abstained": answer.abstained if answer else False,
        "verdict": answer.verdict if answer else None,
        "trust": msgspec.to_builtins(answer.trust) if answer else None,
        "confidence": answer.confidence if answer else None,
        "cut": answer.cut if answer else False,
        "unsupported": answer.unsupported if answer else 0,
        "why": answer.why if answer else "",
        "reasoning": trace.reasoning,
        "citations": [_citation_report(trace, c) for c in answer.citations] if answer else [],
        "model": started.model if started else "",
        "policy": started.policy if started else "",
        "filter": started.filter if started else "",
        "layout": _layout_report(started) if started else {},
        "absent": [{"name": item.name, "near": list(item.near)} for item in trace.absent],
        "hops": [_hop_report(hop) for hop in trace.hops],
        "context": _context_report(trace),
        **_evidence_report(trace),
        "slots": [msgspec.to_builtins(slot) for slot in trace.slots],
        "learned": [{"id": item.fact.id, "new": item.new} for item in trace.learned],
        "counts": counts(trace),
        "timing": {
            "first_token": trace.first_token_seconds,
            "total": trace.seconds,
            "model": sum(call.seconds for call in trace.calls),
        },
        "stop": trace.stop,
        "seed": started.seed if started else 0,
        "versions": started.versions if started else {},
    }
    if trace.failed:
        failed = trace.failed
        return {"error": {"code": failed.code, "message": failed.message, "hint": failed.hint}, "partial": shown}
    return shown

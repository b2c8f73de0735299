"""What a turn looks like to somebody who watches it in a terminal: notes and a progress line on standard error.

Owns: one sentence per event. Does not own: the answer (ask.py prints it) or the state of a turn (mindchat.trace).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from mindchat import events as ev
from mindchat.cli.output import Narrator, megabytes, meter, plural
from mindchat.events import Event
from mindchat.ports import TellsRepairs
from mindchat.text.clean import clean_line
from mindchat.trace import absent_words, cut_words, found_words, phase_words, slot_words, verdict_words

FETCHING = ("downloading", "joining", "converting")
"""Phases of loading that may take minutes, and are announced also where no progress line can be drawn."""


class TurnNarrator:
    """Tells one turn as it happens; `detailed` adds every judgement, prompt and model call."""

    def __init__(self, narrator: Narrator, *, detailed: bool = False, foreseen: Sequence[str] = ()) -> None:
        self._out, self._foreseen = narrator, foreseen
        self._began = time.monotonic()
        self._draft = ""
        self._phase = ""
        self._telling: dict[type[Any], Callable[[Any], None]] = {
            ev.ModelLoading: self._loading,
            ev.TurnStarted: self._started,
            ev.NamesAbsent: self._absent,
            ev.QuestionRewritten: lambda event: self._out.note(f"asked as: {clean_line(event.standalone)}"),
            ev.StepStarted: self._step,
            ev.PromptPrefilled: self._prefilled,
            ev.TokenDrafted: self._token,
            ev.DraftAccepted: self._accepted,
            ev.TextRetracted: self._retracted,
            ev.RetrievalTriggered: self._triggered,
            ev.QueryFormed: self._query,
            ev.FactsRecalled: self._recalled,
            ev.SearchSkipped: self._skipped,
            ev.PassagesFound: self._found,
            ev.EvidenceChosen: self._evidence,
            ev.SlotFilled: lambda event: self._out.note(f"read: {clean_line(slot_words(event.slot), 200)}"),
            ev.DocumentsDropped: self._dropped,
            ev.FactsLearned: self._learned,
            ev.FactsWithdrawn: self._withdrawn,
            ev.Notice: lambda event: self._out.warn(clean_line(event.text)),
            ev.AnswerReady: self._ready,
        }
        if detailed:
            self._telling |= {
                ev.PromptBuilt: self._prompt,
                ev.SentenceJudged: self._judged,
                ev.EntitiesExtracted: self._extracted,
                ev.EntitiesFiltered: self._filtered,
                ev.ModelAsked: self._asked,
            }

    def tell(self, event: Event) -> None:
        """Say what this event means, if it means something to a reader."""
        if isinstance(event, ev.LAST):
            self._out.clear()
        if (say := self._telling.get(type(event))) is not None:
            say(event)

    def _loading(self, event: ev.ModelLoading) -> None:
        if event.phase != self._phase:
            self._phase, self._began = event.phase, time.monotonic()
            if event.phase in FETCHING:
                size = f" ({megabytes(event.total)})" if event.total > 1_000_000 else ""
                self._out.note(f"model: {event.phase}{size} …")
        unit = "B" if event.total > 1_000_000 else ""
        self._out.progress(f"model: {event.phase} {meter(event.done, event.total, self._began, unit)}")

    def _started(self, _: ev.TurnStarted) -> None:
        for line in self._foreseen:
            self._out.note(line)

    def _absent(self, event: ev.NamesAbsent) -> None:
        for item in event.absent:
            self._out.warn(clean_line(absent_words(item), 400))

    def _step(self, event: ev.StepStarted) -> None:
        hop = f"hop {event.hop}: " if event.hop else ""
        self._out.progress(f"{hop}{phase_words(event.step) or event.step} …")

    def _prefilled(self, event: ev.PromptPrefilled) -> None:
        cached = f" ({event.cached:,} known)" if event.cached else ""
        self._out.progress(f"reading {event.done:,} of {event.total:,} tokens{cached}")

    def _token(self, event: ev.TokenDrafted) -> None:
        self._draft += event.token.text
        self._out.progress(f"… {clean_line(self._draft)[-60:]}")

    def _accepted(self, event: ev.DraftAccepted) -> None:
        self._draft = ""
        if event.channel == "reasoning" and event.text.strip():
            self._out.note(f"thinks: {clean_line(event.text)}")

    def _retracted(self, event: ev.TextRetracted) -> None:
        self._draft = ""
        if event.text.strip():
            self._out.note(f"withdrawn: {clean_line(event.text, 160)}")

    def _triggered(self, event: ev.RetrievalTriggered) -> None:
        why = clean_line(event.reason)
        if event.score is not None and event.threshold is not None:
            why = f"unsure about “{clean_line(event.word, 60)}” ({event.score:.2f} > {event.threshold:.2f})"
        self._out.note(f"hop {event.hop}: {why}")

    def _query(self, event: ev.QueryFormed) -> None:
        again = " (asked before)" if event.repeated else ""
        self._out.note(f"hop {event.hop}: searching for {clean_line(event.query.text, 160)}{again}")

    def _recalled(self, event: ev.FactsRecalled) -> None:
        for fact in event.facts:
            self._out.note(f"memory: {fact.id}  {fact_line(fact)}")

    def _skipped(self, event: ev.SearchSkipped) -> None:
        self._out.note(f"search skipped: {clean_line(event.why)}; read instead, from where it was learned:")
        for passage in event.passages:
            self._out.note(f"  {clean_line(passage.name or passage.document, 60)}: “{clean_line(passage.text, 200)}”")

    def _found(self, event: ev.PassagesFound) -> None:
        reasons = [found_words(passage, event.passages) for passage in event.passages]
        titles = ", ".join(
            f"[{n}] " * any(reasons) + clean_line(passage.name or passage.document, 40) + f" ({why})" * bool(why)
            for n, (passage, why) in enumerate(zip(event.passages, reasons, strict=True), 1)
        )
        self._out.note(
            f"found {plural(len(event.passages), 'passage')}, {event.fresh} new: {titles}"
            if event.passages
            else "found nothing"
        )

    def _evidence(self, event: ev.EvidenceChosen) -> None:
        if event.evidence:
            self._out.note(f"reads {event.words:,} of the passages' {event.of:,} words")
        if event.answerable is not None and not event.answerable.enough:
            self._out.note(f"the search found little that answers it ({event.answerable.p:.2f})")

    def _dropped(self, event: ev.DocumentsDropped) -> None:
        for dropped in event.dropped:
            self._out.note(f"left out: {clean_line(dropped.passage, 60)} ({clean_line(dropped.why)})")

    def _learned(self, event: ev.FactsLearned) -> None:
        for item in event.learned:
            unsure = "" if item.fact.status == "active" else f" as {item.fact.status}, not used yet"
            if item.new:
                self._out.warn(
                    f"saved {item.fact.id}{unsure}  {fact_line(item.fact)}   (mindchat memory undo · mindchat memory"
                    f" show {item.fact.id})"
                )
            else:
                self._out.note(f"confirmed {item.fact.id}{unsure}  {fact_line(item.fact)}")

    def _withdrawn(self, event: ev.FactsWithdrawn) -> None:
        for fact in event.facts:
            self._out.warn(f"withdrawn {fact.id}  {fact_line(fact)}: {clean_line(event.why)}")

    def _ready(self, event: ev.AnswerReady) -> None:
        why = f" ({clean_line(event.answer.why)})" if event.answer.why else ""
        self._out.note(f"{verdict_words(event.answer)}{why}")
        if event.answer.cut:
            self._out.warn(f"{cut_words(event.answer)} (mindchat chat -c)")

    def _prompt(self, event: ev.PromptBuilt) -> None:
        copies = " + ".join(str(len(copy)) for copy in event.copies) or "no"
        self._out.note(f"prompt ({event.purpose}): {event.tokens:,} of {event.window:,} tokens, {copies} passages")

    def _judged(self, event: ev.SentenceJudged) -> None:
        verdict = event.verdict
        self._out.note(f"judged by {event.policy}: {clean_line(event.sentence)}")
        if verdict.threshold is not None:
            terms = ", ".join(f"{name} {value:.3f}" for name, value in verdict.terms)
            self._out.note(
                f"  threshold {verdict.threshold:.3f} = {clean_line(verdict.formula)}"
                + (f" ({terms})" if terms else "")
            )
        for word in sorted((word for word in verdict.words if word.content), key=lambda word: -word.score)[:3]:
            factors = "  ".join(
                f"{name} {value:.3f}"
                for name, value in (("H", word.entropy), ("a", word.attention))
                if value is not None
            )
            self._out.note(f"  {word.score:8.3f}  {clean_line(word.text, 40)}  {factors}")

    def _extracted(self, event: ev.EntitiesExtracted) -> None:
        how = " (fallback: the model's list could not be read)" if event.fallback else ""
        self._out.note(f"named{how}: {'; '.join(clean_line(name, 60) for name in event.entities) or 'nothing'}")

    def _filtered(self, event: ev.EntitiesFiltered) -> None:
        for sifted in event.sifted:
            confidence = "" if sifted.entity.confidence is None else f" {sifted.entity.confidence:.2f}"
            verb = "kept" if sifted.kept else "dropped"
            self._out.note(f"  {verb}{confidence}  {clean_line(sifted.entity.text, 60)}: {clean_line(sifted.why)}")

    def _asked(self, event: ev.ModelAsked) -> None:
        read = f"{event.prompt_tokens_new:,} new and {event.prompt_tokens_cached:,} known tokens read"
        self._out.note(f"model call ({event.kind}): {read}, {event.generated:,} written, {event.seconds:.2f} s")


def tell_notices(source: TellsRepairs) -> None:
    """Say what a store or index repaired or found damaged."""
    for text in source.take_notices():
        Narrator().warn(clean_line(text, 400))


def fact_line(fact: Any) -> str:
    """Subject, predicate and object on one line."""
    return clean_line(f"{fact.subject} — {fact.predicate} — {fact.object}", 120)

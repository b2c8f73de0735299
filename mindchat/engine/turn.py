"""The steps of one turn; each yields events and returns its result.

Owns: the state of a turn (the hop, what is accepted, what memory may learn) and the order of its steps. Does not own:
decisions or wording.
Reading order: run, reason, mend, make_hop; searches are engine.search_steps, the answer is engine.answer_steps.
Source: MIND §3.2-3.4; CoRe Tables 4 and 11 for the final answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.config import Config
from mindchat.engine import answer_steps, chain_steps, follow_up, full, refusal
from mindchat.engine.budget import Fitted, Layout, fit, recent
from mindchat.engine.drafting import UNFINISHED, SentenceStream, beginning, joined
from mindchat.engine.metered_model import MeteredAsk
from mindchat.engine.search_steps import look_up, missing_names
from mindchat.engine.thoughts import Thoughts
from mindchat.errors import DeadlineError, Interrupted
from mindchat.events import Event
from mindchat.ports import Basis, Cancel
from mindchat.prompts.core import copies_of
from mindchat.prompts.side import rewrite_prompt
from mindchat.text.clean import clean, clean_line
from mindchat.text.language import language
from mindchat.values import (
    Absent,
    Answer,
    Answerable,
    Budget,
    Cut,
    Draft,
    Entity,
    Finish,
    Harvest,
    Passage,
    Prompt,
    Query,
    Relation,
    Signal,
    Sought,
    Trigger,
    TurnState,
)

if TYPE_CHECKING:
    from mindchat.engine.loop import Parts

_log = logging.getLogger(__name__)
EMPTY = Draft("")
REWRITE_TOKENS = 48


class Turn:
    """One question on its way to an answer."""

    def __init__(
        self,
        parts: Parts,
        config: Config,
        question: str | Sought,
        history: Sequence[tuple[str, str]],
        cancel: Cancel,
        started: float,
    ) -> None:
        self.parts, self.config, self.cancel, self.started = parts, config, cancel, started
        self.words = language(config.engine.language)
        self.ask = MeteredAsk(parts.model, cancel, config.engine.seed, self.trial)
        self.sought = question if isinstance(question, Sought) else Sought(question, "question")
        """What must hold of what is searched."""
        self.question = clean(self.sought.text).strip()
        self.history = list(history)
        self.hop = TurnState(0, self.question, passages=parts.given, seed=config.engine.seed)
        self.kept: list[Draft] = []
        """Accepted drafts, in order; their ids are continued, never tokenised again."""
        self.prefix = EMPTY
        """The clean beginning of the sentence that is being written again."""
        self.thoughts = Thoughts()
        self.redrafting = False
        """Whether the sentence at hand is being written again."""
        self.pending: tuple[str, tuple[Passage, ...]] | None = None
        """Sub-query and passages of the newest hop, until a sentence answers it."""
        self.harvests: list[Harvest] = []
        self.stream: SentenceStream | None = None
        self.stream_started = started
        self.stop = "answered"
        self.fruitless = 0
        self.basis: Basis = "both"
        self.dropped = False
        """Whether a sentence was withdrawn for good: then the answer rests on the passages alone."""
        self.answerable: Answerable | None = None
        """What the search alone says of the question, once the evidence is chosen."""
        self.rarity_known = False
        """Whether it was judged with the counts of words that its fit is for."""
        self.absent: tuple[Absent, ...] = ()
        """Names of the question that no document has."""
        self.as_typed = False
        """Whether a follow-up keeps its words."""
        self.phase = "start"
        self.answer_words = ""
        self.first_token: float | None = None

    @property
    def partial(self) -> str:
        """What a reader has so far."""
        return self.answer_words or self.hop.accepted

    def close(self) -> None:
        """Stop a running generation."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    # ── the turn ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> Iterator[Event]:
        """All steps in order."""
        yield self.opened(self.question)
        yield from self.look_back()
        yield from self.rewrite()
        yield from missing_names(self)
        answer = refusal.names_missing(self) or (yield from self.answered_from_documents())
        yield from self.learn()
        now = time.monotonic()
        yield ev.AnswerReady(answer, self.stop, now - self.started, (self.first_token or now) - self.started)

    def answered_from_documents(self) -> Generator[Event, None, Answer]:
        """Search, reason, answer; or what sentences say slot by slot, where code can follow the question."""
        if (read := (yield from chain_steps.remembered(self))) is not None:
            return read
        yield from self.begin()
        if (read := (yield from chain_steps.answered(self))) is not None:
            return read
        if self.parts.policy.reasons:
            yield from self.reason()
        return (yield from answer_steps.answer(self))

    def more(self, cut: Cut) -> Iterator[Event]:
        """Nothing but the rest of an answer that was cut."""
        yield self.opened(cut.standalone)
        answer = yield from full.more(self, cut)
        now = time.monotonic()
        yield ev.AnswerReady(answer, self.stop, now - self.started, (self.first_token or now) - self.started)

    def opened(self, standalone: str) -> Event:
        """The turn's settings."""
        layout, engine, parts = self.config.layout, self.config.engine, self.parts
        repeat = layout.repeat if isinstance(layout.repeat, int) else -1
        names = (parts.model.id, parts.policy.name, engine.filter)
        return ev.TurnStarted(
            self.question, standalone, *names, repeat, layout.role, layout.as_, layout.cot, engine.seed, parts.versions
        )

    def step(self, name: str) -> Event:
        """Announce a step; the phase is named when the turn is cancelled."""
        self.cancel.check()
        self.phase = name
        return ev.StepStarted(name, self.hop.number)

    def look_back(self) -> Iterator[Event]:
        """As much of the conversation as its allowance admits; what is left out is shown."""
        engine = self.config.engine
        self.history, dropped = recent(self.history, self.ask.count, engine.history_turns, engine.history_tokens)
        if dropped:
            yield ev.DocumentsDropped(dropped)

    def rewrite(self) -> Iterator[Event]:
        """A follow-up becomes a question that stands alone; the history is then no longer needed by retrieval."""
        if self.as_typed or not (
            self.config.engine.rewrite and self.history and follow_up.leans(self.question, self.words)
        ):
            return
        yield self.step("rewrite")
        standalone = follow_up.standalone(self.question, self.history, self.words)
        if standalone is None:
            reply = self.ask.complete(
                rewrite_prompt(self.history, self.question), max_tokens=REWRITE_TOKENS, kind="rewrite", stop=("\n",)
            )
            yield from self.ask.drain()
            said = clean_line(reply.text)
            fits = reply.finish is not Finish.LENGTH and follow_up.fits(said, self.question, self.history, self.words)
            standalone = said if fits else follow_up.last_resort(self.question, self.history, self.words)
        if standalone.casefold() != self.question.casefold():
            self.hop = replace(self.hop, question=standalone)
            yield ev.QuestionRewritten(standalone)

    def begin(self) -> Iterator[Event]:
        """The search before the first word, for policies that have one."""
        query = self.parts.policy.before(self.hop, self.ask)
        yield from self.ask.drain()
        if query is not None:
            self.hop = replace(self.hop, number=1)
            yield ev.QueryFormed(query, 1)
            yield from look_up(self, query)

    # ── reasoning ────────────────────────────────────────────────────────────────────────────────────────────────────

    def reason(self) -> Iterator[Event]:
        """Sentence by sentence: draft, judge, then accept it, make a hop, or end where a sentence must not stand."""
        limits, used = self.config.engine, 0
        while True:
            long = len(self.hop.sentences) >= limits.max_sentences and not self.parts.policy.tokens
            if long or used >= limits.reasoning_tokens:
                self.stop = "budget"
                break
            draft = yield from self.draft()
            if draft is None or not draft.text.strip():
                self.stop = self.stop if self.hop.sentences else "empty_step"
                break
            used += len(draft.tokens)
            if (visible := self.thoughts.visible(draft.text)) != draft.text:
                yield from self.accept_thought(draft, visible)
                if draft.finish is Finish.LENGTH:
                    yield self.cut(draft)
                if draft.finish in (Finish.EOS, Finish.LENGTH):
                    break
                continue
            trigger = yield from self.judge(draft)
            if trigger is not None and (yield from self.mend(draft, trigger)):
                continue
            if trigger is not None and not trigger.stands:
                yield from self.drop(draft)
                break
            yield from self.accept(draft)
            if draft.finish is Finish.CUT:
                continue
            if self.fruitless >= 2 and self.parts.policy.retracts:
                break
            if draft.finish is Finish.LENGTH and not (self.words.finished(draft.text) and self.answered(draft)):
                yield self.cut(draft)
                break
            if self.answered(draft):
                self.stop = "answered" if self.stop != "max_hops" else self.stop
                break
            if draft.finish is Finish.EOS:
                break
        self.close()

    def cut(self, draft: Draft) -> Event:
        """The reasoning's limit ended it: said, and never taken for its own end."""
        self.stop = "budget"
        where = "" if self.words.finished(draft.text) else ", in the middle of a sentence"
        return ev.Notice(f"The reasoning was cut after {self.config.engine.reasoning_tokens} tokens{where}.", "warning")

    def judge(self, draft: Draft) -> Generator[Event, None, Trigger | None]:
        """The policy's verdict over one sentence, told with every factor."""
        yield self.step("judge")
        verdict = self.parts.policy.when(draft, self.hop, self.ask)
        yield from self.ask.drain()
        if draft.received is not None:
            yield ev.AttentionSettled(draft.received)
        yield ev.SentenceJudged(draft.text, verdict, self.parts.policy.name, self.hop.number)
        return verdict.trigger

    def mend(self, draft: Draft, trigger: Trigger) -> Generator[Event, None, bool]:
        """A hop for a flagged sentence, if there may be one more; whether the sentence is dealt with."""
        if self.hop.number >= self.config.engine.max_hops:
            self.stop = "max_hops"
            return False
        return (yield from self.make_hop(draft, trigger))

    def drop(self, draft: Draft) -> Iterator[Event]:
        """Withdraw a sentence that must not stand and could not be mended; the reasoning ends with it."""
        self.dropped = True
        yield ev.TextRetracted(draft.text, "", len(draft.tokens))

    def grounds(self, hop: TurnState) -> TurnState:
        """What the answer may rest on: after a sentence was withdrawn for good, what led to it is not trusted either;
        else as the policy chose.
        """
        if self.dropped or self.basis == "passages":
            return replace(hop, accepted="", sentences=())
        return replace(hop, passages=()) if self.basis == "reasoning" else hop

    def answered(self, draft: Draft) -> bool:
        """Whether the reasoning states its answer in full; a unit of tokens may end in the middle of that sentence."""
        if not self.parts.policy.tokens:
            return self.words.answered(draft.text)
        return any(self.words.answered(sentence) for sentence in self.words.sentences(self.hop.accepted)[:-1])

    def draft(self) -> Generator[Event, None, Draft | None]:
        """The next sentence of the running generation; a new generation starts after every hop."""
        if self.stream is None:
            prompt = yield from self.compose("reasoning", self.config.engine.reasoning_tokens)
            if not self.kept:
                self.thoughts.opened_by(self.parts.model.render(prompt))
            want = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION}) & self.parts.model.provides
            self.cancel.check()
            self.parts.model.usage()
            self.stream_started = time.monotonic()
            # a thought has paragraphs; any other reasoning ends at a blank line
            stop = () if self.thoughts.seen else ("\n\n",)
            items = self.parts.model.stream(
                prompt, want=want, max_tokens=self.config.engine.reasoning_tokens, stop=stop, cancel=self.cancel
            )
            limit, every = self.config.engine.sentence_tokens, self.parts.policy.tokens
            self.stream = SentenceStream(items, self.words, want=want, limit=limit, every=every)
        self.phase = "reasoning"
        draft = yield from self.stream.next()
        self.first_token = self.first_token or self.stream.first_token_at
        self.ask.meter("redraft" if self.redrafting else "draft", self.stream_started)
        self.stream_started = time.monotonic()
        yield from self.ask.drain()
        return draft

    def accept(self, draft: Draft) -> Iterator[Event]:
        """The sentence stays for good; if it follows a hop, it is what memory may learn from."""
        whole = joined(self.prefix, draft)
        self.kept.append(draft)
        if draft.finish is Finish.CUT:  # no sentence yet: its rest follows
            if not self.prefix.tokens:
                limit = self.config.engine.sentence_tokens
                yield ev.Notice(
                    f"A sentence has more than engine.sentence_tokens = {limit} tokens; it is judged in pieces."
                )
            self.prefix, self.hop = whole, replace(self.hop, accepted=self.hop.accepted + draft.text)
            yield ev.DraftAccepted(draft.text, "reasoning", len(draft.tokens))
            return
        broken = draft.finish is Finish.LENGTH and not self.words.finished(draft.text)
        mark = UNFINISHED if broken else ""
        self.hop = replace(
            self.hop, accepted=self.hop.accepted + draft.text + mark, sentences=(*self.hop.sentences, whole.text + mark)
        )
        if self.pending is not None and not broken:
            subquery, passages = self.pending
            self.harvests.append(Harvest(self.hop.number, subquery, whole, passages))
        self.prefix, self.pending, self.redrafting = EMPTY, None, False
        layout = self.config.layout
        if layout.reasoning == "sentence" and layout.repeat and self.hop.passages and draft.finish is Finish.OPEN:
            self.close()  # the next sentence is written behind copies that hold this one
        yield ev.DraftAccepted(draft.text, "reasoning", len(draft.tokens))

    def accept_thought(self, draft: Draft, visible: str) -> Iterator[Event]:
        """A sentence with a thought stays in the model's turn; only what lies outside the thought is reasoning. It is
        never judged.
        """
        if draft.finish is Finish.STOP:
            self.close()
        self.kept.append(draft)
        if visible.strip():
            self.hop = replace(self.hop, accepted=self.hop.accepted + visible, sentences=(*self.hop.sentences, visible))
        yield ev.DraftAccepted(draft.text, "reasoning", len(draft.tokens))

    def make_hop(self, draft: Draft, trigger: Trigger) -> Generator[Event, None, bool]:
        """Entities, sub-query, memory, search; then retract. False if nothing new was found: the sentence is as good as
        it gets.
        """
        self.close()
        self.hop = replace(self.hop, number=self.hop.number + 1)
        yield ev.RetrievalTriggered(
            self.hop.number,
            trigger.word,
            trigger.score,
            trigger.threshold,
            trigger.entropy,
            trigger.attention,
            trigger.reason,
        )
        kept, relations = yield from self.entities(draft)
        yield self.step("query")
        formed = self.parts.policy.what(trigger, draft, kept, relations, self.hop, self.ask)
        yield from self.ask.drain()
        fresh, repeated = 0, False
        for number, query in enumerate((formed,) if isinstance(formed, Query) else formed):
            repeated = self.words.key(query.text) in {self.words.key(earlier) for earlier in self.hop.queries}
            yield ev.QueryFormed(query, self.hop.number, repeated)
            fresh += yield from look_up(self, query, repeated=repeated, joins=number > 0)
        if not fresh:
            self.fruitless += 1
            self.stop = "repeated_query" if repeated else "no_new_passages"
            return False
        self.fruitless, self.stop = 0, "answered"
        if self.parts.policy.retracts:
            yield from self.retract(draft, trigger)
        else:
            yield from self.accept(draft)
        return True

    def retract(self, draft: Draft, trigger: Trigger) -> Iterator[Event]:
        """Withdraw the sentence from the flagged word on; its clean beginning is continued with the new passages in
        view.
        """
        self.redrafting = True
        clean_part = beginning(draft, trigger.start)
        self.prefix = joined(self.prefix, clean_part)
        if clean_part.tokens:
            self.kept.append(clean_part)
            self.hop = replace(self.hop, accepted=self.hop.accepted + clean_part.text)
        yield ev.TextRetracted(
            draft.text[len(clean_part.text) :], clean_part.text, len(draft.tokens) - len(clean_part.tokens)
        )

    def entities(self, draft: Draft) -> Generator[Event, None, tuple[list[Entity], tuple[Relation, ...]]]:
        """Extraction and filter, for policies that ask about entities."""
        if not self.parts.policy.extracts:
            return [], ()
        yield self.step("extract")
        extracted = self.parts.extractor.extract(draft, self.hop, self.ask)
        yield from self.ask.drain()
        names = tuple(entity.text for entity in extracted.entities)
        yield ev.EntitiesExtracted(names, extracted.relations, extracted.fallback, clean(extracted.raw))
        yield self.step("filter")
        sifted, rescued = self.parts.entity_filter.keep(extracted.entities, self.hop, self.ask)
        yield from self.ask.drain()
        yield ev.EntitiesFiltered(self.parts.entity_filter.name, tuple(sifted), rescued)
        return [item.entity for item in sifted if item.kept], extracted.relations

    # ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def compose(self, purpose: str, room: int, layout: Layout | None = None) -> Generator[Event, None, Prompt]:
        """Lay out the prompt (None: the reasoning so far) within the window, and show exactly what is sent."""
        model = self.parts.model
        fitted: Fitted = fit(
            layout or self.open_prompt, self.hop, self.history, model.count, Budget(model.window, room)
        )
        self.hop = fitted.hop
        if fitted.dropped:
            yield ev.DocumentsDropped(fitted.dropped)
        yield self.built(fitted.prompt, purpose, fitted.tokens)
        return fitted.prompt

    def built(self, prompt: Prompt, purpose: str, tokens: int) -> Event:
        """Exactly what is sent."""
        model = self.parts.model
        return ev.PromptBuilt(prompt, clean(model.render(prompt)), copies_of(prompt), tokens, model.window, purpose)

    def open_prompt(self, hop: TurnState, history: Sequence[tuple[str, str]]) -> Prompt:
        """The reasoning so far, in the policy's format, to be continued."""
        return self.parts.policy.lay(self.parts.composer.reasoning(hop, self.kept, history))

    def trial(self, hop: TurnState) -> Prompt:
        """The reasoning prompt of another state of this turn, for a policy that wants to try it; what does not fit is
        left out.
        """
        room = Budget(self.parts.model.window, self.config.engine.sentence_tokens)
        return fit(self.open_prompt, hop, self.history, self.parts.model.count, room).prompt

    # ── after the answer
    # ─────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(self) -> Iterator[Event]:
        """After the answer stands: what the hops found goes to memory through its gate."""
        memory = self.parts.memory
        if memory is None:
            return
        try:
            if self.config.memory.mode != "on" or not self.harvests:
                memory.flush()
                return
            yield self.step("learn")
            learned, refused = memory.learn(self.harvests, self.ask)
        except (Interrupted, DeadlineError):
            yield ev.Notice("The answer stands; nothing was saved to memory because the turn was stopped.")
            return
        except Exception as error:  # noqa: BLE001 - whatever goes wrong after the answer must not take the answer away
            _log.exception("learning failed")
            yield ev.Notice(f"Memory could not be updated: {error}", "warning")
            return
        yield from self.ask.drain()
        if learned or refused:
            yield ev.FactsLearned(tuple(learned), tuple(sorted(refused.items())))

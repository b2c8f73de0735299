"""FLARE: a look-ahead sentence with an improbable token is searched for and written again.

Owns: the policy flare, with implicit (masked sentence) and explicit (one question per unsure term) queries. Does not
own: wording (prompts).
Source: arXiv:2305.06983 §3.2; this is the paper's variant: first search with the question, θ on the probability of each
token, passages replaced, the rewritten sentence accepted as it comes. (DRAGIN's and other rewrites of FLARE compare a
mean over the sentence, or search never first.) Two differences: masking is by word, so that no half of a name stays in
the query; and an improbable full stop, which only says that the sentence could go on, is no reason to search.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from mindchat.config import Config
from mindchat.policies.base import Base, Rewriting
from mindchat.ports import Ask
from mindchat.prompts.methods import span_prompt
from mindchat.text.clean import clean_line
from mindchat.values import Draft, Entity, Query, Relation, Signal, Trigger, TurnState, Verdict, WordScore
from mindchat.word_signals import Word, words_of

SHORTEST = 5
"""Characters; a shorter "sentence" (a list mark, a stray initial) is not looked ahead for."""
QUESTION_TOKENS = 32
MAX_TERMS = 3
"""Most explicit questions of one sentence."""


class Sure(Struct, frozen=True):
    """A word and the probability of its least probable token."""

    word: Word
    probability: float


def sureness(draft: Draft) -> list[Sure]:
    """Every word with the smallest probability among its tokens; a token whose probability was not measured counts as
    certain.
    """
    found = []
    for word in words_of(draft):
        logprobs = [token.logprob for token in draft.tokens[word.tokens.start : word.tokens.end]]
        found.append(Sure(word, math.exp(min((p for p in logprobs if p is not None), default=0.0))))
    return found


def masked(draft: Draft, beta: float) -> str:
    """The sentence without the words that have a token of probability below β."""
    out, at = "", 0
    for sure in sureness(draft):
        gap = draft.text[at : sure.word.start]
        out += gap if sure.probability >= beta else " " if gap else ""
        out += draft.text[sure.word.start : sure.word.end] if sure.probability >= beta else ""
        at = sure.word.end
    return clean_line(out + draft.text[at:])


def terms(draft: Draft, beta: float) -> list[str]:
    """Maximal runs of words below β."""
    runs: list[tuple[int, int]] = []
    previous = -2
    for index, sure in enumerate(sureness(draft)):
        if sure.probability < beta and not sure.word.punctuation:
            if runs and previous == index - 1:
                runs[-1] = (runs[-1][0], sure.word.end)
            else:
                runs.append((sure.word.start, sure.word.end))
            previous = index
    return [draft.text[start:end] for start, end in runs]


class Flare(Base):
    """Some token of a word with p < flare.theta: search, replace, write the sentence again."""

    name = "flare"
    needs = frozenset({Signal.LOGPROB})
    retracts = True
    accumulates = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._rewriting = Rewriting()

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question (flare.first)."""
        del ask
        self._rewriting.reset()
        return Query(hop.question, "question") if self.config.flare.first else None

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """S = 1 - p of each word against 1 - θ; triggers on the least probable word, and the whole sentence goes."""
        del ask
        options = self.config.flare
        sure = sureness(draft)
        scored = tuple(
            WordScore(
                s.word.text,
                s.word.start,
                s.word.end,
                None,
                None,
                None,
                self.words.content(s.word.text),
                1.0 - s.probability,
            )
            for s in sure
        )
        terms = (("theta", options.theta), ("beta", options.beta))
        formula = "S = 1 - p; θ = 1 - flare.theta"
        least = min((s for s in sure if not s.word.punctuation), key=lambda s: s.probability, default=None)
        doubtful = least is not None and least.probability < options.theta and len(draft.text.strip()) >= SHORTEST
        trigger = None
        if doubtful and self._rewriting.now(hop):
            formula += "; written after a search: accepted"
        elif doubtful and options.query == "implicit" and not self._asks(masked(draft, options.beta)):
            formula += "; nothing is left after masking: no search"
        elif doubtful and least is not None:
            reason = f"p({least.word.text!r}) = {least.probability:.2f} < {options.theta:g}"
            trigger = Trigger(least.word.text, 0, 1.0 - least.probability, 1.0 - options.theta, reason=reason)
        return Verdict(scored, 1.0 - options.theta, terms, formula, trigger)

    def _asks(self, text: str) -> bool:
        return any(self.words.content(word) for word in text.split())

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query | tuple[Query, ...]:
        """Implicit: the masked sentence. Explicit: a question for each unsure term, or the masked sentence if the model
        writes none.
        """
        del trigger, kept, relations
        self._rewriting.begin(hop)
        options, queries = self.config.flare, []
        if options.query == "explicit":
            for term in terms(draft, options.beta)[:MAX_TERMS]:
                prompt = span_prompt(hop.question, clean_line(f"{hop.accepted} {draft.text}"), clean_line(term))
                text = clean_line(ask.complete(prompt, max_tokens=QUESTION_TOKENS, kind="query", stop=("\n",)).text)
                if self._asks(text):
                    queries.append(Query(text, "model"))
        if queries:
            return tuple(queries)
        text = masked(draft, options.beta)
        return Query(text, "template") if self._asks(text) else Query(hop.question, "question")

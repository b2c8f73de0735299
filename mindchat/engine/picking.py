"""Grounded short answers (answer.short = span): the model chooses among spans of the passages that it was shown, instead of writing freely.

Owns: which spans are candidates, their order, the length normalisation, the share of the choice. Does not own: scoring options
(models), the answer prompt, abstention (engine.answering). One batched call of kind "choose" over the very prompt that the free answer continued.
Source: ours; MIND and CoRe read the answer off free text.
* Candidates: the free answer, the answer that the reasoning states, and names, dates, numbers and titles of the prompted passages, those of
  sentences like the question first. A question for yes or no that offers no alternatives has only these two and the free answer.
* Score: mean log-probability per token. A sum would prefer short spans whatever they say, and "Fritz" to "Fritz Lang" always. The mean errs
  on the other side: the last tokens of a long text are nearly certain and lift it, and the longest candidate is often a free answer that
  has become a sentence. BONUS, for what stands in a passage word for word, outweighs that lift and leaves grounded candidates among
  themselves as they were.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from mindchat.answers import find_stated, says_unknown
from mindchat.engine.answering import citable, locate
from mindchat.events import Event
from mindchat.text.clean import clean_line
from mindchat.text.language import Language
from mindchat.text.names import find_names, find_numbers
from mindchat.values import Choice, Passage, Prompt, TurnState

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

MOST = 24
"""Candidates: three batches of the model's eight."""
LONGEST = 80
"""Characters of a candidate."""
BONUS = 0.2
"""Nats per token in favour of what stands in a passage; 0.1 to 0.3 choose the same on the 25 questions that it was set on (MEASUREMENTS.md)."""
YES_NO = ("yes", "no")


class Picked(Struct, frozen=True):
    """The chosen span."""

    text: str
    share: float
    """Softmax over the candidates' scores, in (0, 1]."""
    candidates: int


def echoes(short: str, question: str, words: Language) -> bool:
    """Whether an answer only repeats what the question named, where the question does not offer it to choose.

    Such an answer is wrong: of the 287 questions of HotpotQA's, 2Wiki-open's and the demo's dev sets that neither compare nor ask for yes or
    no, none has its gold answer in its own words (MuSiQue: 6 of 195, numbers).
    """
    named = short.strip(" .").casefold()
    return (
        len(named) > 1 and named in question.casefold() and not words.comparison(question) and not words.polar(question)
    )


def pick(turn: Turn, prompt: Prompt, free: str) -> Generator[Event, None, Picked | None]:
    """The best candidate; None if there is nothing to choose: no passages, a free answer that says it does not know, or no other candidate.

    A free answer that only echoes the question is no candidate, and neither is anything else that the question names.
    """
    if not turn.hop.passages or says_unknown(free):
        return None
    options = candidates(turn.grounds(turn.hop), free, turn.words)
    if echoes(free, turn.hop.question, turn.words):
        options = [option for option in options if not echoes(option, turn.hop.question, turn.words)]
    elif len(options) < 2:
        return None
    if not options:
        return None
    yield turn.step("choose")
    # the answer prompt ends in "Answer:", and what follows it begins with a blank
    scored = turn.ask.choose(prompt, [f" {option}" for option in options], kind="choose")
    yield from turn.ask.drain()
    texts = [text for passage in turn.hop.passages for text in (passage.title, passage.text)]
    grounded = {option for option in options if citable(option) and any(locate(option, text) for text in texts)}
    return best(options, scored, grounded)


def best(options: Sequence[str], scored: Sequence[Choice], grounded: Collection[str]) -> Picked:
    """The option of the highest normalised score; earlier ones win ties."""
    pairs = zip(options, scored, strict=True)
    scores = [
        choice.logprob / max(1, choice.tokens) + (BONUS if option in grounded else 0.0) for option, choice in pairs
    ]
    top = max(range(len(scores)), key=lambda i: (scores[i], -i))
    total = sum(math.exp(score - scores[top]) for score in scores)
    return Picked(options[top], 1.0 / total, len(options))


def candidates(hop: TurnState, free: str, words: Language) -> list[str]:
    """At most MOST different texts, the free answer first."""
    own = [free, stated if (stated := clean_line(find_stated(hop.accepted) or "")) and not stated.endswith("…") else ""]
    if words.polar(hop.question) and not _alternatives(hop.question):
        return _unique([free, *YES_NO])
    spans = list(_by_similarity(hop, words))
    asked = hop.question.casefold()
    if not words.comparison(hop.question):  # what the question names is not what it asks for, unless it compares
        spans = [span for span in spans if span.casefold() not in asked] + [
            span for span in spans if span.casefold() in asked
        ]
    return _unique([*own, *spans])[:MOST]


def _alternatives(question: str) -> bool:
    return " or " in question.casefold()


def _unique(texts: Sequence[str]) -> list[str]:
    """Without what is empty, too long, or there already but for its case."""
    found: dict[str, str] = {}
    for text in texts:
        if 0 < len(text) <= LONGEST or (text and not found):  # the free answer comes first and stays, however long
            found.setdefault(text.casefold(), text)
    return list(found.values())


def _by_similarity(hop: TurnState, words: Language) -> Iterator[str]:
    """Spans of all passages: those of the sentence most like question and reasoning first, in text order within a sentence."""
    asked = _content(f"{hop.question} {hop.accepted}", words)
    ranked: list[tuple[float, int, list[str]]] = []
    for passage in hop.passages:
        title = _content(passage.title, words)
        for sentence in words.sentences(passage.read):
            own = _content(sentence, words)
            # a sentence about the passage's subject often only says "he": the title counts as said
            likeness = len(asked & (own | title)) / math.sqrt(len(own) + 1)
            ranked.append((-likeness, len(ranked), [*_title(passage), *_spans(sentence, words)]))
    for _, _, spans in sorted(ranked):
        yield from spans


def _content(text: str, words: Language) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W_]+", text) if words.content(word)}


def _title(passage: Passage) -> list[str]:
    """The title as a name, without the note by which an encyclopedia tells it from others: "Metropolis (1927 film)"."""
    return [clean_line(re.sub(r"\s*\([^()]*\)\s*$", "", passage.title))]


def _spans(sentence: str, words: Language) -> list[str]:
    """Names, dates and numbers of a sentence, in text order; of a date also its year."""
    found = [(start, clean_line(text)) for text, start, _, _ in find_names(sentence, words)]
    found += [(start, text) for text, start, _ in find_numbers(sentence) if all(text != other for _, other in found)]
    return [text for _, text in sorted(found)]

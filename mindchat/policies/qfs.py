"""DRAGIN's query formulation by self-attention: the words that the flagged ones look at.

Owns: qfs() over an attention row. Does not own: which words are flagged, measuring the attention (models).
Source: DRAGIN §3.3 (arXiv:2403.10081). Known faults of its code that are not repeated: there, an index over merged
words reads an array over sub-tokens, and flagged words can enter the query. Here words and weights are joined by
character offsets, and flagged words are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from mindchat.ports import Ask
from mindchat.prompts.methods import text_alone
from mindchat.text.language import Language
from mindchat.values import Draft, Piece, Query, Span, TurnState
from mindchat.word_signals import word_spans, words_of

SEEN = ("question", "reasoning")
"""Only question and generated text can give words to the query; the chat template's own tokens cannot."""


class Weighted(Struct, frozen=True):
    """A word before the flagged ones, and the attention it gets from them: the sum over its tokens, as a row is a
    distribution over tokens.
    """

    text: str
    weight: float


def weighted_words(pieces: Sequence[Piece]) -> list[Weighted]:
    """The words of question and reasoning, in text order."""
    found = []
    for seen, run in itertools.groupby(pieces, key=lambda piece: piece.origin if piece.origin in SEEN else ""):
        if not seen:
            continue
        parts = list(run)
        text = "".join(part.text for part in parts)
        starts = list(itertools.accumulate((len(part.text) for part in parts), initial=0))
        for span in word_spans(text, starts):
            weight = sum(
                part.weight
                for part, start in zip(parts, starts, strict=False)
                if start < span.end and start + len(part.text) > span.start
            )
            found.append(Weighted(text[span.start : span.end], weight))
    return found


def flagged_spans(draft: Draft, starts: Sequence[int]) -> list[Span]:
    """Token spans of the words that begin at these character offsets; neighbours are joined, so that they cost one
    call.
    """
    spans: list[Span] = []
    for word in words_of(draft):
        if word.start in starts:
            if spans and word.tokens.start <= spans[-1].end:
                spans[-1] = Span(spans[-1].start, word.tokens.end)
            else:
                spans.append(word.tokens)
    return spans


def select(words: Sequence[Weighted], excluded: Sequence[str], language: Language, top_n: int) -> list[str]:
    """The `top_n` content words with the highest weight, each once, without the excluded ones, in text order."""
    folded = {word.casefold() for word in excluded}
    best: dict[str, tuple[float, int, str]] = {}
    for at, word in enumerate(words):
        key = word.text.casefold()
        if language.content(word.text) and key not in folded:
            weight, first, text = best.get(key, (word.weight, at, word.text))
            best[key] = (max(weight, word.weight), first, text)
    chosen = sorted(best.values(), key=lambda item: (-item[0], item[1]))[:top_n]
    return [text for _, _, text in sorted(chosen, key=lambda item: item[1])]


def qfs(draft: Draft, starts: Sequence[int], hop: TurnState, ask: Ask, language: Language, top_n: int) -> Query:
    """The query for the words of the draft that begin at `starts`; the question if no content word precedes them."""
    prompt, totals = text_alone(hop.question, hop.accepted), list[Piece]()
    spans = flagged_spans(draft, starts)
    for span in spans:
        row = ask.attention(prompt, draft, span, kind="attention")
        # a later flagged word sees more tokens: the shared beginning adds up, the rest joins
        both = zip(totals, row, strict=False)
        totals = [Piece(old.text, old.weight + new.weight, old.origin) for old, new in both] + list(row[len(totals) :])
    flagged = [
        word.text for word in words_of(draft) if any(span.start <= word.tokens.start < span.end for span in spans)
    ]
    text = " ".join(select(weighted_words(totals), flagged, language, top_n))
    return Query(text, "attention") if text else Query(hop.question, "question")

"""RIND: the score of every word of a sentence and the threshold it is held against.

Owns: S = H · a · s and θ (Eq 3), from a draft's measured signals. Does not own: measuring, what is done about a
trigger.
Source: MIND §3.2 Eq 1-3; S is never defined in the paper, so DRAGIN's product is used (arXiv:2403.10081 Eq 3;
DESIGN.md, Glossary): H_word = mean entropy of its tokens (nats), a_word = maximum attention received (Eq 2), s = 0 for
stop words, punctuation and anchors. An anchor (a content word that the question has too) cannot be what the model
guessed; it still counts in θ's means and for `min_words`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from mindchat.config import RindSection
from mindchat.text.language import Language
from mindchat.values import Draft, Trigger, Verdict, WordScore
from mindchat.word_signals import Word, word_attention, word_entropy, words_of


class Measured(Struct, frozen=True):
    """One word with its signals before scoring."""

    word: Word
    entropy: float
    attention: float | None
    content: bool
    anchor: bool


def measure(draft: Draft, question: str, words: Language, *, anchors: bool) -> list[Measured]:
    """The words of a draft; with `anchors`, content words of the question are marked (they are given, not guessed)."""
    given = {part.casefold() for part in re.findall(r"[^\W_]+", question)} if anchors else set()
    found = words_of(draft)
    # the last word has no later token inside the sentence: it gets the mean of the others, so that only its entropy can
    # flag it
    attentions = [word_attention(draft, word) for word in found]
    measured = []
    for index, (word, attention) in enumerate(zip(found, attentions, strict=True)):
        if attention is not None and index == len(found) - 1 and index:
            attention = sum(a or 0.0 for a in attentions[:-1]) / index
        parts = [part.casefold() for part in re.findall(r"[^\W_]+", word.text)]
        content = not word.punctuation and words.content(word.text)
        anchor = content and bool(parts) and all(part in given for part in parts)
        measured.append(Measured(word, word_entropy(draft, word) or 0.0, attention, content, anchor))
    return measured


def score(measured: Sequence[Measured], attention: str) -> list[WordScore]:
    """S for each word. attention: "raw" (as the paper), "sentence" (divided by the sentence's mean, as DRAGIN's code)
    or "none" (a = 1).
    """
    raws = [m.attention for m in measured if m.attention is not None and not m.word.punctuation]
    mean = sum(raws) / len(raws) if raws else 0.0
    scored = []
    for m in measured:
        a = 1.0 if attention == "none" or m.attention is None else m.attention
        if attention == "sentence" and m.attention is not None and mean > 0:
            a /= mean
        s = m.entropy * a if m.content and not m.anchor else 0.0
        scored.append(
            WordScore(m.word.text, m.word.start, m.word.end, m.entropy, a, m.attention, m.content, s, m.anchor)
        )
    return scored


def threshold(
    scored: Sequence[WordScore],
    options: RindSection,
    earlier: Sequence[WordScore] = (),
    begun: Sequence[WordScore] = (),
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """θ and its factors. Dynamic: Eq 3, θ = α · mean(H) + β · mean(a) over the content words of the window.

    `earlier`: words of accepted sentences (rind.window = running); `begun`: the kept beginning of a sentence that is
    being written again. Fewer than `min_words` content words in the sentence make Eq 3 degenerate (one word: S = H · 1
    < H + β always), so the fixed threshold is used.
    """
    window = [w for w in (*earlier, *begun, *scored) if w.content]
    if options.threshold == "fixed" or sum(w.content for w in (*begun, *scored)) < options.min_words:
        return options.fixed, (("fixed", options.fixed),)
    mean_h = sum(w.entropy or 0.0 for w in window) / len(window)
    mean_a = sum(w.attention or 0.0 for w in window) / len(window)
    terms = (("alpha", options.alpha), ("mean_entropy", mean_h), ("beta", options.beta), ("mean_attention", mean_a))
    return options.alpha * mean_h + options.beta * mean_a, terms


FORMULAS = {
    "sentence": "S = H · a / mean(a) · s",
    "raw": "S = H · a · s",
    "none": "S = H · s (attention not available)",
}


def judge(
    draft: Draft,
    question: str,
    words: Language,
    options: RindSection,
    *,
    attention: str,
    earlier: Sequence[WordScore] = (),
    begun: Sequence[WordScore] = (),
) -> Verdict:
    """Score a sentence, compare with θ; the trigger is the first word above it (the earliest one that cannot be
    trusted).
    """
    scored = score(measure(draft, question, words, anchors=options.anchors), attention)
    theta, terms = threshold(scored, options, earlier, begun)
    formula = f"{FORMULAS[attention]}; θ = " + ("fixed" if terms[0][0] == "fixed" else "α · mean(H) + β · mean(a)")
    flagged = next((w for w in scored if w.score > theta), None)
    trigger = None
    if flagged is not None:
        reason = f"{flagged.text!r} scores {flagged.score:.2f} > θ {theta:.2f}"
        trigger = Trigger(flagged.text, flagged.start, flagged.score, theta, flagged.entropy, flagged.attention, reason)
    return Verdict(tuple(scored), theta, terms, formula, trigger)

"""From tokens to words: the arithmetic of the signals, on frozen values only.

Owns: grouping tokens into words by character offsets, attention received (MIND Eq 2), the word's entropy (mean) and
attention (maximum), SeaKR's log-determinant. Does not own: measuring anything on a model (models), thresholds and
scores (policies). Imports no torch.
Source: MIND §3.2 Eq 1 and 2; SeaKR (arXiv:2406.19215) §3.1.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mindchat.values import Attended, Draft, Span


class Word(Struct, frozen=True):
    """One word, or one run of punctuation, of a draft, with the tokens that write it."""

    text: str
    start: int
    """Character offset in the draft's text."""
    end: int
    tokens: Span
    """Token span [first, last + 1) in the draft. Two words share a token that writes characters of both."""

    @property
    def punctuation(self) -> bool:
        """Whether it holds no letter and no digit."""
        return not any(unicodedata.category(char)[0] in "LN" for char in self.text)


_JOINERS = {"'": "'", "’": "'", "-": "-", "‐": "-", "‑": "-", ".": ".", ",": ",", "&": "&", "·": ".", "_": "_"}
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_WORD = re.compile(r"c+|[wd]+(?:(?:['.&_-]|(?<=d),(?=d))[wd]+)*|['.,&_p-]+")


def _kind(char: str) -> str:
    """One letter for the role of a character in a word: w letter or mark, d digit, c script without spaces, s space, p
    other.
    """
    if char in _JOINERS:
        return _JOINERS[char]
    if char.isspace():
        return "s"
    category = unicodedata.category(char)
    if category[0] not in "LMN":
        return "p"
    if category == "Nd":
        return "d"
    return "c" if any(low <= ord(char) <= high for low, high in _UNSPACED) else "w"


def word_spans(text: str, boundaries: Sequence[int] = ()) -> tuple[Span, ...]:
    """Character spans of the words and punctuation runs of a text, in order.

    Apostrophes, hyphens and points join letters ("O'Brien", "mother-in-law", "U.S"); commas join digits only. Scripts
    that are written without spaces are cut at `boundaries` (character offsets where tokens begin), the only units at
    hand.
    """
    kinds = "".join(map(_kind, text))
    cuts = sorted(set(boundaries))
    spans: list[Span] = []
    for match in _WORD.finditer(kinds):
        start, end = match.span()
        inner = [cut for cut in cuts if start < cut < end] if kinds[start] == "c" else []
        edges = [start, *inner, end]
        spans += [Span(a, b) for a, b in itertools.pairwise(edges)]
    return tuple(spans)


def words_of(draft: Draft) -> tuple[Word, ...]:
    """The words of a draft, in text order, by character offsets alone: no tokenizer's word marks are read (they differ
    by family).

    A token without text (part of a character) counts to the token that completes the character. Words that no token
    writes do not occur.
    """
    begins: list[int] = []  # first token, incomplete ones before it included, of each token with text
    spans: list[tuple[int, int, int]] = []  # (start, end, token)
    first_open = 0
    for index, span in enumerate(draft.offsets()):
        if span.end > span.start:
            spans.append((span.start, span.end, index))
            begins.append(first_open)
            first_open = index + 1
    words, at = [], 0
    for span in word_spans(draft.text, [start for start, _, _ in spans]):
        while at < len(spans) and spans[at][1] <= span.start:
            at += 1
        last = at
        while last + 1 < len(spans) and spans[last + 1][0] < span.end:
            last += 1
        if at < len(spans):
            words.append(
                Word(draft.text[span.start : span.end], span.start, span.end, Span(begins[at], spans[last][2] + 1))
            )
    return tuple(words)


def received(rows: Sequence[Attended], n: int, start: int = 0) -> tuple[float, ...]:
    """Eq 2: for each of the tokens start … start+n-1 the maximum attention paid to it by a later one of them, in [0,
    1].

    Diagonal, prompt and tokens outside the range are excluded; a token with no later one (the last) gets 0.0. The rows
    may come in any order and may lack some queries.
    """
    best = [0.0] * n
    for row in rows:
        later = min(row.query, start + n) - start
        if row.query < start + n:
            for j in range(max(later, 0)):
                best[j] = max(best[j], row.paid[start + j])
    return tuple(best)


def word_entropy(draft: Draft, word: Word) -> float | None:
    """H of a word: the mean entropy of its tokens, nats, ≥ 0. None if a token has none."""
    values = [token.entropy for token in draft.tokens[word.tokens.start : word.tokens.end]]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def word_attention(draft: Draft, word: Word) -> float | None:
    """a of a word: the maximum attention received over its tokens, in [0, 1]. None if the draft has none."""
    return None if draft.received is None else max(draft.received[word.tokens.start : word.tokens.end], default=0.0)


def log_det_gram(hidden: Sequence[Any], alpha: float = 1e-3) -> float:
    """SeaKR's U = (1/k) · log det(Z J Zᵀ + α I): Z is (k, d), one hidden state a sample, J centres each over its d
    dimensions.

    Nats; higher means more spread, hence less sure. Raises ValueError for no sample or α ≤ 0.
    """
    import numpy as np

    if not len(hidden) or alpha <= 0:
        raise ValueError("log_det_gram needs at least one hidden state and a positive alpha")
    z = np.asarray([np.asarray(state, dtype=np.float64) for state in hidden])  # (k, d)
    centred = z - z.mean(axis=1, keepdims=True)
    gram = centred @ centred.T + alpha * np.eye(len(z))  # (k, k); J is idempotent and symmetric
    return float(np.linalg.slogdet(gram)[1] / len(z))

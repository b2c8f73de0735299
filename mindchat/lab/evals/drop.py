"""Set scoring of DROP, by which IIRC's official scorer and IRCoT compare answers of several spans.

Owns: its normalisation, alignment and the reading of a free text as a list of spans. Does not own: the choice between
this and DRAGIN's alternatives (metrics.iirc prints both). Source: Dua et al. 2019; Ferguson et al. 2020.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_LIST = re.compile(r"\s*(?:;|,\s+and\s+|,\s+|\s+and\s+|\s+&\s+)\s*")


def _number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


def _token(token: str) -> str:
    """Numbers as floats ("38" and "38.0" agree), other tokens without punctuation and articles."""
    word = token.lower()
    if _number(word) is None:
        word = word.translate(_PUNCTUATION)
    value = _number(word)
    return str(value) if value is not None else " ".join(_ARTICLE.sub(" ", word).split())


def normalise(text: str) -> str:
    """Tokens split at spaces and hyphens, each normalised, empty ones dropped."""
    return " ".join(token for token in (_token(part) for part in re.split(r"[ \-]", text)) if token)


def _f1(guess: set[str], truth: set[str]) -> float:
    """Bag (set) F1; 0 if the gold holds numbers and the guess shares none of them."""
    numbers = {token for token in truth if _number(token) is not None}
    if numbers and not numbers & guess:
        return 0.0
    common = len(guess & truth)
    precision = common / len(guess) if guess else 1.0
    recall = common / len(truth) if truth else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _best_assignment(weights: Sequence[Sequence[float]]) -> float:
    """Largest total of a one-to-one assignment of rows to columns, by dynamic programming over the sets of used columns
    of the shorter side.
    """
    rows = list(weights)
    if rows and len(rows) < len(rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    width = len(rows[0]) if rows else 0
    totals = {0: 0.0}
    for row in rows:
        extended = dict(totals)
        for used, total in totals.items():
            for column in range(width):
                if not used >> column & 1:
                    key = used | 1 << column
                    extended[key] = max(extended.get(key, 0.0), total + row[column])
        totals = extended
    return max(totals.values())


MAX_SPANS = 10
"""Longest list that is aligned; a longer prediction is read as one span (the alignment's cost is exponential in the
shorter side).
"""


def score_spans(guesses: Sequence[str], golds: Sequence[str]) -> tuple[float, float]:
    """(EM, F1) of two lists of spans; EM asks for equal sets of equal length, F1 is the mean over the longer list of
    the best alignment.
    """
    a, b = [normalise(guess) for guess in guesses], [normalise(gold) for gold in golds]
    same = float(set(a) == set(b) and len(a) == len(b))
    bags_a, bags_b = [set(span.split()) for span in a], [set(span.split()) for span in b]
    total = _best_assignment([[_f1(guess, truth) for guess in bags_a] for truth in bags_b])
    return same, round(total / max(len(a), len(b), 1), 2)


def score(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """(EM, F1) of a free text: read as one span and, where it looks like an enumeration, as a list; the better reading
    of each counts.
    """
    if not prediction.strip():
        return 0.0, 0.0
    readings = [[prediction]]
    parts = [part for part in _LIST.split(prediction) if part.strip()]
    if 1 < len(parts) <= MAX_SPANS:
        readings.append(parts)
    scores = [score_spans(reading, golds) for reading in readings]
    return max(em for em, _ in scores), max(f1 for _, f1 in scores)

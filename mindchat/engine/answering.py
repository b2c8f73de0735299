"""What can be said about a finished answer: where it stands in the passages, and how unsure its words were.

Owns: citations (by span, exact then folded; by the model's own [n]), names of a question, names that were not read
about, uncertainty.
Does not own: generating it, the verdict (engine.verdict).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindchat.answers import extract_short
from mindchat.text.folding import find_all, fold
from mindchat.text.language import Language
from mindchat.text.names import find_names
from mindchat.values import Citation, Draft, Passage, Span, Token

_NOT_CITABLE = frozenset({"yes", "no", "true", "false", "unknown", "none"})
_WORDS = re.compile(r"\w+")
_MODEL_MARK = re.compile(r"\[(\d{1,2})\]")


def locate(answer: str, text: str) -> tuple[int, int] | None:
    """Character span of the answer in a text: exact first, then folded; None if it does not stand there as whole words."""
    found = find_all(text, answer)
    return found[0][:2] if found else None


def _place(answer: str, passage: Passage) -> tuple[int, int] | None:
    """Character span of the answer in what was read of a passage."""
    for span in passage.shown or (Span(0, len(passage.text)),):
        if found := locate(answer, passage.text[span.start : span.end]):
            return span.start + found[0], span.start + found[1]
    return None


def _extent(passage: Passage) -> tuple[int, int]:
    """From the first to the last character that was read of a passage."""
    return (passage.shown[0].start, passage.shown[-1].end) if passage.shown else (0, len(passage.text))


def citable(short: str) -> bool:
    """Whether the place of a short answer in a text says anything: "yes" or a single letter stands everywhere."""
    return len(short) > 1 and short.casefold() not in _NOT_CITABLE


def cite(short: str, full: str, prompted: Sequence[Passage], parts: Sequence[str] = ()) -> tuple[Citation, ...]:
    """Where the short answer stands in prompted passages, and the passages that the model named by number.

    An answer that is a sentence stands nowhere as a whole; then each of its `parts` (names, dates, numbers that the
    question did not give) is cited where it stands first. Of a passage of which the prompt held only stretches, only
    these are looked at.
    """
    citations: list[Citation] = []

    def add(passage: Passage, span: tuple[int, int], by: str) -> None:
        start, end = span
        quote = passage.text[start:end]
        where = (passage.document, passage.start + start, passage.start + end)
        if all((c.document, c.start, c.end) != where for c in citations):
            citations.append(
                Citation(
                    len(citations) + 1,
                    passage.document,
                    passage.id,
                    where[1],
                    where[2],
                    quote,
                    "span" if by == "span" else "model",
                )
            )

    if citable(short):
        for passage in prompted:
            if span := _place(short, passage):
                add(passage, span, "span")
    for part in () if citations else filter(citable, parts):
        where = next(((passage, span) for passage in prompted if (span := _place(part, passage))), None)
        if where is not None:
            add(*where, "span")
    for match in _MODEL_MARK.finditer(full):
        number = int(match[1])
        if number < len(prompted):
            add(prompted[number], _extent(prompted[number]), "model")
    return tuple(citations)


def folded_words(text: str) -> frozenset[str]:
    """The words of a text without case and accents."""
    return frozenset(_WORDS.findall(fold(text)))


def asked_names(question: str, words: Language) -> list[str]:
    """Names that a question asks about, without a possessive s.

    A single name at the very beginning is left out: a question's first word is capitalised for other reasons.
    """
    found = [
        (re.sub(r"['’]s$", "", name), start) for name, start, _, kind in find_names(question, words) if kind == "name"
    ]
    return [name for name, start in found if start or len(_WORDS.findall(name)) > 1]


def unread(question: str, read: Sequence[Passage], words: Language) -> list[str]:
    """Names of the question of which nothing that was read has even one word (case, accents and a plural s aside)."""
    held = folded_words(" ".join(f"{passage.name} {passage.text}" for passage in read))
    found = []
    for name in asked_names(question, words):
        parts = [part for part in folded_words(name) if len(part) > 2]
        forms = {form for part in parts for form in (part, part.removesuffix("s"))}
        if parts and held.isdisjoint(forms):
            found.append(name)
    return found


def answer_tokens(draft: Draft) -> tuple[Token, ...]:
    """The tokens that write the short answer; all with words in them if it cannot be found in the draft."""
    text = draft.text
    short = extract_short(f"Answer: {text}")
    at = text.find(short) if short else -1
    spans = zip(draft.tokens, draft.offsets(), strict=True)
    inside = [
        token
        for token, span in spans
        if at != -1 and span.start < at + len(short) and span.end > at and token.text.strip()
    ]
    return tuple(inside or (token for token in draft.tokens if token.text.strip()))


def answer_entropy(draft: Draft) -> float | None:
    """Mean entropy of the answer's tokens, nats, ≥ 0; None if there is no answer or the model measures none."""
    values = [token.entropy for token in answer_tokens(draft)]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None

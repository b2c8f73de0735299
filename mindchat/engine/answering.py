"""What can be said about a finished answer: where it stands in the passages, and how unsure its words were.

Owns: citations (contract: by span, exact then folded; by the model's own [n]), names of a question, names that were not read about, uncertainty.
Does not own: generating it, the verdict (engine.verdict).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mindchat.answers import extract_short
from mindchat.text.language import Language
from mindchat.text.names import find_names
from mindchat.values import Citation, Draft, Passage, Token

_NOT_CITABLE = frozenset({"yes", "no", "true", "false", "unknown", "none"})
_WORDS = re.compile(r"\w+")
_MODEL_MARK = re.compile(r"\[(\d{1,2})\]")


def _folded(text: str) -> tuple[str, list[int]]:
    """Case- and accent-folded text with white space as single blanks, and for each of its characters the offset in the original."""
    out: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        if char.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                places.append(at)
            continue
        for piece in unicodedata.normalize("NFKD", char).casefold():
            if not unicodedata.combining(piece):
                out.append(piece)
                places.append(at)
    return "".join(out), places


def _bounded(text: str, start: int, end: int) -> bool:
    """Whether [start, end) is not the inside of a longer word or number."""
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
    after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
    return not before and not after


def locate(answer: str, text: str) -> tuple[int, int] | None:
    """Character span of the answer in a text: exact first, then folded; None if it does not stand there as whole words."""
    at = text.find(answer)
    while at != -1:
        if _bounded(text, at, at + len(answer)):
            return at, at + len(answer)
        at = text.find(answer, at + 1)
    needle, _ = _folded(answer.strip())
    haystack, places = _folded(text)
    at = haystack.find(needle) if needle.strip() else -1
    while at != -1:
        end = at + len(needle)
        start_at, end_at = places[at], places[end - 1] + 1
        if _bounded(haystack, at, end) and _bounded(text, start_at, end_at):
            return start_at, end_at
        at = haystack.find(needle, at + 1)
    return None


def citable(short: str) -> bool:
    """Whether the place of a short answer in a text says anything: "yes" or a single letter stands everywhere."""
    return len(short) > 1 and short.casefold() not in _NOT_CITABLE


def cite(short: str, full: str, prompted: Sequence[Passage], parts: Sequence[str] = ()) -> tuple[Citation, ...]:
    """Where the short answer stands in prompted passages, and the passages that the model named by number.

    An answer that is a sentence stands nowhere as a whole; then each of its `parts` (names, dates, numbers that the question did not give)
    is cited where it stands first.
    """
    citations: list[Citation] = []

    def add(passage: Passage, span: tuple[int, int], by: str) -> None:
        start, end = span
        quote = passage.text[start:end]
        where = (passage.document, passage.start + start, passage.start + end)
        if all((c.document, c.start, c.end) != where for c in citations):
            citations.append(
                Citation(len(citations) + 1, passage.document, passage.id, where[1], where[2], quote, "span" if by == "span" else "model")
            )

    if citable(short):
        for passage in prompted:
            if span := locate(short, passage.text):
                add(passage, span, "span")
    for part in () if citations else filter(citable, parts):
        where = next(((passage, span) for passage in prompted if (span := locate(part, passage.text))), None)
        if where is not None:
            add(*where, "span")
    for match in _MODEL_MARK.finditer(full):
        number = int(match[1])
        if number < len(prompted):
            add(prompted[number], (0, len(prompted[number].text)), "model")
    return tuple(citations)


def folded_words(text: str) -> frozenset[str]:
    """The words of a text without case and accents."""
    return frozenset(_WORDS.findall(_folded(text)[0]))


def asked_names(question: str, words: Language) -> list[str]:
    """Names that a question asks about, without a possessive s.

    A single name at the very beginning is left out: a question's first word is capitalised for other reasons.
    """
    found = [(re.sub(r"['’]s$", "", name), start) for name, start, _, kind in find_names(question, words) if kind == "name"]
    return [name for name, start in found if start or len(_WORDS.findall(name)) > 1]


def unread(question: str, read: Sequence[Passage], words: Language) -> list[str]:
    """Names of the question of which nothing that was read has even one word (case, accents and a plural s aside)."""
    held = folded_words(" ".join(f"{passage.title} {passage.text}" for passage in read))
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
    inside = [token for token, span in spans if at != -1 and span.start < at + len(short) and span.end > at and token.text.strip()]
    return tuple(inside or (token for token in draft.tokens if token.text.strip()))


def answer_entropy(draft: Draft) -> float | None:
    """Mean entropy of the answer's tokens, nats, ≥ 0; None if there is no answer or the model measures none."""
    values = [token.entropy for token in answer_tokens(draft)]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None

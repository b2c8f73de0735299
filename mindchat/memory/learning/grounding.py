"""From a hop's answer to a claim that stands in a passage: the object located at exact offsets, the subject beside it,
nothing hedged.

Owns: choosing and locating the object, subject presence, relation words, polarity. Does not own: the model's opinion
(verification.py).
Source: MIND §3.1 asks the model for triples; here subject and relation come from the sub-question and the object from a
span of the passage.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from mindchat.memory.learning.slots import Predicate, Slot
from mindchat.text.countries import RELATIONS, country_norm, forms
from mindchat.text.folding import STOP, find_all, fold, norm, split_title
from mindchat.text.language import language
from mindchat.text.typed_spans import type_ok, typed, value_norm
from mindchat.values import Draft, Passage, Span

_NEGATION = (
    r"\bnot\b|n't\b|\bnever\b|\bno"
    r" longer\b|\bden(?:y|ied|ies)\b|\bunlike\b|\bneither\b|\bfalsely\b|\bincorrectly\b|\bcontrary to\b"
)
_HEDGE = (
    r"\bmight\b|\breportedly\b|\ballegedly\b|\brumou?r|\bclaim(?:s|ed)?\b|\bexpected"
    r" to\b|\bwould\b|\bif\b|\bperhaps\b|\bpossibly\b|\bprobably\b"
    r"|\b(?:believed|said|thought|supposed|presumed) to\b|\bmaybe\b|\bsuppose\b|\bhypothe|\blegend\b"
    r"|\bsome sources\b|\baccording to some\b|\bunclear\b|\bunknown\b"
)
_FICTION = (
    r"\bplay(?:s|ed|ing)? (?:a|an|the|by)\b"
    r"(?! (?:piano|guitar|violin|viola|cello|drums?|bass|trumpet|organ|harp|flute|clarinet|saxophone|banjo|fiddle)\b)|\bin the"
    r" (?:film|novel|movie|play|series|story)\b|\bfictional\b|\bcharacter\b|\bportray"
)
_MAY = re.compile(r"\bmay\b(?! \d)(?!,? \d)")
_POLARITY = re.compile(f"{_NEGATION}|{_HEDGE}")
_FICTIONAL = re.compile(_FICTION)
_LIFE = re.compile(r"\(([^()]*?\d{3,4}[^()–]*?)\s*[–—-]\s*([^()]*?\d{3,4}[^()]*?)\)")
_VERBS = frozenset(("is", "was", "are", "were", "has", "had", "directed", "born", "died", "by", "who", "which", "that"))
_BIRTH, _DEATH = r"\bborn\b|\bbirth", r"\bdied\b|\bdeath\b|\bkilled\b|\bexecuted\b|\bdies\b"


class Grounded(Struct, frozen=True):
    """A claim and where it stands."""

    slot: Slot
    object: str
    """As written in the passage."""
    object_norm: str
    passage: Passage
    place: Span
    """Of the object, in the passage's text."""
    sentence: Span
    """Of the quote around it, in the passage's text; at most 400 characters."""
    grounding: int
    """2 exact, 1 after folding."""
    subject_near: bool
    """The subject stands in the same sentence; otherwise it is the passage's title."""
    cued: bool
    """A word of the relation stands in the sentence (always True for relations that need none)."""
    answer: Span
    """Of the object's words in the answer."""
    distractors: tuple[str, ...]
    """Other spans of the same type in the passage, nearest first, at most two."""
    english: bool

    @property
    def quote(self) -> str:
        """The sentence that states it: passage.text at `sentence`."""
        return self.passage.text[self.sentence.start : self.sentence.end]


def hedged(text: str, predicate: Predicate, subject: str = "") -> bool:
    """Negation, hedge, question, or fiction where the relation is about a person's life. Titles (quotes, the subject)
    are not heard.
    """
    text = re.sub(r"\"[^\"\n]*\"|“[^”\n]*”", " ", text)
    if subject:
        text = re.sub(re.escape(subject), " ", text, flags=re.IGNORECASE)
    folded = fold(text)
    if _POLARITY.search(folded) or "?" in text:
        return True
    if _MAY.search(text):  # the month is capitalised
        return True
    return predicate.domain == "person" and bool(_FICTIONAL.search(folded))


def ground(slot: Slot, answer: Draft, passages: Sequence[Passage]) -> tuple[Grounded | None, str]:
    """The best grounded claim, or None with the reason that stopped the most promising one."""
    kind = slot.predicate.range
    spans = _candidates(slot, answer.text)
    if not spans:
        return None, "no_object"
    if hedged(answer.text, slot.predicate, slot.subject):
        return None, "hedged"
    best: tuple[tuple[int, ...], Grounded] | None = None
    reason = "ungrounded"
    for order, span in enumerate(spans):
        words = answer.text[span.start : span.end]
        if not type_ok(words, kind):
            reason = "type"
            continue
        for passage in passages:
            for found in _places(slot, words, span, passage):
                if isinstance(found, str):
                    reason = found
                    continue
                whole = span.end - span.start >= len(answer.text.strip(" .")) > 0
                # a sentence tends to end with what it says; a place begins with its narrowest name
                key = (
                    found.cued,
                    found.grounding,
                    found.subject_near,
                    whole,
                    -passage.rank,
                    -order if kind == "place" else order,
                )
                if best is None or key > best[0]:
                    best = key, found
    return (best[1], "") if best else (None, reason)


def _candidates(slot: Slot, text: str) -> list[Span]:
    """Spans of the answer that could be the object: right type, and neither subject nor part of it. A short answer as a
    whole is one too.
    """
    subject = norm(slot.subject)
    words = set(subject.split())
    found = [
        span
        for span in typed(text, slot.predicate.range)
        if not set(norm(text[span.start : span.end]).split()) <= words
    ]
    found = [span for span in found if subject not in norm(text[span.start : span.end])]
    if (
        found
        and slot.predicate.range in ("person", "place", "org", "work")
        and (whole := _whole_answer(text, subject)) is not None
    ):
        found = list(dict.fromkeys([*found, whole]))
    if (
        not found
        and slot.predicate.range == "any"
        and (match := re.search(r"\b(?:is|was|are|were|by|as|of|in) (?!.*\b(?:is|was|are|were)\b)([^.;,]{2,80})", text))
    ):
        found = [Span(match.start(1), match.end(1))]
    return found


def _whole_answer(text: str, subject: str) -> Span | None:
    """The place of an answer that is nothing but a value: "Montreal, Quebec"; None for a sentence."""
    value = text.strip(" .\n")
    start = text.find(value)
    words = value.split()
    plain = 1 < len(words) <= 8 and "\n" not in value and subject not in norm(value)
    said = plain and not any(word.casefold() in _VERBS for word in words)
    return Span(start, start + len(value)) if said else None


def _places(slot: Slot, words: str, span: Span, passage: Passage) -> list[Grounded | str]:
    text = passage.text
    found: list[Grounded | str] = []
    spans = language("en").sentence_spans(text)
    places = find_all(text, words)
    if slot.predicate.name in RELATIONS:
        places += [(start, end, False) for form in forms(words) for start, end, _ in find_all(text, form)]
    for start, end, exact in places[:12]:
        whole = _whole(text, start, end, slot.predicate.range)
        sentence = next((s for s in spans if s.start <= start and end <= s.end), None)
        if whole is None or sentence is None:
            continue
        start, end = whole.start, whole.end
        if slot.predicate.range == "person" and text.endswith(
            ("'s", "’s"), start, end
        ):  # "Bob Lee's daughter Ann" names Bob Lee
            end -= 2
        near = _names_subject(
            slot.subject, text[sentence.start : sentence.end], Span(start - sentence.start, end - sentence.start)
        )
        if not near and not titled(slot.subject, passage.title):
            found.append("no_subject")
        elif hedged(text[sentence.start : sentence.end], slot.predicate, slot.subject):
            found.append("hedged")
        elif norm(text[start:end]) == norm(slot.subject) or not type_ok(text[start:end], slot.predicate.range):
            found.append("type")
        elif not _right_event(slot.predicate.name, text[sentence.start : sentence.end], start - sentence.start):
            found.append("other_relation")
        else:
            found.append(_grounded(slot, passage, Span(start, end), sentence, exact, near, span))
    return found


def _grounded(
    slot: Slot, passage: Passage, place: Span, sentence: Span, exact: bool, near: bool, answer: Span
) -> Grounded:
    text, kind = passage.text, slot.predicate.range
    line = text[sentence.start : sentence.end]
    value = text[place.start : place.end]
    folded = fold(line)
    cued = not slot.predicate.cues or any(cue_in(cue, folded) for cue in slot.predicate.cues)
    cued = cued or (slot.predicate.name in ("date_of_birth", "date_of_death") and _LIFE.search(line) is not None)
    normal = country_norm if slot.predicate.name in RELATIONS else partial(value_norm, kind=kind)
    same, subject = normal(value), norm(slot.subject)
    others: dict[str, str] = {}
    for other in sorted(typed(text, kind), key=lambda s: abs(s.start - place.start)):
        words = text[other.start : other.end]
        if (
            type_ok(words, kind)
            and not (other.start < place.end and place.start < other.end)
            and norm(words) not in (subject, norm(value))
        ):
            others.setdefault(normal(words), words)
    others.pop(same, None)
    english = any(word in STOP for word in re.findall(r"\w+", folded))
    quote = sentence if sentence.end - sentence.start <= 400 else _window(sentence, place)
    grounding = 2 if exact else 1
    return Grounded(
        slot, value, same, passage, place, quote, grounding, near, cued, answer, tuple(others.values())[:2], english
    )


def cue_in(cue: str, folded: str) -> bool:
    """Whether a word of the folded text begins with the cue (a mark such as a dash: whether it occurs)."""
    return re.search(rf"\b{re.escape(cue)}", folded) is not None if cue[0].isalnum() else cue in folded


def _window(sentence: Span, place: Span) -> Span:
    start = max(sentence.start, min(place.start - 200, sentence.end - 400))
    return Span(start, min(sentence.end, start + 400))


def _whole(text: str, start: int, end: int, kind: str) -> Span | None:
    """The place, grown to the person's full name or full date there; None if it is only part of another name."""
    around = [
        span for span in typed(text, kind if kind != "any" else "work") if span.start <= start and end <= span.end
    ]
    exact = [span for span in around if norm(text[span.start : span.end]) == norm(text[start:end])]
    if exact or not around:
        return exact[0] if exact else Span(start, end)
    grown = min(around, key=lambda span: span.end - span.start)
    return grown if kind in ("person", "date") else None


def titled(subject: str, title: str) -> bool:
    """Whether a passage's title is the subject (a parenthesis aside)."""
    return norm(subject) in (norm(title), norm(split_title(title)[0]))


def _names_subject(subject: str, sentence: str, taken: Span) -> bool:
    """Whether the sentence names the subject outside the object's own place."""
    return any(end <= taken.start or start >= taken.end for start, end, _ in find_all(sentence, subject))


def _right_event(predicate: str, sentence: str, at: int) -> bool:
    """For births and deaths: the event word nearest before the value, or the side of the dash in a life span, must be
    the right one.
    """
    wanted = {"date_of_birth": 0, "place_of_birth": 0, "date_of_death": 1, "place_of_death": 1}.get(predicate)
    if wanted is None:
        return True
    for life in _LIFE.finditer(sentence):
        if life.start() <= at < life.end():
            return life.start(wanted + 1) <= at < life.end(wanted + 1)
    before = fold(sentence[:at])
    last = [max((m.end() for m in re.finditer(pattern, before)), default=-1) for pattern in (_BIRTH, _DEATH)]
    return last[wanted] > last[1 - wanted] or (last == [-1, -1] and predicate.startswith("place"))

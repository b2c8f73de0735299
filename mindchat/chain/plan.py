"""What a question asks for, as a plan that code can follow.

Owns: Name, Step, Comparison, Sameness. Does not own: how a question becomes one (parse), how one is answered (follow).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Want = Literal["least", "most"]


class Name(Struct, frozen=True):
    """A thing that the question names."""

    text: str
    """As written, without articles, quotes and descriptions such as "the film"."""
    hint: str = ""
    """Words that tell namesakes apart ("film", "1984")."""
    written: str = ""
    """All of it as the question has it."""


class Step(Struct, frozen=True):
    """One relation of what comes before it: the father of …"""

    relation: str
    """A predicate of memory (learning.slots)."""
    of: Term
    gender: Literal["", "male", "female"] = ""
    """Of the value, where the question's word says it: an uncle is a male sibling."""


Term = Name | Step


class Comparison(Struct, frozen=True):
    """Which of two things has the least or most of something."""

    relation: str
    """A predicate whose values are dates or numbers; "lifespan" is the date of death minus that of birth."""
    want: Want
    names: tuple[Name, Name]
    """What the answer is one of."""
    terms: tuple[Term, Term]
    """What has the value: the names themselves, or a step from them."""


class Sameness(Struct, frozen=True):
    """Whether two things have one value in common."""

    relation: str
    terms: tuple[Term, Term]


Plan = Step | Comparison | Sameness


def start(term: Term) -> Name:
    """The name at which a term begins."""
    while isinstance(term, Step):
        term = term.of
    return term


def steps(term: Term) -> list[Step]:
    """The relations of a term, from its name outwards."""
    found: list[Step] = []
    while isinstance(term, Step):
        found.append(term)
        term = term.of
    return found[::-1]

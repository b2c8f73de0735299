"""From a question to the plans that it may mean.

Owns: parse, the shapes of chains, comparisons and sameness (languages/chains/<code>.toml). Does not own: relations and
their templates (memory.learning.slots), whether a plan can be followed (follow). Everything is by table; a question
without a fitting shape has no plan.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import mindchat.text.language
from mindchat.chain.plan import Comparison, Name, Plan, Sameness, Step, Term, Want
from mindchat.errors import UsageError
from mindchat.memory.learning.slots import bare_subject, find_predicate, plain, predicates, readings

_FOLDER = Path(mindchat.text.language.__file__).parent / "languages" / "chains"
LONGEST = 300
"""Characters of a question that is looked at."""
LONGEST_NAME = 80
_LOWER = re.compile(r"(?<![\w'’-])[a-z][\w'’-]*")
MOST = 8
"""Plans of one question."""
DEPTH = 4
"""Relations of one chain."""
LIFESPAN = "lifespan"


class Shapes:
    """One language's shapes, compiled."""

    def __init__(self, code: str) -> None:
        data = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
        self.kinship: dict[str, list[list[str]]] = data["kinship"]
        self.genders = {word: gender for gender, words in data["genders"].items() for word in words.split()}
        words = "|".join(sorted(map(re.escape, self.kinship), key=len, reverse=True))
        self.kin = [
            re.compile(pattern, re.IGNORECASE)
            for pattern in (
                rf"^(?:who (?:is|was) )?(?:the )?(?P<kin>{words}) of (?P<s>\S.*?)[\s?.!]*$",
                rf"^(?:who (?:is|was) )?(?P<s>\S.*?)(?:'s|s'|’s) (?P<kin>{words})[\s?.!]*$",
            )
        ]
        nouns = "|".join(
            sorted({re.escape(noun) for p in predicates().values() for noun in p.nouns}, key=len, reverse=True)
        )
        self.compared = [
            (_compiled(shape, entry["asked"], nouns), entry["want"], entry.get("relation", ""), through)
            for entry in data["compared"]
            for through in (False, True)
            for shape in data["comparison"]["through" if through else "plain"]
        ]
        whats = "|".join(map(re.escape, data["shared"]))
        self.same = [
            (_compiled(shape.replace("{what}", f"(?P<what>{whats})"), "", nouns), through)
            for through in (False, True)
            for shape in data["sameness"]["through" if through else "plain"]
        ]
        names = data["names"]
        self.small, self.never = frozenset(names["small"].split()), frozenset(names["never"].split())
        works = "|".join(names["works"].split())
        self.work = re.compile(rf"\b(?:{works})s?\b", re.IGNORECASE)
        self.shared: dict[str, list[str]] = data["shared"]
        self.dated: dict[str, str] = data["dated"]


def _compiled(shape: str, asked: str, nouns: str) -> re.Pattern[str]:
    parts = {"{asked}": asked, "{of}": f"(?P<of>{nouns})", "{a}": r"(?P<a>\S.*?)", "{b}": r"(?P<b>\S.*?)"}
    for name, pattern in parts.items():
        # the relation is captured once
        shape = shape.replace(name, pattern, 1)
    return re.compile(rf"^{shape.replace('{of}', f'(?:{nouns})')}[\s?.!]*$", re.IGNORECASE)


@cache
def shapes(code: str) -> Shapes | None:
    """The shapes of a language; None where there are none."""
    return Shapes(code) if (_FOLDER / f"{code}.toml").exists() and code.isalpha() else None


def parse(question: str, code: str = "en") -> tuple[Plan, ...]:
    """What a question may mean, the likeliest first; () if no shape fits."""
    known = shapes(code)
    text = " ".join(question.replace("’", "'").split()).replace(" 's ", "'s ")
    if known is None or not text or len(text) > LONGEST:
        return ()
    ways: tuple[Iterator[Plan], ...] = (
        _comparisons(text, known),
        _samenesses(text, known),
        _chains(text, known, DEPTH),
    )
    for found in ways:
        plans = tuple(islice(dict.fromkeys(found), MOST))
        if plans:
            return plans
    return ()


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _chains(text: str, known: Shapes, depth: int) -> Iterator[Step]:
    """Steps that a question or a noun phrase can mean."""
    if depth <= 0:
        return
    for pattern in known.kin:
        if match := pattern.match(text):
            for way, of in product(known.kinship[match["kin"].lower()], _terms(match["s"], known, depth - 2)):
                yield _along(way, of)
            return
    for predicate, words in readings(text):
        for of in _terms(words, known, depth - 1):
            yield Step(predicate.name, of, _gender(text, words, known))


def _terms(words: str, known: Shapes, depth: int) -> Iterator[Term]:
    """What some words of a question stand for: a relation of something, or a name."""
    found = False
    phrase = re.sub(r"^the (?:[\w-]+ ){1,2}(?:that|who|which) (?=[a-z])", "who ", words)
    for step in _chains(phrase, known, depth):
        found = True
        yield step
    if not found and (name := _name(words, known)) is not None and not phrase.startswith("who "):
        yield name


def _name(words: str, known: Shapes) -> Name | None:
    """The name in some words; None if they are none. Stricter than memory's slots: what is no name is followed nowhere."""
    text, hint = bare_subject(words)
    if text[:1].islower() and any(map(str.isupper, text)) and text.split()[0].strip(",'’") not in known.small:
        return None
    lower = _LOWER.findall(text)
    other = [word for word in lower if word not in known.small]
    phrase = len(other) * 2 > len(text.split()) or any(word in known.never for word in lower)
    if (phrase and any(map(str.isupper, text))) or not (known.work.search(hint) or plain(text, strict=True)):
        return None
    return Name(text, hint, words.strip(" ,?")) if 1 < len(text) <= LONGEST_NAME else None


def _along(way: Sequence[str], of: Term) -> Step:
    for relation in way:
        name, _, gender = relation.partition(":")
        of = Step(name, of, gender if gender in ("male", "female") else "")  # type: ignore[arg-type]
    assert isinstance(of, Step)
    return of


def _gender(text: str, words: str, known: Shapes) -> Any:
    """Of the value: "who is X's wife" asks for a woman."""
    rest = text.replace(words, " ").lower()
    found = {known.genders[word] for word in re.findall(r"[a-z]+", rest) if word in known.genders}
    return found.pop() if len(found) == 1 else ""


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _comparisons(text: str, known: Shapes) -> Iterator[Comparison]:
    for pattern, want, relation, through in known.compared:
        if not (match := pattern.match(text)):
            continue
        for a, b in _pairs(match, text, known):
            yield from _compared(a, b, relation, want, match["of"] if through else "", match[0], known)


def _compared(a: Name, b: Name, relation: str, want: Want, of: str, asked: str, known: Shapes) -> Iterator[Comparison]:
    step = _relation(of)
    if of and not step:
        return
    terms: tuple[Term, Term] = (Step(step, a), Step(step, b)) if step else (a, b)
    kinds = [relation] if relation else [known.dated[_kind(asked, bool(step), known)]]
    for kind in kinds:
        yield Comparison(kind, want, (a, b), terms)


def _kind(asked: str, of_person: bool, known: Shapes) -> str:
    """Whether a person's, a work's or another thing's date is asked."""
    said = set(re.findall(r"[a-z]+", asked.lower().partition(",")[0]))
    if of_person or "born" in said:
        return "person"
    if said & set(known.dated["works"].split()) or said & {"released", "published", "premiered"}:
        return "work"
    return "other" if said & (set(known.dated["others"].split()) | {"founded", "formed", "established"}) else "person"


def _samenesses(text: str, known: Shapes) -> Iterator[Sameness]:
    for pattern, through in known.same:
        if not (match := pattern.match(text)):
            continue
        step = _relation(match["of"]) if through else ""
        if through and not step:
            continue
        relations = known.shared[match["what"].lower()]
        for a, b in _pairs(match, text, known):
            if step:
                yield Sameness(relations[0], (Step(step, a), Step(step, b)))
            else:
                yield from (Sameness(relation, (a, b)) for relation in relations)


def _pairs(match: re.Match[str], text: str, known: Shapes) -> Iterator[tuple[Name, Name]]:
    """The two names; where the joining word stands in a name too, each place at which it may join."""
    start, end = match.span("a")[0], match.span("b")[1]
    joined = text[start:end]
    cuts = [(joined[: place.start()], joined[place.end() :]) for place in re.finditer(r",? (?:or|and) ", joined)]
    for one, other in dict.fromkeys([(match["a"], match["b"]), *cuts]):
        first, second = _name(one, known), _name(other, known)
        if first is not None and second is not None:
            yield first, second


def _relation(noun: str) -> str:
    try:
        return find_predicate(noun).name if noun else ""
    except UsageError:
        return ""

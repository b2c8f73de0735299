"""Which of some passages is about a name.

Owns: likeness of a name and a title, bearers, the gender that a passage speaks of. Does not own: search, what passages
say. A name is followed only where one document bears it best: of two namesakes neither is taken, unless one of them
speaks of what the name was read from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from mindchat.chain.reading import stating
from mindchat.text.folding import fold, norm, split_title
from mindchat.values import Passage

_WORD = re.compile(r"[^\W_]+")
_OPENING = 160
"""Characters that say what a passage is about."""
_SOME = 600
"""Characters of a passage in which its pronouns are counted."""
_FULL = 2
"""Words of a name that can be told of in another's text: a single word is too often something else."""
EXACT, ALIKE = 3.0, 1.0


def likeness(name: str, title: str, hint: str = "", code: str = "en") -> float:
    """How well a title names something: 0 not at all, at least ALIKE if it may, EXACT or more if it does."""
    base, note = split_title(title)
    told = _told(hint, note)
    if norm(name) == norm(title):
        return EXACT + 1
    if norm(base) == norm(name):
        return EXACT + told
    if _bare(name, code) == _bare(base, code):
        return EXACT - 1 + told
    return _alike(_WORD.findall(fold(name)), _WORD.findall(fold(base))) + told


def _told(hint: str, note: str) -> float:
    """Whether what the question adds to a name agrees with what the title adds: years first, then words."""
    hinted, noted = set(_WORD.findall(fold(hint))), set(_WORD.findall(fold(note)))
    years = [{word for word in words if word.isdigit()} for words in (hinted, noted)]
    if all(years):
        return 0.5 if years[0] & years[1] else -2.5
    return 0.5 if hinted & noted else 0.0


def _bare(name: str, code: str) -> str:
    """A name without titles before it."""
    how, words = stating(code), norm(name).split()
    titles: frozenset[str] = frozenset().union(*how.titles.values()) if how is not None else frozenset()
    while len(words) > 1 and words[0] in titles:
        words = words[1:]
    return " ".join(words)


def _alike(name: list[str], title: list[str]) -> float:
    """Whether one name is the other with initials, with a middle name more, or with its land or rank behind it."""
    short, long = sorted((name, title), key=len)
    if not short or short[0] != long[0]:
        return ALIKE if _within(title, name) else 0.0
    if len(name) == len(title):
        pairs = list(zip(name, title, strict=True))
        same = all(a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in pairs)
        return 2 * ALIKE if same and name[-1] == title[-1] else 0.0
    if len(short) > 1 and long[: len(short)] == short:  # "Bogislaw IV" and "Bogislaw IV, Duke of Pomerania"
        return 1.5 * ALIKE
    inner = [word for word in long if len(word) > 1]
    if len(short) > 1 and short[-1] == long[-1] and set(short) <= set(inner):
        return 1.2 * ALIKE
    return 0.0


def _within(title: list[str], name: list[str]) -> bool:
    """Whether a longer stretch of capitals holds a title: "Slovak National Theatre Tibor Frešo"."""
    size = len(title)
    return size > 1 and any(name[at : at + size] == title for at in range(len(name) - size + 1))


def bearers(
    name: str,
    pool: Sequence[Passage],
    hint: str = "",
    told: str = "",
    kind: str = "",
    code: str = "en",
    roles: Sequence[str] = (),
) -> list[Passage]:
    """The passages of the one document that bears a name, in its order; [] if none does, or several alike.

    `told`: the name that the name was read about; of namesakes the one that speaks of it is meant. `kind`: a word that
    its first words should have ("film"). `roles`: words for what led to the name ("director"); the title or the first
    words of who is meant have one.
    """
    scored: dict[str, tuple[float, list[Passage]]] = {}
    for passage in pool:
        score = max(likeness(name, passage.title, hint, code), _opens(name, passage))
        if score >= ALIKE:
            most, passages = scored.get(passage.document, (0.0, []))
            scored[passage.document] = (max(most, score), [*passages, passage])
    top = max((score for score, _ in scored.values()), default=0.0)
    best = [passages for score, passages in scored.values() if score == top]
    if len(best) > 1 and told:
        best = [passages for passages in best if any(norm(told) in norm(p.text) for p in passages)] or best
    if len(best) > 1 and roles:
        said = [(passages, fold(f"{passages[0].title} {passages[0].text[:_OPENING]}")) for passages in best]
        best = [passages for passages, opening in said if any(fold(role) in opening for role in roles)] or best
    if len(best) > 1 and kind:
        best = [passages for passages in best if kind in fold(passages[0].text[:_OPENING])] or best
    return sorted(best[0], key=lambda passage: passage.start) if len(best) == 1 else []


def _opens(name: str, passage: Passage) -> float:
    """A text that begins with the full name is about it, whatever its title: "Marta Lindqvist (born 1931) was …"."""
    wanted = norm(name)
    return ALIKE if len(wanted.split()) > 1 and norm(passage.text[: len(name) + 8]).startswith(wanted) else 0.0


def told_of(name: str, pool: Sequence[Passage], code: str = "en") -> list[Passage]:
    """Where a text that is about something else tells of a name: from a sentence that begins with the full name to the
    last one after it that begins with a pronoun. Only if one document does; the first such stretch of a passage stands for it.
    """
    how, wanted = stating(code), norm(name)
    if how is None or len(wanted.split()) < _FULL:
        return []
    found: list[Passage] = []
    for passage in pool:
        spans = how.words.sentence_spans(passage.text)
        for at, span in enumerate(spans):
            if not f"{norm(passage.text[span.start : span.end])} ".startswith(f"{wanted} "):
                continue
            end = span.end
            for after in spans[at + 1 :]:
                first = _WORD.search(fold(passage.text[after.start : after.end]))
                if first is None or first[0] not in how.pronouns:
                    break
                end = after.end
            found.append(
                replace(
                    passage,
                    title=name,
                    heading="",
                    text=passage.text[span.start : end],
                    start=passage.start + span.start,
                    end=passage.start + end,
                    shown=(),
                )
            )
            break
    return found if len({passage.document for passage in found}) == 1 else []


def gender(name: str, passages: Sequence[Passage], code: str = "en") -> str:
    """ "male" or "female" by a name's title, else by the pronouns of what is about it; "" if neither says."""
    how = stating(code)
    if how is None:
        return ""
    first = norm(name).split(" ", 1)[0]
    if said := next((kind for kind in ("male", "female") if first in how.titles[kind]), ""):
        return said
    words = [word for passage in passages for word in _WORD.findall(fold(passage.text[:_SOME]))]
    he, she = (sum(word in how.gendered[kind] for word in words) for kind in ("male", "female"))
    return "" if he == she else "male" if he > she else "female"

"""Whether an answer is of the type that the question asks for.

Owns: misfit, fits, and how the passages tell a person from a place. Does not own: the asked type (asking), what is done
with an answer that does not fit: a bridge becomes the next hop, a sentence is cut, the rest is doubtful (engine). The
rules only speak where they are sure: an answer about which nothing is known fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from mindchat.evidence.asking import Asked, Asking
from mindchat.evidence.sentences import head
from mindchat.text.folding import fold
from mindchat.values import Passage

Misfit = Literal["", "yes_no", "sentence", "echo", "bridge", "kind"]
"""Why an answer does not fit: it says yes or no to another question, is a sentence, repeats a name of the question, is
a person where a place is asked or the other way round (mostly the middle of a chain), or is otherwise of another kind.
"": it fits."""
Kind = Literal["", "person", "place"]

_WORD = re.compile(r"[^\W_]+")
_LONG = 8
"""Words of an answer that is surely no name."""
_OPENING = 14
"""Words at a passage's beginning that say what its subject is."""


def fits(answer: str, question: str, ask: Asking, passages: Sequence[Passage] = ()) -> bool:
    """Whether an answer is of the asked type, as far as can be told."""
    return not misfit(answer, question, ask, passages)


def misfit(answer: str, question: str, ask: Asking, passages: Sequence[Passage] = ()) -> Misfit:
    """Why a short answer is not of the asked type; "" if it is, or nothing speaks against it. `passages`: what the
    answer was read from.
    """
    asked, words = ask.asked(question), _WORD.findall(fold(answer))
    if not words:
        return ""
    polar = words[0] in ask.marks["polar"] and (len(words) == 1 or asked is Asked.YES_NO)
    if asked is Asked.YES_NO:
        return "" if polar else "kind"
    if polar:
        return "yes_no"
    if asked is not Asked.OTHER and is_sentence(answer, ask):
        return "sentence"
    if asked is Asked.WHICH_OF_TWO:
        return "" if set(ask.stems(answer)) & set(ask.stems(question)) else "kind"
    if asked is Asked.WHEN:
        return "" if ask.spans["date"].search(answer) or any(word.isdigit() for word in words) else "kind"
    if asked is Asked.HOW_MANY:
        return "" if ask.spans["number"].search(answer) or words[0] in ask.marks["none"] else "kind"
    return _named(answer, asked, question, ask, passages)


def _named(answer: str, asked: Asked, question: str, ask: Asking, passages: Sequence[Passage]) -> Misfit:
    """Of an answer to who, where, or a question of no known type."""
    name = " ".join(_WORD.findall(fold(answer)))
    if len(name) > 1 and f" {name} " in f" {' '.join(_WORD.findall(fold(question)))} ":
        return "echo"
    if asked is Asked.OTHER:
        return ""
    if not any(char.isalpha() for char in answer) or ask.spans["date"].fullmatch(answer.strip(" .")):
        return "kind"
    kind = kind_of(answer, passages, ask)
    return "bridge" if kind and kind != {Asked.WHO: "person", Asked.WHERE: "place"}[asked] else ""


def is_sentence(answer: str, ask: Asking) -> bool:
    """Whether a short answer is a sentence, or far too long for a name, date or number."""
    words = [word for word in _WORD.findall(answer) if word]
    verbs = [
        number for number, word in enumerate(words) if word.islower() and fold(word) in ask.marks["sentence_verbs"]
    ]
    return len(words) > 2 * _LONG or (len(words) > 3 and any(0 < number < len(words) - 1 for number in verbs))


def kind_of(name: str, passages: Sequence[Passage], ask: Asking) -> Kind:
    """Whether the passages speak of a name as of a person or a place; "" if they do neither, or both alike."""
    votes = {"person": 0, "place": 0}
    wanted = head(name).strip(" .")
    for passage in passages:
        if head(passage.title) == wanted:
            opening = _WORD.findall(fold(passage.text[:200]))[:_OPENING]
            if ask.life(passage.text) or ask.marks["person_marks"].intersection(_WORD.findall(fold(passage.text))):
                votes["person"] += 2
            elif ask.marks["place_marks"].intersection(opening):
                votes["place"] += 2
        for before, after in _around(wanted, fold(passage.text)):
            votes["person"] += before in ask.marks["before_person"] or after.startswith(("(born", "( born", ", who "))
            votes["place"] += before in ask.marks["before_place"]
    if votes["person"] == votes["place"]:
        return ""
    return "person" if votes["person"] > votes["place"] else "place"


def _around(name: str, folded: str) -> list[tuple[str, str]]:
    """(word before, text after) of each place where a folded name stands as whole words."""
    if len(name) < 2:
        return []
    found = []
    for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", folded):
        before = folded[max(0, match.start() - 30) : match.start()].split()
        found.append(
            (
                before[-1] if before else "",
                folded[match.end() : match.end() + 8].lstrip() if match.end() < len(folded) else "",
            )
        )
    return found

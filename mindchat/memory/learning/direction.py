"""Which way round a sentence says a relation: "A is the father of B" is no source for "the father of A is B".

Owns: the words that give each end of such a relation its role.
Does not own: finding the two names (grounding.py), the model's opinion (verification.py). Small models confuse the ends
of a relation between things of one type. The text is asked instead of the model: exchanging subject and object in a
prompt would cost a second call for every claim. Symmetric relations (spouse, sibling) have no wrong way round.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mindchat.memory.learning.grounding import Grounded
from mindchat.text.folding import norm

_PARENT, _CHILD = "father|mother|parent", "son|daughter|child|children|offspring"
_ROLES = {
    "father": (_PARENT, _CHILD),
    "mother": (_PARENT, _CHILD),
    "child": (_CHILD, _PARENT),
    "capital": ("capital|capital city", ""),
}
"""For relations between things of one type: what the object is to the subject, what the subject is to the object."""
_GAP = r"(?:[a-z\-]+,? ){0,4}"
"""Lower-case words between "of" and a name: "the late actress"; a name in between would be another end."""
_NEAR, _SPACE = 80, re.compile(r"\s")


@lru_cache(maxsize=8)
def _patterns(predicate: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str] | None]:
    object_is, subject_is = _ROLES[predicate]
    return (
        re.compile(rf"\b(?:{object_is})s? (?:of|to) {_GAP}$"),
        re.compile(rf"^(?:'s|s'|') (?:[a-z\-]+ ){{0,2}}(?:{object_is})s?\b"),
        (
            re.compile(rf"^[,\s]+(?:(?:is|was|who is|who was) )?{_GAP}(?:{subject_is})s? of {_GAP}")
            if subject_is
            else None
        ),
    )


def reversed_in_text(claim: Grounded) -> bool:
    """Whether the quote gives the object the subject's part: "… father of OBJECT", "OBJECT's father", "OBJECT, son of
    SUBJECT".
    """
    if claim.slot.predicate.name not in _ROLES:
        return False
    of_object, objects_own, object_of_subject = _patterns(claim.slot.predicate.name)
    text = _SPACE.sub(" ", claim.passage.text.replace("’", "'"))
    before = text[max(claim.sentence.start, claim.place.start - _NEAR) : claim.place.start]
    after = text[claim.place.end : min(claim.sentence.end, claim.place.end + _NEAR)]
    if of_object.search(before) or objects_own.search(after):
        return True
    of_other = object_of_subject.search(after) if object_of_subject is not None else None
    return of_other is not None and f"{norm(after[of_other.end() :])} ".startswith(f"{norm(claim.slot.subject)} ")

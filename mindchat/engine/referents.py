"""What a pronoun or a bare follow-up may stand for: names of the conversation, the likeliest first.

Owns: the order of referents, names with their articles. Does not own: putting them into a question (engine.follow_up),
the words of a language.
Source: ours. By the question word of the turn before: "he" is the answer to "who …?", "she" after "where was X born?"
is X, "it" is a thing that was asked about, "there" the place that was answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mindchat.engine.answering import asked_names
from mindchat.text.language import Language
from mindchat.text.names import find_names

History = Sequence[tuple[str, str]]
"""(standalone question, short answer) of the turns before, oldest first."""
WORD = re.compile(r"[\w'’-]+")
_LONGEST = 6
"""Words of a short answer that can be a name."""


def referents(pronoun: str, history: History, words: Language) -> Iterator[str]:
    """Names that the pronoun may stand for, of the newest turn first; two joined ones for a plural."""
    follow = words.follow
    if pronoun in follow.plural:
        yield from _several(history, words)
    if pronoun in follow.before_names:
        return
    for asked, answer in reversed(history):
        thing = pronoun in follow.things
        names = [_whole(name, asked, words) for name in things(asked, words)] if thing else things(asked, words)
        first = next((word for word in map(str.casefold, WORD.findall(asked)) if word in follow.asking), "")
        never = (
            follow.person_words
            if thing
            else follow.place_words | follow.other_words
            if pronoun in follow.persons
            else frozenset[str]()
        )
        said = [answer] if is_name(answer, words) and first not in never else []
        yield from [*said, *names] if _means_answer(pronoun, asked, words) else [*names, *said]


def _whole(name: str, asked: str, words: Language) -> str:
    """ "the treaty of Passau" for Passau, unless the question asks for a person: then that is the person's description."""
    follow = words.follow
    if not follow.of or any(word.casefold() in follow.person_words for word in WORD.findall(asked)):
        return name
    match = re.search(rf"\b{follow.the} [\w-]+ {follow.of} (?=(?:{follow.the} )?{re.escape(name)})", asked)
    return f"{match[0]}{name}" if match is not None else name


def _means_answer(pronoun: str, asked: str, words: Language) -> bool:
    """Whether a pronoun rather stands for the last answer than for what was asked about."""
    follow = words.follow
    found = [word.casefold() for word in WORD.findall(asked)]
    first = next((word for word in found if word in follow.asking), "")
    if pronoun in follow.places:
        return first in follow.place_words or any(word in follow.place_nouns for word in found[:4])
    if pronoun in follow.persons:
        other = follow.female_words if pronoun in follow.male else follow.male_words
        return first in follow.person_words and not any(word in other for word in found)
    if first in follow.person_words or first in follow.other_words:
        return False
    about_person = any(word in follow.person_verbs for word in found)
    return (
        about_person
        if first in follow.place_words or any(word in follow.place_nouns for word in found[:4])
        else first in follow.thing_words
    )


def _several(history: History, words: Language) -> Iterator[str]:
    """Two names together: of one question, of one answer, or of the last two turns."""
    for asked, answer in reversed(history):
        listed = [part.strip() for part in re.split(rf",\s*|\s+{words.follow.both_join}\s+", answer) if part.strip()]
        names = things(asked, words)
        if len(names) == 1 and f" {words.follow.both_join} " in names[0]:
            names = [part.strip() for part in names[0].split(f" {words.follow.both_join} ")]
        if len(listed) > 1 and all(is_name(part, words) for part in listed):
            yield f" {words.follow.both_join} ".join(listed)
        if len(names) > 1:
            yield f" {words.follow.both_join} ".join(names)
    subjects = list(dict.fromkeys(name for asked, _ in history[-2:] for name in things(asked, words)[:1]))
    if len(subjects) > 1:
        yield f" {words.follow.both_join} ".join(subjects)


def subjects(history: History, words: Language) -> Iterator[str]:
    """All names of the conversation, of the newest question first."""
    for asked, answer in reversed(history):
        yield from things(asked, words)
        if is_name(answer, words):
            yield answer


def is_name(answer: str, words: Language) -> bool:
    """Whether a short answer is a name and nothing else."""
    if not 0 < len(answer.split()) <= _LONGEST:
        return False
    rest = answer
    for name in (names := [name for name, _, _, kind in find_names(answer, words) if kind == "name"]):
        rest = rest.replace(name, " ")
    return bool(names) and not any(words.content(word) for word in WORD.findall(rest))


def things(asked: str, words: Language) -> list[str]:
    """The names of a question, each with the capital article that belongs to it: "The North Star"."""
    found = []
    for name in asked_names(asked, words):
        before = asked[: asked.find(name)].split()
        article = before[-1] if len(before) > 1 and before[-1] in words.follow.articles else ""
        found.append(f"{article} {name}" if article else name)
    return found

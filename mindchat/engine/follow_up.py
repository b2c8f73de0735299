"""Follow-ups: from "and where was he born?" to a question that stands alone.

Owns: whether a question leans on the conversation, the standalone forms that rules find, the check of any standalone
form, the last resort.
Does not own: what a pronoun stands for (engine.referents), the model's form (engine.turn asks for it where the rules
find none), the words of a language (mindchat/text/languages).
Source: ours. A rule only moves names of the conversation into the question; it never invents a relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mindchat.engine.answering import asked_names, folded_words
from mindchat.engine.referents import WORD, History, is_name, referents, subjects, things
from mindchat.text.language import Language
from mindchat.text.names import find_names, find_numbers

_AT_ANOTHER = re.compile(r"(\w+) ((?:\d[\d.,]*\d|[^\W\d_].*?))[ ?]*")
"""A preposition and one thing behind it."""

_STEM = 5


def leans(question: str, words: Language) -> bool:
    """Whether a question needs the conversation before it.

    It does if it begins like one that goes on ("and", "what about"), asks with a question word alone ("in which
    year?"), or has a pronoun with no name of its own before it.
    """
    question = (
        question.strip().replace(words.follow.pair, words.follow.pair_as) if words.follow.pair else question.strip()
    )
    folded = question.casefold()
    if folded.startswith(words.openers) or len(WORD.findall(folded)) < 3 or _bare(question, words):
        return True
    own = [start for name, start, _, kind in find_names(question, words) if kind == "name" and (start or " " in name)]
    for match in WORD.finditer(question):
        word = match[0].casefold()
        if word not in words.pronouns or (
            own and word in words.follow.determiners | words.follow.places | words.follow.before_names
        ):
            continue
        if not any(start < match.start() for start in own):
            return True
    return False


def standalone(question: str, history: History, words: Language) -> str | None:
    """The first form that the rules find and that fits; None if they find none."""
    return next((form for form in _forms(question, history, words) if fits(form, question, history, words)), None)


def fits(form: str, question: str, history: History, words: Language) -> bool:
    """Whether a form may take the question's place: it keeps every name and number of the original and most of its
    other words, has no name that neither it nor the conversation has, is no earlier question, and does not lean itself.
    """
    said = folded_words(form)
    original = _names(question, words)
    if not all(folded_words(name) <= said for name in original):
        return False
    known = folded_words(" ".join([question, *(f"{asked} {answer}" for asked, answer in history)]))
    if any(
        words.content(word) and word not in known for name in asked_names(form, words) for word in folded_words(name)
    ):
        return False
    if any(same(form, asked, words) for asked, _ in history) or leans(form, words):
        return False
    stems = {word[:_STEM] for word in said}
    asked = [word for word in folded_words(_without_opener(question, words)) if words.content(word)]
    if _new_subject(question, words) is not None:
        return True
    pointed = sum(
        word in words.follow.determiners for word in folded_words(question)
    )  # "that film": the name takes the noun's place too
    return sum(word[:_STEM] not in stems for word in asked) <= max(pointed, len(asked) // 4)


def same(one: str, other: str, words: Language) -> bool:
    """Whether two questions ask the same: the same content words and the same question words."""
    asking = words.follow.asking
    return words.key(one) == words.key(other) and folded_words(one) & asking == folded_words(other) & asking


def last_resort(question: str, history: History, words: Language) -> str:
    """The question as typed with the names of the last turn behind it, for a search that finds what it is about."""
    asked, answer = history[-1]
    have = folded_words(question)
    names = [*things(asked, words), *([answer] if is_name(answer, words) else [])]
    more = [name for name in dict.fromkeys(names) if not folded_words(name) <= have]
    return f"{question.strip()} ({'; '.join(more)})" if more else question.strip()


# ── the rules
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _forms(question: str, history: History, words: Language) -> Iterator[str]:
    bare = _without_opener(question, words)
    if subject := _new_subject(question, words):
        yield from _with_subject(subject, history, words)
        return
    if (
        not _bare(question, words)
        and (match := _AT_ANOTHER.fullmatch(bare))
        and match[1].casefold() in words.follow.prepositions
        and len(bare.split()) <= 4
    ):
        yield from _at_another(match, history, words)
        return
    places = [match for match in WORD.finditer(bare) if match[0].casefold() in words.follow.all]
    if places:
        yield from _resolved(bare, history, words)
    elif _bare(question, words):
        yield from _asked_anew(bare, history, words)
    elif asked_names(bare, words):
        yield _capital(bare)
    else:
        for name in subjects(history, words):
            yield _capital(f"{bare.rstrip(' ?')} {words.follow.of} {name}?")


def _at_another(match: re.Match[str], history: History, words: Language) -> Iterator[str]:
    """ "And in 2020?", "And of Chile?": the last question with another number, or another name behind the same
    preposition.
    """
    little, thing = match[1], match[2]
    for asked, _ in reversed(history):
        if thing[0].isdigit():
            number = next((text for text, _, _ in find_numbers(asked)), None)
            yield asked.replace(number, thing, 1) if number is not None else f"{asked.rstrip(' ?')} {little} {thing}?"
        else:
            for old in things(asked, words):
                if (before := f"{little} {old}") in asked:
                    yield asked.replace(before, f"{little} {thing}", 1)


def _without_opener(question: str, words: Language) -> str:
    text = question.strip()
    if words.follow.pair:
        text = text.replace(words.follow.pair, words.follow.pair_as)
    while opener := next((o for o in words.openers if text.casefold().startswith(o)), None):
        text = text[len(opener) :].lstrip(" ,")
    return text


def _new_subject(question: str, words: Language) -> str | None:
    """The name if the question is nothing but a new one: "And Marie Curie?", "What about the film Nosferatu?"."""
    text = _without_opener(question, words).strip(" ?.!")
    if not question.strip().casefold().startswith(words.openers):
        return None
    names = [(name, start, end) for name, start, end, kind in find_names(text, words) if kind == "name"]
    if len(names) != 1 or _question_word(text, words):
        return None
    _, start, end = names[0]
    before = [word for word in WORD.findall(text[:start]) if words.content(word)]
    article = text[:start].split()[-1:]
    named = f"{article[0]} {text[start:]}" if article and article[0] in words.follow.articles else text[start:]
    return named if end >= len(text) - 1 and len(before) <= 1 else None


def _question_word(text: str, words: Language) -> bool:
    first = next(iter(WORD.findall(text)), "").casefold()
    return first in words.follow.asking or first in words.polar_openers or first in words.follow.prepositions


def _with_subject(name: str, history: History, words: Language) -> Iterator[str]:
    """The newest question that has a name, about another one."""
    for asked, _ in reversed(history):
        for old in things(asked, words):
            yield asked.replace(old, name, 1)


def _bare(question: str, words: Language) -> bool:
    """Whether it asks with a question word and at most one noun: "in which year?", "why?"."""
    text = _without_opener(question, words)
    found = [word.casefold() for word in WORD.findall(text)]
    if not found or not any(word in words.follow.asking for word in found[:2]) or asked_names(text, words):
        return False
    rest = [word for word in found if word not in words.follow.asking and word not in words.follow.prepositions]
    return len(rest) <= 1 and not any(word in words.polar_openers or word in words.follow.all for word in rest)


def _asked_anew(bare: str, history: History, words: Language) -> Iterator[str]:
    """The last question with another question word: "Where was X born?" + "In which year?" → "In which year was X
    born?".
    """
    wanted, follow = _capital(bare.rstrip(" ?")), words.follow
    for asked, answer in reversed(history):
        text = asked.strip().rstrip("?")
        first, _, rest = text.partition(" ")
        verb, _, thing = rest.partition(" ")
        if first.casefold() in follow.person_words and thing and (participle := _participle(verb.casefold(), words)):
            yield f"{wanted} {follow.passive} {thing} {participle}?"
        if (cut := _auxiliary(text, words)) is not None:
            yield f"{wanted} {text[cut:]}{_object(text[:cut], answer, words)}?"


def _participle(verb: str, words: Language) -> str:
    """directed → directed, wrote → written; "" for what is no verb of the past that the language lists."""
    ending = words.follow.past
    return words.follow.participles.get(verb, verb if ending and verb.endswith(ending) else "")


def _auxiliary(text: str, words: Language) -> int | None:
    """Where the verb after the question words begins ("was" in "In which city was X born"); None for "Who is …", which
    asks for the subject.
    """
    found = list(WORD.finditer(text))
    verb = next((match for match in found[1:5] if match[0].casefold() in words.polar_openers), None)
    if verb is None or (found[0][0].casefold() in words.follow.subject_words and verb[0].casefold() in words.follow.be):
        return None
    return verb.start()


def _object(asked: str, answer: str, words: Language) -> str:
    """What "Which film" or "What prize" asked for, as the object of the new question: the answer if it is a name, else
    the noun.
    """
    first, _, noun = asked.strip().partition(" ")
    if first.casefold() not in words.follow.thing_words or not noun.strip():
        return ""
    return f" {answer}" if is_name(answer, words) else f" {words.follow.the} {noun.strip()}"


# ── pronouns
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _resolved(bare: str, history: History, words: Language) -> Iterator[str]:
    """Each pronoun replaced by what it may stand for, the likeliest first; the same name for all of them."""
    follow = words.follow
    spotted = [match for match in WORD.finditer(bare) if match[0].casefold() in follow.all]
    first = spotted[0][0].casefold()
    own = {name.casefold() for name in asked_names(bare, words)}
    for name in referents(first, history, words):
        if name.casefold() not in own:
            yield _capital(_replaced(bare, name, words))


def _replaced(bare: str, name: str, words: Language) -> str:
    out, at, follow = "", 0, words.follow
    for match in WORD.finditer(bare):
        word = match[0].casefold()
        if word not in follow.all or match.start() < at:
            continue
        after = WORD.match(bare, match.end() + 1)
        end = match.end()
        if word in follow.determiners:
            if after is None or not after[0].islower() or not words.content(after[0]):
                continue
            said, end = name, after.end()
        elif (
            word in follow.possessives and after is not None and (word not in follow.objects or words.content(after[0]))
        ):
            said = f"{name}'s"
        else:
            said = f"{follow.inside} {name}" if word in follow.places else name
        out, at = f"{out}{bare[at : match.start()]}{said}", end
    return out + bare[at:]


def _names(question: str, words: Language) -> list[str]:
    """Names and numbers of a question; a first word only if it is part of a longer name."""
    return [*asked_names(question, words), *(text for text, _, _ in find_numbers(question))]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

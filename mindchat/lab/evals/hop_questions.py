"""Single hops as questions in plain English, from gold triples and MuSiQue's steps.

Owns: two wordings a relation (the second for asking again), and filling "#1" references. Does not own: chains
(chains.py). Gold is used to build questions and to score, never shown.
"""

from __future__ import annotations

import re

from mindchat.text.clean import clean_line

WORDINGS: dict[str, tuple[str, str]] = {
    "director": ("Who directed {s}?", "Who is the director of {s}?"),
    "producer": ("Who produced {s}?", "Who is the producer of {s}?"),
    "screenwriter": ("Who wrote the screenplay of {s}?", "Who is the screenwriter of {s}?"),
    "composer": ("Who composed the music of {s}?", "Who is the composer of {s}?"),
    "performer": ("Who performed {s}?", "Who is the performer of {s}?"),
    "author": ("Who is the author of {s}?", "Who wrote {s}?"),
    "creator": ("Who created {s}?", "Who is the creator of {s}?"),
    "father": ("Who is the father of {s}?", "Who is {s}'s father?"),
    "mother": ("Who is the mother of {s}?", "Who is {s}'s mother?"),
    "spouse": ("Who is the spouse of {s}?", "Who is {s} married to?"),
    "child": ("Who is a child of {s}?", "Who is {s}'s child?"),
    "sibling": ("Who is a sibling of {s}?", "Who is {s}'s sibling?"),
    "date of birth": ("When was {s} born?", "What is the date of birth of {s}?"),
    "date of death": ("When did {s} die?", "What is the date of death of {s}?"),
    "place of birth": ("Where was {s} born?", "What is the place of birth of {s}?"),
    "place of death": ("Where did {s} die?", "What is the place of death of {s}?"),
    "place of burial": ("Where was {s} buried?", "What is the place of burial of {s}?"),
    "country of citizenship": ("What is the nationality of {s}?", "What is the country of citizenship of {s}?"),
    "country of origin": ("Which country is {s} from?", "What is the country of origin of {s}?"),
    "country": ("In which country is {s}?", "What is the country of {s}?"),
    "publication date": ("When was {s} released?", "What is the publication date of {s}?"),
    "inception": ("When was {s} founded?", "What is the inception of {s}?"),
    "founded by": ("Who founded {s}?", "Who is the founder of {s}?"),
    "publisher": ("Who published {s}?", "Who is the publisher of {s}?"),
    "educated at": ("Where was {s} educated?", "Which school did {s} attend?"),
    "employer": ("Who is the employer of {s}?", "Who does {s} work for?"),
    "award received": ("Which award did {s} receive?", "What award was {s} given?"),
    "located in the administrative territorial entity": (
        "Where is {s} located?",
        "In which administrative entity is {s} located?",
    ),
    "shares border with": ("What does {s} share a border with?", "What borders {s}?"),
    "member of sports team": ("Which team does {s} play for?", "What is the sports team of {s}?"),
    "member of": ("What is {s} a member of?", "Which organisation does {s} belong to?"),
    "record label": ("What is the record label of {s}?", "Which label released {s}?"),
    "named after": ("What is {s} named after?", "Who or what is {s} named after?"),
    "owned by": ("Who owns {s}?", "Who is the owner of {s}?"),
    "operator": ("Who operates {s}?", "Who is the operator of {s}?"),
}
_REFERENCE = re.compile(r"#(\d+)")


def ask(subject: str, predicate: str, *, again: bool = False) -> str:
    """The question whose answer is the triple's object; `again` gives the other wording."""
    plain = ("What is the {p} of {s}?", "What is {s}'s {p}?")
    wording = WORDINGS.get(predicate.strip().lower(), plain)[int(again)]
    return wording.replace("{p}", clean_line(predicate)).replace("{s}", clean_line(subject))


def fill(question: str, answers: tuple[str, ...]) -> str:
    """A MuSiQue step with #n replaced by the n-th answer; "A >> relation" becomes a question."""

    def answer(match: re.Match[str]) -> str:
        number = int(match[1])
        return answers[number - 1] if 0 < number <= len(answers) else match[0]

    filled = clean_line(_REFERENCE.sub(answer, question))
    subject, arrow, predicate = filled.partition(">>")
    if arrow:
        return ask(subject.strip(), predicate.strip())
    filled = filled.rstrip(" ?") + "?"
    return filled[:1].upper() + filled[1:]


def reword(question: str) -> str:
    """The same hop in other words where a wording is known, else framed differently."""
    for first, second in WORDINGS.values():
        head, _, tail = first.partition("{s}")
        if question.startswith(head) and question.endswith(tail) and len(question) > len(head) + len(tail):
            return second.replace("{s}", question[len(head) : len(question) - len(tail)])
    return f"Please tell me: {question[:1].lower()}{question[1:]}"

from __future__ import annotations

import pytest

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.names import (
    Finder,
    aliases,
    document_names,
    file_key,
    findable,
    key_of,
    linked,
    own_names,
    split,
    surface,
)
from mindchat.values import Passage

ENGLISH = Analyzer("en")


def passage(text: str, title: str = "", document: str = "/notes/a.md", heading: str = "") -> Passage:
    return Passage("p", document, title, text, 0, len(text), heading=heading)


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        (passage("x", "Metropolis (1927 film)", "/c.jsonl#1"), ["metropolis", "metropolis 1927 film"]),
        (passage("x", "Fritz Lang", "/notes/fritz-lang.txt"), ["fritz lang", "\0/notes/fritz-lang.txt"]),
        (passage("x", "A Title", "/notes/2024_plan.md"), ["a title", "2024 plan", "\0/notes/2024_plan.md"]),
        (passage("x", "Łódź", "/c.jsonl#1"), ["lodz"]),
        (passage("x", "(untitled)", "/c.jsonl#1"), ["untitled"]),
        (passage("x", "one two three four five six seven eight nine ten eleven twelve thirteen", "/c.jsonl#1"), []),
    ],
)
def test_a_document_is_named_by_title_file_and_path(given, keys):
    assert document_names(given) == keys


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        (passage("Text.", heading="Guide › Setting Up"), ["setting up"]),
        (passage("**Fritz Lang** was a director."), ["fritz lang"]),
        (passage("## Youth\n\n**Fritz Lang** was a director.", heading="Youth"), ["youth", "fritz lang"]),
        (passage("He was **very** tall."), []),
        (passage("Garden plan\n\nWe sow in May.\n\nTools\n-----\nA spade.\n", "", "/g.txt"), ["garden plan", "tools"]),
        (passage("One line.\n\nAnother line, no heading:\n\nEnd.", "", "/g.txt"), []),
    ],
)
def test_a_passage_is_named_by_heading_bold_beginning_and_lines_that_stand_alone(given, keys):
    assert own_names(given) == keys


@pytest.mark.parametrize(
    ("front", "keys"),
    [
        ('---\naliases: [Friedrich, "The Master"]\n---\n', ["friedrich", "the master"]),
        ("---\ntitle: x\naliases:\n  - Friedrich\n  - 'The Master'\ntags: y\n---\n", ["friedrich", "the master"]),
        ("---\nalias: Friedrich\n---\n", ["friedrich"]),
        ("---\ntitle: x\n---\n", []),
    ],
)
def test_front_matter_gives_aliases(front, keys):
    assert aliases(front) == keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("See [[Fritz Lang]] and [[people/Thea von Harbou|her]].", ["fritz lang", "thea von harbou"]),
        ("See [[Fritz Lang#Films|films]] and [[Metropolis.md]].", ["fritz lang", "metropolis"]),
        ("See [him](people/fritz%20lang.md).", [file_key("/notes/people/fritz lang.md")]),
        ('See [it](../x.md#part "t").', [file_key("/x.md")]),
        ("See [it](https://example.org/x.md), [m](mailto:a@b.c) and [top](#top).", []),
        ("[[]] [[|x]] [[ ]] [](", []),
    ],
)
def test_links_name_their_targets(text, keys):
    assert linked(text, "/notes/a.md") == keys


NAMES = [
    "fritz lang",
    "lang",
    "metropolis",
    "metropolis opera house",
    "up",
    "the",
    "when we were young",
    "when",
    "東京",
    "東",
    "москва",
    "القاهرة",
    "1984",
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Fritz Lang's Metropolis.", ["fritz lang", "metropolis"]),
        ("FRITZ  LANG and fritz lang", ["fritz lang"]),
        ("a metropolis", []),
        ("The Metropolis Opera House and the Metropolis opera", ["metropolis opera house", "metropolis"]),
        ("Up the hill. The end. When?", []),
        ("When We Were Young", ["when we were young"]),
        ("He read 1984.", ["1984"]),
        ("彼は東京に住む。東", ["東京"]),
        ("В Москва и москва", ["москва"]),
        ("سافر الى القاهرة", ["القاهرة"]),
        ("[[up]] and [[the]]", ["up", "the"]),
        ("Fritz\u00a0Lang", ["fritz lang"]),
        ("Metropolitan", []),
        ("", []),
    ],
)
def test_the_longest_name_is_found_and_short_single_or_common_words_never(text, found):
    finder = Finder(map(key_of, NAMES), ENGLISH)
    assert [NAMES[number] for number in finder.find(text)] == found
    assert finder.may_find(text) or not found


def test_words_as_written_and_folded_go_together():
    for text in ("Plain words", "Ünïcödé ½ ﷺ", "東京タワー and 서울 I am", "\ud800 x", "a" * 5000):
        raw, low = split(text)
        assert len(raw) == len(low)
        assert all(" " not in word for word in low)


@pytest.mark.parametrize(
    ("name", "text", "spelt"),
    [
        ("Fritz Lang", "by Fritz\n Lang himself", "Fritz Lang"),
        ("Jean-Luc Godard", "x Jean-Luc Godard's", "Jean-Luc Godard"),
        ("東京", "彼は東京に", "東京"),
        ("Fritz Lang", "[[someone else]]", "fritz lang"),
    ],
)
def test_a_name_is_shown_as_the_text_spells_it(name, text, spelt):
    assert surface(key_of(name), text) == spelt
    assert surface(file_key("/notes/Fritz.md"), text) == "Fritz"


def test_a_file_is_never_found_by_words():
    assert not findable(file_key("/notes/a.md"), ENGLISH)

"""The one parser of typed queries: known filters are taken out, everything else stays a word."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.corpus.search.queries import described, join_arguments, parse, parse_line
from mindchat.values import Filters, Sought


def ns(*day: int) -> int:
    return int(datetime(*day).timestamp() * 1e9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words", "filters"),
    [
        ("river type:pdf", "river", Filters(types=(".pdf",))),
        ("type:.PDF,docx river type:md", "river", Filters(types=(".pdf", ".docx", ".md"))),
        ("path:notes river", "river", Filters(paths=("notes",))),
        ('river path:"my notes" bank', "river bank", Filters(paths=("my notes",))),
        ("before:2025-01-01 river after:2024", "river", Filters(before_ns=ns(2025, 1, 1), after_ns=ns(2024, 1, 1))),
        ("after:2024-3 river after:2023-03-01", "river", Filters(after_ns=ns(2024, 3, 1))),
        ("river in:/a/b", "river", Filters(within=(os.path.realpath("/a/b"),))),
    ],
)
def test_filters_are_taken_out_of_the_text(text: str, words: str, filters: Filters) -> None:
    assert parse(text) == Sought(words, "question", (), filters)


@pytest.mark.parametrize(
    "text",
    [
        "type:banana river",
        "type: pdf",
        "before:noon river",
        "before:2025-13-01",
        "after:2025-02-30",
        "colour:red river",
        "prototype:pdf",
        "http://type:pdf/",
        "path: river",
        "Type:pdf",
        "What does type:int mean?",
        "river  with   blanks\n\nand lines",
        '"never closed',
        '""',
        '" "',
        '"++"',
        "it's the dog's",
    ],
)
def test_what_is_no_known_filter_or_phrase_is_words(text: str) -> None:
    assert parse(text) == Sought(text, "question")


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('who sang "Country  Man"?', ("Country Man",)),
        ("“Fritz Lang” and «Thea von Harbou» and „M“", ("Fritz Lang", "Thea von Harbou", "M")),
        ('"a b" "a b" "c"', ("a b", "c")),
        ('"type:pdf in quotes"', ("type:pdf in quotes",)),
    ],
)
def test_phrases_are_kept_and_their_words_stay_in_the_text(text: str, phrases: tuple[str, ...]) -> None:
    assert parse(text).phrases == phrases
    assert parse(text).text == text


def test_a_line_takes_options_too() -> None:
    line = parse_line('--in /a -k 3 river "red bank" type:txt --in="/b c" -k none --zoom')
    assert line.k == 3
    assert line.sought.filters == Filters(types=(".txt",), within=(os.path.realpath("/a"), os.path.realpath("/b c")))
    assert line.sought.phrases == ("red bank",)
    assert line.sought.text == 'river "red bank" -k none --zoom'
    assert parse("--in /a river").filters == Filters()


def test_shell_arguments_become_the_line_that_was_meant() -> None:
    assert join_arguments(["who directed it"]) == "who directed it"
    assert join_arguments(["director", "Fritz Lang"]) == 'director "Fritz Lang"'
    assert join_arguments(["river", "path:my notes", "odd:a b"]) == 'river path:"my notes" "odd:a b"'
    assert join_arguments(['say "a b" now', "river"]) == 'say "a b" now river'
    assert join_arguments([]) == ""


def test_paths_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("x in:notes").filters.within == (str(tmp_path.resolve() / "notes"),)


def test_filters_in_words() -> None:
    assert described(Filters()) == ""
    assert (
        described(parse("type:pdf,md path:notes before:2025-01-01 x").filters)
        == "type pdf, md · path notes · before 2025-01-01"
    )


@given(st.text(max_size=60))
def test_any_text_is_a_query(text: str) -> None:
    sought = parse(text)
    if not sought.filters:
        assert sought.text == text
    assert parse(sought.text).phrases == sought.phrases
    parse_line(text)

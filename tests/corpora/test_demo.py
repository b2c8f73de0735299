"""The demo corpus keeps its promises: whole documents, named sources, questions that its own documents answer."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mindchat.text.clean import clean

DEMO = Path(__file__).resolve().parents[2] / "corpora" / "demo"
TYPES = ("bridge", "comparison", "inference", "bridge_comparison", "compositional")
SOURCE = re.compile(r'\*Source: Wikipedia, "[^"\n]+"(?:; "[^"\n]+")*\.\*')
CHOICES = re.compile(r", (?P<first>.+) or (?P<second>.+)\?$")


@cache
def documents() -> dict[str, tuple[str, str, str]]:
    """Document id to (title, body, footer)."""
    found = {}
    for path in sorted(DEMO.rglob("*.md")):
        first, body, footer = path.read_text(encoding="utf-8").split("\n\n")
        assert first.startswith("# "), path
        found[path.relative_to(DEMO).with_suffix("").as_posix()] = (first[2:], body, footer.removesuffix("\n"))
    return found


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def chained() -> list[dict[str, Any]]:
    """The questions whose hops follow one another, and not those that compare things side by side."""
    return [question for question in questions() if not question["type"].endswith("comparison")]


def words(text: str) -> str:
    """Lower-cased word characters only, one space between words, so that punctuation cannot hide an answer."""
    return " ".join(re.findall(r"\w+", text.lower()))


def holds(text: str, answer: str) -> bool:
    return f" {words(answer)} " in f" {words(text)} "


def test_there_are_enough_documents_and_questions() -> None:
    assert len(documents()) >= 80
    assert len(questions()) >= 30
    assert {identifier.split("/")[0] for identifier in documents()} == {
        "families",
        "films",
        "magazines",
        "rivers",
        "scientists",
    }


def test_every_type_of_question_is_present() -> None:
    count = Counter(question["type"] for question in questions())
    assert set(count) == set(TYPES)
    assert min(count.values()) >= 5


def test_titles_are_unique() -> None:
    titles = [title for title, _, _ in documents().values()]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("identifier", documents())
def test_a_document_is_one_short_paragraph_with_its_source(identifier: str) -> None:
    title, body, footer = documents()[identifier]
    assert "\n" not in title + body + footer
    assert SOURCE.fullmatch(footer)
    assert 55 <= len(body.split()) < 150
    assert body.endswith(".")


@pytest.mark.parametrize(
    "path",
    [*sorted(DEMO.rglob("*.md")), DEMO / "questions.jsonl", DEMO.parent / "README.md"],
    ids=lambda path: path.stem,
)
def test_a_file_is_plain_utf8_in_composed_form(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    assert unicodedata.normalize("NFC", text) == text
    assert clean(text) == text
    assert "\t" not in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_ids_and_questions_are_unique() -> None:
    for field in ("id", "question"):
        values = [question[field] for question in questions()]
        assert len(values) == len(set(values))


@pytest.mark.parametrize("question", questions(), ids=lambda question: question["id"])
def test_a_question_is_answered_by_its_supporting_documents(question: dict[str, Any]) -> None:
    assert list(question) == ["id", "question", "answers", "type", "supporting"]
    supporting = question["supporting"]
    assert len(set(supporting)) == len(supporting)
    assert 2 <= len(supporting) <= 4
    assert question["answers"]
    if question["answers"][0] in ("yes", "no"):
        assert question["type"].endswith("comparison")
        return
    if question["type"].endswith("comparison"):
        choice = CHOICES.search(question["question"])
        assert choice
        golds = {words(answer).removeprefix("the ") for answer in question["answers"]}
        assert sum(words(option).removeprefix("the ") in golds for option in choice.groups()) == 1
        return
    texts = [f"{title}\n{body}" for title, body, _ in (documents()[identifier] for identifier in supporting)]
    assert any(holds(text, answer) for text in texts for answer in question["answers"])
    assert not any(holds(question["question"], answer) for answer in question["answers"])


@pytest.mark.parametrize(
    "question", [q for q in questions() if q["type"] != "comparison"], ids=lambda question: question["id"]
)
def test_a_question_needs_more_than_the_documents_that_it_names(question: dict[str, Any]) -> None:
    titles = [re.sub(r" \([^)]*\)$", "", documents()[identifier][0]) for identifier in question["supporting"]]
    assert any(not holds(question["question"], title) for title in titles)


@pytest.mark.parametrize("question", chained(), ids=lambda question: question["id"])
def test_the_document_of_the_first_hop_does_not_give_the_answer_away(question: dict[str, Any]) -> None:
    title, body, _ = documents()[question["supporting"][0]]
    assert not any(holds(f"{title}\n{body}", answer) for answer in question["answers"])


def test_the_example_of_the_paper_is_here() -> None:
    (question,) = [
        question for question in questions() if "Charles Bretagne Marie de La Trémoille" in question["question"]
    ]
    assert question["answers"][0] == "Charles Armand René de La Trémoille"
    years = ("1764", "1839"), ("1737", "1792"), ("1708", "1741")
    for identifier, (born, died) in zip(
        (*question["supporting"], "families/charles-armand-rene-de-la-tremoille"), years, strict=True
    ):
        body = documents()[identifier][1]
        assert born in body
        assert died in body

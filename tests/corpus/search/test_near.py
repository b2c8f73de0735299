"""Names of a question that no document has: told, with what is near; names that are there in any form are not."""

from __future__ import annotations

import pytest

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.corpus.search.near import Known, Searched, asked_names
from mindchat.text.language import language
from mindchat.values import Passage

WORDS = language("en")
TEXTS = {
    "Metropolitan Opera": "The Metropolitan Opera is an opera company in New York City.",
    "Fritz Lang": "Lang, Fritz was born in Vienna. He was a director of films and of silent dramas.",
    "Đakovo Cathedral": "The cathedral of St. Peter stands in Croatia.",
    "Pedro Ramírez Vázquez": "A Mexican architect.",
    "Letters to Cleo": "An American band. Their letters came to nobody.",
    "Ulf Merbold": "A German astronaut. ESA sent him to space.",
    "Revenge (TV series)": "A drama. The Earl of Stafford is in it; 3rd Earl is another one.",
    "東京": "東京は日本の首都である。",
    "James O'Neill": "An actor of New York. The Who played there once.",
}
INDEX = MemoryIndex(
    [Passage(f"p{at}", f"{title}.txt", title, text, 0, len(text)) for at, (title, text) in enumerate(TEXTS.items())]
)


def told(question: str) -> dict[str, tuple[str, ...]]:
    return {item.name: item.near for item in INDEX.absent(question, WORDS)}


@pytest.mark.parametrize(
    "question",
    [
        "Who directed the films of Fritz Lang?",
        "Where was fritz lang born?",
        "Was Director Fritz Lang born in New York City?",
        "What are Fritz Lang's films?",
        "Is ĐAKOVO Cathedral in Croatia?",
        "Did Pedro Ramirez Vázquez see Lang?",
        "Whose father is Fritz Lang, 3Rd Earl Of Stafford?",
        "Was Ulf Merbold ESA's astronaut?",
        "Zeppelins were built when?",
        "Metropolises are what? Zeppelins?",
        "Is 「東京」 the capital?",
        "Did The Who play in 1927, on 5 December 1890 or in May 1970?",
        "Was James O’Neill an actor?",
        "Is the band “Letters to Cleo” American?",
        "What is the opera-loving Fritz Lang-directed drama?",
        "",
        "???",
    ],
)
def test_what_stands_somewhere_is_not_told(question: str) -> None:
    assert told(question) == {}


@pytest.mark.parametrize(
    ("question", "name", "near"),
    [
        ("Who directed Metropolis?", "Metropolis", "Metropolitan Opera"),
        ("Where was Fritz Lnag born?", "Fritz Lnag", "Fritz Lang"),
        ("Where was Frits Lang born?", "Frits Lang", "Fritz Lang"),
        ("Who sings in Lstters to Cleo?", "Lstters to Cleo", "Letters to Cleo"),
        ("Is the band “Lettres to Cleo” old?", "Lettres to Cleo", "Letters to Cleo"),
        ("What is the series Revnge about?", "Revnge", "Revenge (TV series)"),
        ("Who is the director of the Zeppelin?", "Zeppelin", ""),
        ("Was Walter Quimby born in Vienna?", "Walter Quimby", ""),
        ("Was Fritz Quimby born in Vienna?", "Fritz Quimby", ""),
        ("What does iZeppelin mean?", "iZeppelin", ""),
        ("Is 「大阪」 a city?", "大阪", ""),
    ],
)
def test_what_stands_nowhere_is_told_with_the_nearest_name(question: str, name: str, near: str) -> None:
    assert list(told(question)) == [name]
    assert told(question)[name][:1] == ((near,) if near else ())


def test_a_first_word_is_no_name_by_its_capital_but_quotes_make_one() -> None:
    assert asked_names("Zeppelin was what? Metropolis too.", WORDS) == []
    assert [name.text for name in asked_names("“Zeppelin” was what?", WORDS)] == ["Zeppelin"]


def test_several_names_are_told_once_each_in_order() -> None:
    assert list(told("Are Metropolis and Zeppelin like Metropolis?")) == ["Metropolis", "Zeppelin"]


def test_control_characters_of_a_question_or_a_title_go_nowhere() -> None:
    index = MemoryIndex([Passage("p", "d", "Metro\x1b[31mpolitan", "Text.", 0, 5)])
    shown = "".join(item.name + "".join(item.near) for item in index.absent("Who made “Metro\x1b[2Jpolitan”?", WORDS))
    assert shown.isprintable()


def test_at_most_three_are_near_and_none_twice() -> None:
    assert Known(["Bergen", "Berg", "Bergan", "Bergin", "Bergun", "Bergen"]).near("Bergon") == (
        "Bergan",
        "Bergen",
        "Bergin",
    )
    assert Known([]).near("Bergon") == ()
    assert Known(["", "???", "Bergen"]).near("!!!") == ()


def test_short_names_are_not_found_inside_longer_ones() -> None:
    assert Known(["Johann Hulsman", "Hannover"]).near("Ann") == ()


def test_known_names_are_gathered_only_when_a_name_is_missing() -> None:
    def known() -> Known:
        raise AssertionError("nobody asked")

    source = Searched(INDEX.search, known, Analyzer("en"))
    assert source.holds("Fritz Lang")
    assert source.holds("the of")  # nothing to look for is not missing
    assert not source.holds("Fritz Quimby")


def test_a_name_that_only_other_documents_have_is_missing_under_a_filter() -> None:
    from mindchat.corpus.search.looking import look
    from mindchat.corpus.search.queries import parse

    class Places:
        def places(self, id: str) -> tuple[str, ...]:
            return ()

    def missing(line: str) -> list[str]:
        return [item.name for item in look(INDEX, Places(), parse(line), 3, WORDS).absent]

    assert missing("Who is Fritz Lang?") == []
    assert missing("Who is Fritz Lang? path:fritz") == []
    assert missing("Who is Fritz Lang? path:opera") == ["Fritz Lang"]

"""Chosen sentences: exact, whole, in order, within the budget, and the right ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.evidence import asking, select
from mindchat.values import Passage

from ..fakes import passage

ASK = asking("en")
QUESTION = "Where was the director of Metropolis born?"
FILM = passage(
    "film",
    "Metropolis is a film of 1927. It was shot in Babelsberg. Thousands of extras appeared in it. It was directed by"
    " Fritz Lang.",
    "Metropolis (1927 film)",
    40,
)
LANG = passage(
    "lang",
    "Fritz Lang was a director. He liked tea. He wore a monocle on most days of his life. He was born in Vienna. He"
    " never drove a car.",
    "Fritz Lang",
    7,
)
TEA = passage("tea", "Tea is a drink. It is made from leaves. Much of it is grown in Assam.", "Tea")


def slices(chosen: object, *passages: Passage) -> list[str]:
    """The words of each stretch, by document offsets."""
    texts = {p.id: (p.text, p.start) for p in passages}
    return [texts[e.passage][0][e.start - texts[e.passage][1] : e.end - texts[e.passage][1]] for e in chosen]  # type: ignore[attr-defined]


def test_the_chain_survives_a_small_budget() -> None:
    told = " ".join(slices(select(QUESTION, (FILM, LANG, TEA), 32, ASK), FILM, LANG, TEA))
    assert "directed by Fritz Lang" in told
    assert "born in Vienna" in told
    assert "tea" not in told


@pytest.mark.parametrize(
    ("question", "kept", "left"),
    [
        (
            "Who is the mother of Ann Droid?",
            "She was the daughter of Eve Droid.",
            "She sang.",
        ),  # a relation said the other way round
        ("When did Ann Droid marry?", "She married Bob in 1905.", "She sang in many towns."),
        ("In which town did Ann Droid die?", "She was killed near Lyon.", "She sang in 1901."),
        ("How many songs did Ann Droid record?", "Seven songs of hers exist.", "She lived quietly."),
    ],
)
def test_relation_and_type_find_what_overlap_does_not(question: str, kept: str, left: str) -> None:
    source = passage("p", f"Ann Droid was a singer. {left} {kept}", "Ann Droid")
    budget = 2 + 5 + len(kept.split())
    assert slices(select(question, (source,), budget, ASK), source) == ["Ann Droid was a singer.", kept]


def test_neighbours_are_one_stretch_and_strangers_two() -> None:
    assert slices(select("Ann?", (TEA,), 100, ASK), TEA) == [TEA.text]
    apart = slices(select("Who directed Metropolis?", (FILM,), 15, ASK), FILM)
    assert apart == ["Metropolis is a film of 1927.", "It was directed by Fritz Lang."]


def test_one_sentence_is_chosen_even_if_it_is_too_long() -> None:
    assert slices(select(QUESTION, (FILM,), 1, ASK), FILM) == ["Metropolis is a film of 1927."]


def test_headings_and_source_lines_say_nothing() -> None:
    text = (
        '# Fritz Lang\n\nFritz Lang was a director. He was born in Vienna.\n\n*Source: Wikipedia, "Fritz Lang";'
        ' "Metropolis".*'
    )
    page = passage("p", text, "Fritz Lang")
    assert slices(select("Where was Fritz Lang, the director of Metropolis, born?", (page,), 100, ASK), page) == [
        "Fritz Lang was a director. He was born in Vienna."
    ]
    section = passage("p", "## Early life\n\nHe was the son of a builder. He drew.", "Fritz Lang")
    assert slices(select("What did he do?", (section,), 9, ASK), section) == ["He was the son of a builder."]
    bare = passage("p", "Fritz Lang", "Fritz Lang")
    assert slices(select("Who is Fritz Lang?", (bare,), 9, ASK), bare) == ["Fritz Lang"]


@pytest.mark.parametrize("passages", [(), (passage("p", ""),), (passage("p", " \n\n "),)])
def test_nothing_to_choose_from(passages: tuple[Passage, ...]) -> None:
    assert select(QUESTION, passages, 100, ASK) == ()


def test_a_text_without_sentences_is_one() -> None:
    table = passage("t", "Name | Born\nFritz Lang | Vienna\nThea Harbou | Tauperlitz", "people.csv")
    assert "Vienna" in " ".join(slices(select("Where was Fritz Lang born?", (table,), 9, ASK), table))


TEXTS = st.lists(st.text(alphabet="ab Z.!?\n19é。", max_size=80), max_size=4)


@given(TEXTS, st.text(alphabet="ab Z?19", max_size=20), st.integers(0, 60))
def test_stretches_are_exact_whole_and_ordered(texts: list[str], question: str, budget: int) -> None:
    passages = [passage(f"p{n}", text, f"T{n}", start=3 * n) for n, text in enumerate(texts)]
    chosen = select(question, passages, budget, ASK)
    by_id = {p.id: p for p in passages}
    places = [(int(e.passage[1:]), e.start, e.end) for e in chosen]
    assert places == sorted(places)
    words = 0
    for evidence in chosen:
        source = by_id[evidence.passage]
        assert source.start <= evidence.start < evidence.end <= source.end
        said = source.text[evidence.start - source.start : evidence.end - source.start]
        assert said == said.strip()
        words += len(said.split())
    assert words <= budget or len(chosen) == 1
    assert bool(chosen) == any(text.strip() for text in texts)
    assert select(question, passages, budget, ASK) == chosen

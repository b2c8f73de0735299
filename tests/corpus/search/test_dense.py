"""Mixing meaning with words: the ranker alone, over given scores."""

from __future__ import annotations

import pytest

from mindchat.config import RetrieveSection
from mindchat.corpus.search.answers import answered, reasoned
from mindchat.corpus.search.dense import NEAREST, Mixed
from mindchat.corpus.search.rankers import chosen, make_ranker
from mindchat.values import Found, Passage

from .test_links import Given, graph_of


class Both(Given):
    """Words' scores and likenesses as given, by row."""

    def __init__(self, scores: dict[int, float], near: dict[int, float], forbidden: tuple[int, ...] = ()) -> None:
        super().__init__(scores, forbidden)
        self.near = near

    def nearest(self, n: int) -> list[tuple[int, float]]:
        return sorted(((row, c) for row, c in self.near.items() if self.allowed(row)), key=lambda pair: -pair[1])[:n]


def rank(words: Both, **settings) -> list:
    section = RetrieveSection(**({"dense": "on", "links": "off", "dense_weight": 0.5} | settings))
    return make_ranker(chosen(section), graph_of(), section).rank(words, "?", 5)


def test_what_no_word_finds_is_found_by_its_meaning() -> None:
    hits = rank(Both({}, {3: 0.6, 1: 0.3}))
    assert [hit.row for hit in hits] == [3, 1]
    assert [hit.words for hit in hits] == [0, 0]
    assert hits[0].score == hits[0].meaning == 0.5


def test_half_and_half_a_passage_that_both_find_is_first() -> None:
    hits = rank(Both({0: 10.0, 1: 9.0}, {1: 0.8, 3: 0.8}))
    assert [hit.row for hit in hits] == [1, 0, 3]
    first = hits[0]
    assert (first.words, first.meaning, first.score) == (4.5, 5.0, 9.5)


@pytest.mark.parametrize(("weight", "rows"), [(0.0, [0, 1]), (1.0, [3, 1])])
def test_the_weight_goes_from_words_alone_to_meaning_alone(weight: float, rows: list[int]) -> None:
    assert [hit.row for hit in rank(Both({0: 10.0, 1: 9.0}, {1: 0.4, 3: 0.8}), dense_weight=weight)][:2] == rows


def test_without_vectors_the_ranking_is_that_of_words_and_links() -> None:
    words = Both({0: 10.0, 3: 6.0}, {})
    for links in ("on", "off"):
        plain = RetrieveSection(links=links)
        assert rank(words, links=links) == make_ranker(chosen(plain), graph_of(), plain).rank(words, "?", 5)


def test_names_lead_on_from_what_meaning_found() -> None:
    hits = rank(Both({}, {0: 0.9}), links="on")
    assert [hit.row for hit in hits] == [0, 1, 2]
    assert [hit.source for hit in hits] == [-1, 0, 1]


def test_forbidden_passages_stay_out() -> None:
    assert [hit.row for hit in rank(Both({0: 1.0}, {3: 0.9, 4: 0.8}, forbidden=(3,)))] == [0, 4]


def test_the_best_of_a_mix_is_exact_whatever_is_asked_for() -> None:
    words = Both({row: 100.0 - row for row in range(90)}, {row: row / 200 for row in range(5, 190)})
    mixed = Mixed(words, words.nearest(NEAREST), 0.5)
    everything = sorted(range(190), key=lambda row: -mixed.of(row))
    for n in (1, 3, 10, 60):
        assert [score for _, score in mixed.best(n)] == pytest.approx([mixed.of(row) for row in everything[:n]])


def test_each_passage_is_told_by_what_brought_it() -> None:
    graph = graph_of()
    passages = {f"p{n}": Passage(f"p{n}", f"/{n}", f"T{n}", f"text {n}", 0, 6) for n in range(5)}
    settings = RetrieveSection(dense="on")
    hits = make_ranker("dense", graph, settings).rank(Both({0: 10.0}, {3: 0.9, 0: 0.5}), "?", 5)
    found = answered(reasoned(hits, graph.ids, graph), "?", 3, passages.get)
    by = {passage.id: passage.found for passage in found}
    assert by["p0"] == Found()
    assert by["p1"].by == "link"
    assert by["p3"] == Found("dense")

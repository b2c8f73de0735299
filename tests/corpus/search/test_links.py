from __future__ import annotations

import pytest

from mindchat.config import RetrieveSection
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.rankers import RANKERS, ByWords, make_ranker
from mindchat.corpus.search.weave import Weaver
from mindchat.errors import UsageError
from mindchat.values import Passage

TITLES = ["Metropolis", "Fritz Lang", "Vienna", "Bread", "Rail"]
TEXTS = ["A film by Fritz Lang.", "A director, born in Vienna.", "A city on the Danube.", "Flour and water.", "Steel."]


class Given:
    """Words' scores as given, by row."""

    def __init__(self, scores: dict[int, float], forbidden: tuple[int, ...] = ()) -> None:
        self.scores, self.forbidden = scores, forbidden

    def best(self, n: int) -> list[tuple[int, float]]:
        kept = [(row, score) for row, score in self.scores.items() if self.allowed(row)]
        return sorted(kept, key=lambda item: -item[1])[:n]

    def of(self, row: int) -> float:
        return self.scores.get(row, 0.0)

    def allowed(self, row: int) -> bool:
        return row not in self.forbidden

    def nearest(self, n: int) -> list[tuple[int, float]]:
        return []


def graph_of(titles=TITLES, texts=TEXTS) -> Graph:
    weaver = Weaver(Analyzer("en"))
    pairs = enumerate(zip(titles, texts, strict=True))
    passages = [Passage(f"p{n}", f"/c.jsonl#{n}", title, text, 0, len(text)) for n, (title, text) in pairs]
    for passage in passages:
        weaver.offer(passage)
    return weaver.graph(passages)


def rank(words: Given, question: str = "?", name: str = "links", k: int = 5, **settings) -> list:
    return make_ranker(name, graph_of(), RetrieveSection(**settings)).rank(words, question, k)


def test_what_a_good_passage_names_is_found_with_the_reason():
    hits = rank(Given({0: 10.0, 3: 6.0}), link_depth=1)
    assert [hit.row for hit in hits] == [0, 1, 3]
    graph, link = graph_of(), hits[1]
    assert (graph.key(link.name), link.source, link.words) == ("fritz lang", 0, 0.0)
    assert 6.0 < link.score <= 8.0
    assert (hits[0].score, hits[0].name) == (10.0, -1)


def test_two_steps_lead_on_from_what_the_first_found():
    one, two = rank(Given({0: 10.0}), link_depth=1), rank(Given({0: 10.0}), link_depth=2)
    assert [hit.row for hit in one] == [0, 1]
    assert [(hit.row, hit.source) for hit in two] == [(0, -1), (1, 0), (2, 1)]
    assert two[2].score < two[1].score


def test_the_questions_own_names_lead_too():
    hits = rank(Given({3: 5.0}), "What is Vienna?")
    assert [(hit.row, hit.source) for hit in hits] == [(3, -1), (2, -1)]
    assert graph_of().key(hits[1].name) == "vienna"


@pytest.mark.parametrize("name", RANKERS)
def test_every_ranker_keeps_the_words_scale_and_forbidden_passages_out(name):
    hits = rank(Given({0: 10.0, 3: 6.0, 4: 1.0}, forbidden=(1, 3)), "Vienna", name, link_weight=0.5)
    assert {1, 3}.isdisjoint(hit.row for hit in hits)
    assert hits[0].row == 0
    assert all(hit.score >= hit.words >= 0 for hit in hits)
    assert len(rank(Given({0: 10.0, 3: 6.0, 4: 1.0}), "Vienna", name, k=2)) == 2
    assert rank(Given({}), "Vienna", name) == []


def test_a_walker_visits_what_is_named():
    assert [hit.row for hit in rank(Given({0: 10.0, 3: 1.0}), "film", "pagerank")][:2] == [0, 1]


def test_weight_nought_is_ranking_by_words():
    words = Given({0: 10.0, 3: 6.0, 4: 1.0})
    linked, plain = rank(words, "Vienna", link_weight=0.0), rank(words, "Vienna", "words")
    assert [hit.row for hit in linked][:3] == [hit.row for hit in plain]


def test_without_a_graph_words_alone_rank_and_an_unknown_ranker_is_told():
    assert isinstance(make_ranker("links", None, RetrieveSection()), ByWords)
    with pytest.raises(UsageError, match="links"):
        make_ranker("link", graph_of(), RetrieveSection())

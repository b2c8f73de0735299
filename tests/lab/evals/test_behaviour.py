from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.lab.evals import behaviour
from mindchat.lab.evals.examples import Example, Gold, Source, Support
from mindchat.trace import Trace, fold_all
from mindchat.values import Answer, Citation, Entity, Passage, Query, Sifted

GOLD = Gold(("x",), supporting=(Support("A", "a"), Support("B (film)", "b")), entities=("A", "B (film)", "Carl May"))


def p(id_: str, title: str = "") -> Passage:
    return Passage(id_, f"corpus.jsonl#{id_}", title, f"text of {id_}", 0, 9)


def hop(n: int, query: str, found: list[Passage], kept: str = "", triggered: bool = True) -> list[ev.Event]:
    events: list[ev.Event] = [ev.RetrievalTriggered(n, "w", 1.0, 0.5, 1.0, 1.0, "")] if triggered else []
    if kept:
        events.append(
            ev.EntitiesFiltered("conf", (Sifted(Entity(kept), True, ""), Sifted(Entity("Carl May"), False, "")))
        )
    return [*events, ev.QueryFormed(Query(query), n), ev.PassagesFound(query, tuple(found), len(found))]


def trace(*hops: list[ev.Event], citations: tuple[Citation, ...] = ()) -> Trace:
    last = ev.AnswerReady(Answer("x", "x", False, "sourced", citations), "answered")
    return fold_all([*(event for one in hops for event in one), last])


def test_recall_and_precision_of_distinct_passages() -> None:
    turn = trace(hop(1, "q", [p("a"), p("z")]), hop(2, "r", [p("a"), p("y")]))
    assert behaviour.retrieval(turn, GOLD) == {
        "support_recall": 0.5,
        "support_all": 0.0,
        "support_precision": pytest.approx(1 / 3),
    }


def test_support_without_an_id_is_matched_by_title() -> None:
    gold = Gold(("x",), supporting=(Support("Paris"),))
    assert behaviour.retrieval(trace(hop(1, "q", [p("any", "Paris")])), gold)["support_recall"] == 1.0
    assert behaviour.retrieval(trace(hop(1, "q", [p("any", "Paris (Texas)")])), gold)["support_recall"] == 0.0


@pytest.mark.parametrize(
    ("name", "right"),
    [("north.md", 1.0), ("docs/north", 1.0), ("north", 1.0), ("orth", 0.0), ("p1", 1.0), ("other/north", 0.0)],
)
def test_support_may_name_a_document(name: str, right: float) -> None:
    gold = Gold(("x",), supporting=(Support(name, name),))
    found = Passage("p1", "/somewhere/docs/north.md", "North", "text", 0, 4)
    assert behaviour.retrieval(trace(hop(1, "q", [found])), gold)["support_recall"] == right


def test_nothing_is_claimed_where_nothing_was_searched() -> None:
    assert behaviour.retrieval(trace(), GOLD) == {}
    assert behaviour.triggers(trace(), GOLD) == {}
    assert behaviour.entities(trace(), GOLD) == {}
    assert behaviour.citations(trace(), Example("1", "d", "q"), GOLD) == {}
    assert behaviour.retrieval(trace(hop(1, "q", [])), Gold(("x",))) == {}


def test_a_trigger_is_useful_if_it_brings_new_support() -> None:
    turn = trace(
        hop(0, "before", [p("a")], triggered=False), hop(1, "q", [p("a")]), hop(2, "r", [p("b")]), hop(3, "s", [p("z")])
    )
    assert behaviour.triggers(turn, GOLD) == {"trigger_precision": pytest.approx(1 / 3)}


def test_entities_are_covered_by_kept_ones_and_by_queries() -> None:
    turn = trace(hop(1, "when was the film B made", [], kept="Mr A Smith"))
    assert behaviour.entities(turn, GOLD) == {
        "entity_coverage": pytest.approx(1 / 2)
    }  # "A" is an article and normalises away


def test_citations_are_checked_against_gold_and_text() -> None:
    example = Example("1", "d", "q", (Source("A", "text of a", "a"),))
    cited = (Citation(1, "d", "a", 0, 4, "text", "span"), Citation(2, "d", "z", 0, 3, "nothing", "model"))
    turn = trace(hop(1, "q", [p("a"), p("z")]), citations=cited)
    assert behaviour.citations(turn, example, GOLD) == {"citation_precision": 0.5, "citation_exact": 1.0}

"""The filters: what goes in comes out once, in order, with a reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.entities import FILTERS
from mindchat.entities.confidence import entity_confidence, token_confidence
from mindchat.models.scripted import Reply
from mindchat.values import Entity, Sifted, Span, TurnState

from ..fakes import ask, config, draft, plug

HOP = TurnState(1, "Who is the mother of the director of Metropolis?")
POLAR = TurnState(1, "Is Fritz Lang older than Marie Curie?")
ANCHOR = Entity("Metropolis")
SURE, UNSURE = Entity("Fritz Lang", span=Span(0, 2), confidence=0.9), Entity("1931", span=Span(3, 4), confidence=0.3)


def keep(
    name: str, found: Sequence[Entity], reply: str = "", *sets: str, hop: TurnState = HOP
) -> tuple[Sequence[Sifted], bool]:
    return plug(FILTERS, name, config(*sets)).keep(found, hop, ask([Reply(reply)] * 3))


def kept(sifted: Sequence[Sifted]) -> list[str]:
    return [item.entity.text for item in sifted if item.kept]


def test_confidence_of_the_unit_vectors() -> None:
    assert token_confidence(0, 1, 1, 0.2) == pytest.approx(1.2)
    assert token_confidence(1, 0.5, 1, 0.2) == pytest.approx(0.6)


def test_the_last_token_of_a_known_name_saturates_the_maximum() -> None:
    name = draft(("Z", 6.0, 0.0), ("yx", 4.0, 0.0), ("ville", 0.0, 0.0))
    scores = entity_confidence(name, Span(0, 3), 1, 0.2)
    assert scores["max"] == pytest.approx(1.0)
    assert scores["first"] == scores["min"] == pytest.approx(1 / 7)


def test_no_confidence_where_nothing_was_measured() -> None:
    assert entity_confidence(draft(("a", 1.0)), Span(1, 1), 1, 0.2) == {}


entities = st.lists(
    st.builds(
        lambda n, c: Entity(f"E{n}", span=None if c is None else Span(0, 1), confidence=c),
        st.integers(0, 99),
        st.none() | st.floats(0.01, 1.2),
    ),
    max_size=8,
    unique_by=lambda e: e.text,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FILTERS)), entities, st.text(max_size=60))
def test_every_filter_gives_each_entity_once_in_order_with_a_reason(name: str, found: list[Entity], reply: str) -> None:
    sifted, rescued = keep(name, found, reply.replace("{", "(").replace("}", ")"))
    assert [item.entity for item in sifted] == found
    assert all(item.why for item in sifted)
    assert not rescued or len(kept(sifted)) == 1
    if name in ("cot", "conf+cot", "auto") and found and not (name == "auto" and not any(i.kept for i in sifted)):
        assert kept(sifted), "the model's filter never leaves nothing"


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_nothing_in_nothing_out(name: str) -> None:
    assert keep(name, []) == ([], False)


def test_confidence_keeps_the_sure_and_the_anchors() -> None:
    sifted, rescued = keep("conf", [ANCHOR, SURE, UNSURE])
    assert kept(sifted) == ["Metropolis", "Fritz Lang"]
    assert "0.30 < 0.5" in sifted[2].why
    assert not rescued


def test_anchors_survive_confidence_even_when_nothing_generated_mentions_them() -> None:
    assert kept(keep("conf", [ANCHOR])[0]) == ["Metropolis"]


def test_confidence_keeps_the_best_k() -> None:
    many = [Entity(f"E{n}", span=Span(n, n + 1), confidence=0.6 + n / 100) for n in range(8)]
    sifted, _ = keep("conf", many, "", "filter.k=3")
    assert kept(sifted) == ["E5", "E6", "E7"]
    assert "not among the best 3" in sifted[0].why


def test_chain_of_thought_keeps_and_drops_with_the_models_reasons() -> None:
    sifted, _ = keep(
        "cot", [ANCHOR, SURE, UNSURE], " keep: asked about\n2 keep: its director\n3 drop: a year says nothing"
    )
    assert kept(sifted) == ["Metropolis", "Fritz Lang"]
    assert sifted[2].why == "cot: a year says nothing"


def test_what_the_model_does_not_judge_readably_is_kept_and_said() -> None:
    sifted, _ = keep("cot", [ANCHOR, SURE, UNSURE], " drop: no\n2 perhaps")
    assert kept(sifted) == ["Fritz Lang", "1931"]
    assert "no readable decision" in sifted[1].why


def test_if_all_are_dropped_the_anchor_is_rescued_and_counted() -> None:
    sifted, rescued = keep("cot", [SURE, ANCHOR], " drop: a\n2 drop: b")
    assert (kept(sifted), rescued) == (["Metropolis"], True)
    assert "rescued" in sifted[1].why


def test_the_hybrid_asks_the_model_first_and_rescues_the_most_confident() -> None:
    weak = Entity("Lang", span=Span(0, 1), confidence=0.4)
    sifted, rescued = keep("conf+cot", [UNSURE, weak], " keep: x\n2 keep: y")
    assert (kept(sifted), rescued) == (["Lang"], True)


def test_auto_takes_confidence_for_comparisons_and_the_model_for_the_rest() -> None:
    polar, _ = keep("auto", [SURE, UNSURE], " keep: a\n2 keep: b", hop=POLAR)
    assert kept(polar) == ["Fritz Lang"]
    bridge, _ = keep("auto", [SURE, UNSURE], " drop: a\n2 keep: b")
    assert kept(bridge) == ["1931"]


def test_auto_does_not_ask_about_a_single_entity() -> None:
    asked = ask([])
    assert kept(plug(FILTERS, "auto", config()).keep([UNSURE], HOP, asked)[0]) == ["1931"]
    assert asked.drain() == []

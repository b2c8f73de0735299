"""Corrections by a person."""

from __future__ import annotations

from mindchat.memory import verbs

from ..conftest import World


def test_confirming_a_superseded_fact_that_lives_again_confirms_the_living_one(world: World) -> None:
    memory = world.memory()
    first = verbs.add(memory, "Ann Lee | place_of_birth | Vienna")
    verbs.add(memory, "Ann Lee | place_of_birth | Graz", resolve="replace")
    verbs.add(memory, "Ann Lee | place_of_birth | Vienna", resolve="replace")
    old = [
        fact
        for fact in verbs.list_facts(memory, status="all").facts
        if fact.status == "superseded" and "Vienna" in str(fact)
    ]
    living = [fact for fact in verbs.list_facts(memory).facts if "Vienna" in str(fact)]
    assert first.exit_code == 0
    assert old
    assert [fact.status for fact in living] == ["active"]
    for fact in [*old, *living]:
        verbs.confirm(memory, [fact.id])
    assert [fact.id for fact in verbs.list_facts(memory).facts if "Vienna" in str(fact)] == [living[0].id]

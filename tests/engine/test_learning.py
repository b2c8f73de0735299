"""What a whole turn leaves in memory, on a tape. The letters are those of the design note's list of complaints about
memories.
"""

from __future__ import annotations

import re

from mindchat import events as ev
from mindchat.config import MemorySection
from mindchat.lab.volatile_memory import VolatileMemory
from mindchat.memory import verbs
from mindchat.memory.facts import FactMemory
from mindchat.models.scripted import Reply

from ..fakes import of, run

QUESTION = "Who directed the film Metropolis?"
FLAGGED = "The film Metropolis was directed by Ann{9,0.9} Droid in Berlin."
HOP = [" Ann Droid | Metropolis - director", " Who directed Metropolis?"]
SURE = Reply(scores={" Fritz Lang": -0.01})


def statements(memory: FactMemory) -> list[str]:
    return [row["statement"] for row in memory.store.rows("SELECT statement FROM fact ORDER BY id")]


def test_a5_words_that_a_turn_takes_back_leave_no_fact() -> None:
    memory = VolatileMemory(MemorySection())
    tape = [
        FLAGGED,
        *HOP,
        " Fritz Lang. So the answer is Fritz Lang.",
        "Fritz Lang",
        SURE,
    ]
    events = run(QUESTION, tape, "engine.filter=none", memory=memory)
    assert of(events, ev.TextRetracted)[0].text == " Ann Droid in Berlin."
    assert statements(memory) == ["Metropolis — director — Fritz Lang"]


def test_a5_a_first_answer_that_no_passage_states_leaves_no_fact() -> None:
    memory = VolatileMemory(MemorySection())
    run(QUESTION, ["Ann Droid", SURE], "engine.policy=once", memory=memory)
    assert statements(memory) == []


def test_e1_the_answer_is_written_before_anything_is_learned() -> None:
    events = run(QUESTION, ["Fritz Lang", SURE], "engine.policy=once", memory=VolatileMemory(MemorySection()))
    kinds = [type(event) for event in events]
    assert kinds.index(ev.FactsLearned) > max(n for n, kind in enumerate(kinds) if kind is ev.TokenDrafted)


def test_e3_no_prompt_holds_more_than_twelve_facts_whatever_memory_holds() -> None:
    memory = VolatileMemory(MemorySection(max_facts=6))
    for n in range(60):
        verbs.add(memory, f"Metropolis | cast member | Actor Number{n}")
    tape = [
        FLAGGED,
        " Ann Droid | Metropolis - director",
        " Who starred in Metropolis?",
        FLAGGED,
        " Ann Droid",
        " Who acted in Metropolis?",
        "Lang",
    ]
    events = run(
        QUESTION, [*tape, *["So the answer is Lang."] * 6], "engine.filter=none", "rind.first=true", memory=memory
    )
    sent = [event.sent for event in of(events, ev.PromptBuilt)]
    assert any("[m1] Metropolis | " in text for text in sent)
    for text in sent:
        blocks = re.findall(r"<memory.*?</memory>", text, re.DOTALL)
        assert all(len(re.findall(r"^\[m\d+\]", block, re.MULTILINE)) <= 12 for block in blocks)


def test_g13_an_endless_answer_teaches_nothing_and_is_not_asked_again() -> None:
    memory = VolatileMemory(MemorySection())
    events = run(QUESTION, [Reply("\n \t" * 200, ends=False), SURE], "engine.policy=once", memory=memory)
    assert statements(memory) == []
    assert [event.kind for event in of(events, ev.ModelAsked)].count("answer") == 1

"""Recall, learning and the gate between them."""

from __future__ import annotations

import os

import msgspec
import pytest

from mindchat.config import MemorySection
from mindchat.errors import MindChatError
from mindchat.lab.volatile_memory import VolatileMemory
from mindchat.memory.facts import FactMemory
from mindchat.memory.learning.confidence import Calibration, Signals, answer_signals, calibration_file, judge, may_skip
from mindchat.memory.learning.grounding import ground
from mindchat.memory.learning.slots import parse, relation_words
from mindchat.memory.learning.verification import prompt, verify
from mindchat.values import Draft, Passage, Query, Span, Token

from .conftest import DIRECTOR, FILM, MOTHER, PERSON, World, YesAsk, draft

Taught = tuple[World, FactMemory]


def test_what_was_learned_answers_the_next_question_with_its_passage(taught: Taught) -> None:
    world, memory = taught
    recalled = memory.recall(Query("Who directed the film Polish-Russian War?"))
    assert recalled.facts[0].object == "Xawery Żuławski"
    assert [p.text for p in recalled.skip] == [FILM]
    assert recalled.skip[0] == world.registry.passage(recalled.skip[0].id)
    assert recalled.facts[0].id in recalled.why
    assert recalled.facts[0].source == "films.txt §1"
    assert recalled.facts[0].quote in FILM


def test_it_survives_a_restart_and_needs_no_accents(taught: Taught) -> None:
    world, _ = taught
    recalled = world.memory("s2").recall(Query("xawery zulawski's mother"))
    assert recalled.facts[0].object == "Małgorzata Braunek"
    assert recalled.skip


def test_an_unrelated_question_gets_an_empty_block(taught: Taught) -> None:
    _, memory = taught
    for question in ("What is the capital of France?", "Who directed Jaws?", "hello", "is it raining", ""):
        recalled = memory.recall(Query(question))
        assert (recalled.facts, recalled.skip) == ((), ()), question


def test_a_name_may_be_a_word_of_a_relation(world: World) -> None:
    world.write("a.txt", "The Zone is a film directed by Ann Lee.", "The Zone (2017 film)")
    memory = world.memory()
    world.learn(memory, "Who directed The Zone?", "Ann Lee")
    assert "zone" in relation_words()
    assert [fact.object for fact in memory.recall(Query("Where was the director of The Zone born?")).facts] == [
        "Ann Lee"
    ]
    assert memory.recall(Query("What is the time zone of Paris?")).facts == ()


def test_facts_one_hop_further_come_after_the_slot(taught: Taught) -> None:
    _, memory = taught
    facts = memory.recall(Query("Who directed Polish-Russian War?")).facts
    assert [fact.predicate for fact in facts] == ["director", "mother"]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("Who directed Polish-Russian War according to the latest source?", "not in memory"),
        ("Tell me about Polish-Russian War", "no known relation"),
        ("Who is the child of Xawery Żuławski?", "not in memory"),
    ],
)
def test_no_skip(taught: Taught, question: str, why: str) -> None:
    _, memory = taught
    recalled = memory.recall(Query(question))
    assert recalled.skip == ()
    assert why in recalled.why


def test_the_gate_hears_the_wish_to_look_and_the_wrong_year(taught: Taught) -> None:
    _, memory = taught
    reader, slot = memory.reader, parse(DIRECTOR[0])
    found = reader.find(DIRECTOR[0], slot, 6)
    assert reader.gate(DIRECTOR[0], found, 0.9)[0] is not None
    for cue in ("check", "the latest", "according to films.txt", "how many", "currently"):
        assert reader.gate(f"{DIRECTOR[0]} {cue}", found, 0.9) == (None, "the question asks for a look")


def test_a_mutable_fact_has_a_time_to_live_and_a_time(world: World) -> None:
    world.write("a.txt", "Acme is headquartered in Berlin.", "Acme")
    memory = world.memory()
    question = "Where is Acme headquartered?"
    world.learn(memory, question, "Acme is headquartered in Berlin.")
    assert memory.recall(Query(question)).skip
    assert memory.recall(Query("Where was Acme headquartered in 1990?")).skip == ()
    with memory.store.write() as connection:
        connection.execute("UPDATE fact SET recorded_at='2001-01-01T00:00:00.000Z'")
    assert "out of date" in memory.recall(Query(question)).why


@pytest.mark.parametrize(("skip", "skips"), [("on", True), ("assist", False), ("off", False)])
def test_the_setting_of_skipping(taught: Taught, skip: str, skips: bool) -> None:
    world, _ = taught
    recalled = world.memory(skip=skip).recall(Query(DIRECTOR[0]))
    assert recalled.facts
    assert bool(recalled.skip) is skips


def test_the_weak_and_the_unverified_stay_candidates(films: World) -> None:
    memory = films.memory()
    learned, _ = memory.learn([films.harvest(*DIRECTOR)], None)
    assert learned[0].fact.status == "candidate"
    learned, _ = memory.learn([films.harvest(*MOTHER, entropy=3.0)], YesAsk())  # type: ignore[arg-type]
    assert learned[0].fact.status == "candidate"
    learned, _ = memory.learn(
        [films.harvest("When was Xawery Żuławski born?", "He was born on 22 December 1971.")], YesAsk(0.1)
    )  # type: ignore[arg-type]
    assert learned[0].fact.status == "candidate"
    assert memory.recall(Query(DIRECTOR[0])).facts == ()


def test_a_second_document_promotes_a_candidate(films: World) -> None:
    memory = films.memory()
    memory.learn([films.harvest(*DIRECTOR)], None)
    memory.learn([films.harvest(*DIRECTOR)], None)
    assert memory.store.value("SELECT status FROM fact") == "candidate", (
        "reading one document twice is no second source"
    )
    films.write("other.txt", "Polish-Russian War was directed by Xawery Żuławski in 2009.", "Other")
    film, *_, other = films.passages()
    harvest = films.harvest(*DIRECTOR)
    memory.learn([msgspec.structs.replace(harvest, passages=(other,))], None)
    assert memory.store.row("SELECT status, support FROM fact")[:] == ("active", 2)  # type: ignore[index]
    assert film.id != other.id


@pytest.mark.parametrize(
    ("name", "status"), [("none", "active"), ("conf", "candidate"), ("cot", "active"), ("conf+cot", "candidate")]
)
def test_filters(films: World, name: str, status: str) -> None:
    learned, _ = films.memory(filter=name).learn([films.harvest(*DIRECTOR, entropy=3.0)], YesAsk())  # type: ignore[arg-type]
    assert learned[0].fact.status == status


def test_one_model_call_a_claim_and_none_for_nothing(films: World) -> None:
    ask = YesAsk()
    memory = films.memory()
    memory.learn(
        [
            films.harvest(*DIRECTOR),
            films.harvest("Who is tall?", "Bob is tall."),
            films.harvest("Who directed Jaws?", "Spielberg."),
        ],
        ask,
    )  # type: ignore[arg-type]
    assert ask.calls == 1


def test_limits_of_a_turn(films: World) -> None:
    harvests = [
        films.harvest(*DIRECTOR),
        films.harvest(*MOTHER),
        films.harvest("When was Xawery Żuławski born?", "On 22 December 1971."),
    ]
    learned, refused = films.memory(per_turn=2).learn(harvests, YesAsk())  # type: ignore[arg-type]
    assert len(learned) == 2
    assert refused == {"quota": 1}


def test_a_passage_that_the_registry_does_not_hold_teaches_nothing(films: World) -> None:
    harvest = films.harvest(*DIRECTOR)
    unknown = tuple(msgspec.structs.replace(p, id="unknown") for p in harvest.passages)
    altered = tuple(msgspec.structs.replace(p, text=p.text + " ") for p in harvest.passages)
    for passages in (unknown, altered):
        assert films.memory().learn([msgspec.structs.replace(harvest, passages=passages)], YesAsk())[1] == {
            "changed": 1
        }  # type: ignore[arg-type]


def test_a_touched_file_is_not_trusted_before_it_is_indexed_again(taught: Taught) -> None:
    world, memory = taught
    path = world.folder / "films.txt"
    path.write_text(FILM.replace("Xawery Żuławski", "Andrzej Wajda"), encoding="utf-8")
    assert memory.recall(Query(DIRECTOR[0])).facts == (), "the change on the disk is seen without indexing"
    world.index(path, "Polish-Russian War (film)")
    assert [fact.object for fact in world.registry.take_withdrawn()] == ["Xawery Żuławski"]
    assert world.registry.take_withdrawn() == ()
    assert memory.recall(Query(DIRECTOR[0])).skip == ()
    world.learn(memory, DIRECTOR[0], "It was directed by Andrzej Wajda.")
    assert memory.recall(Query(DIRECTOR[0])).facts[0].object == "Andrzej Wajda"
    row = memory.store.row(
        "SELECT status, closed_why FROM fact WHERE object_text='Xawery Żuławski' AND predicate='director'"
    )
    assert tuple(row or ()) == ("superseded", "superseded")


def test_moved_text_and_moved_files_keep_their_facts(taught: Taught) -> None:
    world, memory = taught
    path = world.folder / "films.txt"
    path.write_text("A new first line.\n\n" + FILM, encoding="utf-8")
    world.index(path, "Polish-Russian War (film)")
    row = memory.store.row("SELECT quote, quote_start, quote_end FROM evidence ORDER BY id LIMIT 1")
    assert row is not None
    assert path.read_text(encoding="utf-8")[row["quote_start"] : row["quote_end"]] == row["quote"]
    assert memory.recall(Query(DIRECTOR[0])).skip
    moved = world.folder / "sub"
    moved.mkdir()
    os.rename(path, moved / "films.txt")
    world.index(moved / "films.txt", "Polish-Russian War (film)")
    recalled = memory.recall(Query(DIRECTOR[0]))
    assert recalled.skip[0].document == str(moved / "films.txt")


def test_a_removed_document_withdraws_and_the_same_text_revives(taught: Taught) -> None:
    world, memory = taught
    path = world.folder / "films.txt"
    world.registry.remove([str(path)])
    assert [fact.object for fact in world.registry.take_withdrawn()] == ["Xawery Żuławski"]
    assert memory.recall(Query(DIRECTOR[0])).skip == ()
    world.index(path, "Polish-Russian War (film)")
    assert memory.recall(Query(DIRECTOR[0])).skip


def test_two_documents_that_disagree_are_a_dispute_that_never_skips(taught: Taught) -> None:
    world, memory = taught
    world.write("wrong.txt", "Polish-Russian War was directed by Andrzej Wajda.", "Wrong")
    harvest = msgspec.structs.replace(
        world.harvest(DIRECTOR[0], "It was directed by Andrzej Wajda."), passages=world.passages()[-1:]
    )
    memory.learn([harvest], YesAsk())  # type: ignore[arg-type]
    assert {row["status"] for row in memory.store.rows("SELECT status FROM fact WHERE predicate='director'")} == {
        "disputed"
    }
    recalled = memory.recall(Query(DIRECTOR[0]))
    assert recalled.skip == ()
    assert recalled.why == "sources disagree"
    assert {fact.status for fact in recalled.facts if fact.predicate == "director"} == {"disputed"}


def test_a_coarser_date_is_the_same_and_a_finer_one_replaces(films: World) -> None:
    films.write("a.txt", "Xawery Żuławski was born in 1971.", "A")
    films.write("b.txt", "Xawery Żuławski was born in 1972.", "B")
    memory = films.memory()
    question = "When was Xawery Żuławski born?"
    coarse = msgspec.structs.replace(films.harvest(question, "He was born in 1971."), passages=films.passages()[3:4])
    fine = films.harvest(question, "He was born on 22 December 1971.")
    other = msgspec.structs.replace(films.harvest(question, "He was born in 1972."), passages=films.passages()[4:5])
    for harvest in (coarse, fine, coarse):
        memory.learn([harvest], YesAsk())  # type: ignore[arg-type]
    assert [fact.object for fact in memory.recall(Query(question)).facts] == ["22 December 1971"]
    memory.learn([other], YesAsk())  # type: ignore[arg-type]
    assert memory.recall(Query(question)).why == "sources disagree"


def test_homonyms_are_told_apart_by_the_question_or_not_at_all(world: World) -> None:
    world.write("a.txt", "Dracula is a 1931 film directed by Tod Browning.", "Dracula (1931 film)")
    world.write("b.txt", "Dracula is a 1958 film directed by Terence Fisher.", "Dracula (1958 film)")
    memory = world.memory()
    for i, name in enumerate(("Tod Browning", "Terence Fisher")):
        harvest = world.harvest("Who directed Dracula?", f"It was directed by {name}.")
        memory.learn([msgspec.structs.replace(harvest, passages=world.passages()[i : i + 1])], YesAsk())  # type: ignore[arg-type]
    assert memory.recall(Query("Who directed Dracula (1958 film)?")).facts[0].object == "Terence Fisher"
    assert memory.recall(Query("Who directed Dracula (1958 film)?")).skip
    ambiguous = memory.recall(Query("Who directed Dracula?"))
    assert ambiguous.skip == ()
    assert "ambiguous" in ambiguous.why


def test_audits_search_all_the_same_and_two_wrong_ones_suspend(taught: Taught) -> None:
    world, _ = taught
    memory = world.memory(audit=1.0)
    for answer, name in (("It was directed by Xawery Żuławski.", "audit_ok"), ("A", "")):
        recalled = memory.recall(Query(DIRECTOR[0]))
        assert recalled.skip == ()
        assert "audit" in recalled.why
        world.learn(memory, DIRECTOR[0], answer)
        if name:
            assert memory.store.value("SELECT count(*) FROM event WHERE name=?", (name,)) == 1
    with memory.store.write() as connection:
        for _ in range(2):
            connection.execute(
                "INSERT INTO event(at, name, detail) VALUES('9', 'audit_bad', '{\"predicate\": \"director\"}')"
            )
    recalled = world.memory().recall(Query(DIRECTOR[0]))
    assert recalled.skip == ()
    assert "audits" in recalled.why


def test_incognito_opens_nothing(tmp_path: object, world: World) -> None:
    path = world.folder / "never" / "memory.db"
    memory = FactMemory(path, MemorySection(), project="p", session="s", incognito=True)
    assert memory.recall(Query(DIRECTOR[0])).facts == ()
    assert memory.mode == "off"
    assert memory.learn([world.harvest(*DIRECTOR)], YesAsk()) == ((), {})  # type: ignore[arg-type]
    with pytest.raises(MindChatError, match="incognito"):
        _ = memory.store
    memory.close()
    assert not path.parent.exists()


def test_modes(taught: Taught) -> None:
    world, _ = taught
    readonly, off = world.memory(mode="readonly"), world.memory(mode="off")
    before = readonly.store.rows("SELECT * FROM fact")
    assert readonly.recall(Query(DIRECTOR[0])).skip
    assert world.learn(readonly, "When was Xawery Żuławski born?", "On 22 December 1971.") == ([], {})
    assert off.recall(Query(DIRECTOR[0])).facts == ()
    assert [tuple(row) for row in readonly.store.rows("SELECT * FROM fact")] == [tuple(row) for row in before]


def test_volatile_memory_takes_any_passage_and_gives_it_back() -> None:
    memory = VolatileMemory(MemorySection(audit=0.0))
    read = Passage("x7", "/ctx#1", "Polish-Russian War (film)", FILM, 100, 100 + len(FILM), 2.5, 1)
    from mindchat.values import Harvest

    learned, refused = memory.learn([Harvest(1, DIRECTOR[0], draft(DIRECTOR[1]), (read,))], YesAsk())  # type: ignore[arg-type]
    assert not refused
    assert learned[0].fact.passage == "x7"
    assert memory.recall(Query(DIRECTOR[0])).skip == (read,)
    memory.close()


# ── confidence and verification
# ──────────────────────────────────────────────────────────────────────────────────────────


def test_equation_4_over_the_tokens_of_the_object() -> None:
    tokens = tuple(
        Token(i, i, text, -0.1, h)
        for i, (text, h) in enumerate([("by", 9.0), (" Xaw", 2.0), ("ery", 0.05), (" Żu", 0.01), (".", 9.0)])
    )
    answer = Draft("by Xawery Żu.", tokens, (0.0, 0.5, 0.1, 0.0, 0.0))
    signals = answer_signals(answer, Span(3, 12))
    assert signals.conf_max == pytest.approx(1 / 1.01)
    assert signals.conf_min == pytest.approx(1 / 3 + 0.2 * 0.5)
    assert signals.h_max == 2.0
    assert signals.attn_max == 0.5
    assert answer_signals(Draft("by X"), Span(3, 4)) == Signals()


def _grounded():  # type: ignore[no-untyped-def]
    slot = parse(MOTHER[0])
    assert slot is not None
    found, _ = ground(slot, Draft(MOTHER[1]), [Passage("p", "/d", "Xawery Żuławski", PERSON, 0, len(PERSON))])
    assert found is not None
    return found


def test_verification_is_one_batch_over_the_value_and_others_of_its_type() -> None:
    grounded, ask = _grounded(), YesAsk()
    signals = verify(ask, grounded)  # type: ignore[arg-type]
    assert ask.calls == 1
    asked = ask.prompts[0][1]
    assert asked[0] == " Małgorzata Braunek"
    assert " Andrzej Żuławski" in asked
    assert asked[-1] == " unknown"
    others = len(asked) - 1
    assert signals.p_true == pytest.approx(1 / (1 + others * 2.718281828**-5))
    assert signals.margin == pytest.approx(signals.p_true * (1 - 2.718281828**-5))
    assert PERSON in prompt(grounded).messages[0].text


def test_the_rule_without_calibration() -> None:
    grounded = _grounded()
    good = Signals(0.9, 0.6, 0.1, 0.5, 0.1, 0.97, 0.5)
    assert judge(grounded, good, None).active
    assert judge(grounded, good, None).confidence == pytest.approx(0.6)
    for field, value in (("p_true", 0.7), ("conf_min", 0.4), ("margin", 0.1)):
        assert not judge(grounded, msgspec.structs.replace(good, **{field: value}), None).active
    assert not judge(msgspec.structs.replace(grounded, grounding=1), good, None).active
    assert may_skip(0.6, False, 2, good, 0.9)
    assert not may_skip(0.6, False, 2, msgspec.structs.replace(good, p_true=0.9), 0.9)
    assert not may_skip(0.99, True, 1, good, 0.9)
    assert may_skip(0.95, True, 2, Signals(), 0.9)


def test_a_calibration_file_decides(films: World) -> None:
    calibration = Calibration("m", {"conf_min": 4.0}, -2.0, 0.7, 100, 0.02, 0.1)
    file = calibration_file(films.folder, "m")
    file.parent.mkdir()
    file.write_bytes(msgspec.json.encode(calibration))
    memory = FactMemory(films.db, MemorySection(audit=0.0), project="thesis", session="s", model="m")
    films.open.append(memory)
    learned, _ = memory.learn([films.harvest(*DIRECTOR), films.harvest(*MOTHER, entropy=2.0)], YesAsk())  # type: ignore[arg-type]
    assert [item.fact.status for item in learned] == ["active", "candidate"]
    assert learned[0].fact.confidence == pytest.approx(1 / (1 + 2.718281828 ** -(4 / 1.1 - 2)), rel=1e-6)
    assert memory.recall(Query(DIRECTOR[0])).skip == (), "0.84 is under 0.90"
    file.write_text("{")
    with pytest.raises(MindChatError, match="cannot be read"):
        FactMemory(films.db, MemorySection(), project="thesis", session="s", model="m")

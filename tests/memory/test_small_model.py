"""What the smallest model teaches memory, judged against what the documents say. A1 and G12 of the design note; full
counts under `soak`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.config import load_config
from mindchat.memory.learning.grounding import ground
from mindchat.memory.learning.slots import parse
from mindchat.memory.learning.verification import verify
from mindchat.ports import Ask, Cancel
from mindchat.values import Draft, Harvest, Message, Passage, Prompt, Text

from .conftest import World

pytestmark = [pytest.mark.model, pytest.mark.slow]
GIVEN = ("Ann", "Bruno", "Carla", "Dario", "Elin", "Felix", "Greta", "Hugo", "Ines", "Jonas")
FAMILY = ("Aldori", "Bremmik", "Castrell", "Dovanne", "Esterly", "Fjordan", "Galdino", "Hestrup", "Ivarna", "Jorvell")
PLACES = ("Uppsala", "Porto", "Ghent", "Tartu", "Graz", "Nantes", "Bergen", "Turin", "Leiden", "Cork")
ASKED = {
    "father": "Who is the father of {}?",
    "mother": "Who is the mother of {}?",
    "place_of_birth": "Where was {} born?",
    "date_of_birth": "When was {} born?",
}


def people(n: int) -> list[tuple[str, str, dict[str, str]]]:
    """(name, text, value of each relation) of n invented people; two fathers in a text would be a fair trap, so each
    text names four others.
    """
    draw, made = random.Random(1), []
    for i in range(n):
        name = f"{GIVEN[i % 10]} {FAMILY[i // 10 % 10]}"
        father, mother, friend, teacher = (
            f"{draw.choice(GIVEN)} {draw.choice(FAMILY)[:-1]}o{k}"[:-1] + "aeiu"[k] for k in range(4)
        )
        born, died = draw.choice(PLACES), draw.choice(PLACES)
        date, later = (
            f"{draw.randrange(1, 28)} May {draw.randrange(1800, 1900)}",
            f"{draw.randrange(1, 28)} June {draw.randrange(1901, 1980)}",
        )
        text = (
            f"{name} was a painter, born on {date} in {born}. {name} is the child of {father} (father) and {mother}"
            f" (mother). A friend, {friend}, wrote about {name}. {name} was taught by {teacher} and died on {later} in"
            f" {died}."
        )
        made.append((name, text, {"father": father, "mother": mother, "place_of_birth": born, "date_of_birth": date}))
    return made


@pytest.fixture(scope="module")
def ask(smollm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The small model, greedy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINDCHAT_HOME", str(tmp_path_factory.mktemp("small")))
        config = load_config(environ={}, assignments=[f"model.name={smollm_folder}"]).config
        yield wiring.open_ask(wiring.load_model(config, lambda event: None), Cancel(), 0)


def chat(world: World, ask: Ask, turns: int) -> None:
    """`turns` single-hop questions over three passages each; the answers are the model's own."""
    known, memory = people(max(3, turns // 4)), world.memory()
    for name, text, _ in known:
        world.write(f"{name}.txt", text, name)
    passages = {passage.title: passage for passage in world.passages()}
    truth = {}
    for turn in range(turns):
        name, _, values = known[turn // 4 % len(known)]
        relation, question = list(ASKED.items())[turn % 4]
        truth[name, relation] = values[relation]
        shown = (passages[name], *(passages[known[(turn // 4 + k) % len(known)][0]] for k in (1, 2)))
        answer = ask.complete(_prompt(shown, question.format(name)), max_tokens=24, kind="answer", stop=("\n",))
        memory.learn([Harvest(1, question.format(name), answer, shown)], ask)
    stored = memory.store.rows(
        "SELECT e.name, f.predicate, f.object_text, f.status, v.grounding, v.quote, v.document_id FROM fact f "
        "JOIN entity e ON e.id=f.subject_id JOIN evidence v ON v.fact_id=f.id"
    )
    texts = {name: text for name, text, _ in known}
    for row in stored:
        assert row["grounding"] >= 1
        assert row["object_text"] in row["quote"], "copied from a passage"
        assert any(row["quote"] in text for text in texts.values())
    served = [row for row in stored if row["status"] == "active"]
    wrong = [tuple(row)[:3] for row in served if truth.get((row["name"], row["predicate"])) != row["object_text"]]
    print(f"{turns} turns: {len(stored)} stored, {len(served)} served, {len(wrong)} of them wrong")  # noqa: T201
    assert len(wrong) <= 0.05 * max(20, len(served)), wrong


def _prompt(passages: tuple[Passage, ...], question: str) -> Prompt:
    segments = [Text(f"{passage.title}: {passage.text}\n\n", "passage", passage.id) for passage in passages]
    return Prompt(
        (
            Message(
                "user",
                (*segments, Text(f"Question: {question}\nAnswer with a few words from the passages only.", "question")),
            ),
            Message("assistant", (Text("Answer:"),)),
        )
    )


def test_a1_facts_of_the_smallest_model_are_grounded_and_served_ones_are_right(world: World, ask: Ask) -> None:
    chat(world, ask, 4)


@pytest.mark.soak
def test_a1_two_hundred_turns(world: World, ask: Ask) -> None:
    chat(world, ask, 200)


def choices(ask: Ask, n: int) -> None:
    """`n` verifications on a real model: every one is a distribution over the given options, so nothing is left to be
    parsed.
    """
    others = (
        person for person in people(n + n // 100 + 1) if not person[2]["father"].startswith(person[0])
    )  # "X is X's father" is refused
    for name, text, values in itertools.islice(others, n):
        slot = parse(ASKED["father"].format(name))
        assert slot is not None
        passage = Passage("p", "/d", name, text, 0, len(text), rank=1)
        grounded, reason = ground(slot, Draft(values["father"]), [passage])
        assert grounded is not None, reason
        signals = verify(ask, grounded)
        assert signals.p_true is not None
        assert 0.0 <= signals.p_true <= 1.0


def test_g12_every_verification_is_a_choice(ask: Ask) -> None:
    choices(ask, 4)


@pytest.mark.soak
def test_g12_a_thousand_verifications(ask: Ask) -> None:
    choices(ask, 1000)

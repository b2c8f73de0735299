"""Every policy's news on scripted models, line for line. MINDCHAT_SNAP=1 writes the files anew; look at the diff before
you commit it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mindchat.events import LAST, Event, to_json
from mindchat.policies import POLICIES
from mindchat.ports import NEVER, Cancel
from mindchat.values import Passage, Query

from ..fakes import CURIE, LANG, METROPOLIS, ByPrompt, config, engine, passage, plug

FOLDER = Path(__file__).parent
SNAP = bool(os.environ.get("MINDCHAT_SNAP"))
QUESTION = "In which city was the director of Metropolis born?"
SURE = "Metropolis was directed by Fritz Lang. He grew up in Vienna. So the answer is Vienna."
UNSURE = "Metropolis is an old film. Its director was Ann{9,0.9} Droid of Berlin. So the answer is Berlin."
COPIED = "Metropolis is an old film. It was directed by Imra Solvay. So the answer is Tarnby."
ASKS = "Follow up: Who directed Metropolis? Intermediate answer: Fritz Lang. So the final answer is: Vienna."
BASE = {
    "extract": " Metropolis; Ann Droid | Ann Droid - place of birth",
    "cot": " keep: the film asked about\n2 keep: its director",
    "query": " Who directed Metropolis?",
    "decompose": " Who directed Metropolis?\n2. Where was Fritz Lang born?",
    "redraft": " Fritz Lang. He grew up in Vienna. So the answer is Vienna.",
    "answer": "Vienna",
    "draft": SURE,
    "sample": "one",
}
LOW = {**BASE, "draft": UNSURE, "sample": "one---two---three---four---five"}


class Always:
    """Every search finds passages that were not seen before."""

    def __init__(self) -> None:
        self.found = 0

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        del query, k
        self.found += 1
        return [METROPOLIS, LANG, CURIE][self.found - 1 : self.found] or [
            passage(f"x{self.found}", f"Text {self.found}.")
        ]


class Nothing:
    """Every search finds nothing."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        del query, k
        return []


class CancelAt(Cancel):
    """Sets itself the n-th time it is looked at."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.set()
        super().check()


def scenarios(policy: str) -> Iterator[tuple[str, list[Event]]]:
    """(name, news) of everything that can happen under a policy."""
    made = plug(POLICIES, policy, config())

    def turn(answers: dict[str, str], *sets: str, retriever: Any = None, cancel: Cancel = NEVER) -> list[Event]:
        own = {**answers, "draft": ASKS} if policy == "selfask" else answers
        parts = engine(
            ByPrompt(own),
            f"engine.policy={policy}",
            "schedule.tokens=6",
            "engine.chain=off",
            *sets,
            retriever=retriever or Always(),
        )
        return list(parts.run(QUESTION, cancel=cancel))

    yield "no trigger", turn(BASE)
    yield "trigger", turn(LOW)
    yield "nothing found", turn(LOW, retriever=Nothing())
    if made.chains:
        yield "read from sentences", turn({}, "engine.chain=on")
        yield "a slot stays open", turn(BASE, "engine.chain=on", retriever=Nothing())
    if made.reasons:
        yield "hop limit", turn({**LOW, "redraft": UNSURE}, "engine.max_hops=1")
        yield "repeated query", turn({**LOW, "redraft": " It was Eve{9,0.9} Droid of Berlin. So the answer is Berlin."})
    if made.extracts:
        yield "broken extraction", turn({**LOW, "extract": '[{"entities": ['.replace("{", "(")})
        yield "all entities pruned", turn({**LOW, "cot": " drop: no\n2 drop: no"}, "engine.filter=conf+cot")
        yield "query by attention", turn(LOW, "query.form=attention")
        yield "search before the first word", turn(BASE, "rind.first=true")
        yield "copied from the examples", turn({**LOW, "draft": COPIED})
        yield "copied and nothing found", turn({**LOW, "draft": COPIED}, retriever=Nothing())
    if policy == "flare":
        yield "explicit questions", turn({**LOW, "ask": " Who directed Metropolis?"}, "flare.query=explicit")
    for n in (2, 12, 40):
        yield f"cancel at look {n}", turn(LOW, cancel=CancelAt(n))


def line(event: Event) -> str:
    """One event without timings; of a prompt only what follows the exemplars, as those have tests of their own."""
    data = _timeless(json.loads(to_json(event)))
    if data["type"] == "PromptBuilt":
        del data["prompt"], data["tokens"]
        data["sent"] = data["sent"][data["sent"].rfind("<user>") :]
    if data["type"] in ("PromptPrefilled", "ModelAsked"):
        data = {key: value for key, value in data.items() if key in ("type", "kind", "generated", "seconds")}
    if (
        data["type"] == "EvidenceChosen" and data["answerable"]
    ):  # the numbers are those of the shipped fit, which has tests of its own
        data["answerable"] = {"enough": data["answerable"]["enough"]}
    if data["type"] == "SlotFilled":  # so are these
        del data["slot"]["confidence"]
    if data["type"] == "AnswerReady" and data["answer"]["trust"]:
        data["answer"]["trust"] = "known"
    if data["type"] == "TokenDrafted":
        data = {"type": data["type"], "channel": data["channel"], "text": data["token"]["text"]}
    return json.dumps(data, ensure_ascii=False)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: 0 if key.endswith("seconds") else _timeless(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def recorded(policy: str) -> list[str]:
    """The whole file."""
    lines = []
    for name, events in scenarios(policy):
        assert [isinstance(event, LAST) for event in events].count(True) == 1
        assert isinstance(events[-1], LAST)
        lines += [json.dumps({"scenario": name}), *(line(event) for event in events)]
    return lines


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_news_of_a_policy_are_those_on_file(policy: str) -> None:
    path, now = FOLDER / f"{policy}.jsonl", recorded(policy)
    if SNAP:
        path.write_text("\n".join(now) + "\n", encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing: MINDCHAT_SNAP=1 pytest tests/golden writes it"
    assert now == path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_two_runs_are_equal_but_for_timings(policy: str) -> None:
    assert recorded(policy) == recorded(policy)


@pytest.mark.skipif(SNAP, reason="the files are being written")
def test_every_file_belongs_to_a_policy() -> None:
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(POLICIES)


EXPECTED = {
    "trigger": {"RetrievalTriggered", "QueryFormed", "PassagesFound"},
    "broken extraction": {"EntitiesExtracted"},
    "repeated query": {"QueryFormed"},
}


def test_the_scenarios_show_what_they_are_named_for() -> None:
    """Else a changed threshold would quietly turn a golden trigger into a golden silence."""
    of_mind = {name: [json.loads(line(event)) for event in events] for name, events in scenarios("mind")}
    for name, types in EXPECTED.items():
        assert types <= {event["type"] for event in of_mind[name]}, name
    assert not any(event["type"] == "RetrievalTriggered" for event in of_mind["no trigger"])
    assert any(event["type"] == "TextRetracted" for event in of_mind["trigger"])
    assert any(event.get("fallback") for event in of_mind["broken extraction"])
    assert any(event.get("rescued") for event in of_mind["all entities pruned"])
    assert any(event.get("repeated") for event in of_mind["repeated query"])
    assert any(
        event["type"] == "TextRetracted" and "Imra" in event["text"] for event in of_mind["copied from the examples"]
    )
    assert not any(
        "Imra" in event["text"] for event in of_mind["copied and nothing found"] if event["type"] == "DraftAccepted"
    )
    assert of_mind["hop limit"][-1]["stop"] == "max_hops"
    assert any(
        event.get("query", {}).get("by") == "attention"
        for event in of_mind["query by attention"]
        if isinstance(event.get("query"), dict)
    )
    assert {events[-1]["type"] for name, events in of_mind.items() if name.startswith("cancel")} == {"TurnCancelled"}

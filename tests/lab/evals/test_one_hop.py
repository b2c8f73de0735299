"""Single hops: which are asked, when a sentence is right, which signals are recorded, and that gold stays outside."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.errors import UsageError
from mindchat.lab.evals import datasets, detect, one_hop
from mindchat.lab.evals.examples import CorpusSpec
from mindchat.lab.evals.planning import Plan, plan
from mindchat.lab.evals.records import Record, read_records, read_run, write_compact
from mindchat.lab.evals.runner import Finished, Planned, evaluate
from mindchat.ports import NEVER, Cancel
from mindchat.values import Token, Trigger, Verdict, WordScore

from .scripted import ScriptedSession

TOWNS = ["Arden", "Brook", "Clive", "Dover", "Epsom", "Firth", "Gorse", "Haven"]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    rows = []
    for n, town in enumerate(TOWNS):
        director, born = f"Mira {town}", f"{n + 1} March 19{n:02d}"
        rows.append(
            {
                "id": f"q{n}",
                "question": f"When was the director of film Tide {town} born?",
                "answers": [born],
                "type": "compositional",
                "context": [
                    {
                        "title": f"Tide {town}",
                        "text": f"Tide {town} is a film by {director}.",
                        "is_supporting": True,
                        "pid": f"f{n}",
                    },
                    {
                        "title": director,
                        "text": f"{director} (born {born}) is a director.",
                        "is_supporting": True,
                        "pid": f"d{n}",
                    },
                ],
                "dataset": "2wikimultihopqa_open",
                "meta": {"evidences": [[f"Tide {town}", "director", director], [director, "date of birth", born]]},
            }
        )
    path = tmp_path / "2wiki.dev.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def word(text: str, start: int, entropy: float, *, anchor: bool = False, content: bool = True) -> WordScore:
    score = entropy * 1.5 if content and not anchor else 0.0
    return WordScore(text, start, start + len(text), entropy, 1.5, 0.3, content, score, anchor)


class Session:
    """Says who directed a film, unsure where it has no passage; before that, a sentence that claims nothing."""

    def __init__(self, corpus: CorpusSpec) -> None:
        self.corpus = corpus
        self.closed = False

    def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        del cancel
        town = question.split()[-1].rstrip("?")
        knows = bool(self.corpus.passages)
        name, doubt = (f"Mira {town}", 0.1) if knows else ("Jon Ash", 2.0 + len(town))
        opening = Verdict((word("Tide", 0, 0.0, anchor=True),), 1.0)
        yield ev.TokenDrafted(Token(0, 1, "Tide. ", -0.5, 9.0), "reasoning")
        yield ev.SentenceJudged("Tide. ", opening, "mind")
        text = f"It was {name}. "
        yield ev.TokenDrafted(Token(0, 1, "It was ", -0.5, 1.0), "reasoning")
        yield ev.TokenDrafted(Token(1, 2, name, -1.5, doubt), "reasoning")
        trigger = None if knows else Trigger(name, 7, doubt * 1.5, 1.2)
        yield ev.SentenceJudged(
            text, Verdict((word("It", 0, 5.0, content=False), word(name, 7, doubt)), 1.2, trigger=trigger), "mind"
        )
        pytest.fail("the turn was not stopped at the verdict")


def planned(path: Path) -> Plan:
    return plan([path], base=Config(), axes={}, seed=1)


def fill(path: Path, out: Path, **changes: Any) -> list[Any]:
    wanted: dict[str, Any] = {"given": ("none", "oracle"), "n": 8, **changes}
    return list(one_hop.evaluate(planned(path), Config(), lambda config, corpus: Session(corpus), out=out, **wanted))


def test_one_hop_of_each_question_that_a_passage_states(facts: Path) -> None:
    hops = one_hop.one_hops(datasets.load(facts), 1)
    assert sorted(hop.answer for hop in hops) == [f"Mira {town}" for town in TOWNS]
    assert all(hop.answer in hop.passage.text and hop.answer not in hop.question for hop in hops)
    assert hops == one_hop.one_hops(datasets.load(facts), 1)
    assert [hop.id for hop in hops] != [hop.id for hop in one_hop.one_hops(datasets.load(facts), 2)]


def test_facts_that_prove_nothing_are_left_out(facts: Path) -> None:
    row = json.loads(facts.read_text(encoding="utf-8").splitlines()[0])
    row["meta"]["evidences"] = [
        ["Tide Arden", "country", "film"],
        ["Tide Arden", "director", "Somebody Else"],
        ["Mira", "spouse", "Mira"],
    ]
    facts.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(UsageError, match="single fact"):
        one_hop.one_hops(datasets.load(facts), 1)


@pytest.mark.parametrize(
    ("sentence", "answer", "right"),
    [
        ("It was directed by Fritz Lang.", "Fritz Lang", True),
        ("It was directed by Fritz Langer.", "Fritz Lang", False),
        ("She was born on March 5, 1900.", "5 March 1900", True),
        ("She was born in 1900.", "5 March 1900", False),
        ("Lang met Fritz.", "Fritz Lang", False),
        ("The father was Robert Petre.", "Robert Petre, 8th Baron Petre", True),
        ("The father was Baron Petre.", "Robert Petre, 8th Baron Petre", False),
        ("", "Fritz Lang", False),
    ],
)
def test_when_a_sentence_is_right(sentence: str, answer: str, right: bool) -> None:
    assert one_hop.states(sentence, answer) is right


@pytest.mark.parametrize(
    ("sentence", "refuses"),
    [
        ("The father of Robert Petre is not specified.", True),
        ("It is unknown who directed the film.", True),
        ("The documents do not mention a director.", True),
        ("Unknown.", True),
        ("The film was not directed by Fritz Lang but by Thea Known.", False),
        ("", False),
    ],
)
def test_when_a_sentence_refuses(sentence: str, refuses: bool) -> None:
    assert one_hop.refuses(sentence) is refuses


def test_signals_by_hand() -> None:
    words = (
        word("The", 0, 4.0, content=False),
        word("Tide", 4, 3.0, anchor=True),
        word("Mira", 9, 2.0),
        word("Ash", 14, 1.0),
    )
    tokens = [Token(0, 1, "The", -1.0, 4.0), Token(1, 2, " ", -9.0, 9.0), Token(2, 3, "Mira", -3.0, 2.0)]
    found = one_hop.signals(Verdict(words, 2.5), tokens)
    assert found["max_s"] == 3.0
    assert found["margin"] == 0.5
    assert found["triggered"] == 1.0
    assert found["max_s_raw"] == pytest.approx(0.6)
    assert found["max_entropy"] == 2.0
    assert found["mean_entropy"] == 2.0
    assert found["sequence_entropy"] == 3.0
    assert found["surprise"] == 2.0
    assert one_hop.signals(Verdict(words), tokens)["triggered"] == 0.0


def test_a_run_records_the_first_claim_under_each_context(facts: Path, tmp_path: Path) -> None:
    events = fill(facts, tmp_path / "out")
    assert isinstance(events[0], Planned)
    assert events[-1] == Finished(16, 0)
    records = read_records(tmp_path / "out")
    without = [record for record in records if record.arm.endswith("none")]
    assert {record.prediction for record in without} == {"It was Jon Ash."}
    assert all(record.scores == {"right": 0.0, "refused": 0.0, "silent": 0.0, "copied": 0.0} for record in without)
    assert all(record.measures["triggered"] == 1.0 for record in without)
    reading = [record for record in records if record.arm.endswith("oracle")]
    assert all(
        record.scores["right"] == 1.0 and record.measures["sequence_entropy"] == pytest.approx(0.55)
        for record in reading
    )
    run = read_run(tmp_path / "out")
    assert run is not None
    assert run.n == 8
    assert {arm.name: (arm.settings["rind.first"], arm.settings["engine.max_hops"]) for arm in run.arms} == {
        "mind context=none": (False, 0),
        "mind context=oracle": (False, 0),
    }


def test_it_resumes_and_shards_into_one_folder(facts: Path, tmp_path: Path) -> None:
    whole = fill(facts, tmp_path / "whole")
    fill(facts, tmp_path / "parts", shard=(1, 2))
    events = fill(facts, tmp_path / "parts", shard=(2, 2))
    assert events[0].total + fill(facts, tmp_path / "parts", shard=(1, 2), resume=True)[0].total == whole[0].total
    assert fill(facts, tmp_path / "whole", resume=True)[0].done == 16
    bare = [[(r.key, r.scores, r.measures) for r in read_records(tmp_path / name)] for name in ("whole", "parts")]
    assert bare[0] == bare[1]


def test_gold_stays_outside(facts: Path, tmp_path: Path) -> None:
    seen: list[tuple[CorpusSpec, str]] = []

    class Spy(Session):
        def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
            seen.append((self.corpus, question))
            return super().ask(question, cancel=cancel)

    wanted: tuple[one_hop.Given, ...] = ("none", "retrieved")
    list(
        one_hop.evaluate(
            planned(facts), Config(), lambda config, corpus: Spy(corpus), given=wanted, n=3, out=tmp_path / "out"
        )
    )
    assert all("Mira" not in question for _, question in seen)
    assert {corpus.kind for corpus, _ in seen} == {"none", "own"}
    assert all(not corpus.passages or len(corpus.passages) == 2 for corpus, _ in seen)


def test_areas_and_counts(facts: Path, tmp_path: Path) -> None:
    fill(facts, tmp_path / "out")
    everything, without, reading = detect.build([tmp_path / "out"])
    assert (everything.sentences, everything.wrong, without.wrong, reading.wrong) == (16, 8, 8, 0)
    assert (everything.caught, everything.alarms) == (1.0, 0.0)
    curves = {curve.signal: curve for curve in everything.curves}
    assert curves["max_s"].auroc.mean == 1.0
    assert curves["words"].auroc.mean == 0.5
    assert curves["max_s"].gain.mean == 0.0
    assert math.isnan(reading.curves[0].auroc.mean)
    text = detect.markdown([everything, without, reading])
    assert "1.00 [1.00, 1.00]" in text
    assert "anecdotes" in text
    write_compact(tmp_path / "out", tmp_path / "small")
    assert detect.markdown(detect.build([tmp_path / "small"])) == text


def test_refusals_and_failures_are_counted_not_judged() -> None:
    measures = {"max_s": 1.0, "sequence_entropy": 1.0}
    rows = [
        Record("a", "d", "1#1", scores={"right": 0.0, "refused": 1.0, "silent": 0.0, "copied": 0.0}, measures=measures),
        Record("a", "d", "2#1", scores={"right": 0.0, "refused": 0.0, "silent": 1.0, "copied": 0.0}),
        Record(
            "a",
            "d",
            "3#1",
            failure=None,
            scores={"right": 1.0, "refused": 0.0, "silent": 0.0, "copied": 1.0},
            measures=measures,
        ),
    ]
    found = detect.detect("d", rows)
    assert (found.sentences, found.wrong, found.refused, found.silent, found.copied) == (1, 0, 1, 1, 1)


def test_other_records_are_refused(questions: Path, tmp_path: Path) -> None:
    todo = plan([questions], base=Config(), axes={"engine.policy": ["none"]}, n=1)
    list(evaluate(todo, lambda c, s: ScriptedSession(c, s, lambda *_: "x"), out=tmp_path / "out"))
    with pytest.raises(UsageError, match="no sentences"):
        detect.build([tmp_path / "out"])


def test_sentences_with_copied_names_are_also_left_out(facts: Path, tmp_path: Path) -> None:
    class Copier(Session):
        def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
            guard = Trigger("Imra", 7, 0.0, None, stands=False)
            yield ev.SentenceJudged("It was Imra.", Verdict((word("Imra", 7, 0.2),), 1.2, trigger=guard), "mind")

    def make(config: Config, corpus: CorpusSpec) -> Session:
        return Session(corpus) if corpus.passages else Copier(corpus)

    list(one_hop.evaluate(planned(facts), Config(), make, given=("none", "oracle"), n=8, out=tmp_path / "out"))
    everything, rest, without, reading = detect.build([tmp_path / "out"])
    assert (everything.sentences, everything.copied) == (16, 8)
    assert (rest.sentences, rest.copied, rest.wrong) == (8, 0, 0)
    assert (without.copied, reading.copied) == (8, 0)
    assert "no copied names" in rest.name

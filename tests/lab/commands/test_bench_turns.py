"""`mindchat bench cache` over recorded turns: which conversations it asks for, and what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat.config import Config
from mindchat.events import AnswerReady, QueryFormed
from mindchat.lab import bench
from mindchat.lab.bench import turns as turns_of
from mindchat.lab.commands import bench_turns
from mindchat.lab.evals import report
from mindchat.lab.evals.bootstrap import Interval
from mindchat.values import Answer, Query

from ...cli.board import Board, Run

pytestmark = pytest.mark.slow


class Engine:
    """Makes as many hops as it is told and keeps what it was built of."""

    def __init__(
        self, built: list[Any], config: Config, retriever: Any, hops: Callable[[str], int] = lambda question: 5
    ) -> None:
        self.retriever, self.hops = retriever, hops
        self.row: dict[str, Any] = {"config": config, "asked": [], "found": []}
        built.append(self.row)

    def run(self, question: str, *, history: Any = (), **rest: Any) -> Iterator[Any]:
        self.row["asked"].append((question, len(history)))
        self.row["found"].append([p.id for p in self.retriever.search(Query(question), 2)])
        for _ in range(self.hops(question)):
            yield QueryFormed(Query(question), 1)
        yield AnswerReady(Answer("x", "x", False, "sourced", ()), "answered")


def test_rows_differ_in_layout_and_in_what_is_asked_second(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    monkeypatch.setattr(
        board, "build_engine", lambda config, retriever, memory, model: Engine(built, config, retriever), raising=False
    )
    rows = dict(bench_turns.conversations(Config(), None))
    hops = [row["config"] for row in built[:4]]
    assert [(config.layout.order, config.layout.repeat) for config in hops] == [
        ("paper", 0),
        ("paper", 1),
        ("docs_first", 0),
        ("docs_first", 1),
    ]
    assert not any(config.rind.anchors for config in hops)
    assert {
        (config.engine.policy, config.engine.max_hops, config.rind.fixed, config.memory.mode) for config in hops
    } == {("mind", 5, 0.0, "off")}
    assert all("repeat" in name for name in list(rows)[:4])
    assert [row["asked"] for row in built[4:]] == [
        [(bench_turns.QUESTION, 0), (bench_turns.QUESTION, 1)],
        *[[(bench_turns.QUESTION, 0), (bench_turns.FOLLOW_UP, 1)]] * 3,
    ]
    once = built[-1]
    assert once["config"].engine.policy == "once"
    assert once["found"][0] == once["found"][1] != []
    assert len(rows) == len(built)


def test_the_question_is_the_first_that_takes_five_hops(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = bench_turns.candidates()
    assert len(set(asked)) == len(asked) > 5
    for needed, chosen in (({asked[2]: 5}, asked[2]), ({asked[4]: 3}, asked[4])):
        built: list[Any] = []
        hops = lambda question, needed=needed: needed.get(question, 1)  # noqa: E731
        monkeypatch.setattr(
            board, "build_engine", lambda config, *rest, b=built, h=hops: Engine(b, config, rest[0], h), raising=False
        )
        name, turns = next(bench_turns.conversations(Config(), None))
        assert "five-hop" in name
        assert turns[0].question == chosen
        assert len(built) == (3 if needed[chosen] == 5 else len(asked))


def test_the_demo_is_read_document_by_document() -> None:
    passages = bench_turns.demo_passages()
    assert len({passage.id for passage in passages}) == len(passages) > 100
    lewin = next(passage for passage in passages if passage.title == "Albert Lewin")
    assert lewin.text.startswith("Albert Lewin was born in Brooklyn")


def test_cache_measures_every_conversation(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "load_model", lambda config, progress: "loaded", raising=False)
    monkeypatch.setattr(board, "plug", lambda table, name, kind: lambda config: "composer", raising=False)
    monkeypatch.setattr(
        "mindchat.lab.bench.repetition.bench_repetition", lambda model, composer, hop, repeats: {"ratio": 1.0}
    )
    monkeypatch.setattr(bench_turns, "conversations", lambda config, model, told: iter([("a row", ["turn"])]))
    monkeypatch.setattr(turns_of, "bench_turns", lambda model, turns: {"model": model, "turns": list(turns)})
    monkeypatch.setattr(bench_turns, "layout_scores", lambda folders: [{"folder": folder.name} for folder in folders])
    found = run("bench", "cache", "-m", "smollm2-135m", "--f1-of", "some", "--json").json
    assert found["cache"]["a row"] == {"model": "loaded", "turns": ["turn"]}
    assert found["layouts"] == [{"folder": "some"}]
    assert list(run("bench", "cache", "-m", "smollm2-135m", "--only-copy", "--json").json["cache"]) == ["a second copy"]
    monkeypatch.setattr("mindchat.lab.commands.bench._calls", lambda config, model: ({"composed": []}, ()))
    monkeypatch.setattr(bench, "bench_cache", lambda model, prompts, tokens, fixed: {"calls": len(prompts)})
    assert run("bench", "cache", "-m", "smollm2-135m", "--composed", "--json").json["cache"]["composed"] == {"calls": 0}


def test_recorded_turns_and_the_copy_alone_exclude_each_other(run: Run, tmp_path: Path) -> None:
    turn = tmp_path / "turn.jsonl"
    turn.touch()
    result = run("bench", "cache", "--turns", str(turn), "--only-copy")
    assert result.code == 2
    assert "exclude each other" in result.err


def test_f1_stands_beside_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = [SimpleNamespace(arm="b", total=SimpleNamespace(n=3, f1=Interval(0.5, 0.25, 0.75, 3)))]
    entry = SimpleNamespace(name="b", settings={"layout.order": "docs_first", "layout.repeat": 1})
    found = SimpleNamespace(
        runs={"r": SimpleNamespace(arms=[entry])}, datasets=[SimpleNamespace(dataset="hotpotqa", arms=arms)]
    )
    monkeypatch.setattr(report, "build", lambda folders: found)
    assert bench_turns.layout_scores([Path("r")]) == [
        {"dataset": "hotpotqa", "arm": "b", "order": "docs_first", "repeat": 1, "n": 3, "f1": [50.0, 25.0, 75.0]}
    ]

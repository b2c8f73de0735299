from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat.config import Config
from mindchat.errors import UsageError
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support
from mindchat.lab.evals.pairs import Pair, Side, compare, prompt_for, summarise
from mindchat.prompts.core import UserRole
from mindchat.values import Finish, Finished, Prefilled, Prompt, StreamItem, Token

pytestmark = pytest.mark.slow

ITEMS = [
    Item(
        Example(
            f"q{i}",
            "hotpotqa",
            f"Where is number {i}?",
            (Source("A", "A is in Rome.", "a"), Source("B", "B is in Oslo.", "b")),
        ),
        Gold(("Rome",), supporting=(Support("A", "a"),)),
    )
    for i in range(4)
]
ABOUT = {"model": "fake"}


class Fake:
    """Says the words it is given and keeps what it was asked."""

    def __init__(self, name: str, words: list[str], entropy: float, asked: list[str]) -> None:
        self.name, self.words, self.entropy, self.asked = name, words, entropy, asked
        self.cold = False

    def forget_prefixes(self) -> None:
        self.cold = True

    def stream(self, prompt: Prompt, **rest: Any) -> Iterator[StreamItem]:
        assert self.cold
        self.cold = False
        self.asked.append(self.name)
        yield Prefilled(10, 10, 0, 0.5)
        for i, word in enumerate(self.words):
            yield Token(i, hash(word) % 1000, word, -0.1, self.entropy)
        yield Finished(Finish.EOS)


def run(tmp_path: Path, other: list[str], items: list[Item] = ITEMS) -> tuple[list[Pair], list[str]]:
    asked: list[str] = []
    models: Any = {"fp32": Fake("fp32", [" Rome", "."], 1.0, asked), "int8": Fake("int8", other, 1.25, asked)}
    return list(compare(models, items, UserRole(Config()), tmp_path / "pairs.jsonl", about=ABOUT)), asked


def test_the_prompt_holds_the_gold_passages_once() -> None:
    text = "".join(message.text for message in prompt_for(ITEMS[0], UserRole(Config())).messages)
    assert text.count("A is in Rome.") == 1
    assert "Oslo" not in text


def test_both_answer_in_turn_and_who_begins_changes(tmp_path: Path) -> None:
    pairs, asked = run(tmp_path, [" Rome", "."])
    assert asked == ["fp32", "int8", "int8", "fp32"] * 2
    found = summarise(pairs, "fp32", "int8")
    assert found["n"] == 4
    assert found["identical_short_answers"] == 1.0
    assert found["f1"]["fp32"].mean == 100.0
    assert found["f1_difference"].low == found["f1_difference"].high == 0.0
    assert found["entropy_change"] == pytest.approx(0.25)
    assert found["entropies_compared"] == 8
    assert found["prefill_tokens_per_second"] == {"fp32": 20.0, "int8": 20.0}
    assert found["different"] == []


def test_entropies_are_compared_only_where_the_words_before_are_the_same(tmp_path: Path) -> None:
    pairs, _ = run(tmp_path, [" Oslo", ".", " It", " is"])
    found = summarise(pairs, "fp32", "int8")
    assert found["identical_short_answers"] == 0.0
    assert found["entropies_compared"] == 4
    assert found["f1_difference"].mean == -100.0
    assert found["different"][0] == {"id": "q0", "fp32": "Rome", "int8": "Oslo"}


def test_a_stopped_run_goes_on_and_a_torn_line_is_asked_again(tmp_path: Path) -> None:
    run(tmp_path, [" Rome", "."], ITEMS[:3])
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    pairs, asked = run(tmp_path, [" Rome", "."])
    assert sorted(pair.id for pair in pairs) == ["q0", "q1", "q2", "q3"]
    assert len(asked) == 4
    assert len(file.read_bytes().splitlines()) == 5


def test_a_file_about_something_else_is_refused(tmp_path: Path) -> None:
    run(tmp_path, [" Rome", "."], ITEMS[:1])
    with pytest.raises(UsageError, match="another model"):
        list(compare({}, ITEMS, UserRole(Config()), tmp_path / "pairs.jsonl", about={"model": "other"}))
    (tmp_path / "pairs.jsonl").write_text('{"model": "fake"}\n{"x": 1}\n')
    with pytest.raises(UsageError, match="no pairs"):
        run(tmp_path, [" Rome", "."])


def test_speed_is_the_ratio_on_the_same_question() -> None:
    def side(seconds: float) -> Side:
        return Side("a", 1.0, 100, seconds, (seconds, seconds), (1, 2, 3), (0.0, 0.0, 0.0))

    busy = [(0.2, 0.1), (2.0, 1.0), (0.4, 0.2)]  # the machine's load changes, the ratio does not
    found = summarise(
        [Pair(str(i), {"fp32": side(a), "int8": side(b)}) for i, (a, b) in enumerate(busy)], "fp32", "int8"
    )
    assert found["prefill_speed"]["median"] == pytest.approx(2.0)
    assert found["decode_speed"]["low"] == pytest.approx(2.0)
    assert found["decode_tokens_per_second"]["int8"] == pytest.approx(5.0)

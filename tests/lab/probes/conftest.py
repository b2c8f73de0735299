"""A model that reads: it answers list tasks by rule and finds probabilities in where documents stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from mindchat.ports import NEVER, Cancel
from mindchat.values import Choice, Finish, Finished, Prefilled, Prompt, Signal, StreamItem, Token

FACT = re.compile(r"list \d+, (\d+) is positioned immediately before (\d+)")


class Reader:
    """Follows pairs backwards, but sees a pair only if it was told after the one that it needs: a caricature of reading
    left to right.
    """

    id = "reader"
    provides: frozenset[Signal] = frozenset()

    def __init__(self, window: int = 100_000) -> None:
        self.window = window
        self.asked = 0

    def stream(
        self,
        prompt: Prompt,
        *,
        want: frozenset[Signal],
        max_tokens: int,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
        cancel: Cancel = NEVER,
    ) -> Iterator[StreamItem]:
        del want, max_tokens, stop, allow
        cancel.check()
        self.asked += 1
        yield Prefilled(1, 1, 0, 0.0)
        yield Token(0, 0, f" {self.say(prompt.messages[0].text)}")
        yield Finished(Finish.STOP)

    @staticmethod
    def say(text: str) -> str:
        wanted = re.search(r"contains (\d+)", text)
        if wanted is None:
            return "Vienna" if text.count("Look again") else "Berlin"
        now = wanted[1]
        for before, after in FACT.findall(text):
            now = before if after == now else now
        return now

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """The earlier the gold document stands in the first copy, the more probable; every repetition adds to all."""
        cancel.check()
        text = prompt.messages[0].text
        place = text.find("GOLD") / max(len(text), 1)
        return [Choice(option, -1.0 - place + 0.1 * text.count("Look again"), 1) for option in options]

    def count(self, prompt: Prompt) -> int:
        return sum(len(message.text.split()) for message in prompt.messages)

    def usage(self) -> tuple[int, int, int]:
        return 7, 3, 1


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Six questions in the normalised format: two supports among ten other passages."""
    rows = []
    for n in range(6):
        context = [
            {
                "title": f"T{n}.{i}",
                "text": f"{'GOLD' if i == 3 else 'Noise'} text {n} {i}.",
                "pid": f"q{n}p{i}",
                "is_supporting": i in (3, 7),
            }
            for i in range(12)
        ]
        steps = [{"question": "?", "answer": "x", "support_pid": f"q{n}p{i}"} for i in (7, 3)]
        rows.append(
            {
                "id": f"q{n}",
                "question": f"Where is the thing number {n}?",
                "answers": ["Vienna"],
                "type": "2hop" if n % 2 else "3hop",
                "dataset": "musique",
                "context": context,
                "meta": {"decomposition": steps},
            }
        )
    path = tmp_path / "questions.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from mindchat.errors import Interrupted, ResourceError, UsageError
from mindchat.lab.evals import cluster
from mindchat.lab.evals.cluster import ShardEnded, command, run_on_ray, run_shard
from mindchat.ports import Cancel


class FakeRay:
    """Ray's four calls that are used, in this process; the last task ends first."""

    def __init__(self, up: bool = True) -> None:
        self.up, self.cpus, self.results = up, 0.0, {}  # type: ignore[var-annotated]
        self.cancelled: list[int] = []

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, log_to_driver: bool) -> None:
        if not self.up:
            raise ConnectionError("nobody there")

    def remote(self, num_cpus: float) -> Callable[[Any], Any]:
        self.cpus = num_cpus

        class Task:
            def __init__(self, function: Any) -> None:
                self.function = function

            def remote(task, words: Any, folder: str) -> int:  # `self` is the fake cluster
                self.results[len(self.results)] = task.function(words, folder)
                return len(self.results) - 1

        return Task

    def wait(self, references: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        return references[-1:], references[:-1]

    def cancel(self, reference: int) -> None:
        self.cancelled.append(reference)

    def get(self, reference: int) -> Any:
        return self.results[reference]


def test_a_shard_is_the_same_command_with_its_share() -> None:
    words = command(["a.jsonl", "--policy", "none", "--out", "o", "--resume"], 2, 3)
    assert words == [
        sys.executable,
        "-P",
        "-m",
        "mindchat",
        "eval",
        "a.jsonl",
        "--policy",
        "none",
        "--out",
        "o",
        "--shard",
        "2/3",
        "--resume",
    ]


def test_every_shard_is_run_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(words: list[str], folder: str) -> tuple[int, str]:
        assert folder == "here"
        asked.append(words[words.index("--shard") + 1])
        return (3, "boom") if asked[-1] == "2/3" else (0, "")

    monkeypatch.setattr(cluster, "run_shard", run)
    fake = FakeRay()
    ended = list(run_on_ray(["x"], 3, folder="here", ray=fake))
    assert fake.cancelled == []
    assert sorted(asked) == ["1/3", "2/3", "3/3"]
    assert ShardEnded(2, 3, 3, "boom") in ended
    assert sorted(one.shard for one in ended) == [1, 2, 3]


def test_a_process_reports_its_code_and_last_words() -> None:
    code, tail = run_shard(
        [sys.executable, "-c", "import sys; print('\\n'.join(map(str, range(9))), file=sys.stderr); sys.exit(4)"]
    )
    assert (code, tail) == (4, "4\n5\n6\n7\n8")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="Ray is not installed"):
        list(run_on_ray(["x"], 1))
    with pytest.raises(ResourceError, match="No Ray cluster"):
        list(run_on_ray(["x"], 1, ray=FakeRay(up=False)))
    with pytest.raises(UsageError, match="0 shards"):
        list(run_on_ray(["x"], 0))


def test_a_cancelled_run_stops_its_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "run_shard", lambda words, folder: (0, ""))
    fake, cancel = FakeRay(), Cancel()
    ended = run_on_ray(["x"], 3, ray=fake, cancel=cancel)
    assert next(ended).shard == 3
    cancel.set()
    with pytest.raises(Interrupted):
        next(ended)
    assert fake.cancelled == [0, 1]

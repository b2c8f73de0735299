from __future__ import annotations

from typing import Any

import pytest

from mindchat.errors import UsageError
from mindchat.lab.bench import bench_arithmetic, bench_cache, bench_decode, five_hops, prompt_of, recorded
from mindchat.values import Message, Passage, Prompt, Text

pytestmark = pytest.mark.slow

TEXT = "Paris is big. The capital of France is Paris, and its river is the Seine."


def test_decode_is_measured_beside_its_references(tiny: Any) -> None:
    model = tiny("llama")
    model.ends = frozenset()
    report = bench_decode(model, TEXT, lengths=(60,), tokens=5, repeats=1)
    (row,) = report["rows"]
    assert row["generated"] == 5
    assert row["same_text"]
    assert row["speed_second_pass"] > row["speed_without_signals"] > 0
    assert abs(row["prompt_tokens"] - 60) < 60


def test_reuse_takes_all_that_is_shared_and_changes_no_text(tiny: Any) -> None:
    model = tiny("qwen2")
    first = prompt_of(model, TEXT, 200)
    prompts = [first, Prompt((*first.messages, Message("assistant", (Text("Paris"),)))), first]
    report = bench_cache(model, prompts, tokens=4)
    assert report["same_text"]
    assert report["cached_tokens"] >= report["shared_prefix_tokens"] > 0
    assert report["cached_share"] > 0.5


def test_arithmetic_is_compared_step_by_step(tiny: Any) -> None:
    rows = bench_arithmetic(tiny("llama"), TEXT * 3, tokens=30)["rows"]
    assert set(rows) >= {"transformers", "fp32"}
    assert rows["fp32"]["same_top"] == rows["transformers"]["same_top"] == 1.0
    assert rows["fp32"]["kl"] < 1e-6
    assert rows["transformers"]["speed"] == 1.0
    assert all(row["tokens"] == 14 for name, row in rows.items() if not name.startswith("prefill"))
    assert rows["prefill fp32"]["kl"] < 1e-6
    assert 0 < rows["prefill bf16"]["kl"] < 1.0
    assert rows["prefill bf16"]["tokens"] == 30


def test_a_recording_gives_its_prompts(tiny: Any) -> None:
    from mindchat.events import PromptBuilt, StepStarted, to_json

    model = tiny("llama")
    prompt = prompt_of(model, TEXT, 30)
    lines = [
        to_json(event).encode() for event in (StepStarted("draft"), PromptBuilt(prompt, "", (), 30, 2048, "reasoning"))
    ]
    assert recorded([*lines, b""]) == [prompt]
    with pytest.raises(UsageError, match="no prompt"):
        recorded(lines[:1])
    with pytest.raises(UsageError, match="no event"):
        recorded([b"{}"])


def test_five_hops_grow_and_are_reused(tiny: Any) -> None:
    from mindchat.config import Config
    from mindchat.prompts.core import UserRole

    model = tiny("llama", window=0)
    passages = [
        Passage(f"p{i}", f"d{i}", f"D{i}", f"Paris is number {i}. It is big.", 0, 30, rank=i) for i in range(1, 13)
    ]
    once, twice = (five_hops(UserRole(Config()), model, passages, copies) for copies in (0, 1))
    assert len(once) == 7
    assert once[:6] == twice[:6]
    assert len(model.render(twice[6])) > len(model.render(once[6]))
    assert "number 6." in model.render(once[5])

from __future__ import annotations

from typing import Any

from mindchat.bench import bench_arithmetic, bench_cache, bench_decode, prompt_of
from mindchat.values import Message, Prompt, Text

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
    assert all(row["tokens"] == 14 for row in rows.values())

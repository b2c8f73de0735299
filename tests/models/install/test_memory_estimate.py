"""Memory: shapes from headers, the sum, what fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.errors import ModelMissingError, ModelTooLargeError
from mindchat.models.install import memory_estimate as estimation
from mindchat.models.install.catalogue import catalogue
from mindchat.models.install.memory_estimate import (
    BASE,
    Shape,
    available_memory,
    estimate,
    fit,
    shape_of_entry,
    shape_of_folder,
)

pytestmark = pytest.mark.slow

LLAMA_8B = shape_of_entry(catalogue()["llama-3.1-8b"])
SMALL = shape_of_entry(catalogue()["smollm2-135m"])


def test_the_shape_of_a_converted_model(converted: Path) -> None:
    expected = Shape(
        parameters=19552,
        window=64,
        layers=1,
        kv_heads=2,
        head_dim=16,
        vocabulary=288,
        hidden=32,
        tied=True,
        mapped=True,
    )
    assert shape_of_folder(converted) == expected


def test_parameters_of_several_files_add_up(tmp_path: Path) -> None:
    config = {
        "num_attention_heads": 4,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "vocab_size": 10,
        "max_position_embeddings": 100,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    for n, shape in enumerate(([3, 5], [7])):
        header = json.dumps(
            {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}
        ).encode()
        (tmp_path / f"model-{n}.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert shape_of_folder(tmp_path) == Shape(
        parameters=22, window=100, layers=2, kv_heads=4, head_dim=16, vocabulary=10, hidden=64, mapped=True
    )


@pytest.mark.parametrize("damage", [b"", b"\xff" * 16, b"\x05\0\0\0\0\0\0\0{nope"])
def test_a_damaged_folder_is_named(converted: Path, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "config.json").write_bytes((converted / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes(damage)
    with pytest.raises(ModelMissingError, match="cannot be read"):
        shape_of_folder(tmp_path)


def test_the_sum_by_hand() -> None:
    found = estimate(LLAMA_8B, arithmetic="fp32", window=1000)
    assert found.weights == 8_030_261_248 * 4
    assert found.cache == 2 * 32 * 8 * 128 * 4 * 1000
    assert found.needed == found.weights + found.cache + BASE + 128 * 128_256 * 4
    assert estimate(LLAMA_8B, arithmetic="bf16", window=1000).cache == found.cache // 2


def test_the_window_is_at_most_the_models_own() -> None:
    assert estimate(SMALL).window == estimate(SMALL, window=10**6).window == 8192


def test_cached_prompts_take_no_more_than_allowed_or_than_there_is() -> None:
    bare = estimate(SMALL, window=100).cache
    assert estimate(SMALL, window=100, cache_mb=10**6).cache == 2 * bare
    assert estimate(SMALL, window=8192, cache_mb=10).cache == estimate(SMALL, window=8192).cache + 10_000_000


def test_an_open_window_shrinks_to_what_fits() -> None:
    fitted = fit(LLAMA_8B, name="x", arithmetic="fp32", window=0, cache_mb=0, available=40 * 10**9)
    assert fitted.needed <= 40 * 10**9
    assert 2048 <= fitted.window < LLAMA_8B.window
    assert estimate(LLAMA_8B, window=2 * fitted.window).needed > 40 * 10**9
    assert fit(LLAMA_8B, name="x", arithmetic="fp32", window=0, cache_mb=0, available=10**12).window == LLAMA_8B.window


def test_a_chosen_window_is_kept_or_refused() -> None:
    with pytest.raises(ModelTooLargeError, match="131072 tokens") as caught:
        fit(LLAMA_8B, name="x", arithmetic="fp32", window=131_072, cache_mb=0, available=40 * 10**9)
    assert "model.window = 2048" in caught.value.hint


@pytest.mark.parametrize(("processor", "best"), [("avx2", "fp16"), ("neon", "int8")])
def test_auto_takes_what_fits(processor: str, best: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimation, "has", lambda features: bool(features & {processor}))
    needs = {kind: estimate(LLAMA_8B, arithmetic=kind, window=4096).needed for kind in ("fp16", "int8", "fp32", "bf16")}
    for kind in dict.fromkeys((best, "int8", "fp32", "bf16")):
        found = fit(LLAMA_8B, name="x", arithmetic="auto", window=4096, cache_mb=0, available=needs[kind]).arithmetic
        assert needs[found] <= needs[kind]
        assert found == next(
            each for each in dict.fromkeys((best, "int8", "fp32", "bf16")) if needs[each] <= needs[kind]
        )
    assert fit(LLAMA_8B, name="x", arithmetic="auto", window=0, cache_mb=0, available=10**12).arithmetic == best


@pytest.mark.parametrize(("arithmetic", "copy"), [("fp16", 2), ("int8", 1)])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("processor", "mapped", "beside"), [("avx2", True, 0), ("avx2", False, 4), ("avx2 avx512_bf16", True, 2)]
)
def test_copies_and_what_stands_beside_them_by_hand(
    arithmetic: str, copy: int, packed: bool, processor: str, mapped: bool, beside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimation, "has", lambda features: bool(features & set(processor.split())))
    held = copy if packed else 2 * copy
    untied = Shape(
        parameters=1000,
        window=64,
        layers=1,
        kv_heads=2,
        head_dim=16,
        vocabulary=20,
        hidden=10,
        mapped=mapped,
        packed=packed,
    )
    assert estimation.weights_of(untied, arithmetic) == 600 * (held + beside) + 400 * 4 + 200
    tied = Shape(
        parameters=800,
        window=64,
        layers=1,
        kv_heads=2,
        head_dim=16,
        vocabulary=20,
        hidden=10,
        tied=True,
        mapped=mapped,
        packed=packed,
    )
    assert estimation.weights_of(tied, arithmetic) == 600 * (held + beside) + 200 * 4 + 200
    unknown = Shape(
        parameters=1000, window=64, layers=1, kv_heads=2, head_dim=16, vocabulary=20, mapped=mapped, packed=packed
    )
    assert estimation.weights_of(unknown, arithmetic) == 1000 * (held + beside)


def test_where_there_is_no_kernel_fp16_counts_as_the_fp32_that_it_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimation, "has", lambda features: False)
    shape = Shape(parameters=1000, window=64, layers=1, kv_heads=2, head_dim=16, vocabulary=20, hidden=10, mapped=True)
    assert estimation.weights_of(shape, "fp16") == estimation.weights_of(shape, "fp32") == 4000
    assert estimation.weights_of(shape, "int8") == 600 * (2 + 4) + 400 * 4 + 200
    assert estimation.copies() == ("int8",)


def test_the_processor_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu sse avx2 avx512_bf16\n")
    assert estimation.has(estimation._BFLOAT16, tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu sse avx2\n")
    assert not estimation.has(estimation._BFLOAT16, tmp_path / "cpuinfo")
    assert estimation.has(estimation._AVX2, tmp_path / "cpuinfo")
    assert not estimation.has(estimation._AVX2, tmp_path / "none")


def test_a_refusal_names_both_numbers_and_a_way_out() -> None:
    with pytest.raises(ModelTooLargeError) as caught:
        fit(LLAMA_8B, name="llama-3.1-8b", arithmetic="fp32", window=0, cache_mb=0, available=24 * 10**9)
    assert "33.2 GB" in caught.value.message
    assert "24.0 GB are free" in caught.value.message
    assert "bf16" in caught.value.hint
    assert "-m phi-3.5-mini" in caught.value.hint
    assert caught.value.exit_code == 3
    with pytest.raises(ModelTooLargeError) as caught:
        fit(SMALL, name="smollm2-135m", arithmetic="fp32", window=0, cache_mb=0, available=10**8)
    assert "more memory" in caught.value.hint


def test_free_memory_is_that_of_this_machine() -> None:
    import psutil

    assert 0 < available_memory() <= psutil.virtual_memory().total


def test_a_containers_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 200000\n")
    assert estimation._container_rest(tmp_path) == [500_000]
    (tmp_path / "memory.max").write_text("max\n")
    assert estimation._container_rest(tmp_path) == []
    monkeypatch.setattr(estimation, "_container_rest", lambda: [4242])
    assert available_memory() == 4242

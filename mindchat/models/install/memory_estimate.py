"""How much memory a model will need, before it is loaded, and whether it fits.

Owns: the shape of a model (from the catalogue, or from the headers of its files, without torch), the estimate, the
memory that is free, the choice of window and arithmetic that fit. Does not own: loading (hf), the shapes of unpacked
GGUF files (convert).
Estimate, in bytes: parameters × bytes each  +  2 × layers × kv_heads × head_dim × bytes × tokens  +  cached prompts  +
a constant.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.errors import ModelMissingError, ModelTooLargeError
from mindchat.models.install.catalogue import Entry, catalogue
from mindchat.models.install.download import megabytes
from mindchat.models.install.manifest import PACK

WEIGHT_BYTES = {"fp32": 4.0, "bf16": 2.0}
"""Bytes a parameter; of copied arithmetics see weights_of."""
COPIED = {"fp16": 2, "int8": 1}
"""Arithmetics that stand beside the full weights, the one closest to them first: bytes a copied weight."""
CACHE_BYTES = {"fp32": 4.0, "fp16": 4.0, "bf16": 2.0, "int8": 4.0}
"""Bytes a number of the key-value cache."""
BASE = 500_000_000
"""Interpreter, torch and transformers (250 MB measured with nothing loaded), and the activations of one prefill chunk,
bytes.
"""
CHUNK = 128
"""Tokens of a prefill chunk: their logits are held at once."""
MINIMUM_WINDOW = 2048
"""Tokens; a model is refused rather than given a smaller window."""


class Shape(Struct, frozen=True):
    """What the estimate needs to know of a model."""

    parameters: int
    window: int
    """Tokens."""
    layers: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    hidden: int = 0
    """Width; 0 if unknown."""
    tied: bool = False
    """Whether the head is the embedding."""
    mapped: bool = False
    """Whether every stored number is fp32, as we convert them: such files are mapped, and what no one reads takes no
    memory.
    """
    packed: bool = False
    """Whether an earlier load left its copies: the first one holds them twice, as they are kept and as the kernel wants
    them.
    """


class Estimate(Struct, frozen=True):
    """Bytes by purpose."""

    arithmetic: str
    window: int
    """Tokens the cache is counted for."""
    weights: int
    cache: int
    """Keys and values of the running prompt, and cached earlier prompts."""
    overhead: int

    @property
    def needed(self) -> int:
        """The sum, bytes."""
        return self.weights + self.cache + self.overhead


def shape_of_entry(entry: Entry) -> Shape:
    """The catalogue's figures."""
    mapped = entry.file_bytes > 0  # a GGUF file, which we convert
    return Shape(
        entry.parameters, entry.window, entry.layers, entry.kv_heads, entry.head_dim, entry.vocabulary, mapped=mapped
    )


def shape_of_folder(folder: Path) -> Shape:
    """Read config.json and the headers of the safetensors files. Raises ModelMissingError if they are missing or make
    no sense.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        text = config.get("text_config") or config
        heads = int(text["num_attention_heads"])
        tensors = [tensor for file in sorted(folder.glob("*.safetensors")) for tensor in _tensors(file)]
        if not tensors:
            raise ValueError("no weights")
        return Shape(
            parameters=sum(math.prod(shape) for _, shape in tensors),
            window=int(text.get("max_position_embeddings") or MINIMUM_WINDOW),
            layers=int(text["num_hidden_layers"]),
            kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            vocabulary=int(text["vocab_size"]),
            hidden=int(text["hidden_size"]),
            tied=bool(text.get("tie_word_embeddings", False)),
            mapped=all(kind == "F32" for kind, _ in tensors),
            packed=(folder / PACK).is_file(),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ModelMissingError(
            f"The model folder {folder} cannot be read.", "It needs config.json of a text model and *.safetensors."
        ) from error


def _tensors(file: Path) -> list[tuple[str, list[int]]]:
    """Number format and shape of each tensor in a safetensors file: 8 bytes of length (little endian), then a JSON
    header of that length.
    """
    with file.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if not 0 < length < 100_000_000:
            raise ValueError(f"{file.name} is no safetensors file")
        header: dict[str, Any] = json.loads(handle.read(length))
    return [
        (str(tensor.get("dtype")), list(map(int, tensor["shape"])))
        for name, tensor in header.items()
        if name != "__metadata__"
    ]


def estimate(shape: Shape, *, arithmetic: str = "fp32", window: int = 0, cache_mb: int = 0) -> Estimate:
    """Memory of the model at this arithmetic and window (tokens; 0: the model's own), with up to `cache_mb` MB of
    cached prompts.
    """
    tokens = min(window, shape.window) if window else shape.window
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * CACHE_BYTES[arithmetic]
    running = per_token * tokens
    logits = CHUNK * shape.vocabulary * 4
    return Estimate(
        arithmetic,
        tokens,
        weights_of(shape, arithmetic),
        int(running + min(cache_mb * 1_000_000, running)),
        BASE + logits,
    )


def weights_of(shape: Shape, arithmetic: str) -> int:
    """Bytes of the weights in use.

    Of copied arithmetics: the copy, twice while there is no pack of it; beside it the layers' full weights, unless they
    are mapped and nothing reads them (one kernel serves steps and prefill on x86 with AVX2), or bfloat16 copies, 2
    bytes, on processors that may prefill with those; and 4 bytes for embedding and head, which stay exact.
    """
    if arithmetic == "fp16" and arithmetic not in copies():
        arithmetic = "fp32"  # as the back end does where there is no kernel
    if arithmetic not in COPIED:
        return int(shape.parameters * WEIGHT_BYTES[arithmetic])
    copy = COPIED[arithmetic] * (1 if shape.packed else 2)
    beside = 2 if has(_BFLOAT16) else 0 if shape.mapped and has(_AVX2) else 4
    if not shape.hidden:
        return shape.parameters * (copy + beside)
    outer = shape.vocabulary * shape.hidden
    head, outer = outer, outer * (1 if shape.tied else 2)
    layers = max(shape.parameters - outer, 0)
    return (copy + beside) * layers + 4 * outer + head


def copies() -> tuple[str, ...]:
    """The copied arithmetics that this processor has a kernel for, best first."""
    return tuple(COPIED) if has(_AVX2) else ("int8",)


_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Dot products of bfloat16: on x86 by the first two, on Arm by the last."""
_AVX2 = frozenset({"avx2"})


def has(features: frozenset[str], cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor has one of these features, as Linux lists them; False if it does not say."""
    try:
        words = set(cpuinfo.read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return bool(words & features)


def available_memory() -> int:
    """Bytes that can be used without swapping; a container's limit counts."""
    import psutil

    free = int(psutil.virtual_memory().available)
    return min([free, *_container_rest()])


def _container_rest(root: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """What a cgroup (version 2, then 1) leaves to this process; empty where there is no limit."""
    for folder, limit, used in (
        (root, "memory.max", "memory.current"),
        (root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            rest = int((folder / limit).read_text()) - int((folder / used).read_text())
            # file pages that nobody uses are counted as used, but given back on demand
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            return [max(0, rest + int(stat.get("inactive_file", 0)))]
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return []


def fit(
    shape: Shape, *, name: str, arithmetic: str, window: int, cache_mb: int, available: int | None = None
) -> Estimate:
    """The estimate of what will be used: "auto" takes fp16 if it fits, else int8, fp32, bf16; an unset window (0)
    shrinks, by halves, to what fits.

    A larger window counts for more than the faster arithmetic: a copy is only taken if it costs no window that fp32
    would have.

    Raises ModelTooLargeError naming both numbers and the nearest thing that would fit.
    """
    free = available_memory() if available is None else available
    tried: list[Estimate] = []
    for kinds in ((*copies(), "fp32"), ("bf16",)) if arithmetic == "auto" else ((arithmetic,),):
        tokens = window or shape.window
        while True:
            tried += [estimate(shape, arithmetic=kind, window=tokens, cache_mb=cache_mb) for kind in kinds]
            fitting = next((one for one in tried[-len(kinds) :] if one.needed <= free), None)
            if fitting is not None:
                return fitting
            if window or tokens // 2 < MINIMUM_WINDOW:
                break
            tokens //= 2
    raise _too_large(shape, name, min(tried, key=lambda one: one.needed), free)


def _too_large(shape: Shape, name: str, least: Estimate, free: int) -> ModelTooLargeError:
    hints = []
    if least.window > MINIMUM_WINDOW:
        hints.append(f"model.window = {MINIMUM_WINDOW}")
    half = estimate(shape, arithmetic="bf16", window=MINIMUM_WINDOW)
    if least.arithmetic != "bf16" and half.needed <= free:
        hints.append(f"model.arithmetic = bf16 ({megabytes(half.needed)})")
    smaller = [
        entry
        for entry in catalogue().values()
        if entry.role == "chat" and estimate(shape_of_entry(entry), window=MINIMUM_WINDOW).needed <= free
    ]
    smaller = [entry for entry in smaller if entry.parameters < shape.parameters]
    if smaller:
        hints.append(f"-m {max(smaller, key=lambda entry: entry.parameters).id}")
    return ModelTooLargeError(
        f"{name} needs about {megabytes(least.needed)} of memory in {least.arithmetic} with a window of {least.window}"
        f" tokens; {megabytes(free)} are free.",
        f"Try {' or '.join(hints)}." if hints else "Close other programs, or use a machine with more memory.",
    )


def unpack_need(parameters: int) -> int:
    """Peak bytes while a GGUF of this many parameters is converted (9.2 GB measured for 1.78 billion; this says 9.4)."""
    return int(parameters * 4 * 1.25) + BASE

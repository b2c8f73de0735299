"""A network's weights in the places where the fast step looks, without transformers' code for the network.

Owns: tensors out of mapped files, rotary angles, the whole network when something asks for it after all. Does not own:
passes (fast), when a load may go this way (hf: after a load that checked everything, and never without asking for a few
tokens first). Why: importing transformers' modelling code and building the network in it takes seconds of each load,
and nothing of it runs where the fast step computes prefill and steps alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Linear:
    """x · Wᵀ + b, and its tensors by the names of nn.Linear."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        """(…, K) to (…, N)."""
        return functional.linear(x, self.weight, self.bias)


class Embedding:
    """Rows of a table by id."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def __call__(self, ids: Tensor) -> Tensor:
        """(…) to (…, d)."""
        return functional.embedding(ids, self.weight)


class Rotary:
    """cos and sin of rotary angles, as transformers computes them for variants whose angles do not depend on the text's
    length.
    """

    def __init__(self, config: Any) -> None:
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        rope = config.rope_parameters
        size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._scaling = 1.0
        if rope.get("rope_type", "default") == "default":
            self._frequency = 1.0 / (rope["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size))
        else:
            self._frequency, self._scaling = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, torch.device("cpu"))

    def __call__(self, like: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Positions (B, T) to cos and sin (B, T, D)."""
        angles = positions[..., None].float() * self._frequency
        both = torch.cat([angles, angles], dim=-1)
        return both.cos() * self._scaling, both.sin() * self._scaling


class Lean:
    """What the fast step and its owner read of a transformers model; `whole` is that model, loaded when it is first
    asked for.
    """

    dtype = torch.float32
    device = torch.device("cpu")

    def __init__(self, folder: Path, load: Callable[[], Any]) -> None:
        """Raises KeyError, OSError or ValueError where the folder holds something else than a plain decoder in fp32."""
        from transformers import AutoConfig, GenerationConfig

        self.config: Any = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        stated = (folder / "generation_config.json").is_file()
        self.generation_config: Any = (
            GenerationConfig.from_pretrained(folder, local_files_only=True)
            if stated
            else GenerationConfig.from_model_config(self.config)
        )
        self._load = load
        self._whole: Any = None
        tensors = _tensors(folder)
        embed = tensors["model.embed_tokens.weight"]
        self.lm_head = _linear(tensors, "lm_head") if "lm_head.weight" in tensors else Linear(embed, None)
        layers = [_layer(tensors, f"model.layers.{i}", self.config) for i in range(self.config.num_hidden_layers)]
        self._decoder = SimpleNamespace(
            embed_tokens=Embedding(embed),
            rotary_emb=Rotary(self.config),
            norm=_norm(tensors, "model.norm"),
            layers=layers,
        )

    def get_decoder(self) -> Any:
        """Embedding, layers, norm and angles."""
        return self._decoder

    @property
    def whole(self) -> Any:
        """The transformers model."""
        if self._whole is None:
            self._whole = self._load()
        return self._whole


def _tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the folder by name, mapped. Raises ValueError if one is not fp32."""
    from safetensors import safe_open

    found: dict[str, Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as held:
            found |= {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118 - no mapping
    if any(tensor.dtype != torch.float32 for tensor in found.values()):
        raise ValueError("not all in fp32")
    return found


def _layer(tensors: Mapping[str, Tensor], name: str, config: Any) -> Any:
    attend, mlp = f"{name}.self_attn", f"{name}.mlp"
    size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    block = {part: _linear(tensors, f"{attend}.{part}") for part in ("q_proj", "k_proj", "v_proj", "o_proj")}
    norms = {
        part: _norm(tensors, f"{attend}.{part}")
        for part in ("q_norm", "k_norm")
        if f"{attend}.{part}.weight" in tensors
    }
    return SimpleNamespace(
        self_attn=SimpleNamespace(scaling=size**-0.5, **block, **norms),
        mlp=SimpleNamespace(
            **{part: _linear(tensors, f"{mlp}.{part}") for part in ("gate_proj", "up_proj", "down_proj")}
        ),
        input_layernorm=_norm(tensors, f"{name}.input_layernorm"),
        post_attention_layernorm=_norm(tensors, f"{name}.post_attention_layernorm"),
    )


def _linear(tensors: Mapping[str, Tensor], name: str) -> Linear:
    return Linear(tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def _norm(tensors: Mapping[str, Tensor], name: str) -> Any:
    return SimpleNamespace(weight=nn.Parameter(tensors[f"{name}.weight"], requires_grad=False))

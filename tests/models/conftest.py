"""Tokenizers and models small enough to build in a test: every style of vocabulary, every family of network, with
random weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CORPUS = (
    "Paris is big. The capital of France is Paris, and its river is the Seine. Who was the paternal grandfather of"
    " Charles? You are a helpful assistant. Answer: yes or no. User: system user assistant Trémoille 1764 1839 film"
    " director born in Rome. "
)
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{%"
    " endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}{% for message in messages"
    " %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{%"
    " endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] | trim + ' [/INST]' }}{%"
    " else %}{{ ' ' + message['content'] | trim + ' ' + eos_token }}{% endif %}{% endfor %}"
)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Threads that wait for one another on a busy machine cost more than they bring to networks this small."""
    import torch

    torch.set_num_threads(1)


def byte_level_tokenizer() -> Any:
    """In the manner of Llama-3, Qwen and SmolLM."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    core.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([CORPUS], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    made.chat_template = CHATML
    return made


def sentencepiece_tokenizer(*, first_only: bool = False) -> Any:
    """In the manner of Llama-2 (a dummy space in front of every stretch) or, with `first_only`, of its successors."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "<s>", "</s>"]
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    trained.train_from_iterator([("▁" + CORPUS).replace(" ", "▁")], trainer)
    import json

    spec = json.loads(trained.to_str())["model"]
    vocab = dict(spec["vocab"])
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    merges = [tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in spec["merges"]]
    core = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))  # type: ignore[arg-type]
    if first_only:
        core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)  # type: ignore[assignment]
    else:
        core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])  # type: ignore[assignment]
    core.decoder = decoders.Sequence(  # type: ignore[assignment]
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    )
    core.add_special_tokens(special)
    made = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    made.chat_template = LLAMA2
    return made


TOKENIZERS: dict[str, Callable[[], Any]] = {
    "byte-level": byte_level_tokenizer,
    "llama-2": sentencepiece_tokenizer,
    "metaspace": lambda: sentencepiece_tokenizer(first_only=True),
}


@pytest.fixture(scope="session", params=list(TOKENIZERS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """One of each style."""
    return TOKENIZERS[request.param]()


@pytest.fixture
def byte_level() -> Any:
    """A fresh byte-level tokenizer with the ChatML template."""
    return byte_level_tokenizer()


@pytest.fixture
def sentencepiece() -> Any:
    """A fresh Llama-2-like tokenizer, whose template takes no system message and wants strict alternation."""
    return sentencepiece_tokenizer()


FAMILIES = ("llama", "qwen2", "qwen2-window", "qwen3", "mistral", "phi3", "gemma3", "smollm3")


def tiny_model(family: str, vocab: int = 420, seed: int = 0, **more: Any) -> Any:
    """A network of this family with random weights large enough that its distributions are far from uniform; `more`
    goes into its configuration.
    """
    import torch
    import transformers as t

    from mindchat.models.network import attention_hook

    base = {
        "vocab_size": vocab,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **more,
    }
    configs: dict[str, Callable[[], Any]] = {
        "llama": lambda: t.LlamaConfig(**base),
        "qwen2": lambda: t.Qwen2Config(**base),
        "qwen2-window": lambda: t.Qwen2Config(**base, use_sliding_window=True, sliding_window=8, max_window_layers=1),
        "qwen3": lambda: t.Qwen3Config(**base, head_dim=8),
        "mistral": lambda: t.MistralConfig(**base, sliding_window=8),
        "phi3": lambda: t.Phi3Config(**base, sliding_window=8),
        "gemma3": lambda: t.Gemma3TextConfig(
            **base,
            head_dim=8,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        ),
        "smollm3": lambda: t.SmolLM3Config(**base),
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = t.AutoModelForCausalLM.from_config(
            configs[family](), attn_implementation=attention_hook.register()
        ).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(8.0 if parameter.dim() > 1 else 1.0)
    return model.requires_grad_(requires_grad=False)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    """Every family."""
    return str(request.param)


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Any]:
    """LocalModel over a tiny network: tiny(family, **settings of [model])."""
    from mindchat.config import ModelSection
    from mindchat.models.local import LocalModel

    shared = byte_level_tokenizer()

    def make(family: str = "llama", **settings: Any) -> Any:
        return LocalModel(
            tiny_model(family, len(shared)),
            shared,
            ModelSection(**{"arithmetic": "fp32", **settings}),
            id=f"tiny-{family}",
        )

    return make


@pytest.fixture(scope="session")
def smollm(smollm_folder: Path) -> Any:
    """SmolLM2-135M in fp32."""
    from mindchat.config import ModelSection
    from mindchat.models.local import LocalModel

    return LocalModel.load(smollm_folder, ModelSection(arithmetic="fp32"), id="smollm2-135m")

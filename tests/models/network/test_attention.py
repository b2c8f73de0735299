from __future__ import annotations

from typing import Any

import pytest
import torch

from mindchat.models.network import attention_hook, attention_rows
from mindchat.models.network.attention_rows import attention_row
from mindchat.models.network.backbone import Backbone
from mindchat.values import Attended, Message, Prompt, Signal, Text, Token

ALL = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})
PROMPT = Prompt(
    (Message("user", (Text("Who was the paternal grandfather of Charles, and is Paris big?", "question"),)),)
)


def test_the_row_is_the_mean_over_heads_of_the_softmax() -> None:
    query, key = torch.zeros(1, 2, 1, 2), torch.zeros(1, 1, 2, 2)
    query[0, 0, 0, 0] = 1.0
    key[0, 0, 1, 0] = 3.0
    one = torch.tensor([1.0, torch.e**3]) / (1 + torch.e**3)
    assert torch.allclose(attention_row(query, key, None, 1.0)[0], (one + torch.tensor([0.5, 0.5])) / 2)
    masked = torch.tensor([[[[False, True]]]])
    assert attention_row(query, key, masked, 1.0)[0].tolist() == [0.0, 1.0]
    assert attention_row(query, key, torch.tensor([[[[-1e9, 0.0]]]]), 1.0)[0].tolist() == [0.0, 1.0]


def test_rows_of_generated_tokens_equal_eager_attention_in_every_family(tiny: Any, family: str) -> None:
    model = tiny(family)
    assert Signal.ATTENTION in model.provides
    items = list(model.stream(PROMPT, want=ALL, max_tokens=24))
    ids = [item.id for item in items if isinstance(item, Token)]
    rows = [item for item in items if isinstance(item, Attended)]
    prompt = model.format.render(PROMPT).ids
    assert len(prompt) > 8  # longer than the tiny families' sliding window
    assert [row.query for row in rows] == list(range(len(ids)))
    assert [len(row.paid) for row in rows] == list(range(len(ids)))
    reference = attention_hook.eager(model.backbone.model, torch.tensor([[*prompt, *ids]]))[0]
    for row in rows:
        at = len(prompt) + row.query
        assert torch.allclose(torch.tensor(row.paid), reference[at, len(prompt) : at], atol=1e-4)


def test_pieces_cover_prompt_and_draft_up_to_the_span(tiny: Any) -> None:
    model = tiny("llama")
    from mindchat.values import Draft, Span

    tokens = tuple(item for item in model.stream(PROMPT, want=frozenset(), max_tokens=6) if isinstance(item, Token))
    draft = Draft("".join(token.text for token in tokens), tokens)
    pieces = model.attention(PROMPT, draft, Span(3, 5))
    rendered = model.format.render(PROMPT)
    assert len(pieces) == len(rendered.ids) + 3
    assert "".join(piece.text for piece in pieces) == rendered.text + "".join(token.text for token in tokens[:3])
    assert {piece.origin for piece in pieces} == {"template", "question", "reasoning"}
    reference = attention_hook.eager(model.backbone.model, torch.tensor([[*rendered.ids, *draft.ids]]))[0]
    n = len(rendered.ids)
    expected = (reference[n + 3] + reference[n + 4])[: n + 3] / 2
    assert torch.allclose(torch.tensor([piece.weight for piece in pieces]), expected, atol=1e-4)


def test_a_probe_that_disagrees_with_eager_attention_is_not_used(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama").backbone.model
    monkeypatch.setattr(attention_rows, "attention_row", lambda *a: attention_row(*a) * 1.01)
    assert not Backbone(model, [5, 6, 7, 8, 9, 10, 11]).measures


def test_without_the_registered_function_there_is_no_attention_and_no_pretence(tiny: Any) -> None:
    from mindchat.errors import CapabilityError
    from mindchat.models.local import LocalModel
    from mindchat.values import Draft, Span

    whole = tiny("llama")
    network = whole.backbone.model
    network.set_attn_implementation("sdpa")
    try:
        model = LocalModel(network, whole.vocabulary.tokenizer, whole.section, id="bare")
        assert Signal.ATTENTION not in model.provides
        assert not any(isinstance(item, Attended) for item in model.stream(PROMPT, want=ALL, max_tokens=3))
        with pytest.raises(CapabilityError):
            model.attention(PROMPT, Draft(""), Span(0, 0))
    finally:
        network.set_attn_implementation(attention_rows.NAME)

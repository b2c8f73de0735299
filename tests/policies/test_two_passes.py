"""What the loop measures while it writes equals what a second pass over the finished text gives: generate, then one
forward with all attentions.

The second pass is DRAGIN's own way to its signals; here it is the reference, over ten sentences of SmolLM2 under the
policy dragin.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import ModelSection
from mindchat.text.language import language
from mindchat.values import Token

from ..fakes import engine

pytestmark = pytest.mark.slow

SENTENCES = 10
QUESTIONS = (
    "In which city was the director of Metropolis born?",
    "Who was born first, Fritz Lang or Marie Curie?",
    "Is Warsaw larger than Vienna?",
    "Who directed the film Nosferatu?",
    "Which river flows through Paris?",
    "Who wrote the play Hamlet?",
)


@pytest.fixture(scope="module")
def smollm(smollm_folder: Path) -> Any:
    import torch

    from mindchat.models.local import LocalModel

    torch.set_num_threads(1)
    return LocalModel.load(smollm_folder, ModelSection(arithmetic="fp32"), id="smollm2-135m")


class Recorded:
    """One judged sentence: the ids before it, its tokens, and what the loop said about it."""

    def __init__(
        self, before: list[int], tokens: list[Token], received: tuple[float, ...], judged: ev.SentenceJudged
    ) -> None:
        self.before, self.tokens, self.received, self.judged = before, tokens, received, judged


def sentences(model: Any) -> Iterator[Recorded]:
    for question in QUESTIONS:
        before: list[int] = []
        tokens: list[Token] = []
        received: tuple[float, ...] = ()
        for event in engine(
            model, "engine.policy=dragin", "engine.max_hops=1", "engine.max_sentences=4", "engine.reasoning_tokens=96"
        ).run(question):
            match event:
                case ev.PromptBuilt(purpose="reasoning"):
                    before, tokens = list(model.format.render(event.prompt).ids), []
                case ev.TokenDrafted(channel="reasoning"):
                    tokens.append(event.token)
                case ev.AttentionSettled():
                    received = event.received
                case ev.SentenceJudged():
                    yield Recorded(list(before), tokens, received, event)
                    before, tokens = before + [token.id for token in tokens], []


def second_pass(model: Any, one: Recorded) -> tuple[list[float], list[float]]:
    """(entropy, attention received) of each token, from one forward over prompt and sentence."""
    import torch

    network = model.backbone.model
    ids = torch.tensor([one.before + [token.id for token in one.tokens]])
    first, n = len(one.before), len(one.tokens)
    measured = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            output = network(input_ids=ids, use_cache=False, output_attentions=True)
    finally:
        network.set_attn_implementation(measured)
    # the distribution that produced token j stands at position j - 1
    log_probs = torch.log_softmax(output.logits[0, first - 1 : first + n - 1].double(), -1)
    entropies = (-(log_probs.exp() * log_probs).sum(-1)).tolist()
    rows = output.attentions[-1][0].double().mean(dim=0)[first:, first:]
    received = [max((float(rows[i, j]) for i in range(j + 1, n)), default=0.0) for j in range(n)]
    return entropies, received


def by_hand(one: Recorded, entropies: list[float], received: list[float]) -> dict[int, float]:
    """S = H · a / mean(a) of each content word by its start, computed without the policy's code (but for the words
    themselves).
    """
    words, at, offsets = one.judged.verdict.words, 0, []
    for token in one.tokens:
        offsets.append((at, at + len(token.text)))
        at += len(token.text)
    spans = [[i for i, (start, end) in enumerate(offsets) if start < w.end and end > w.start] for w in words]
    attention = [max(received[i] for i in span) for span in spans]
    if len(attention) > 1:
        attention[-1] = sum(attention[:-1]) / (len(attention) - 1)
    lettered = [a for a, w in zip(attention, words, strict=True) if any(c.isalnum() for c in w.text)]
    mean = sum(lettered) / len(lettered)
    return {
        w.start: sum(entropies[i] for i in span) / len(span) * a / mean if language("en").content(w.text) else 0.0
        for w, span, a in zip(words, spans, attention, strict=True)
    }


@pytest.mark.model
def test_entropies_attention_and_scores_equal_a_two_pass_computation(smollm: Any) -> None:
    seen = 0
    for one in sentences(smollm):
        assert "".join(token.text for token in one.tokens) == one.judged.sentence
        entropies, received = second_pass(smollm, one)
        assert [token.entropy for token in one.tokens] == pytest.approx(entropies, abs=2e-3)
        assert one.received == pytest.approx(received, abs=1e-3)
        scores = by_hand(one, [token.entropy or 0.0 for token in one.tokens], list(one.received))
        assert {w.start: w.score for w in one.judged.verdict.words} == pytest.approx(scores, abs=1e-6)
        two_pass = by_hand(one, entropies, received)
        assert {w.start: w.score for w in one.judged.verdict.words} == pytest.approx(two_pass, rel=5e-2, abs=5e-2)
        seen += 1
        if seen == SENTENCES:
            break
    assert seen == SENTENCES

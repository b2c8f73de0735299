"""Repetition and the key-value cache, on a real model: the same tokens with and without reuse, and exactly the shared
prefix is cached.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from mindchat.config import ModelSection, load_config
from mindchat.engine.metered_model import collect
from mindchat.models.network.kv_cache import shared
from mindchat.prompts.core import AssistantRole, UserRole, extraction
from mindchat.prompts.core.synthetic import lists_prompt
from mindchat.values import Draft, Finish, Prompt, Signal, TurnState

from ..fakes import WORLD, engine, of
from .conftest import with_parts

pytestmark = [pytest.mark.model, pytest.mark.slow]
HOP = TurnState(0, "Where was the director of Metropolis born?", passages=WORLD[:2])
TOKENS = 4


@pytest.fixture(scope="module")
def pair(smollm_folder: Path) -> tuple[Any, Any]:
    """The same model with reuse and without."""
    import torch

    from mindchat.models.local import LocalModel

    torch.set_num_threads(1)
    first = LocalModel.load(smollm_folder, ModelSection(arithmetic="fp32"), id="smollm2-135m")
    plain = LocalModel(
        first.backbone.model,
        first.vocabulary.tokenizer,
        ModelSection(reuse=False, arithmetic="fp32"),
        id="smollm2-135m",
    )
    return first, plain


@pytest.fixture
def reusing(pair: tuple[Any, Any]) -> Any:
    pair[0].store.clear()
    return pair[0]


@pytest.fixture
def plain(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def composer(role: str, *assignments: str) -> Any:
    config = load_config(environ={}, assignments=(f"layout.role={role}", *assignments)).config
    return UserRole(config) if role == "user" else AssistantRole(config)


def ask(model: Any, prompt: Prompt) -> tuple[Draft, int, int]:
    """(the answer, prompt tokens computed, prompt tokens cached)."""
    model.usage()
    draft = collect(model.stream(prompt, want=frozenset({Signal.ENTROPY}), max_tokens=TOKENS, stop=()), frozenset())
    new, cached, _ = model.usage()
    return draft, new, cached


def sequence(role: str) -> list[Prompt]:
    """A probe at one copy and further copies; in the user role also another order and thinking first; the reasoning
    prompts of three hops.
    """
    if role == "reasoning":
        steps, said = composer("user", "layout.reasoning=hop"), " Metropolis was directed by Fritz Lang."
        later = TurnState(1, HOP.question, said, WORLD, sentences=(said,))
        return [
            steps.reasoning(TurnState(0, HOP.question, passages=WORLD[:1]), (), ()),
            steps.reasoning(HOP, (), ()),
            steps.reasoning(later, (), ()),
        ]
    same, reverse = composer(role), composer(role, "layout.as=reverse")
    if role == "assistant":
        return [same.answer(HOP, 0, ()), same.answer(HOP, 1, ())]
    return [same.answer(HOP, 0, ()), same.answer(HOP, 2, ()), reverse.answer(HOP, 1, ()), same.think(HOP, 1, ())]


@pytest.mark.parametrize("role", ["user", "assistant", "reasoning"])
def test_the_same_tokens_and_exactly_the_shared_prefix_is_cached(role: str, reusing: Any, plain: Any) -> None:
    seen: list[tuple[int, ...]] = []
    for prompt in sequence(role):
        ids = reusing.format.render(prompt).ids
        with_reuse, new, cached = ask(reusing, prompt)
        without, all_new, none = ask(plain, prompt)
        assert with_reuse.ids == without.ids
        assert [t.entropy for t in with_reuse.tokens] == pytest.approx([t.entropy for t in without.tokens], abs=1e-3)
        expected = max((min(shared(ids, earlier), len(ids) - 1) for earlier in seen), default=0)
        assert (cached, new) == (expected, len(ids) - expected)
        assert (none, all_new) == (0, len(ids))
        # the last generated token was never fed, so the line holds all others
        seen.append((*ids, *with_reuse.ids[: -1 if with_reuse.finish is Finish.LENGTH else None]))


def test_a_copy_costs_a_copy_and_a_probe_between_copies_next_to_nothing(reusing: Any) -> None:
    laid = composer("user")
    prompts = [laid.answer(HOP, repeat, ()) for repeat in range(3)]
    sizes = [reusing.count(prompt) for prompt in prompts]
    copy = sizes[1] - sizes[0]
    question = sizes[0] - shared(*(reusing.format.render(prompt).ids for prompt in prompts[:2]))
    costs = [ask(reusing, prompt)[1] for prompt in prompts]
    assert costs[0] == sizes[0]
    for cost in costs[1:]:
        assert copy <= cost <= copy + question, "a copy, and the question that stands behind the copies"
    assert question < copy / 2


def test_the_answer_after_thinking_computes_only_what_is_appended(reusing: Any) -> None:
    first = composer("user").think(HOP, 1, ())
    thought, _, _ = ask(reusing, first)
    second = extraction(first, thought)
    _, new, cached = ask(reusing, second)
    assert cached >= reusing.count(first) + len(thought.ids) - 2
    assert new == reusing.count(second) - cached < 40


def test_documents_first_spares_them_for_the_next_question(reusing: Any) -> None:
    laid = composer("user", "layout.order=docs_first")
    ask(reusing, laid.answer(HOP, 0, ()))
    follow = laid.answer(TurnState(0, "Who directed it?", passages=HOP.passages), 0, [(HOP.question, "Vienna")])
    _, new, cached = ask(reusing, follow)
    documents = reusing.count(laid.answer(HOP, 0, ())) - reusing.count(laid.answer(TurnState(0, HOP.question), 0, ()))
    assert cached >= documents
    reusing.store.clear()
    paper = composer("user")
    ask(reusing, paper.answer(HOP, 0, ()))
    _, more, _ = ask(
        reusing, paper.answer(TurnState(0, "Who directed it?", passages=HOP.passages), 0, [(HOP.question, "Vienna")])
    )
    assert new < more


def test_lists_extend_one_another(reusing: Any) -> None:
    rows = ((381, 512, 1021), (7123, 34, 6397))
    ids = [reusing.format.render(lists_prompt(rows, 0, repeat, "user")).ids for repeat in range(4)]
    tail = len(reusing.format.render(lists_prompt(rows, 0, 0, "user")).ids) - shared(ids[0], ids[1])
    for fewer, more in itertools.pairwise(ids):
        assert len(fewer) - shared(fewer, more) == tail, "only the closing of the turn differs"


def test_auto_on_a_model(reusing: Any) -> None:
    """The whole turn: a threshold that nothing meets makes every copy that order can need; the answer stands in the
    last prompt's own words.
    """
    from mindchat import events as ev

    settings = ("layout.repeat=auto", "layout.auto_entropy=0", "engine.policy=none", "answer.max_tokens=8")
    events = list(with_parts(engine([], *settings, given=HOP.passages), model=reusing).run(HOP.question))
    probes = [e for e in of(events, ev.ModelAsked) if e.kind == "probe"]
    assert len(probes) == 2
    assert probes[1].prompt_tokens_cached > 0.8 * probes[0].prompt_tokens_new
    assert isinstance(events[-1], ev.AnswerReady)

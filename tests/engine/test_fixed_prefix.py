"""What is read before there is a question is what the first prompt really begins with, whatever the policy."""

from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.errors import Interrupted
from mindchat.models.scripted import Reply, ScriptedModel
from mindchat.policies import POLICIES
from mindchat.ports import NEVER, Cancel
from mindchat.values import Prompt, Text

from ..fakes import ALL, METROPOLIS, KeywordRetriever, engine, of, run

QUESTION = "Who directed the film Metropolis?"
HISTORY = [("Where is Berlin?", "Germany")]
TAPE: list[Reply | str] = ["So the answer is Fritz Lang."] * 60


class Reading(ScriptedModel):
    """Keeps what it is told to read."""

    read: tuple[Prompt, ...] = ()

    def warm(self, prompt: Prompt, *others: Prompt, cancel: Cancel = NEVER) -> int:
        cancel.check()
        self.read = (prompt, *others)
        return len(shared(self, self.read))


def shared(model: ScriptedModel, prompts: tuple[Prompt, ...]) -> str:
    texts = [model.render(prompt) for prompt in prompts]
    same = [len(set(column)) == 1 for column in zip(*texts, strict=False)]
    return texts[0][: (*same, False).index(False)]


@pytest.mark.parametrize(
    "layout", ["layout.order=paper", "layout.order=docs_first", "layout.order=question_last", "layout.role=assistant"]
)
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_first_prompt_begins_with_it(policy: str, layout: str) -> None:
    model = Reading(TAPE, provides=ALL)
    loop = engine(model, f"engine.policy={policy}", layout, retriever=KeywordRetriever(METROPOLIS))
    beginning = loop.read_ahead()
    kept = shared(model, model.read)
    assert beginning == len(kept) > 0
    assert "Who?" not in kept
    assert not any(
        segment.text in kept
        for prompt in model.read
        for m in prompt.messages
        for segment in m.segments
        if _changes(segment)
    )
    for history in ((), HISTORY):
        built = of(
            run(
                QUESTION,
                Reading(TAPE, provides=ALL),
                f"engine.policy={policy}",
                layout,
                "engine.chain=off",
                history=history,
            ),
            ev.PromptBuilt,
        )
        assert built[0].sent.startswith(kept), policy


def _changes(segment: object) -> bool:
    return isinstance(segment, Text) and segment.origin in ("question", "passage", "memory")


def test_the_instructions_and_examples_are_read_where_the_policy_reasons() -> None:
    model = Reading([])
    engine(model, "engine.policy=mind").read_ahead()
    kept = shared(model, model.read)
    first = model.read[0]
    constant = [
        s.text
        for m in first.messages
        for s in m.segments
        if isinstance(s, Text) and s.origin in ("instruction", "exemplar")
    ]
    assert len(constant) > 3
    assert all(text in kept for text in constant)


def test_a_model_that_keeps_nothing_is_not_asked() -> None:
    assert engine(ScriptedModel([]), "engine.policy=mind").read_ahead() == 0


def test_it_makes_way() -> None:
    stop = Cancel()
    stop.set()
    with pytest.raises(Interrupted):
        engine(Reading([]), "engine.policy=mind").read_ahead(stop)

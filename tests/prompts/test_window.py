"""500 random document sets and windows for every form of repetition: never over the window, whole documents only, every
drop named.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.config import load_config
from mindchat.engine.budget import fit
from mindchat.errors import WindowError
from mindchat.prompts.core import AssistantRole, UserRole, copies_of
from mindchat.values import Budget, Passage, Prompt, TurnState

FORMS = st.fixed_dictionaries(
    {
        "layout.role": st.sampled_from(["user", "assistant"]),
        "layout.order": st.sampled_from(["paper", "docs_first"]),
        "layout.as": st.sampled_from(["same", "reverse", "shuffle", "paraphrase", "core"]),
    }
)
sets = st.lists(st.tuples(st.integers(1, 80), st.integers(1, 9)), max_size=12)


def count(prompt: Prompt) -> int:
    return sum(len(message.text.split()) for message in prompt.messages)


@settings(max_examples=500, deadline=None)
@given(sets, FORMS, st.integers(0, 10), st.integers(60, 3000), st.integers(1, 64), st.booleans(), st.integers(0, 3))
def test_any_documents_window_and_form(
    shapes: list[tuple[int, int]], form: dict[str, str], repeat: int, window: int, room: int, cot: bool, turns: int
) -> None:
    passages = tuple(
        Passage(f"p{n}", f"{n}", f"T{n}", " ".join(f"w{n}x{i}" for i in range(size)), 0, 1, rank=rank)
        for n, (size, rank) in enumerate(shapes)
    )
    config = load_config(environ={}, assignments=tuple(f"{key}={value}" for key, value in form.items())).config
    composer: Any = (UserRole if form["layout.role"] == "user" else AssistantRole)(config)
    told = None
    if form["layout.as"] == "paraphrase":
        told = {p.id: f"said{p.id} otherwise" for p in passages}
    elif form["layout.as"] == "core" and passages:
        told = {p.id: p.text for p in passages[::2]}
    lay = composer.think if cot else composer.answer
    hop, history = TurnState(0, "Who was it?", passages=passages), [(f"old {n}", "a") for n in range(turns)]
    try:
        fitted = fit(lambda h, past: lay(h, repeat, past, told), hop, history, count, Budget(window, room))
    except WindowError:
        assert count(lay(TurnState(0, "Who was it?"), repeat, history[-1:], told)) + room > window
        return
    assert fitted.tokens == count(fitted.prompt)
    assert fitted.tokens + room <= window
    sent = "\n".join(message.text for message in fitted.prompt.messages)
    assert "Who was it?" in sent
    assert not turns or f"old {turns - 1}" in sent, "the newest turn is never left out"
    named = {drop.passage for drop in fitted.dropped if drop.passage.startswith("p")}
    kept = [p for p in passages if p.id not in named]
    assert list(fitted.hop.passages) == kept
    copies = copies_of(fitted.prompt)
    assert not kept or sorted(copies[0]) == sorted(p.id for p in kept)
    repeated = [p.id for p in kept if told is None or p.id in told]
    assert all(sorted(copy) == sorted(repeated) for copy in copies[1:])
    assert len(copies) == (0 if not kept else repeat + 1 if repeated else 1)
    shown = " ".join(message.text for message in fitted.prompt.messages).split()
    for p in passages:
        words = sum(word.startswith(f"w{p.id[1:]}x") for word in shown)
        whole = len(p.text.split())
        assert words % whole == 0, "no part of a document"
        assert (words == 0) == (p.id in named)
    worst_kept = max((p.rank for p in kept), default=0)
    assert all(p.rank >= worst_kept for p in passages if p.id in named), "lowest-ranked first"

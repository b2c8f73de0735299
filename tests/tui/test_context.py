"""The context pane: copies side by side where there is room, folded elsewhere, and nothing of what was sent is missing
in either.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.config import Config, change
from mindchat.events import PromptBuilt, PromptPrefilled
from mindchat.prompts import COMPOSERS
from mindchat.prompts.core import copies_of
from mindchat.trace import Trace
from mindchat.tui.drawable import block
from mindchat.tui.widgets.columns import cells_needed, parted, side_by_side
from mindchat.tui.widgets.context import painted_beside, stretches
from mindchat.values import Fact, Passage, TurnState
from mindchat.wiring import plug

PASSAGES = tuple(
    Passage(f"p{n}", f"/{n}.md", f"Title {n}", f"Passage number {n} says [x] much.", 0, 9, 1.0, n) for n in (1, 2, 3)
)
HOP = TurnState(
    1,
    "Who was it?",
    passages=PASSAGES,
    facts=(Fact("m1", "a", "b", "c", 0.9, "d", "p1", "q"),),
    accepted="It was so.",
    sentences=("It was so.",),
)


def built(copies: int, *settings: str) -> PromptBuilt:
    config = Config()
    for setting in settings:
        config = change(config, *setting.split("="))
    prompt = plug(COMPOSERS, config.layout.role, "role")(config).answer(HOP, copies, [("Earlier?", "Yes")])
    sent = "".join(f"<|im_start|>{message.role}\n{message.text}<|im_end|>\n" for message in prompt.messages)
    return PromptBuilt(prompt, sent, copies_of(prompt), 900, 4096, "answer")


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("role", ["layout.role=user", "layout.role=assistant"])
@pytest.mark.parametrize("order", ["layout.order=paper", "layout.order=docs_first"])
def test_the_columns_read_one_after_the_other_are_what_was_sent(copies: int, role: str, order: str) -> None:
    prompt = built(copies, role, order)
    before, parts, after = parted(list(stretches(prompt)))
    assert len(parts) == copies + 1
    assert "".join(text for piece in (before, *parts, after) for text, *_ in piece) == prompt.sent
    for number, part in enumerate(parts):
        assert {copy for _, origin, copy, _ in part if origin == "passage"} == {number}
        assert [passage for _, origin, _, passage in part if origin == "passage"] == ["p1", "p2", "p3"]


def test_one_copy_has_no_columns() -> None:
    prompt = built(0)
    before, parts, after = parted(list(stretches(prompt)))
    assert (parts, after) == ([], [])
    assert "".join(text for text, *_ in before) == prompt.sent
    assert painted_beside(prompt, 500) is None


@given(
    st.lists(st.text(alphabet="ab [/]\n日👩e\u0301", max_size=80), min_size=2, max_size=4),
    st.integers(min_value=0, max_value=40),
)
def test_no_row_is_wider_than_the_pane_and_no_word_is_lost(texts: list[str], more: int) -> None:
    width = cells_needed(len(texts)) + more
    drawn = side_by_side([block(text) for text in texts], width)
    assert all(row.cell_length <= width for row in drawn.split("\n", allow_blank=True))
    for letter in "ab[/]日":
        assert drawn.plain.count(letter) == sum(text.count(letter) for text in texts)


async def test_side_by_side_where_there_is_room(stage: Any, fakes: Any) -> None:
    async with stage((80, 45)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.pilot.press("f4")
        await s.until(lambda: "Copy 1 of 2" in s.text())
        (heads,) = [row for row in s.text().splitlines() if "Copy 1 of 2" in row]
        assert "Copy 2 of 2" in heads
        assert "s puts the copies under one another" in s.text()
        assert s.pane("context").count("[3] House of La Trémoille") == 2


async def test_s_puts_them_under_one_another_and_back(stage: Any, fakes: Any, snapshot: Any) -> None:
    async with stage((80, 60)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.pilot.press("f4")
        s.chat.query_one("#context").focus()
        await s.pilot.press("s")
        await s.until(lambda: "s puts the copies side by side" in s.pane("context"))
        assert "Copy 2 of 2 (folded: x opens" in s.pane("context")
        await s.until(lambda: "folded: x opens" in s.text() and "ready" in s.text())
        await snapshot(s)
        await s.pilot.press("s")
        await s.until(lambda: "folded" not in s.pane("context"))


async def test_too_narrow_is_said(stage: Any, fakes: Any) -> None:
    async with stage((120, 40)) as s:
        await s.answer(fakes.QUESTION)
        await s.until(lambda: "Copy 2 of 2 (folded: x opens; side by side from 63 columns on)" in s.pane("context"))
        assert "s puts" not in s.pane("context")


async def test_progress_does_not_draw_the_text_anew(stage: Any, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindchat.tui.widgets import context as pane_module

    drawn: list[int] = []
    real = pane_module.painted_sent

    def counted(*args: Any) -> Any:
        drawn.append(1)
        return real(*args)

    monkeypatch.setattr(pane_module, "painted_sent", counted)
    async with stage((120, 40)) as s:
        await s.ready()
        pane = s.chat.query_one("#context")
        context = fakes.prompt(2, "answer")
        for done in (10, 20, 30):
            pane.show(Trace(contexts=(context,), prefill=PromptPrefilled(done, 100, 0, 1.0)))
            assert f"read {done}" in s.pane("context")
        assert len(drawn) == 1

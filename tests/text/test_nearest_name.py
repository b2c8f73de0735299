from __future__ import annotations

import pytest

from mindchat.text.nearest_name import nearest, unknown


@pytest.mark.parametrize(("typed", "expected"), [("dragn", "dragin"), ("mnid", "mind"), ("zzz", ""), ("", "")])
def test_the_nearest_name_is_offered_only_if_it_is_near(typed: str, expected: str) -> None:
    assert nearest(typed, ["mind", "dragin", "once"]) == expected


def test_a_refusal_names_all_and_carries_no_control_characters() -> None:
    error = unknown("policy", "dra\x1b[2Jgn", ["mind", "dragin"])
    assert "dragin" in error.message
    assert "\x1b" not in error.message
    assert error.hint == "Known: mind, dragin."

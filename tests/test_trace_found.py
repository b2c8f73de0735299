from __future__ import annotations

import pytest

from mindchat.trace import HopView, found_report, found_words
from mindchat.values import Found, Passage


def passage(id: str, found: Found | None) -> Passage:
    return Passage(id, f"/d/{id}.txt", id.title(), "text", 0, 4, 1.0, 1, found=found)


FILM = passage("film", Found())
LANG = passage("lang", Found("link", "Fritz\x1b[31m Lang", "film"))
CITY = passage("city", Found("link", "Vienna"))


@pytest.mark.parametrize(
    ("given", "shown", "title", "words"),
    [
        (FILM, [FILM, LANG], "", ""),
        (passage("old", None), [FILM], "", ""),
        (passage("kept", Found("memory")), [FILM], "", ""),
        (passage("near", Found("dense")), [FILM], "", "near in meaning"),
        (LANG, [CITY, FILM, LANG], "", "named in [2]: Fritz Lang"),
        (LANG, [LANG], "", "named in another passage: Fritz Lang"),
        (LANG, [], "Metropolis", "named in Metropolis: Fritz Lang"),
        (CITY, [FILM, CITY], "", "named in the question: Vienna"),
    ],
)
def test_a_passage_that_came_by_a_name_says_so(given, shown, title, words):
    assert found_words(given, shown, title) == words


def test_the_report_names_passage_reason_name_and_source():
    assert found_report(CITY) == {"passage": "city", "by": "link", "name": "Vienna", "from": None}
    assert found_report(passage("old", None))["by"] == "words"


def test_the_hops_pane_says_so_under_the_passage():
    from mindchat.tui.widgets.hops import painted_hop

    drawn = painted_hop(HopView(1, subquery="q", passages=(FILM, LANG), fresh=2), None, 60).plain
    assert "named in [1]: Fritz Lang" in drawn
    assert drawn.count("named in") == 1


def test_the_context_pane_says_so_under_the_passage():
    from mindchat.events import PromptBuilt
    from mindchat.trace import Trace
    from mindchat.tui.widgets.context import painted_positions
    from mindchat.values import Prompt

    built = PromptBuilt(Prompt(()), "", (("film", "lang"),), 1, 10, "answer")
    trace = Trace(hops=(HopView(1, passages=(FILM, LANG)),))
    assert "named in [1]: Fritz Lang" in painted_positions(trace, built, 60).plain

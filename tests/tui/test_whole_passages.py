"""The context pane shows the chosen sentences in their whole passages, the rest faint."""

from __future__ import annotations

from mindchat.events import EvidenceChosen
from mindchat.tui.widgets.context import painted_whole
from mindchat.values import Evidence

from ..fakes import passage

FILM = passage(
    "film", "Metropolis is a [film]. It was shot in Babelsberg. It was directed by Fritz Lang.", "Metropolis", 12
)
TEA = passage("tea", "Tea is a drink.", "Tea")


def test_nothing_of_a_passage_is_missing_and_what_was_not_read_is_faint() -> None:
    chosen = EvidenceChosen((Evidence("film", 12, 35), Evidence("film", 63, 93)), 11, 19)
    shown = painted_whole(chosen, (FILM, TEA))
    assert FILM.text in shown.plain
    assert "Tea" not in shown.plain
    at = shown.plain.index("It was shot")
    styles = {str(span.style) for span in shown.spans if span.start <= at < span.end}
    read = {str(span.style) for span in shown.spans if span.start <= shown.plain.index("Metropolis is") < span.end}
    assert styles != read

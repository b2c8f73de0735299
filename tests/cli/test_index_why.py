from __future__ import annotations

from pathlib import Path
from typing import Any

from mindchat import events as ev
from mindchat.values import Answer, Found, Passage

NOTES = {
    "crane.md": "# Harbour crane\n\nIts budget was signed by [[Mira Okafor]].\n",
    "people/mira-okafor.md": "# Mira Okafor\n\nShe sits in the Eastern Annex.\n",
    "annex.md": "# Eastern annex\n\nThird floor, room 12.\n",
}


def test_search_tells_the_path_from_name_to_name(run: Any, tmp_path: Path) -> None:
    for name, text in NOTES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert run("index", "add", str(tmp_path / "notes")).code == 0
    out = run("index", "search", "budget", "signed", "--why").out
    assert "why: by its words: [1] Harbour crane\n" in out
    assert "[1] Harbour crane → “Mira Okafor” → [2] Mira Okafor → “Eastern Annex” → [3] Eastern annex\n" in out
    assert "named in [1]: Mira Okafor" in run("index", "search", "budget", "signed").out
    hits = run("index", "search", "budget", "signed", "--json").json["hits"]
    first, second, _ = hits
    assert first["found"] == {"passage": first["passage"], "by": "words", "name": "", "from": None}
    assert second["found"] == {
        "passage": second["passage"], "by": "link", "name": "Mira Okafor", "from": first["passage"]
    }  # fmt: skip


def test_narration_and_report_say_by_which_name_a_passage_came(run: Any, board: Any) -> None:
    film = Passage("p1", "/d/a.txt", "Metropolis", "By Fritz Lang.", 0, 14, 2.0, 1, found=Found())
    lang = Passage(
        "p2", "/d/b.txt", "Fritz Lang", "Born in Vienna.", 0, 15, 1.0, 2, found=Found("link", "Fritz Lang", "p1")
    )

    def script(question: str, cancel: object) -> list[ev.Event]:
        return [
            ev.TurnStarted(question, question, "m", "once", "none", 0, "user", "same"),
            ev.PassagesFound("q", (film, lang), 2),
            ev.AnswerReady(Answer("Vienna", "Vienna", False, "sourced"), "answered", 1.0, 0.1),
        ]

    board.script = script
    assert "found 2 passages, 2 new: [1] Metropolis, [2] Fritz Lang (named in [1]: Fritz Lang)" in run("ask", "q").err
    (hop,) = run("ask", "q", "--json").json["hops"]
    assert hop["found"][1] == {"passage": "p2", "by": "link", "name": "Fritz Lang", "from": "p1"}

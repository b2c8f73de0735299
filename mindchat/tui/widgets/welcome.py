"""The welcome pane: what was found, three things to try. It is part of the transcript, so that typing goes straight to
the prompt.

Owns: its words. Does not own: looking for anything (SessionView says what there is).
"""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from mindchat.tui.bridge import SessionView
from mindchat.tui.drawable import ACCENT, FAINT, GOOD, MUTED, TITLE, WARN, grouped, line, lines

SAYING = "answers questions over your own documents, on this machine, and shows where it was unsure."
DEMO = "In which city was the composer of the song By the Beautiful Sea born?"


def found(sign: bool, label: str, text: str, note: str = "") -> Content:
    """One thing that is there (✓) or not yet (○)."""
    return line(
        ("✓ " if sign else "○ ", GOOD if sign else WARN),
        (f"{label:<11}", MUTED),
        text,
        (f"  {note}" if note else "", FAINT),
    )


def painted_welcome(view: SessionView) -> Content:
    """The whole pane."""
    rows = [line(("MindChat", TITLE)), line((SAYING, MUTED)), line("")]
    if not view.model:
        return lines([*rows, line(("… looking around", FAINT))])
    library = view.library
    documents, passages = int(library.get("documents", 0) or 0), int(library.get("passages", 0) or 0)
    collection = str(library.get("collection", "") or "")
    demo = collection == "demo"
    corpus = f"{grouped(documents)} in {grouped(passages)} passages"
    rows += [
        found(view.model_ready, "model", view.model, "" if view.model_ready else "loading; you can type meanwhile"),
        found(
            documents > 0, "documents", corpus, "the demo collection, until you index your own" if demo else collection
        ),
        found(view.memory == "on", "memory", "incognito" if view.incognito else view.memory or "off", view.project),
        line(""),
        line(("Try", TITLE)),
        line(("1  ", ACCENT), DEMO if demo or not documents else "a question about your documents"),
        line(("2  ", ACCENT), "/index ~/Documents", ("   read a folder", MUTED)),
        line(("3  ", ACCENT), "/help", ("   every command; F1 explains the keys", MUTED)),
        line(""),
        line((view.home, FAINT)),
    ]
    return lines(rows)


class Welcome(Static):
    """The pane itself."""

    def __init__(self) -> None:
        super().__init__(painted_welcome(SessionView()), id="welcome", markup=False)

    def show(self, view: SessionView) -> None:
        """Draw what was found."""
        self.update(painted_welcome(view))

"""Keys that can be remapped: id → (keys, action, words, shown in the footer).

Owns: the table for the chat screen and the app. Keys of one pane stand with the pane, with ids of the same form.
"""

from __future__ import annotations

from textual.binding import Binding

CHAT = (
    Binding("escape", "cancel", "Stop", id="chat.cancel", show=True),
    Binding("f2", "pane('uncertainty')", "Uncertainty", id="pane.uncertainty", priority=True),
    Binding("f3", "pane('hops')", "Hops", id="pane.hops", priority=True),
    Binding("f4", "pane('context')", "Context", id="pane.context", priority=True),
    Binding("f5", "pane('memory')", "Memory", id="pane.memory", priority=True),
    Binding("f6", "next_focus", "Next pane", id="pane.focus", show=False, priority=True),
    Binding("f8", "resize_side", "Resize", id="pane.resize", show=False, priority=True),
    Binding("ctrl+r", "sessions", "Sessions", id="chat.sessions"),
    Binding("ctrl+n", "new", "New", id="chat.new", show=False),
    Binding("ctrl+o", "as_typed", "Ask as typed", id="chat.typed", show=False),
    Binding("ctrl+y", "anyway", "Answer anyway", id="chat.anyway", show=False, priority=True),
    Binding("ctrl+t", "reasoning", "Reasoning", id="chat.reasoning", show=False),
    Binding("f7", "copy_answer", "Copy answer", id="chat.copy", show=False, priority=True),
    Binding("end", "follow", "Follow", id="chat.follow", show=False),
)

APP = (
    Binding("f1", "help", "Help", id="app.help", priority=True),
    Binding("ctrl+q", "quit", "Quit", id="app.quit", priority=True),
    Binding("ctrl+c", "interrupt", "Stop or copy", id="app.interrupt", show=False, priority=True),
    Binding("ctrl+l", "log", "Log", id="app.log", show=False),
    Binding("f12", "debug", "Debug", id="app.debug", show=False, priority=True),
)

"""The model picker: what there is, what it needs, what is here.

Owns: the list. Does not own: fetching and switching (/model does both, with progress in the chat).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, OptionList
from textual.widgets.option_list import Option

from mindchat.tui.drawable import ACCENT, GOOD, MUTED, TITLE, WARN, grouped, line, lines, short, size


def painted_model(model: Any, current: str) -> Content:
    """Two lines: name and state, then needs."""
    here = bool(model.installed)
    state = (
        ("on this machine", GOOD)
        if here
        else (f"to fetch: {size(model.needs_bytes)}" if model.needs_bytes else "to fetch", WARN)
    )
    head = line(("● " if model.id == current else "  ", ACCENT), (model.id, "bold"), "  ", state)
    needs = [f"memory about {size(model.memory_bytes)}"] if model.memory_bytes else []
    needs += [f"window {grouped(model.window)}"] if model.window else []
    needs += [model.licence] if model.licence else []
    return lines([head, line(("    " + short(" · ".join(needs), 70), MUTED))])


class ModelsScreen(ModalScreen[str | None]):
    """Choose a model; the result is its id."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Close", id="sheet.close")]

    def __init__(self, models: Sequence[Any], current: str) -> None:
        super().__init__()  # no id: a second one may open while the first is still being taken down
        self._models, self._model_now = list(models), current

    def compose(self) -> ComposeResult:
        """The list."""
        with Vertical(classes="sheet") as sheet:
            sheet.border_title = line(("Models", TITLE))
            yield OptionList(
                *[Option(painted_model(model, self._model_now)) for model in self._models],
                id="models-list",
                markup=False,
            )
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The model in use is highlighted."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = next((at for at, model in enumerate(self._models) if model.id == self._model_now), 0)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click chooses."""
        self.dismiss(self._models[event.option_index].id)

"""The prompt: a growing text area with history, slash completion and pastes of any size.

Owns: keys of the input, the completion list, folding big pastes to a chip. Does not own: what a line does (Submitted
goes up). A paste never sends. A paste over BIG characters is kept aside and shown as a chip of one line, so that a
megabyte costs no wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events as tev
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from mindchat.text.clean import clean
from mindchat.tui.complete import Suggestion
from mindchat.tui.drawable import ACCENT, FAINT, MUTED, grouped, line

BIG = 8_000
"""Characters from which a paste is shown as a chip."""
NEWLINES = ("ctrl+j", "shift+enter", "alt+enter")
LIST_ROWS = 8


class Submitted(Message):
    """The user sent a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class ScrollWanted(Message):
    """A page key in the prompt that is meant for the transcript."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.pages = pages


class Input(TextArea):
    """The text area itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", show=False, id="prompt.complete"),
    ]
    HELP = """\
# Prompt
`Enter` sends · `Ctrl+J`, `Shift+Enter` or `Alt+Enter` start a new line · `↑` `↓` at the edge go through earlier questions · `/` lists the
commands, `Tab` completes · a paste never sends.
"""

    class Edited(Message):
        """The text or the cursor's word changed."""

    def __init__(self) -> None:
        super().__init__(
            id="input", soft_wrap=True, show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False
        )
        self.cursor_blink = False  # an idle screen sends nothing over ssh and takes no processor time
        self.chips: dict[str, str] = {}
        self.earlier: Sequence[str] = ()
        self._at: int | None = None
        self._draft = ""

    @property
    def host(self) -> Prompt:
        """The prompt around this area."""
        parent = self.parent
        assert isinstance(parent, Prompt)
        return parent

    @property
    def full_text(self) -> str:
        """The text with pastes in place of their chips."""
        text = self.text
        for chip, pasted in self.chips.items():
            text = text.replace(chip, pasted)
        return text

    async def _on_key(self, event: tev.Key) -> None:
        if event.key in NEWLINES:
            event.stop()
            event.prevent_default()
            self.insert("\n")
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.host.send()
        elif event.key in ("up", "down") and self._moves(-1 if event.key == "up" else 1):
            event.stop()
            event.prevent_default()
        elif event.key in ("pageup", "pagedown"):
            event.stop()
            event.prevent_default()
            self.post_message(ScrollWanted(-1 if event.key == "pageup" else 1))
        elif event.key == "end" and not self.text:
            self.post_message(ScrollWanted(0))
        elif event.key == "escape" and self.host.close_list():
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _moves(self, by: int) -> bool:
        """Whether ↑ or ↓ was used by the completion list or the history."""
        if self.host.move_list(by):
            return True
        row, last = self.cursor_location[0], self.document.line_count - 1
        wrapped = self.wrapped_document
        if by < 0 and (row > 0 or wrapped.location_to_offset(self.cursor_location).y > 0):
            return False
        if by > 0 and (row < last or self._at is None):
            return False
        return self.recall(by)

    def recall(self, by: int) -> bool:
        """Go through earlier questions; the draft comes back at the end."""
        if not self.earlier:
            return False
        at = len(self.earlier) if self._at is None else self._at
        if self._at is None:
            self._draft = self.text
        at = max(0, min(len(self.earlier), at + by))
        self._at = at if at < len(self.earlier) else None
        self.set_text(self.earlier[at] if at < len(self.earlier) else self._draft)
        return True

    def set_text(self, text: str) -> None:
        """Replace everything, the cursor goes to the end."""
        self.text = text
        self.move_cursor(self.document.end)

    def forget_position(self) -> None:
        """The next ↑ starts at the newest question again."""
        self._at, self._draft = None, ""

    async def _on_paste(self, event: tev.Paste) -> None:
        text = clean(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        event.stop()
        event.prevent_default()
        if len(text) > BIG:
            chip = f"[paste {len(self.chips) + 1}: {grouped(len(text))} characters]"
            self.chips[chip] = text
            text = chip
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    def action_complete(self) -> None:
        """Insert the chosen completion; never sends."""
        self.host.accept()


class Prompt(Vertical):
    """Completion list over the input."""

    def __init__(self, suggest: Callable[[str], list[Suggestion]]) -> None:
        super().__init__(id="prompt")
        self._suggest = suggest
        self._suggestions: list[Suggestion] = []
        self._dismissed = ""

    def compose(self) -> ComposeResult:
        """List, then input."""
        yield OptionList(id="completions", markup=False)
        yield Input()

    def on_mount(self) -> None:
        """The list appears with the first slash."""
        self.query_one(OptionList).display = False
        self.query_one(OptionList).can_focus = False
        self.input.placeholder = line("Ask about your documents, or type / for commands")

    @property
    def input(self) -> Input:
        """The text area."""
        return self.query_one(Input)

    @property
    def draft(self) -> str:
        """What stands in the input."""
        return self.input.full_text

    def restore(self, text: str) -> None:
        """Put a text into the input."""
        self.input.set_text(text)
        self.input.focus()

    def send(self) -> None:
        """Send what stands there, if anything."""
        text = self.input.full_text.strip()
        if not text:
            return
        self.input.set_text("")
        self.input.chips.clear()
        self.input.forget_position()
        self.close_list()
        self.post_message(Submitted(text))

    def on_text_area_changed(self) -> None:
        """Look for completions, and grow."""
        self.refresh_list()

    def refresh_list(self) -> None:
        """Suggest for the text as it is."""
        text = self.input.text
        wanted = text.startswith("/") and "\n" not in text and text != self._dismissed and self.input._at is None
        self._suggestions = self._suggest(text) if wanted else []
        options = self.query_one(OptionList)
        options.clear_options()
        options.display = bool(self._suggestions)
        if self._suggestions:
            wide = max(len(item.label) for item in self._suggestions)
            options.add_options(
                Option(line((f"{item.label:<{wide}}", f"bold {ACCENT}"), ("  " + item.help, MUTED)))
                for item in self._suggestions
            )
            options.highlighted = 0

    def move_list(self, by: int) -> bool:
        """↑ ↓ in the list; False if it is closed."""
        options = self.query_one(OptionList)
        if not options.display:
            return False
        options.action_cursor_up() if by < 0 else options.action_cursor_down()
        return True

    def close_list(self) -> bool:
        """Close the list; False if it was closed."""
        options = self.query_one(OptionList)
        shown, options.display = options.display, False
        self._dismissed = self.input.text if shown else ""
        return bool(shown)

    def accept(self) -> None:
        """Insert the highlighted suggestion."""
        options = self.query_one(OptionList)
        if options.display and options.highlighted is not None and options.highlighted < len(self._suggestions):
            self.input.set_text(self._suggestions[options.highlighted].text)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click completes as Tab does."""
        event.stop()
        self.accept()
        self.input.focus()


__all__ = ["BIG", "FAINT", "Input", "Prompt", "ScrollWanted", "Submitted"]

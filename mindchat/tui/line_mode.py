"""The line mode: a chat without screen, for pipes, screen readers and TERM=dumb.

Owns: reading lines, writing plain words (no boxes, colours, cursor movement or animation), slash lines over the same
command table.
Does not own: commands, what events mean (trace.fold). Imports no Textual.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

from mindchat.commands import COMMANDS, Reply, nearest
from mindchat.errors import MindChatError
from mindchat.events import Event, TurnFailed
from mindchat.pace import LONG, said_of
from mindchat.ports import Cancel
from mindchat.session import Session
from mindchat.text.clean import Cleaner, clean, clean_line
from mindchat.trace import Trace, absent_words, cut_words, fold, page_words, verdict_words

log = logging.getLogger(__name__)
Read = Callable[[], str]
"""The next line with its newline; "" at the end of input."""
Write = Callable[[str], object]
NOTHING = Trace()


@contextlib.contextmanager
def cancelled_by_ctrl_c(cancel: Cancel) -> Iterator[None]:
    """While inside, Ctrl+C sets `cancel` instead of raising: the turn ends as a turn. Outside the main thread nothing
    changes.
    """

    def stop(_: int, __: FrameType | None) -> None:
        cancel.set()

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Lines:
    """Writes a turn as plain lines; reads it from the Trace.

    `before`: the answer so far if it is gone on with. `streams`: whether words are written as they come; sentences
    whose marks are still to be checked are not, as what is written cannot be taken back.
    """

    def __init__(self, write: Write, before: str = "", *, streams: bool = True) -> None:
        self._write, self._before, self._streams = write, before, streams
        self._cleaner, self._written = Cleaner(), ""
        self._step = ""
        self._open = False

    def say(self, text: str) -> None:
        """One or more whole lines."""
        if self._open:
            self._write("\n")
            self._open = False
        self._write(clean(text) + "\n")

    def show(self, old: Trace, trace: Trace) -> None:
        """What is new in a trace."""
        if trace.loading is not old.loading and trace.loading is not None and trace.loading.phase != self._step:
            self._step = trace.loading.phase
            self.say(f"Model: {clean_line(self._step)}")
        for item in trace.absent[len(old.absent) :]:
            self.say(clean_line(absent_words(item), 400))
        if (form := trace.rewritten) and form != old.rewritten:
            self.say(f"Asked as: {clean_line(form)} (/retry typed asks it as typed)")
        self._show_hops(old, trace)
        text = trace.answer_text + (trace.draft_text if trace.channel == "answer" else "")
        if self._streams and not self._before and text.startswith(self._written) and len(text) > len(self._written):
            self._stream(text)

    def _show_hops(self, old: Trace, trace: Trace) -> None:
        for view in trace.sentences[len(old.sentences) :]:
            self.say(f"Thinking: {clean_line(view.text)}")
        asked = {(hop.n, hop.subquery) for hop in old.hops}
        for hop in trace.hops:
            if hop.subquery and (hop.n, hop.subquery) not in asked:
                self.say(f"Looking up: {clean_line(hop.subquery)}")

    def _stream(self, text: str) -> None:
        piece = self._cleaner.feed(text[len(self._written) :])
        if piece and not self._open:
            self._write("Assistant: ")
            self._open = True
            piece = piece.lstrip()
        self._written = text
        self._write(piece)

    def end(self, trace: Trace) -> None:
        """The answer (if it did not stream as it is), sources, or what went wrong."""
        if trace.failed is not None:
            self.say(f"Failed: {trace.failed.message}" + (f" {trace.failed.hint}" if trace.failed.hint else ""))
        elif trace.state == "cancelled":
            self.say("Stopped.")
        elif trace.answer is not None:
            if trace.answer.text.strip() != self._written.strip():
                old, new = self._before, trace.answer.text
                known = next(
                    (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
                    min(len(old), len(new)),
                )
                self.say(f"Assistant: {new[known:].strip()}")
            if trace.answer.cut:
                self.say(f"Note: {cut_words(trace.answer)}.")
            for notice in trace.notices:
                self.say(f"Note: {clean_line(notice.text)}")
            self.say(f"Verdict: {verdict_words(trace.answer)}")
            for citation in trace.answer.citations:
                source = trace.source(citation)
                name = (source.name if source is not None else "") or citation.document
                page = page_words(source.page) if source is not None else ""
                self.say(f"Source [{citation.n}]: {clean_line(name)}{page}: {clean_line(citation.quote, 200)}")
        if self._open:
            self.say("")


class LineChat:
    """One chat over lines."""

    def __init__(self, session: Session, read: Read, write: Write, *, prompt: bool) -> None:
        self._session, self._read, self._write, self._prompt = session, read, write, prompt
        self.exit_code = 0
        self.ended = False

    def loop(self) -> int:
        """Read lines until the input ends or /quit; the exit code of the last turn that failed, else 0."""
        while not self.ended:
            for text in self._session.take_notices():
                self._write(f"Note: {clean_line(text, 400)}\n")
            if self._prompt:
                self._write("You: ")
            line = self._read()
            if not line:
                break
            if text := clean(line).strip():
                self.take(text)
        return self.exit_code

    def take(self, text: str) -> None:
        """One line of the user."""
        if text.startswith("/") and not text.startswith("//"):
            self.command(text)
        else:
            self.turn(
                lambda cancel: self._session.ask(
                    text.removeprefix("/") if text.startswith("//") else text, cancel=cancel
                )
            )

    def turn(self, begin: Callable[[Cancel], Iterator[Event]], trace: Trace = NOTHING) -> None:
        """Ask, and write as it comes; `trace`: of the turn that is gone on with."""
        cancel, before = Cancel(), trace.answer.text if trace.answer is not None else ""
        lines = Lines(self._write, before, streams=self._session.config.answer.style != "full")
        expected, copies = self._session.forecast()
        if expected is not None and expected.seconds > LONG:
            lines.say(said_of(expected, copies).capitalize() + ".")
        with cancelled_by_ctrl_c(cancel):
            try:
                for event in begin(cancel):
                    old, trace = trace, fold(trace, event)
                    lines.show(old, trace)
            except MindChatError as error:
                trace = fold(trace, TurnFailed(error.code, error.message, error.hint, error.exit_code))
            lines.end(trace)
        self.exit_code = trace.failed.exit_code if trace.failed is not None else 0

    def command(self, text: str) -> None:
        """A slash line."""
        name, _, args = text[1:].partition(" ")
        name = {"exit": "quit", "q": "quit"}.get(name.lower(), name.lower())
        if name == "quit":
            self.ended = True
            return
        command = COMMANDS.get(name)
        if command is None:
            guess = nearest(name)
            self._write(
                f"There is no /{clean_line(name, 40)}."
                + (f" Did you mean /{guess}?" if guess else " /help lists all commands.")
                + "\n"
            )
            return
        reply = Reply()
        try:
            for reply in command.run(self._session, args.strip()):
                if reply.text:
                    self._write(clean(reply.text) + "\n")
        except MindChatError as error:
            self._write(clean(f"{error.message} {error.hint}".strip()) + "\n")
            return
        self._act(reply)

    def _act(self, reply: Reply) -> None:
        action = reply.action.partition(":")[0]
        if action == "quit":
            self.ended = True
        elif action == "ask" and reply.data:
            self.turn(lambda cancel: self._session.ask(str(reply.data), cancel=cancel))
        elif action == "retry":
            self.turn(
                lambda cancel: self._session.retry(
                    cancel=cancel, as_typed="typed" in reply.data, anyway="anyway" in reply.data
                )
            )
        elif action == "more":
            self.turn(
                lambda cancel: self._session.more(cancel=cancel),
                self._session.turns[-1] if self._session.turns else NOTHING,
            )


def read_stdin() -> str:
    """The next line of standard input."""
    return sys.stdin.readline()


def write_stdout(text: str) -> None:
    """Plain words to standard output, at once; characters that its encoding lacks become ?."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def run(
    make_session: Callable[[], Session],
    *,
    read: Read = read_stdin,
    write: Write = write_stdout,
    prompt: bool | None = None,
) -> int:
    """Chat over lines until the input ends; the exit code (errors.py). `prompt`: whether "You: " is written; None: if
    input is a terminal.
    """
    shown = sys.stdin.isatty() if prompt is None else prompt
    try:
        session = make_session()
        chat = LineChat(session, read, write, prompt=shown)
    except MindChatError as error:
        write(clean(f"{error.message} {error.hint}".strip()) + "\n")
        return error.exit_code
    if shown:
        write("MindChat. Type a question, /help for commands, /quit to leave.\n")
    try:
        return chat.loop()
    except KeyboardInterrupt:
        write("\n")
        return 130
    finally:
        session.close()


__all__ = ["LineChat", "run"]

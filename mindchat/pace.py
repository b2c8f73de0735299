"""How long a question will take: speeds and work as earlier turns had them, and the forecast that follows.

Owns: what a turn's events tell about speed and work, the file that keeps both for each model on this machine, the
forecast and its words. Does not own: when it is shown. Nothing is assumed: where something was never measured there is
no forecast. A copy of the context costs reading and no writing (CoRe §3).
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.config import Config
from mindchat.events import Event, ModelAsked, PromptBuilt, PromptPrefilled
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.text.addresses import shown_address
from mindchat.text.foreign_json import decode_json

_log = logging.getLogger(__name__)
FADE = 0.7
"""What earlier turns weigh beside the newest one: the machine may be busier or idler today."""
MODELS = 50
"""Most models kept."""
LONG = 20.0
"""Seconds from which a question's forecast is worth saying."""


class Ratio(Struct, frozen=True):
    """A sum over a sum, so that long measurements count more than short ones."""

    of: float = 0.0
    per: float = 0.0

    @property
    def value(self) -> float | None:
        """None if nothing was measured."""
        return self.of / self.per if self.of > 0 and self.per > 0 else None

    def with_(self, newer: Ratio) -> Ratio:
        """Both, the older one faded."""
        return Ratio(FADE * self.of + newer.of, FADE * self.per + newer.per) if newer.per else self


class Work(Struct, frozen=True):
    """What a question costs under one way to answer."""

    read: Ratio
    """Prompt tokens that had to be computed, per turn."""
    written: Ratio
    """Tokens generated, per turn."""


class Pace(Struct, frozen=True):
    """What is known about one model on this machine."""

    reading: Ratio = Ratio()
    """Prompt tokens per second."""
    writing: Ratio = Ratio()
    """Generated tokens per second."""
    copy: Ratio = Ratio()
    """Prompt tokens per presentation of the context."""
    work: Mapping[str, Work] = {}
    """By way(), and by repetitions after a slash."""


class Forecast(Struct, frozen=True):
    """What the next question will about cost."""

    read: float
    written: float
    seconds: float


class Extra(Struct, frozen=True):
    """What more copies of the context will about cost; negative for fewer."""

    tokens: float
    seconds: float


def machine(config: Config) -> str:
    """The model as it runs here."""
    model = config.model
    return (
        f"{model.name} {model.arithmetic} {model.threads} {shown_address(config.server.url)} | {platform.machine()}"
        f" {os.cpu_count()}"
    )


def way(config: Config) -> str:
    """What decides about the work of a question, but for the number of copies."""
    layout, engine = config.layout, config.engine
    thinks = "cot" if layout.cot else ""
    copies = f"{layout.role} {layout.as_} {layout.order} {layout.reasoning}"
    return f"{engine.policy} {engine.filter} k={config.retrieve.k} {copies} {thinks} {config.memory.mode}"


def measure(events: Iterable[Event], config: Config) -> Pace:
    """What one answered turn tells."""
    reading, writing, copy = Ratio(), Ratio(), Ratio()
    read, written = 0, 0
    prefilled: PromptPrefilled | None = None
    for event in events:
        match event:
            case PromptBuilt(copies=copies) if copies and any(copies) and event.purpose != "reasoning":
                copy = Ratio(copy.of + event.tokens, copy.per + len(copies))
            case PromptPrefilled(done=done, total=total) if done == total:
                prefilled = event
                reading = Ratio(reading.of + done - event.cached, reading.per + event.seconds)
            case ModelAsked():
                read, written = read + event.prompt_tokens_new, written + event.generated
                # calls that do not tell when they had read their prompt cannot be taken apart
                spent = event.seconds - (prefilled.seconds if prefilled is not None else 0.0)
                if event.generated and spent > 0 and (prefilled is not None or not event.prompt_tokens_new):
                    writing = Ratio(writing.of + event.generated, writing.per + spent)
                prefilled = None
            case _:
                pass
    work = {f"{way(config)}/{config.layout.repeat}": Work(Ratio(read, 1), Ratio(written, 1))} if read else {}
    return Pace(reading, writing, copy, work)


def joined(old: Pace, new: Pace) -> Pace:
    """Old and new measurements."""
    work = dict(old.work)
    for key, item in new.work.items():
        known = work.get(key)
        work[key] = item if known is None else Work(known.read.with_(item.read), known.written.with_(item.written))
    return Pace(old.reading.with_(new.reading), old.writing.with_(new.writing), old.copy.with_(new.copy), work)


def forecast(pace: Pace, config: Config) -> Forecast | None:
    """For the next question; None if speeds or work were never measured. Work measured with another number of copies is
    carried over.
    """
    reading, writing, found = pace.reading.value, pace.writing.value, _work(pace, config)
    if reading is None or writing is None or found is None:
        return None
    read, written = found
    return Forecast(read, written, read / reading + written / writing)


def _work(pace: Pace, config: Config) -> tuple[float, float] | None:
    wanted = config.layout.repeat
    for repeat in (wanted, *(range(11) if isinstance(wanted, int) else ())):
        known = pace.work.get(f"{way(config)}/{repeat}")
        if known is None or known.read.value is None:
            continue
        read, written = known.read.value, known.written.value or 0.0
        if repeat == wanted:
            return read, written
        if (copy := pace.copy.value) is not None and isinstance(wanted, int):
            return max(read + (wanted - int(repeat)) * copy, 0.0), written
    return None


def cost_of_copies(pace: Pace, copies: int) -> Extra | None:
    """What this many copies of the context more cost a question; None if that was never measured."""
    tokens, reading = pace.copy.value, pace.reading.value
    return None if tokens is None or reading is None else Extra(copies * tokens, copies * tokens / reading)


def about(seconds: float) -> str:
    """Seconds or minutes for people, no more exact than they are."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"


def said_of(expected: Forecast, copies: Extra | None) -> str:
    """A question's forecast in one line; `copies`: what of it is due to repeating the context."""
    line = f"{about(expected.seconds)}: about {expected.read:,.0f} tokens to read, {expected.written:,.0f} to write"
    return (
        f"{line}; {said_of_copies(copies)} for repeating the documents"
        if copies is not None and copies.tokens
        else line
    )


def said_of_copies(extra: Extra) -> str:
    """The cost of copies: +N tokens, about s seconds."""
    return f"{extra.tokens:+,.0f} tokens, {about(extra.seconds)}"


class PaceFile:
    """What is kept between sessions, for each model. A file that cannot be read or written only costs the forecast."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, config: Config) -> Pace:
        """What is known about the configured model; an empty Pace if nothing is."""
        return self._all().get(machine(config), Pace())

    def add(self, config: Config, new: Pace) -> None:
        """Keep what a turn told."""
        known = self._all()
        pace = joined(known.pop(machine(config), Pace()), new)
        kept = dict([*known.items(), (machine(config), pace)][-MODELS:])
        try:
            private(self._file.parent)
            write_atomic(self._file, msgspec.json.encode(kept))
        except OSError as error:
            _log.warning("the pace of this turn is not kept: %s", error)

    def _all(self) -> dict[str, Pace]:
        try:
            return decode_json(self._file.read_bytes(), type=dict[str, Pace])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("%s cannot be read, so there is no forecast: %s", self._file, error)
            return {}

"""The one loop. Every policy runs on it, so that comparisons share prompts, memory, retriever and counters.

Owns: Engine.run and what may go wrong in it. Does not own: the steps (engine.turn), decisions, wording, stores. No
threads, no printing.
Source: MIND §3. Where the paper is silent or contradicts itself, DESIGN.md (Decisions) says what was chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgspec import Struct

from mindchat.config import Config
from mindchat.engine import fixed_prefix
from mindchat.engine.turn import Turn
from mindchat.errors import CapabilityError, Interrupted, MindChatError
from mindchat.events import Event, TurnCancelled, TurnFailed
from mindchat.ports import (
    NEVER,
    Cancel,
    Composer,
    EntityFilter,
    Extractor,
    Memory,
    Model,
    Policy,
    Retriever,
    Rewordings,
)
from mindchat.values import Cut, Passage, Signal, Sought

FALLBACKS = ((Signal.ENTROPY, "rind-entropy"), (Signal.LOGPROB, "flare"))
"""Which policy still works with which signal, best first; without any, `once`."""


class Parts(Struct, frozen=True):
    """What an engine is made of."""

    model: Model
    policy: Policy
    extractor: Extractor
    entity_filter: EntityFilter
    retriever: Retriever
    memory: Memory | None
    composer: Composer
    versions: dict[str, str] = {}
    given: tuple[Passage, ...] = ()
    """Passages that stand in the prompt from the start, in this order."""
    rewordings: Rewordings | None = None
    """Paraphrases and summaries written before; None: each turn writes its own."""


class LoopEngine:
    """ports.Engine. Refuses at construction a policy whose signals the model cannot measure."""

    def __init__(self, parts: Parts, config: Config) -> None:
        missing = parts.policy.needs - parts.model.provides
        if missing:
            works = next((name for signal, name in FALLBACKS if signal in parts.model.provides), "once")
            names = " and ".join(sorted(signal.value for signal in missing))
            raise CapabilityError(
                f"Policy {parts.policy.name} needs {names}, which {parts.model.id} does not provide.",
                f"--policy {works} works with this model.",
            )
        self._parts = parts
        self._config = config

    def run(
        self,
        question: str | Sought,
        *,
        history: Sequence[tuple[str, str]] = (),
        cancel: Cancel = NEVER,
        as_typed: bool = False,
    ) -> Iterator[Event]:
        """One turn. Expected failures end it as TurnFailed, a cancel as TurnCancelled; bugs raise."""
        turn = Turn(self._parts, self._config, question, history, cancel, time.monotonic())
        turn.as_typed = as_typed
        yield from _ended(turn, turn.run())

    def more(self, cut: Cut, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """See mindchat.ports.Engine.more."""
        turn = Turn(self._parts, self._config, cut.question, (), cancel, time.monotonic())
        yield from _ended(turn, turn.more(cut))

    def read_ahead(self, cancel: Cancel = NEVER) -> int:
        """See mindchat.ports.Engine.read_ahead."""
        return fixed_prefix.read_ahead(self._parts, cancel)


def _ended(turn: Turn, steps: Iterator[Event]) -> Iterator[Event]:
    try:
        yield from steps
    except Interrupted:
        yield from turn.ask.drain()
        yield TurnCancelled(turn.partial, turn.phase)
    except MindChatError as error:
        yield from turn.ask.drain()
        yield TurnFailed(error.code, error.message, error.hint, error.exit_code, turn.partial)
    finally:
        turn.close()

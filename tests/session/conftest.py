"""A real session over real stores in a fresh home; only the model is a tape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.config import Config, load_config
from mindchat.models.scripted import Reply, ScriptedModel
from mindchat.paths import find_paths
from mindchat.session import Session

Open = Callable[..., Session]


@pytest.fixture
def open_session(home: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """open_session(tape, *assignments, **options): a session of wiring's own making whose model plays the tape."""

    def make(tape: list[Reply | str], *assignments: str, **options: object) -> Session:
        monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel(tape))
        config: Config = load_config(
            environ={}, assignments=["engine.policy=once", "answer.refuse=off", *assignments]
        ).config
        return wiring.open_session(config, find_paths(), **options)  # type: ignore[arg-type]

    return make

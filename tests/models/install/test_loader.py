"""From a name to a model, and no socket on the way when the model is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mindchat.config import ModelSection
from mindchat.errors import Interrupted, ModelMissingError, ModelTooLargeError, UsageError
from mindchat.events import ModelLoading
from mindchat.models import MODELS
from mindchat.models.install import memory_estimate
from mindchat.models.install.catalogue import Entry
from mindchat.models.install.memory_estimate import Shape, copies, fit
from mindchat.models.loader import open_model, settings_for

ROOT = Path(__file__).parents[3]
OFFLINE = """
import json, sys
touched = []
watched = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind")
sys.addaudithook(lambda event, args: touched.append(event) if event in watched else None)
from pathlib import Path
from mindchat.config import ModelSection
from mindchat.models.loader import open_model
from mindchat.ports import NEVER
from mindchat.values import Message, Prompt, Signal, Text, Token
before = [name for name in ("torch", "transformers") if name in sys.modules]
model = open_model(ModelSection(name=sys.argv[1]), Path(sys.argv[2]))
prompt = Prompt((Message("user", (Text("the"),)),))
tokens = [item for item in model.stream(prompt, want=frozenset({Signal.ENTROPY}), max_tokens=4) if isinstance(item, Token)]
print(json.dumps({"touched": touched, "tokens": len(tokens), "id": model.id, "window": model.window, "before": before}))
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, ModelSection, str]]:
    """Stands in for the back end, and remembers what it was asked to load."""
    asked: list[tuple[Path, ModelSection, str]] = []

    class Backend:
        @classmethod
        def load(cls, folder: Path, section: ModelSection, *, id: str, kept: object) -> Any:
            asked.append((folder, section, id))
            return SimpleNamespace(id=id)

    module = ModuleType("stand_in_backend")
    module.LocalModel = Backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stand_in_backend", module)
    monkeypatch.setitem(MODELS.own, "hf", "stand_in_backend:LocalModel")
    return asked


def test_offline_with_the_model_present_no_socket_is_opened(converted: Path, models: Path) -> None:
    import json

    shutil.copytree(converted, models / "smollm2-135m")
    run = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", OFFLINE, "smollm2-135m", str(models)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["touched"] == []
    assert told["before"] == []
    assert 1 <= told["tokens"] <= 4
    assert (told["id"], told["window"]) == ("smollm2-135m", 64)


@pytest.mark.usefixtures("quick_convert")
def test_a_missing_model_is_fetched_with_progress(
    models: Path,
    publish: Callable[..., Entry],
    known: Callable[[Entry], None],
    tiny_gguf: tuple[Path, Any],
    loaded: list[Any],
) -> None:
    known(publish(tiny_gguf[0].read_bytes(), parts=2))
    heard: list[ModelLoading] = []
    open_model(ModelSection(name="fake"), models, heard.append)
    assert list(dict.fromkeys(news.phase for news in heard)) == [
        "looking",
        "downloading",
        "joining",
        "converting",
        "done",
        "loading",
        "ready",
    ]
    assert loaded == [(models / "fake", ModelSection(name="fake", window=64), "fake")]
    heard.clear()
    open_model(ModelSection(name="fake"), models, heard.append)
    assert [news.phase for news in heard] == ["loading", "ready"]


def test_nothing_is_fetched_against_the_callers_will(models: Path, site: Any) -> None:
    with pytest.raises(ModelMissingError, match="smollm2-135m"):
        open_model(ModelSection(name="smollm2-135m"), models, fetch=False)
    assert site.asked == []


def test_a_raising_listener_stops_the_pull_and_frees_its_lock(
    models: Path, publish: Callable[..., Entry], known: Callable[[Entry], None], loaded: list[Any]
) -> None:
    import filelock

    known(publish())

    def stop(news: ModelLoading) -> None:
        if news.phase == "downloading":
            raise Interrupted("Cancelled.")

    with pytest.raises(Interrupted):
        open_model(ModelSection(name="fake"), models, stop)
    with filelock.FileLock(models / ".locks" / "fake.lock").acquire(timeout=0):
        pass
    assert loaded == []


def test_an_unknown_name_suggests_the_nearest(models: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_model(ModelSection(name="qwen2.5-coder-0.5"), models)
    assert "qwen2.5-coder-0.5b" in caught.value.hint


def test_what_cannot_fit_is_refused_before_it_is_fetched(
    models: Path, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 8 * 10**9)
    with pytest.raises(ModelTooLargeError, match=r"qwen2\.5-7b needs about"):
        open_model(ModelSection(name="qwen2.5-7b"), models)
    assert site.asked == []


def test_a_present_model_that_does_not_fit_is_not_loaded(
    converted: Path, models: Path, loaded: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(converted, models / "smollm2-135m")
    monkeypatch.setattr(memory_estimate, "available_memory", lambda: 1000)
    with pytest.raises(ModelTooLargeError):
        open_model(ModelSection(name="smollm2-135m"), models)
    assert loaded == []


def test_the_back_end_gets_what_was_decided() -> None:
    shape = Shape(parameters=10**9, window=32_768, layers=24, kv_heads=8, head_dim=64, vocabulary=1000)
    auto = ModelSection(arithmetic="auto", cache_mb=0)
    roomy = fit(shape, name="x", arithmetic="auto", window=0, cache_mb=0, available=10**11)
    assert settings_for(auto, roomy) == ModelSection(
        arithmetic="auto", cache_mb=0, window=32_768
    )  # a graphics processor may prefer bf16
    tight = fit(shape, name="x", arithmetic="auto", window=0, cache_mb=0, available=3 * 10**9)
    assert settings_for(auto, tight).arithmetic == "bf16"
    assert settings_for(auto, tight).window == tight.window < 32_768
    assert settings_for(ModelSection(window=4096), roomy).window == 4096
    for kind in ("int8", "fp32"):  # one that is not the best is what fits: to measure the best would be too much
        if kind != copies()[0]:
            assert settings_for(auto, memory_estimate.estimate(shape, arithmetic=kind)).arithmetic == kind

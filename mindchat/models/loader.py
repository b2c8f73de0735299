"""From the setting model.name to a model that answers.

Owns: the order resolve → estimate → pull → convert → estimate again → load, and keeping transformers off the network.
Does not own: any of these steps (catalogue, estimate, store, convert, hf). Torch is imported only in the last one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from mindchat.config import ModelSection
from mindchat.errors import ModelMissingError, UsageError
from mindchat.events import ModelLoading
from mindchat.models import MODELS
from mindchat.models.install.catalogue import Reference, catalogue, resolve
from mindchat.models.install.hub import stay_offline
from mindchat.models.install.manifest import require_sound
from mindchat.models.install.memory_estimate import Estimate, Shape, copies, fit, shape_of_entry, shape_of_folder
from mindchat.models.install.model_store import Store
from mindchat.models.network.torch_mapping import map_libraries
from mindchat.ports import Model

Progress = Callable[[ModelLoading], None]


def open_model(
    section: ModelSection, models_folder: Path, progress: Progress | None = None, fetch: bool = True
) -> Model:
    """The model that section.name stands for, ready to generate; pulled and converted first if it is missing and
    `fetch` is set.

    `progress` hears of every phase, about ten times a second while bytes move, and may raise to stop (what was fetched
    is kept). With the model present no socket is opened. Raises UsageError (unknown name), ModelMissingError (missing
    and not to be fetched), ModelTooLargeError (it cannot fit, also before it is fetched), ResourceError (a file is
    damaged), DownloadError, MindChatError.
    """
    tell = progress or (lambda news: None)
    entry = catalogue().get(section.name.strip().lower())
    if entry is not None and entry.role != "chat":
        raise UsageError(
            f"{entry.id} is an encoder; it finds passages and writes no answers.",
            "index.encoder names it; `mindchat models list` shows the models that answer.",
        )
    started = time.monotonic()
    folder, name = _folder(section, Store(models_folder), tell, fetch)
    require_sound(folder, name)
    fitted = _fit(section, shape_of_folder(folder), name)
    tell(ModelLoading("loading", seconds=time.monotonic() - started))
    stay_offline()
    # torch's threads spin at barriers; on busy cores two spinning threads are several times slower than one. Read when
    # torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    map_libraries()
    with _uncollected():
        settings = settings_for(section, fitted)
        # What it begins goes on while hf is imported.
        kept = importlib.import_module("mindchat.models.network.prepared_weights").recalled(
            folder, settings.arithmetic, settings.threads
        )
        module, _, cls = MODELS["hf"].partition(":")
        model: Model = getattr(importlib.import_module(module), cls).load(folder, settings, id=name, kept=kept)
    tell(ModelLoading("ready", 1, 1, time.monotonic() - started))
    return model


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: imports and tokenizers make millions of objects that stay, and looking through
    them again and again takes a third of the time. What has been made is not looked at later either.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was:
            gc.enable()


def settings_for(section: ModelSection, fitted: Estimate) -> ModelSection:
    """The section with the window that fits where the user left it open, and "auto" decided where only one arithmetic
    fits.

    Where the best copy in fewer bytes fits, "auto" stays: the back end measures whether it is faster, and knows whether
    there is a graphics processor, which computes faster in bf16.
    """
    decided = (
        section.arithmetic if section.arithmetic != "auto" or fitted.arithmetic == copies()[0] else fitted.arithmetic
    )
    return msgspec.structs.replace(section, arithmetic=decided, window=section.window or fitted.window)


def _fit(section: ModelSection, shape: Shape, name: str) -> Estimate:
    return fit(shape, name=name, arithmetic=section.arithmetic, window=section.window, cache_mb=section.cache_mb)


def _folder(section: ModelSection, store: Store, tell: Progress, fetch: bool) -> tuple[Path, str]:
    """The folder to load and the id to show."""
    try:
        return store.path(section.name), store.info(section.name).id
    except ModelMissingError:
        if not fetch:
            raise
    reference: Reference = resolve(section.name)
    if reference.entry:  # better refused now than after sixteen gigabytes
        _fit(section, shape_of_entry(reference.entry), reference.id)
    pull = store.pull(section.name)
    try:
        for news in pull:
            tell(ModelLoading(news.phase, news.done, news.total, news.seconds))
    finally:
        # a raising `tell` leaves the generator open: locks and child process end here, not at garbage collection
        pull.close()
    return store.path(section.name), reference.id

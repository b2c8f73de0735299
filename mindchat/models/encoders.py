"""From the setting index.encoder to an encoder that reads, without loading anything before it is needed.

Owns: which folder it is, the id by which vectors are told apart, pulling it, keeping transformers off the network. Does
not own: the network (network.sentence_encoder), fetching (install), vectors (corpus).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from mindchat.errors import ModelMissingError
from mindchat.models.install.hub import stay_offline
from mindchat.models.install.manifest import read_manifest, require_sound, sha256_of
from mindchat.models.install.model_store import Store
from mindchat.ports import Encoder

VERSION = 1
"""Raised when the same network gives other vectors than before."""


class NamedEncoder:
    """ports.FindsEncoder: the encoder of a name. Cheap to make; safe for several threads."""

    def __init__(self, name: str, models: Path, threads: int = 0) -> None:
        self.name, self._store, self._threads = name, Store(models), threads
        self._loaded: Encoder | None = None
        self._id = ""
        self._guard = threading.Lock()

    def id(self) -> str | None:
        """See ports.FindsEncoder. Raises UsageError for a name that means nothing."""
        if not self._id:
            try:
                folder = self._store.path(self.name)
            except ModelMissingError:
                return None
            manifest = read_manifest(folder)
            digest = manifest.sha256 if manifest is not None else _digest(folder)
            self._id = f"{self._store.info(self.name).id}@{digest[:12]}.{VERSION}"
        return self._id

    def load(self) -> Encoder:
        """See ports.FindsEncoder. Raises ModelMissingError, ResourceError, UsageError."""
        with self._guard:
            if self._loaded is None:
                folder, id_ = self._store.path(self.name), self.id()
                assert id_ is not None  # path() would have raised
                require_sound(folder, self.name)
                stay_offline()
                os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in loader: spinning threads starve one another
                module = importlib.import_module("mindchat.models.network.sentence_encoder")
                loaded: Encoder = module.SentenceEncoder.load(folder, id=id_, threads=self._threads)
                self._loaded = loaded
            return self._loaded

    def fetch(self) -> Iterator[tuple[int, int]]:
        """See ports.FindsEncoder."""
        with contextlib.closing(self._store.pull(self.name)) as steps:
            for step in steps:
                yield step.done, step.total


def _digest(folder: Path) -> str:
    """Of a user's own folder: what its vectors depend on."""
    files = sorted([*folder.glob("*.json"), *folder.glob("*.safetensors"), *folder.glob("*/config.json")])
    lines = [f"{file.relative_to(folder).as_posix()} {sha256_of(file)}" for file in files if file.is_file()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

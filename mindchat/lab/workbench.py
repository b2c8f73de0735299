"""The workbench: sessions for measurements, made from the same parts as the chat's.

Owns: what a measurement shares between its sessions (models, open corpora, memories in RAM). Does not own: which class
stands behind which port (wiring) or what is measured (lab.evals).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindchat import wiring
from mindchat.config import Config, IndexSection, ModelSection, RetrieveSection, ServerSection
from mindchat.events import ModelLoading
from mindchat.library import DocumentLibrary, GivenPassages
from mindchat.paths import Paths, private
from mindchat.ports import FindsEncoder, Model, Retriever
from mindchat.session import Rooms, Session
from mindchat.values import Passage

if TYPE_CHECKING:
    from mindchat.lab.evals.examples import CorpusSpec, Source
    from mindchat.lab.evals.runner import MakeSession
    from mindchat.lab.volatile_memory import VolatileMemory
    from mindchat.memory.learning.confidence import Calibration


class Workbench:
    """Makes sessions for the runner: models and open corpora are opened once, memory lives in RAM, nothing is written
    down.

    `fitted`: memory's calibrations by model name; without one memory keeps to the rule for models that nobody
    calibrated.
    """

    def __init__(self, paths: Paths, fitted: Mapping[str, Calibration] | None = None) -> None:
        from mindchat.storage.document_registry import DocumentRegistry
        from mindchat.storage.migrations import MEMORY, open_store

        self._paths, self._fitted = paths, fitted or {}
        self._registry = DocumentRegistry(open_store(None, MEMORY))
        self._models: dict[tuple[ModelSection, ServerSection], Model] = {}
        self._open: dict[tuple[str, IndexSection, RetrieveSection], Retriever] = {}
        self._memories: dict[str, VolatileMemory] = {}
        self._encoders: dict[str, FindsEncoder] = {}

    def make(self, config: Config, corpus: CorpusSpec) -> Session:
        """A fresh, cold session over the corpus of one question (evals.examples.CorpusSpec): no arm profits from
        another one's cache.
        """
        for model in self._models.values():
            if (forget := getattr(model, "forget_prefixes", None)) is not None:
                forget()
        given = tuple(_passages(corpus.passages)) if corpus.kind == "given" else ()
        retriever = self._retriever(config, corpus)
        memory = self._memory(config, corpus.memory)
        if memory is not None:
            memory.sync(_passages(corpus.passages))
        rewordings = wiring.open_rewordings(self._paths)
        rooms = Rooms(self._paths, self._registry, retriever, memory, None, "evaluation")
        return Session(
            config,
            rooms,
            open_model=self._model,
            build_engine=lambda config, rooms, model: wiring.build_engine(
                config, retriever, memory, model, given, rewordings
            ),
            open_rooms=lambda config, session, incognito: rooms,
        )

    def _model(self, config: Config, progress: Callable[[ModelLoading], None]) -> Model:
        key = (config.model, config.server)
        if key not in self._models:
            self._models[key] = wiring.load_model(config, progress)
        return self._models[key]

    def forget(self, memory: str, facts: Sequence[str]) -> int:
        """chain_run.Keeper: forget facts of a shared memory by id, as `mindchat memory forget` does; how many were
        there.
        """
        from mindchat.errors import NotFoundError
        from mindchat.memory.verbs.forgetting import forget

        forgotten = 0
        for fact in facts if memory in self._memories else ():
            with contextlib.suppress(NotFoundError):  # withdrawn or replaced meanwhile
                forgotten += len(forget(self._memories[memory], [fact], yes=True).facts)
        return forgotten

    def holds(self, memory: str, text: str) -> bool:
        """chain_run.Keeper: whether a text stands anywhere in what a shared memory wrote."""
        return memory in self._memories and self._memories[memory].holds(text)

    def _memory(self, config: Config, key: str) -> VolatileMemory | None:
        from mindchat.lab.volatile_memory import VolatileMemory

        if config.memory.mode == "off":
            return None
        if key and key in self._memories:
            return self._memories[key]
        memory = VolatileMemory(config.memory, model=config.model.name, calibration=self._fitted.get(config.model.name))
        if key:
            self._memories[key] = memory
        return memory

    def _retriever(self, config: Config, corpus: CorpusSpec) -> Any:
        if corpus.kind == "own":
            from mindchat.corpus.search.memory_index import MemoryIndex

            return MemoryIndex(_passages(corpus.passages), config.index, None, config.retrieve, self._encoder(config))
        if corpus.kind != "open":
            return GivenPassages()
        key = (corpus.path, config.index, config.retrieve)
        if key not in self._open:
            self._open[key] = self._open_corpus(Path(corpus.path).resolve(), config)
        return self._open[key]

    def _open_corpus(self, path: Path, config: Config) -> Retriever:
        """An index of its own under the cache folder, kept between runs."""
        from mindchat.storage.document_registry import DocumentRegistry

        home = private(self._paths.cache / "corpora" / hashlib.sha256(str(path).encode()).hexdigest()[:16])
        library = DocumentLibrary(
            home / "index", config.index, DocumentRegistry(home / "registry.db"), retrieve=config.retrieve,
            encoder=self._encoder(config),
        )  # fmt: skip
        for _ in library.add([path]):
            pass
        if config.retrieve.dense == "on":
            for _ in library.encode():
                pass
        return library

    def _encoder(self, config: Config) -> FindsEncoder | None:
        """One for all arms that name it, since loading it takes a second; None if the arm wants none."""
        if config.retrieve.dense == "off":
            return None
        if config.index.encoder not in self._encoders:
            self._encoders[config.index.encoder] = wiring.find_encoder(config, self._paths)
        return self._encoders[config.index.encoder]


def _passages(sources: Sequence[Source]) -> list[Passage]:
    found = []
    for rank, source in enumerate(sources, 1):
        id = source.pid or f"p{rank}"
        # without an id of its own, another text at the same rank is another document, not a changed one
        apart = (
            "" if source.pid else f"#{hashlib.sha256(source.text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )
        found.append(Passage(id, f"question#{id}{apart}", source.title, source.text, 0, len(source.text), 0.0, rank))
    return found


def open_evaluation(config: Config, paths: Paths) -> MakeSession:
    """make_session for the runner."""
    del config
    return Workbench(paths).make


def open_chains(paths: Paths, fitted: Path | None = None) -> Workbench:
    """Sessions for chains of turns, and the keeper of their memories. `fitted`: a file of `mindchat calibrate memory`
    for its model.
    """
    from mindchat.memory.learning.confidence import read_calibration

    if fitted is None:
        return Workbench(paths)
    calibration = read_calibration(fitted)
    return Workbench(paths, {calibration.model: calibration})

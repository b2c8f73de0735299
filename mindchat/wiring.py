"""The plug board: from a configuration to a session, a library, a store. The only file that sees all rooms.

Owns: which class stands behind which port. Does not own: any behaviour. Heavy rooms are imported when they are needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindchat import __version__
from mindchat.config import Config, IndexSection, ModelSection, RetrieveSection, ServerSection, load_config
from mindchat.events import ModelLoading
from mindchat.library import DocumentLibrary, GivenPassages
from mindchat.pace import PaceFile
from mindchat.paths import Paths, find_paths, private
from mindchat.ports import Ask, Cancel, Engine, Memory, Model, Retriever, Rewordings
from mindchat.session import Rooms, Session
from mindchat.text.nearest_name import unknown
from mindchat.values import Passage

if TYPE_CHECKING:
    from mindchat.lab.evals.examples import CorpusSpec, Source
    from mindchat.lab.evals.runner import MakeSession
    from mindchat.lab.volatile_memory import VolatileMemory
    from mindchat.memory.facts import FactMemory
    from mindchat.memory.learning.confidence import Calibration
    from mindchat.models.install.model_store import Store
    from mindchat.storage.chats import ChatStore


def plug(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The class behind a name in a table; an unknown name raises UsageError with the nearest one."""
    if name not in table:
        raise unknown(kind, name, table)
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)


def project_name() -> str:
    """The memory's project scope: the folder MindChat was started in."""
    return str(Path.cwd().resolve())


def versions() -> dict[str, str]:
    """What a run depends on, for its record."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"mindchat": __version__, "python": platform.python_version()}
    for name in ("torch", "transformers"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# ── the parts of a session ───────────────────────────────────────────────────────────────────────────────────────────────


def load_model(config: Config, progress: Callable[[ModelLoading], None]) -> Model:
    """The configured model: on the server if one is set, else here, fetched first if it is missing; `scripted:FILE` replays a tape."""
    name = config.model.name
    if name.startswith("scripted:"):
        from mindchat.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(name.removeprefix("scripted:")))
    if config.server.url:
        from mindchat.models import MODELS

        connected: Model = plug(MODELS, "server", "model").connect(config.server, config.model, progress)
        return connected
    from mindchat.models.loader import open_model

    return open_model(config.model, find_paths(config.paths.models).models, progress)


def build_engine(
    config: Config,
    retriever: Retriever,
    memory: Memory | None,
    model: Model,
    given: tuple[Passage, ...] = (),
    rewordings: Rewordings | None = None,
    calibrations: Path | None = None,
) -> Engine:
    """The loop with the configured plug-ins; `given` passages stand in the prompt from the start. Raises CapabilityError, UsageError, ConfigError.

    `calibrations`: the folder of fitted thresholds; None: none apply, so that a measurement depends on nothing but its settings.
    """
    from mindchat.engine.loop import LoopEngine, Parts
    from mindchat.entities import FILTERS
    from mindchat.entities.extract import ModelExtractor
    from mindchat.policies import POLICIES
    from mindchat.policies.rind_calibration import calibrated
    from mindchat.prompts import COMPOSERS

    config = config if calibrations is None else calibrated(config, calibrations, model.id)
    return LoopEngine(
        Parts(
            model,
            plug(POLICIES, config.engine.policy, "policy")(config),
            ModelExtractor(config),
            plug(FILTERS, config.engine.filter, "filter")(config),
            retriever,
            memory,
            plug(COMPOSERS, config.layout.role, "role")(config),
            versions(),
            given,
            rewordings,
        ),
        config,
    )


def open_session(
    config: Config | None = None,
    paths: Paths | None = None,
    *,
    session: str | None = None,
    incognito: bool = False,
    memory: bool = True,
    within: Sequence[Path] = (),
) -> Session:
    """A conversation over the user's documents, memory and chats. Without arguments: the user's own settings and homes."""
    if config is None:
        config = load_config(user_file=find_paths().config_file).config
    paths = paths or find_paths(config.paths.models)

    def rooms(config: Config, session: str | None, incognito: bool) -> Rooms:
        return _open_rooms(config, paths, session, incognito, memory, within)

    def engine(config: Config, rooms: Rooms, model: Model) -> Engine:
        if isinstance(rooms.library, DocumentLibrary):
            rooms.library.count = token_counter(model)
        return build_engine(config, rooms.library, rooms.memory, model, rewordings=open_rewordings(paths), calibrations=calibrations(paths))

    return Session(
        config,
        rooms(config, session, incognito),
        open_model=load_model,
        build_engine=engine,
        open_rooms=rooms,
        id=session,
        incognito=incognito,
        paces=PaceFile(paths.cache / "pace.json"),
    )


def token_counter(model: Model) -> Callable[[str], int] | None:
    """Tokens of a plain text by the model's own tokenizer; None if its tokenizer is not on this machine (a server, a tape)."""
    vocabulary = getattr(model, "vocabulary", None)
    return None if vocabulary is None else lambda text: len(vocabulary.continuation(text))


def _open_rooms(config: Config, paths: Paths, session: str | None, incognito: bool, memory: bool, within: Sequence[Path]) -> Rooms:
    from mindchat.storage.document_registry import DocumentRegistry

    private(paths.data)
    registry = DocumentRegistry(paths.memory_db)
    project = project_name()
    facts: Memory | None = None
    if memory and not incognito and config.memory.mode != "off":
        from mindchat.memory.facts import FactMemory

        facts = FactMemory(paths.memory_db, config.memory, project=project, session=session or "new", model=config.model.name)
    chats = None if incognito else open_chats(paths)
    library = DocumentLibrary(paths.index, config.index, registry, within, config.paths.index, config.retrieve)
    return Rooms(paths, registry, library, facts, chats, project)


def open_library(config: Config, paths: Paths) -> DocumentLibrary:
    """The documents alone; no model, no chats."""
    from mindchat.storage.document_registry import DocumentRegistry

    private(paths.data)
    return DocumentLibrary(paths.index, config.index, DocumentRegistry(paths.memory_db), (), config.paths.index, config.retrieve)


def open_chats(paths: Paths) -> ChatStore:
    """Sessions and turns."""
    from mindchat.storage.chats import ChatStore

    private(paths.data)
    return ChatStore(paths.chats_db)


def open_facts(config: Config, paths: Paths, project: str) -> FactMemory:
    """Remembered facts for the `memory` commands, as the project's newest conversation sees them."""
    from mindchat.memory.facts import FactMemory

    chats = open_chats(paths)
    try:
        session = chats.latest(project) or "shell"
    finally:
        chats.close()
    return FactMemory(paths.memory_db, config.memory, project=project, session=session, model=config.model.name)


def open_rewordings(paths: Paths) -> Rewordings:
    """Paraphrases and summaries of documents, kept in the cache folder."""
    from mindchat.engine.rewording import RewordingFile

    return RewordingFile(paths.cache / "rewordings.jsonl")


def calibrations(paths: Paths) -> Path:
    """The folder of what was fitted to single models: rind-MODEL-ATTENTION.json, memory-MODEL.json."""
    return paths.data / "calibration"


def open_ask(model: Model, cancel: Cancel, seed: int) -> Ask:
    """Metered access to a model outside a turn."""
    from mindchat.engine.metered_model import MeteredAsk

    return MeteredAsk(model, cancel, seed)


def open_store(config: Config, paths: Paths) -> Store:
    """Models on this machine and in the catalogue."""
    from mindchat.models.install.model_store import Store

    return Store(find_paths(config.paths.models).models if config.paths.models else paths.models)


# ── evaluation ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Bench:
    """Makes sessions for the runner: models and open corpora are opened once, memory lives in RAM, nothing is written down.

    `fitted`: memory's calibrations by model name; without one memory keeps to the rule for models that nobody calibrated.
    """

    def __init__(self, paths: Paths, fitted: Mapping[str, Calibration] | None = None) -> None:
        from mindchat.storage.document_registry import DocumentRegistry
        from mindchat.storage.migrations import MEMORY, open_store

        self._paths, self._fitted = paths, fitted or {}
        self._registry = DocumentRegistry(open_store(None, MEMORY))
        self._models: dict[tuple[ModelSection, ServerSection], Model] = {}
        self._open: dict[tuple[str, IndexSection, RetrieveSection], Retriever] = {}
        self._memories: dict[str, VolatileMemory] = {}

    def make(self, config: Config, corpus: CorpusSpec) -> Session:
        """A fresh, cold session over the corpus of one question (evals.examples.CorpusSpec): no arm profits from another one's cache."""
        for model in self._models.values():
            if (forget := getattr(model, "forget_prefixes", None)) is not None:
                forget()
        given = tuple(_passages(corpus.passages)) if corpus.kind == "given" else ()
        retriever = self._retriever(config, corpus)
        memory = self._memory(config, corpus.memory)
        if memory is not None:
            memory.sync(_passages(corpus.passages))
        rewordings = open_rewordings(self._paths)
        rooms = Rooms(self._paths, self._registry, retriever, memory, None, "evaluation")
        return Session(
            config,
            rooms,
            open_model=self._model,
            build_engine=lambda config, rooms, model: build_engine(config, retriever, memory, model, given, rewordings),
            open_rooms=lambda config, session, incognito: rooms,
        )

    def _model(self, config: Config, progress: Callable[[ModelLoading], None]) -> Model:
        key = (config.model, config.server)
        if key not in self._models:
            self._models[key] = load_model(config, progress)
        return self._models[key]

    def forget(self, memory: str, facts: Sequence[str]) -> int:
        """chain_run.Keeper: forget facts of a shared memory by id, as `mindchat memory forget` does; how many were there."""
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

            return MemoryIndex(_passages(corpus.passages), config.index, None, config.retrieve)
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
        library = DocumentLibrary(home / "index", config.index, DocumentRegistry(home / "registry.db"), retrieve=config.retrieve)
        for _ in library.add([path]):
            pass
        return library


def _passages(sources: Sequence[Source]) -> list[Passage]:
    found = []
    for rank, source in enumerate(sources, 1):
        id = source.pid or f"p{rank}"
        # without an id of its own, another text at the same rank is another document, not a changed one
        apart = "" if source.pid else f"#{hashlib.sha256(source.text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        found.append(Passage(id, f"question#{id}{apart}", source.title, source.text, 0, len(source.text), 0.0, rank))
    return found


def open_evaluation(config: Config, paths: Paths) -> MakeSession:
    """make_session for the runner."""
    del config
    return Bench(paths).make


def open_chains(paths: Paths, fitted: Path | None = None) -> Bench:
    """Sessions for chains of turns, and the keeper of their memories. `fitted`: a file of `mindchat calibrate memory` for its model."""
    from mindchat.memory.learning.confidence import read_calibration

    if fitted is None:
        return Bench(paths)
    calibration = read_calibration(fitted)
    return Bench(paths, {calibration.model: calibration})

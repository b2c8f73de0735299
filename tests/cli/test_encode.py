"""`mindchat index encode`: progress, what it says, a pause, another process; over an encoder that needs no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mindchat import wiring

from ..corpus.encoders import Here

NOTES = {"clinic": "A physician works here.", "garage": "The automobile is mended."}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    here = Here(missing=True)
    monkeypatch.setattr(wiring, "find_encoder", lambda config, paths: here)
    return here


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_the_encoder_is_fetched_vectors_are_made_and_used(run: Any, here: Here, notes: Path) -> None:
    run("index", "add", str(notes))
    missing = run("index", "search", "physician", "--set", "retrieve.dense=on")
    assert "concepts is not on this machine" in missing.err
    assert "clinic" in missing.out
    done = run("index", "encode")
    assert (done.code, here.missing) == (0, False)
    assert "2 of 2 passages have a vector · 2 made" in done.out
    assert run("index", "status", "--json").json["vectors"] == 2
    found = run("index", "search", "who cures", "--set", "retrieve.dense=on", "--why").out
    assert "why: by its meaning: [1] clinic" in found
    assert "near in meaning" in run("index", "search", "who cures", "--set", "retrieve.dense=on").out
    (hit,) = run("index", "search", "who cures", "-k", "1", "--set", "retrieve.dense=on", "--json").json["hits"]
    assert hit["found"]["by"] == "dense"
    assert "Nothing found" in run("index", "search", "who cures").err


def test_json_and_a_pause_without_anything_running(run: Any, here: Here, notes: Path) -> None:
    run("index", "add", str(notes))
    told = json.loads(run("index", "encode", "--json").out)
    assert (told["vectors"], told["passages"], told["made"], told["paused"]) == (2, 2, 2, False)
    assert run("index", "encode", "--pause", "--json").json == {"paused": False}
    assert "No process is encoding." in run("index", "encode", "--pause").out


def test_ctrl_c_pauses_and_the_same_command_goes_on(
    run: Any, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import signal

    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.md").write_text(f"Text {number}.")
    run("index", "add", str(folder))
    encode, calls = here.encoder.passages, []

    def interrupted(texts: Any) -> Any:
        calls.append(len(texts))
        if sum(calls) >= 256:
            os.kill(os.getpid(), signal.SIGINT)
        return encode(texts)

    monkeypatch.setattr(here.encoder, "passages", interrupted)
    cut = run("index", "encode")
    assert cut.code == 130
    assert "256 of 300 passages have a vector · 256 made" in cut.out
    assert "paused; the same command goes on" in cut.out
    monkeypatch.setattr(here.encoder, "passages", encode)
    assert "300 of 300 passages have a vector · 44 made" in run("index", "encode").out


def test_another_process_makes_them_at_low_priority_and_leaves_when_done(run: Any, notes: Path) -> None:
    """With a real child: the encoder named is a folder without a model, so it ends at once, having changed nothing."""
    import os

    run("index", "add", str(notes))
    pid = run("index", "encode", "--background", "--json", "--set", f"index.encoder={notes}").json["pid"]
    os.waitpid(pid, 0)
    assert run("index", "status", "--json").json["encoding"] == ""

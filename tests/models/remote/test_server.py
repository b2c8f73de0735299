from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.config import ModelSection, ServerSection
from mindchat.errors import (
    CapabilityError,
    ConfigError,
    DeadlineError,
    Interrupted,
    ModelMissingError,
    ServerError,
    WindowError,
)
from mindchat.models.remote import http_client
from mindchat.models.remote.capabilities import address_of, key_of
from mindchat.models.remote.replies import Assembler, Echo, Scored, entropy_bounds, scored_of
from mindchat.models.remote.server import ServerModel
from mindchat.ports import Cancel, Model
from mindchat.values import (
    Draft,
    Finish,
    Finished,
    Kept,
    Message,
    Prefilled,
    Prompt,
    Signal,
    Span,
    StreamItem,
    Text,
    Token,
)

from .fake_server import FakeServer, Served

ALL = frozenset(Signal)
SURE = frozenset({Signal.LOGPROB, Signal.ENTROPY})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    import os

    for name in list(os.environ):
        if name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(http_client, "_pause", lambda seconds, cancel: None)
    served = Served()
    yield served.fake
    served.close()


def connect(fake: FakeServer, **settings: Any) -> ServerModel:
    server = {key: settings.pop(key) for key in ("key_env", "timeout") if key in settings}
    environ = settings.pop("environ", {})
    model = ServerModel.connect(ServerSection(url=fake.url, **server), ModelSection(**settings), environ=environ)
    fake.asked.clear()
    return model


def asked(text: str = "Where was Fritz Lang born?", prefill: str = "") -> Prompt:
    last = (Message("assistant", (Text(prefill),)),) if prefill else ()
    return Prompt((Message("user", (Text(text, "question"),)), *last))


def run(model: ServerModel, prompt: Prompt | None = None, **more: Any) -> list[StreamItem]:
    return list(model.stream(prompt or asked(), **{"want": ALL, "max_tokens": 20, **more}))


def text_of(items: list[StreamItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, Token))


# ── what is found out ──


def test_everything_is_found_out_at_connect(fake: FakeServer) -> None:
    fake.prompt_logprobs = True
    able = connect(fake).abilities
    assert (able.model, able.window, able.mode, able.top, able.logprob, able.entropy, able.scores_prompts) == (
        "served",
        512,
        "continue",
        20,
        True,
        True,
        True,
    )
    assert any("lower bounds" in note and "6 likeliest" in note for note in able.notes)


@pytest.mark.parametrize(
    ("mode", "top", "found"),
    [
        ("prefill", 20, ("continue", 20)),
        ("closed", 20, ("instruct", 20)),
        ("strict", 5, ("instruct", 5)),
        ("continue", 0, ("continue", 20)),
    ],
)
def test_a_server_that_can_less_is_known_for_it(fake: FakeServer, mode: str, top: int, found: tuple[str, int]) -> None:
    fake.mode, fake.top = mode, top
    model = connect(fake)
    assert (model.abilities.mode, model.abilities.top) == found
    assert model.provides == (SURE if top else frozenset())
    assert ("instruction" in " ".join(model.notes)) == (found[0] == "instruct")
    assert ("no log-probabilities" in " ".join(model.notes)) == (top == 0)


def test_tokens_are_counted_outside_a_stream_where_it_does_not_count_them(fake: FakeServer) -> None:
    counted = connect(fake).abilities.letters
    fake.stream_usage = False
    assert connect(fake).abilities.letters == counted != 3.0
    fake.usage = False
    assert connect(fake).abilities.letters == 3.0


def test_a_log_probability_alone_is_no_entropy(fake: FakeServer) -> None:
    fake.chosen_only = True
    model = connect(fake)
    assert model.provides == {Signal.LOGPROB}
    assert [(t.logprob is None, t.entropy) for t in run(model) if isinstance(t, Token)] == [(False, None)] * 7


def test_names_windows_and_keys(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.ids, fake.key = ["a", "b"], "secret-key"
    with pytest.raises(ModelMissingError, match="no model qwen") as missing:
        connect(fake, key_env="MY_KEY", environ={"MY_KEY": "secret-key"})
    assert "a, b" in missing.value.hint
    with pytest.raises(ConfigError, match="MY_KEY"):
        connect(fake, key_env="MY_KEY")
    with pytest.raises(ServerError, match="401") as refused:
        connect(fake, name="b", key_env="MY_KEY", environ={"MY_KEY": "wrong-key"})
    assert "wrong-key" not in refused.value.message
    assert refused.value.exit_code == 3
    fake.about, fake.props = {}, {"default_generation_settings": {"n_ctx": 1024}}
    assert connect(fake, name="b", key_env="MY_KEY", environ={"MY_KEY": "secret-key"}).window == 1024
    fake.props, fake.key = None, ""
    model = connect(fake, name="b")
    assert (model.id, model.window) == ("b", 4096)
    assert "4,096 tokens are assumed" in " ".join(model.notes)
    assert connect(fake, name="b", window=2048).window == 2048


def test_no_server_and_no_json_are_said_in_one_sentence(fake: FakeServer) -> None:
    with pytest.raises(ServerError, match="cannot be reached"):
        ServerModel.connect(ServerSection(url="http://127.0.0.1:9"), ModelSection())
    assert address_of("http://host:8000/") == "http://host:8000/v1"
    assert address_of("https://host/api/v3") == "https://host/api/v3"


# ── streaming ──


@pytest.mark.parametrize("mode", ["continue", "closed"])
def test_a_stream_keeps_the_ports_order_and_gives_signals(fake: FakeServer, mode: str) -> None:
    fake.mode = mode
    model: Model = connect(fake)
    items = list(model.stream(asked(prefill="Answer:"), want=ALL, max_tokens=20))
    assert isinstance(items[0], Prefilled)
    assert items[0].done == items[0].total
    assert items[-1] == Finished(Finish.EOS)
    tokens = [item for item in items[1:-1] if isinstance(item, Token)]
    assert len(tokens) == len(items) - 2
    assert [t.index for t in tokens] == list(range(7))
    assert "".join(t.text for t in tokens) == "Fritz Lang was born in Vienna."
    for token in tokens:
        assert token.logprob == pytest.approx(math.log(0.6))
        assert 0.6 < (token.entropy or 0.0) < 2.0
    assert model.usage() == (10, 30, 7)
    assert model.usage() == (0, 0, 0)
    stream = model.stream(asked(prefill="Answer:"), want=ALL, max_tokens=20)
    while not isinstance(next(stream), Token):
        pass
    assert model.usage() == (model.count(asked(prefill="Answer:")), 0, 1)  # an estimate, until the server has spoken
    stream.close()  # type: ignore[attr-defined]


def test_signals_that_nobody_wants_are_not_asked_for(fake: FakeServer) -> None:
    model = connect(fake)
    tokens = [t for t in run(model, want=frozenset()) if isinstance(t, Token)]
    assert "logprobs" not in fake.asked[-1]
    assert {(t.logprob, t.entropy) for t in tokens} == {(None, None)}


def test_an_open_turn_is_continued_or_put_as_an_instruction(fake: FakeServer) -> None:
    prompt = Prompt((*asked().messages, Message("assistant", (Text("So "), Kept((1, 2), "Fritz Lang")))))
    run(connect(fake), prompt)
    assert fake.asked[-1]["continue_final_message"] is True
    assert fake.asked[-1]["messages"][-1] == {"role": "assistant", "content": "So Fritz Lang"}
    fake.mode = "closed"
    model = connect(fake)
    assert text_of(run(model, prompt)) == "Fritz Lang was born in Vienna."  # no echo: nothing is cut
    assert "continue_final_message" not in fake.asked[-1]
    assert [m["role"] for m in fake.asked[-1]["messages"]] == ["user"]
    assert fake.asked[-1]["messages"][0]["content"].endswith("\nSo Fritz Lang")
    fake.reply = ["So", " Fritz", " Lang was", " born"]
    assert text_of(run(model, prompt)) == " was born"


def test_documents_cannot_speak_as_the_template(fake: FakeServer) -> None:
    model = connect(fake)
    run(model, asked("A <|im_end|> B </s> C <start_of_turn> D [/INST] 1 < 2 <b>"))
    sent = fake.asked[-1]["messages"][0]["content"]
    assert sent == "A < |im_end|> B < /s> C < start_of_turn> D [ /INST] 1 < 2 <b>"
    assert sent in model.render(asked("A <|im_end|> B </s> C <start_of_turn> D [/INST] 1 < 2 <b>"))


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ((" Vienna",), "Fritz Lang was born in"),
        (("Lang w",), "Fritz "),
        ((".",), "Fritz Lang was born in Vienna"),
        (("zzz",), None),
    ],
)
def test_stop_strings_close_the_connection_and_are_in_no_token(
    fake: FakeServer, stop: tuple[str, ...], text: str | None
) -> None:
    items = run(connect(fake), stop=stop)
    assert text_of(items) == (text or "Fritz Lang was born in Vienna.")
    assert items[-1] == Finished(Finish.STOP if text else Finish.EOS)
    assert "stop" not in fake.asked[-1]


def test_the_limit_of_tokens_and_of_the_window(fake: FakeServer) -> None:
    model = connect(fake)
    items = run(model, max_tokens=3)
    assert (text_of(items), items[-1]) == ("Fritz Lang was", Finished(Finish.LENGTH))
    assert [type(item) for item in run(model, max_tokens=0)] == [Prefilled, Finished]
    with pytest.raises(WindowError, match="window"):
        run(model, asked("word " * 5000))
    small = connect(fake, window=model.count(asked()) + 2)
    assert text_of(run(small)) == "Fritz Lang"
    fake.status = [(400, "This model's maximum context length is 512 tokens.")]
    with pytest.raises(WindowError, match="512"):
        run(model)


def test_cancel_closes_the_connection_at_once(fake: FakeServer) -> None:
    model = connect(fake)
    fake.pace, fake.reply = 0.05, [" word"] * 200
    cancel = Cancel()
    stream = model.stream(asked(), want=ALL, max_tokens=200, cancel=cancel)
    while not isinstance(next(stream), Token):
        pass
    cancel.set()
    with pytest.raises(Interrupted):
        next(stream)
    assert fake.broken.wait(2.0)
    assert fake.written < 10


def test_closing_the_iterator_closes_the_connection_too(fake: FakeServer) -> None:
    model = connect(fake)
    fake.pace, fake.reply = 0.05, [" word"] * 200
    stream = model.stream(asked(), want=ALL, max_tokens=200)
    while not isinstance(next(stream), Token):
        pass
    stream.close()  # type: ignore[attr-defined]
    assert fake.broken.wait(2.0)
    assert model.usage()[2] == 1


def test_a_server_that_is_silent_can_be_left(fake: FakeServer) -> None:
    model = connect(fake)
    fake.pace = 5.0
    started = time.monotonic()
    with pytest.raises(DeadlineError):
        run(model, cancel=Cancel(timeout=0.3))
    assert time.monotonic() - started < 2.0
    cancel = Cancel()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(Interrupted):
        run(model, cancel=cancel)
    with pytest.raises(ServerError, match=r"sent nothing for 0\.2 s"):
        run(connect_quick(fake))


def connect_quick(fake: FakeServer) -> ServerModel:
    pace, fake.pace = fake.pace, 0.0
    model = connect(fake, timeout=0.2)
    fake.pace = pace
    return model


# ── failures ──


def test_what_may_pass_is_tried_again(fake: FakeServer) -> None:
    model = connect(fake)
    fake.status = [(429, "slow down"), (503, "loading"), (500, "oops")]
    assert text_of(run(model)) == "Fritz Lang was born in Vienna."
    fake.cut_after = 0
    assert text_of(run(model)) == "Fritz Lang was born in Vienna."
    fake.status = [(429, "slow down")] * 4
    with pytest.raises(ServerError, match="slow down") as tired:
        run(model)
    assert tired.value.status == 429
    fake.status = [(404, "no such model")]
    with pytest.raises(ServerError, match="no such model"):
        run(model)
    assert not fake.status


def test_an_answer_that_breaks_off_is_no_answer(fake: FakeServer) -> None:
    model = connect(fake)
    fake.cut_after = 3
    stream = model.stream(asked(), want=ALL, max_tokens=20)
    got: list[StreamItem] = []
    with pytest.raises(ServerError, match="broke"):
        got.extend(stream)
    fake.finish = "content_filter"
    with pytest.raises(ServerError, match="filter"):
        run(model)


def test_between_two_attempts_the_token_is_looked_at() -> None:
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        http_client._pause(60.0, cancel)
    assert (
        http_client._seconds("2"),
        http_client._seconds("900"),
        http_client._seconds("Wed, 21 Oct"),
        http_client._seconds(""),
    ) == (
        2.0,
        http_client.LONGEST_WAIT,
        0.0,
        0.0,
    )


# ── samples, choices, attention ──


def test_samples_are_asked_for_until_there_are_enough(fake: FakeServer) -> None:
    fake.per_request = 2
    drafts = connect(fake).sample(asked(), n=5, want=SURE, max_tokens=20, seed=3, stop=(" in",))
    assert [d.text for d in drafts] == ["Fritz Lang was born"] * 5
    assert {d.finish for d in drafts} == {Finish.STOP}
    assert [body["n"] for body in fake.asked] == [5, 3, 1]
    assert [body["seed"] for body in fake.asked] == [3, 5, 7]
    assert all(len(d.tokens) == 4 and d.tokens[0].entropy for d in drafts)


def test_options_are_scored_exactly_where_the_prompt_is(fake: FakeServer) -> None:
    fake.prompt_logprobs = True
    choices = connect(fake).choose(asked(prefill="Answer:"), [" yes", " Fritz Lang", ""])
    assert [(c.option, c.logprob, c.tokens) for c in choices] == [
        (" yes", -3.0, 1),
        (" Fritz Lang", -9.0, 2),
        ("", 0.0, 0),
    ]


def test_options_are_walked_along_where_a_turn_can_be_continued(fake: FakeServer) -> None:
    fake.reply = [" yes"]
    yes, no, longer, unknown = connect(fake).choose(asked(prefill="Answer:"), [" yes", " no", " no maybe", " purple"])
    assert yes.logprob == pytest.approx(math.log(0.6))
    assert no.logprob == pytest.approx(math.log(0.2))
    assert longer.logprob == pytest.approx(math.log(0.2) + math.log(0.1))
    assert longer.tokens == 2
    assert unknown.logprob == pytest.approx(math.log(0.2 / 8))
    assert len(fake.asked) == 2  # the first token is asked for once


def test_options_are_told_apart_by_their_first_token_elsewhere(fake: FakeServer) -> None:
    fake.mode, fake.reply = "closed", ["yes"]
    model = connect(fake)
    yes, no = model.choose(asked(prefill="Answer:"), [" yes", " no"])
    assert yes.logprob > no.logprob == pytest.approx(math.log(0.1))
    with pytest.raises(CapabilityError, match="begin alike"):
        model.choose(asked(prefill="Answer:"), [" no", " no way"])
    fake.top = 0
    with pytest.raises(CapabilityError, match="log-probabilities") as caught:
        connect(fake).choose(asked(), [" yes", " no"])
    assert "vLLM" in caught.value.hint


def test_an_allowed_answer_is_one_of_the_options(fake: FakeServer) -> None:
    fake.reply = [" no"]
    items = run(connect(fake), asked(prefill="Answer:"), allow=[" yes", " no"])
    assert text_of(items) == " no"
    assert items[-1] == Finished(Finish.EOS)


def test_attention_is_refused_and_what_works_is_named(fake: FakeServer) -> None:
    model = connect(fake)
    assert Signal.ATTENTION not in model.provides
    with pytest.raises(CapabilityError, match="attention") as caught:
        model.attention(asked(), Draft("x"), Span(0, 1))
    assert "flare" in caught.value.hint


def test_the_configured_server_is_what_loads(fake: FakeServer) -> None:
    from mindchat.config import Config
    from mindchat.events import ModelLoading
    from mindchat.wiring import load_model

    told: list[ModelLoading] = []
    model = load_model(Config(server=ServerSection(url=fake.url)), told.append)
    assert model.id == "served"
    assert told[0].phase == "connecting"
    assert told[-1].phase == "ready"
    assert any(news.phase.startswith("note: Entropies") for news in told)


# ── reading ──


@given(st.lists(st.floats(0.01, 10.0), min_size=30, max_size=200), st.integers(2, 20))
def test_the_true_entropy_lies_within_the_bounds(weights: list[float], k: int) -> None:
    total = sum(weights)
    shares = sorted((w / total for w in weights), reverse=True)
    true = -sum(p * math.log(p) for p in shares)
    low, high = entropy_bounds([math.log(p) for p in shares[:k]], len(shares))
    assert low - 1e-9 <= true <= high + 1e-9


def test_the_bounds_meet_when_nothing_is_left() -> None:
    assert entropy_bounds([0.0]) == (0.0, 0.0)
    assert entropy_bounds([math.log(0.5)] * 2) == pytest.approx((math.log(2), math.log(2)))
    low, high = entropy_bounds([math.log(0.99), math.log(0.005)])
    assert high - low < 0.1


def test_both_forms_of_log_probabilities_are_read() -> None:
    listed = {
        "logprobs": {
            "content": [
                {
                    "token": "a",
                    "logprob": -9999.0,
                    "top_logprobs": [{"token": "b", "logprob": None}, {"token": "c", "logprob": 0.5}],
                }
            ]
        }
    }
    assert scored_of(listed) == [Scored("a", -9999.0, (("c", 0.0), ("b", -1e4)))]
    parallel = {
        "logprobs": {
            "tokens": ["a", "b"],
            "token_logprobs": [-1.0, None],
            "top_logprobs": [{"x": -2.0, "a": -1.0}, None],
        }
    }
    assert scored_of(parallel) == [Scored("a", -1.0, (("a", -1.0), ("x", -2.0))), Scored("b", -1e4)]
    assert scored_of({"logprobs": None}) == []


def assembled(*events: tuple[str, list[Scored]]) -> list[Token]:
    assembler = Assembler(logprob=True, entropy=True)
    return [token for text, scored in events for token in assembler.feed(text, scored)] + list(assembler.close())


def test_text_and_figures_are_brought_together() -> None:
    a, b = Scored("Pa", -1.0), Scored("ris", -2.0)
    expected = [("Pa", -1.0), ("ris", -2.0)]
    for events in (
        [("Paris", [a, b])],
        [("Pa", [a]), ("ris", [b])],
        [("", [a]), ("Paris", [b])],
        [("P", [a]), ("aris", [b])],
    ):
        assert [(t.text, t.logprob) for t in assembled(*events)] == expected
    assert [(t.text, t.logprob) for t in assembled(("Rome", [a]))] == [("Rome", -1.0)]
    assert [(t.text, t.logprob) for t in assembled(("Pa", [a]), ("", [Scored("<|im_end|>", -0.1)]))] == [("Pa", -1.0)]
    assert [(t.text, t.logprob) for t in assembled(("no figures", []))] == [("no figures", None)]


def test_a_character_in_two_tokens_is_whole_in_the_second() -> None:
    first, second = ({"token": "?", "bytes": [b], "logprob": -1.0} for b in "é".encode())
    scored = scored_of({"logprobs": {"content": [first, second]}})
    assert [t.text for t in assembled(("", scored[:1]), ("é", scored[1:]))] == ["", "é"]


def test_what_a_terminal_would_obey_never_comes_through() -> None:
    assert "".join(t.text for t in assembled(("a\x1b[3", []), ("1mb", []), ("\x07c", []))) == "abc"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Answer: Paris", " Paris"),
        (" Answer: Paris", " Paris"),
        ("Paris", "Paris"),
        ("Ans", "Ans"),
        ("Answer:", ""),
        ("Answers", "Answers"),
    ],
)
def test_an_echo_is_cut_off(said: str, left: str) -> None:
    for size in (1, 3, 99):
        echo = Echo("Answer:")
        pieces = [said[i : i + size] for i in range(0, len(said), size)]
        got = [t for piece in pieces for t in echo.push(Token(0, 0, piece))] + echo.close()
        assert "".join(t.text for t in got) == left


# ── a whole turn ──


def test_a_turn_runs_on_a_server_and_mind_says_what_is_missing(fake: FakeServer) -> None:
    from mindchat.events import AnswerReady, ModelAsked

    from ...fakes import KeywordRetriever, engine, of

    fake.about, fake.reply = {"max_model_len": 8192}, [" So", " the", " answer", " is", " Vienna", "."]
    events = list(
        engine(connect(fake), "engine.policy=flare", retriever=KeywordRetriever()).run("Where was Fritz Lang born?")
    )
    assert isinstance(events[-1], AnswerReady), events[-1]
    assert "Vienna" in events[-1].answer.text
    assert events[-1].answer.verdict == "sourced"
    asked = {event.kind: event for event in of(events, ModelAsked)}
    assert all(event.prompt_tokens_new > 0 < event.generated for event in asked.values())
    with pytest.raises(CapabilityError, match="attention") as caught:
        engine(connect(fake), "engine.policy=mind")
    assert "mind" in caught.value.message


@pytest.mark.parametrize(
    "key",
    [
        "schlüssel-secret",
        "secret\nkey",
        "secret key",
        "secret\x00key",
        "secret\x7f",
        "“secret”",
        "秘密-secret",
        "secret\r\nX-Evil: 1",
    ],
)
def test_a_key_that_no_header_can_carry_is_a_sentence_without_the_key(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        key_of(ServerSection(url="http://127.0.0.1:9", key_env="MY_KEY"), {"MY_KEY": key})
    assert "MY_KEY holds no key" in caught.value.message
    assert "secret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("around", ["\n", " ", "\r\n", "\t"])
def test_white_space_around_a_key_is_not_part_of_it(around: str) -> None:
    assert key_of(ServerSection(key_env="MY_KEY"), {"MY_KEY": f"{around}sk-1{around}"}) == "sk-1"
    with pytest.raises(ConfigError, match="MY_KEY is empty"):
        key_of(ServerSection(key_env="MY_KEY"), {"MY_KEY": around})


@pytest.mark.parametrize("trouble", ["nobody", "refuses", "nonsense", "breaks", "unknown model"])
@pytest.mark.parametrize("credentials", ["ada:hunter2@", "hunter2@", "ada:hunter2%21@"])
def test_no_error_of_a_server_repeats_the_credentials_of_its_address(
    fake: FakeServer, trouble: str, credentials: str
) -> None:
    url = fake.url.replace("://", f"://{credentials}")
    fake.ids = ["served"]
    if trouble == "nobody":
        url = f"http://{credentials}127.0.0.1:9/v1"
    refusals = [(400, "no, ada:hunter2!"), *[(401, '{"error": "hunter2! is wrong"}')] * 9]
    fake.status = {"refuses": refusals, "nonsense": [(200, "hunter2!")] * 9}.get(trouble, [])
    fake.cut_after = 1 if trouble == "breaks" else -1
    name = "other" if trouble == "unknown model" else "served"
    with pytest.raises((ServerError, ModelMissingError)) as failed:
        run(ServerModel.connect(ServerSection(url=url), ModelSection(name=name), environ={}))
    assert "hunter2" not in failed.value.message + failed.value.hint

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from mindchat.errors import DeadlineError, Interrupted, WindowError
from mindchat.models.decode.greedy import Greedy, Request, Tail, Trie
from mindchat.models.decode.sampling import Spread, truncated
from mindchat.models.network import attention_hook
from mindchat.models.network.entropy import entropy_of, log_probabilities, logprob_and_entropy
from mindchat.ports import NEVER, Cancel
from mindchat.values import (
    Attended,
    Finish,
    Finished,
    Kept,
    Message,
    Prefilled,
    Prompt,
    Signal,
    StreamItem,
    Text,
    Token,
)
from mindchat.word_signals import received

pytestmark = pytest.mark.slow

ALL = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})
NONE: frozenset[Signal] = frozenset()
QUESTION = "Who was the paternal grandfather of Charles Bretagne Marie de La Trémoille?"


def asked(text: str = QUESTION, prefill: str = "") -> Prompt:
    last = (Message("assistant", (Text(prefill),)),) if prefill else ()
    return Prompt((Message("user", (Text(text, "question"),)), *last))


def tokens_of(items: Sequence[StreamItem]) -> list[Token]:
    return [item for item in items if isinstance(item, Token)]


def ids_of(model: Any, prompt: Prompt, n: int = 12) -> list[int]:
    return [token.id for token in tokens_of(list(model.stream(prompt, want=NONE, max_tokens=n)))]


# ── arithmetic ──


def test_entropy_of_uniform_and_of_one_hot() -> None:
    assert float(entropy_of(log_probabilities(torch.zeros(50)))) == pytest.approx(math.log(50), abs=1e-5)
    hot = torch.full((50,), -torch.inf)
    hot[3] = 0.0
    assert float(entropy_of(log_probabilities(hot))) == 0.0
    logprobs, entropies = logprob_and_entropy(torch.stack([torch.zeros(4), hot[:4]]), torch.tensor([1, 3]))
    assert logprobs == pytest.approx([-math.log(4), 0.0])
    assert entropies == pytest.approx([math.log(4), 0.0])


def test_entropy_of_half_precision_logits_is_computed_in_fp32() -> None:
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(1)).bfloat16()
    exact = torch.distributions.Categorical(logits=logits.double()).entropy()
    assert float(entropy_of(log_probabilities(logits))) == pytest.approx(float(exact), abs=1e-4)


class ToyLine:
    def __init__(self) -> None:
        self.ids = [9]
        self.kv = None


class ToyBackbone:
    """Four fixed distributions; the third is uniform."""

    device = torch.device("cpu")

    def __init__(self, vocab: int = 8) -> None:
        self.logits = torch.full((5, vocab), -50.0)
        for step, token in enumerate((3, 4, 0, 5, 6)):
            self.logits[step, token] = 50.0
        self.logits[2] = 0.0
        self.fed: list[int] = []

    def step(self, ids: torch.Tensor, kv: object, *, row: bool = False) -> tuple[torch.Tensor, torch.Tensor | None]:
        self.fed.append(int(ids[0, 0]))
        return self.logits[len(self.fed)][None], torch.arange(len(self.fed) + 1.0)[None] if row else None


class ToyVocabulary:
    def detokenizer(self) -> Any:
        class Letters:
            def feed(self, token: int) -> str:
                return "abcdefgh"[token]

            def close(self) -> str:
                return ""

        return Letters()


def toy(
    ends: frozenset[int] = frozenset({6}), *, limit: int = 10, stop: tuple[str, ...] = (), want: frozenset[Signal] = ALL
) -> list[StreamItem]:
    backbone: Any = ToyBackbone()
    vocabulary: Any = ToyVocabulary()
    line: Any = ToyLine()
    return list(
        Greedy(backbone, vocabulary, ends, Request(want, limit, stop, NEVER), None).run(line, backbone.logits[0][None])
    )


def test_entropy_belongs_to_the_distribution_that_the_token_was_taken_from() -> None:
    tokens = tokens_of(toy())
    assert [round(token.entropy or 0.0, 5) for token in tokens] == [0.0, 0.0, round(math.log(8), 5), 0.0]


def test_a_row_follows_the_next_token_or_stands_before_the_end() -> None:
    def shape(items: list[StreamItem]) -> str:
        return " ".join(
            f"{type(item).__name__[0]}{getattr(item, 'index', getattr(item, 'query', ''))}" for item in items
        )

    assert shape(toy()) == "T0 T1 A0 T2 A1 T3 A2 A3 F"
    assert shape(toy(limit=2)) == "T0 T1 A0 A1 F"
    assert shape(toy(limit=2, want=NONE)) == "T0 T1 F"
    rows = [item for item in toy() if isinstance(item, Attended)]
    assert rows[3].paid == (1.0, 2.0, 3.0)  # position 0 is the prompt


@pytest.mark.parametrize(
    ("stop", "text", "finish"),
    [
        (("ea",), "d", Finish.STOP),
        (("e",), "d", Finish.STOP),
        (("d",), "", Finish.STOP),
        (("af",), "de", Finish.STOP),
        (("az", "f"), "dea", Finish.STOP),
        (("fz",), "deaf", Finish.EOS),
        ((), "deaf", Finish.EOS),
    ],
)
def test_stop_strings_end_the_stream_and_are_in_no_token(stop: tuple[str, ...], text: str, finish: Finish) -> None:
    items = toy(stop=stop)
    assert "".join(token.text for token in tokens_of(items)) == text
    assert items[-1] == Finished(finish)
    assert [token.index for token in tokens_of(items)] == list(range(len(tokens_of(items))))
    assert len([item for item in items if isinstance(item, Attended)]) == len(tokens_of(items))


def test_a_token_across_the_stop_string_keeps_its_first_characters() -> None:
    tail = Tail(["\n\n"])
    assert tail.push(Token(0, 1, "Paris")) == ([Token(0, 1, "Paris")], False)
    assert tail.push(Token(1, 2, ".\n")) == ([], False)
    assert tail.push(Token(2, 3, "\nNext")) == ([Token(1, 2, ".")], True)


def test_the_trie_takes_the_likelier_branch_and_may_end_at_a_prefix() -> None:
    options = [(1,), (1, 2), (3,)]
    logits = torch.zeros(5)
    logits[1] = 2.0
    trie = Trie(options)
    assert trie.pick(logits, [4]) == 1
    assert Trie(options).pick(logits, [4]) == 1
    logits[4] = 3.0
    assert trie.pick(logits, [4]) is None
    with pytest.raises(ValueError, match="allow"):
        Trie([])


def test_truncation_keeps_the_likeliest_and_is_never_empty() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    assert truncated(logits, Spread(1.0, 0, 0.6, 0))[0].tolist() == pytest.approx([0.625, 0.375, 0, 0])
    assert truncated(logits, Spread(1.0, 1, 1.0, 0))[0].tolist() == [1, 0, 0, 0]
    assert truncated(logits, Spread(1.0, 0, 1.0, 0))[0].tolist() == pytest.approx([0.5, 0.3, 0.15, 0.05])
    assert truncated(logits, Spread(0.5, 0, 0.01, 0))[0].tolist() == [1, 0, 0, 0]


# ── the port, on tiny networks ──


def test_prefill_reports_chunks_and_is_the_same_in_one_pass(tiny: Any, family: str) -> None:
    chunked, whole = tiny(family, prefill_chunk=7), tiny(family)
    items = list(chunked.stream(asked(), want=ALL, max_tokens=8))
    other = list(whole.stream(asked(), want=ALL, max_tokens=8))
    total = chunked.count(asked())
    steps = [item for item in items if isinstance(item, Prefilled)]
    assert [step.done for step in steps] == [*range(7, total, 7), total]
    assert {(step.total, step.cached) for step in steps} == {(total, 0)}
    assert [t.id for t in tokens_of(items)] == [t.id for t in tokens_of(other)]
    assert [t.entropy for t in tokens_of(items)] == pytest.approx([t.entropy for t in tokens_of(other)], abs=1e-4)


def test_reuse_changes_no_text_and_every_token_is_accounted_for_over_twenty_turns(tiny: Any, family: str) -> None:
    cached, fresh = tiny(family), tiny(family, reuse=False)
    messages: list[Message] = []
    for turn in range(20):
        messages.append(Message("user", (Text(f"{turn}: is Paris big? " * (1 + turn % 3)),)))
        prompt = Prompt(tuple(messages))
        if turn % 5 == 3:  # cancelled in the middle of the answer
            stream = cached.stream(prompt, want=ALL, max_tokens=9)
            while not isinstance(next(stream), Token):
                pass
            stream.close()
        items = list(cached.stream(prompt, want=ALL, max_tokens=6))
        tokens = tokens_of(items)
        assert [token.id for token in tokens] == ids_of(fresh, prompt, 6)
        step = next(item for item in items if isinstance(item, Prefilled))
        new, held, made = cached.usage()
        assert new + held == cached.count(prompt) * (2 if turn % 5 == 3 else 1)
        assert made == len(tokens) + (turn % 5 == 3)
        assert turn == 0 or step.cached > 0
        answer = Kept(tuple(token.id for token in tokens), "".join(token.text for token in tokens))
        if turn % 7 == 6:
            messages = messages[:2]  # back to an earlier point: a fork
        elif turn % 2:
            messages.append(Message("assistant", (answer,)))
        else:
            messages.append(Message("assistant", (Text(answer.text),)))
    assert fresh.store.nbytes == 0


def test_kept_tokens_are_continued_without_computing_them_again(tiny: Any) -> None:
    model = tiny("llama")
    whole = ids_of(model, asked(), 10)
    model.usage()
    half = tokens_of(list(model.stream(asked(), want=NONE, max_tokens=5)))
    model.usage()
    kept = Kept(tuple(token.id for token in half), "".join(token.text for token in half))
    prompt = Prompt((*asked().messages, Message("assistant", (kept,))))
    assert [*kept.ids, *ids_of(model, prompt, 5)] == whole
    assert model.usage()[:2] == (1, model.count(prompt) - 1)


def test_two_streams_may_be_open_at_once(tiny: Any) -> None:
    model, alone = tiny("llama"), tiny("llama", reuse=False)
    outer = model.stream(asked(), want=NONE, max_tokens=8)
    got: list[StreamItem] = []
    for item in outer:
        got.append(item)
        if isinstance(item, Token) and item.index == 2:
            assert ids_of(model, asked(prefill="Answer:")) == ids_of(alone, asked(prefill="Answer:"))
    assert [token.id for token in tokens_of(got)] == ids_of(alone, asked(), 8)


def test_cancel_stops_within_a_chunk_and_within_a_token(tiny: Any) -> None:
    model = tiny("llama", prefill_chunk=8)
    cancel = Cancel()
    stream = model.stream(asked(), want=ALL, max_tokens=50, cancel=cancel)
    assert isinstance(next(stream), Prefilled)
    cancel.set()
    with pytest.raises(Interrupted):
        next(stream)
    late = Cancel(timeout=-1.0)
    with pytest.raises(DeadlineError):
        list(model.stream(asked(), want=ALL, max_tokens=50, cancel=late))
    cancel = Cancel()
    stream = model.stream(asked(), want=ALL, max_tokens=50, cancel=cancel)
    while getattr(next(stream), "index", 0) < 2:
        pass
    cancel.set()
    with pytest.raises(Interrupted):
        tuple(next(stream) for _ in range(2))  # at most one row comes between two tokens


def test_a_prompt_beyond_the_window_is_refused_and_the_answer_ends_at_it(tiny: Any) -> None:
    need = tiny("llama").count(asked())
    with pytest.raises(WindowError, match="window"):
        list(tiny("llama", window=need).stream(asked(), want=NONE, max_tokens=5))
    items = list(tiny("llama", window=need + 3).stream(asked(), want=NONE, max_tokens=50))
    assert len(tokens_of(items)) == 3
    assert items[-1] == Finished(Finish.LENGTH)


def test_no_tokens_asked_is_only_a_prefill(tiny: Any) -> None:
    items = list(tiny("llama").stream(asked(), want=ALL, max_tokens=0))
    assert [type(item) for item in items] == [Prefilled, Finished]


def test_the_end_of_turn_is_not_a_token(tiny: Any) -> None:
    model = tiny("llama")
    third = ids_of(model, asked())[2]
    model.ends = frozenset({third})
    items = list(model.stream(asked(), want=ALL, max_tokens=12))
    assert items[-1] == Finished(Finish.EOS)
    assert third not in [token.id for token in tokens_of(items)]
    assert [row.query for row in items if isinstance(row, Attended)] == [0, 1][: len(tokens_of(items))]


def test_the_output_is_exactly_one_of_the_allowed_with_raw_signals(tiny: Any) -> None:
    model = tiny("llama")
    options = [" yes", " no", " nobody", "Paris is big."]
    items = list(model.stream(asked(prefill="Answer:"), want=ALL, max_tokens=50, allow=options))
    tokens = tokens_of(items)
    assert "".join(token.text for token in tokens) in options
    assert items[-1] == Finished(Finish.EOS)
    ids = [*model.format.render(asked(prefill="Answer:")).ids, *(token.id for token in tokens)]
    log_probs = torch.log_softmax(model.backbone.model(torch.tensor([ids])).logits[0].double(), -1)
    for token in tokens:
        row = log_probs[len(ids) - len(tokens) + token.index - 1]
        assert token.logprob == pytest.approx(float(row[token.id]), abs=1e-4)
        assert token.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-4)


def test_choose_scores_options_as_continuations(tiny: Any, family: str) -> None:
    model = tiny(family)
    options = [" yes", " no", "", " Paris is big, and its river is the Seine", " yes"]
    prompt = asked(prefill="Answer:")
    choices = model.choose(prompt, options)
    assert [choice.option for choice in choices] == options
    head = list(model.format.render(prompt).ids)
    for choice in choices:
        ids = model.vocabulary.continuation(choice.option)
        log_probs = torch.log_softmax(model.backbone.model(torch.tensor([head + ids])).logits[0].double(), -1)
        expected = sum(float(log_probs[len(head) + i - 1, token]) for i, token in enumerate(ids))
        assert choice.tokens == len(ids)
        assert choice.logprob == pytest.approx(expected, abs=1e-3)
    assert model.usage()[1] == 0
    assert model.choose(prompt, []) == []
    assert model.usage()[:2] == (1, len(head) - 1)


def test_samples_repeat_with_their_seed_and_share_one_prefill(tiny: Any) -> None:
    model = tiny("llama")
    want = ALL | {Signal.HIDDEN}

    def drawn(seed: int, **more: Any) -> list[Any]:
        return list(model.sample(asked(), n=4, want=want, max_tokens=7, seed=seed, temperature=1.5, **more))

    first = drawn(1)
    assert model.usage()[:2] == (model.count(asked()), 0)
    again = drawn(1)
    assert [d.text for d in first] == [d.text for d in again]
    assert [d.text for d in first] != [d.text for d in drawn(2)]
    assert len({d.ids for d in first}) > 1
    size = model.backbone.model.config.hidden_size
    assert all(d.hidden.shape == (size,) and len(d.received) == len(d.tokens) for d in first)
    top = drawn(3, top_k=1)
    assert {d.ids for d in top} == {tuple(ids_of(model, asked(), 7))}


def test_a_sample_equals_its_own_forward_pass(tiny: Any) -> None:
    model = tiny("qwen2")
    draft = model.sample(asked(), n=3, want=ALL | {Signal.HIDDEN}, max_tokens=6, seed=5, temperature=2.0)[1]
    head, ids = list(model.format.render(asked()).ids), list(draft.ids)
    close = min(model.ends)
    whole = model.backbone.model(torch.tensor([[*head, *ids, close]]), output_hidden_states=True)
    log_probs = torch.log_softmax(whole.logits[0].double(), -1)
    for i, token in enumerate(draft.tokens):
        assert token.logprob == pytest.approx(float(log_probs[len(head) + i - 1, token.id]), abs=1e-4)
    layers = model.backbone.model.config.num_hidden_layers
    expected = whole.hidden_states[max(layers // 2, 1)][0, -1]
    assert torch.allclose(torch.tensor(draft.hidden), expected, atol=1e-3)


# ── the real small model ──


@pytest.mark.model
def test_signals_and_text_of_smollm_equal_the_reference(smollm: Any) -> None:
    prompt = Prompt(
        (
            Message("system", (Text("Answer in full sentences."),)),
            Message("user", (Text("Name the capital of France and its river."),)),
        )
    )
    items = list(smollm.stream(prompt, want=ALL, max_tokens=40))
    tokens = tokens_of(items)
    head, ids = list(smollm.format.render(prompt).ids), [token.id for token in tokens]
    network = smollm.backbone.model
    with torch.inference_mode():
        log_probs = torch.log_softmax(network(torch.tensor([head + ids])).logits[0], -1)
        own = network.generate(
            torch.tensor([head]),
            max_new_tokens=40,
            do_sample=False,
            repetition_penalty=1.0,
            attention_mask=torch.ones(1, len(head)),
        )
    assert [i for i in own[0, len(head) :].tolist() if i not in smollm.ends] == ids
    decoded = smollm.vocabulary.tokenizer.decode(ids, skip_special_tokens=True)
    assert "".join(token.text for token in tokens) == decoded
    for i, token in enumerate(tokens):
        row = log_probs[len(head) + i - 1]
        assert token.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-4)
        assert token.logprob == pytest.approx(float(row[token.id]), abs=1e-4)
    reference = attention_hook.eager(network, torch.tensor([head + ids]))[0][len(head) :, len(head) :]
    expected = [float(reference[j + 1 :, j].max()) if j + 1 < len(ids) else 0.0 for j in range(len(ids))]
    rows = [item for item in items if isinstance(item, Attended)]
    assert received(rows, len(ids)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.model
def test_smollm_says_the_same_with_and_without_reuse(smollm: Any) -> None:
    from mindchat.models.network.kv_cache import PrefixStore

    messages: list[Message] = [Message("system", (Text("You know geography."),))]
    for turn, question in enumerate(("Where is Rome?", "Which river runs there?", "Is it long?")):
        messages.append(Message("user", (Text(question, "question"),)))
        prompt = Prompt(tuple(messages))
        tokens = tokens_of(list(smollm.stream(prompt, want=ALL, max_tokens=8)))
        store, smollm.store = smollm.store, PrefixStore(smollm.backbone.fresh, 0, enabled=False)
        assert ids_of(smollm, prompt, 8) == [token.id for token in tokens]
        smollm.store = store
        messages.append(Message("assistant", (Kept(tuple(t.id for t in tokens), "".join(t.text for t in tokens)),)))
        if turn:
            assert (
                next(i for i in smollm.stream(prompt, want=NONE, max_tokens=0) if isinstance(i, Prefilled)).cached
                == smollm.count(prompt) - 1
            )


@pytest.mark.model
def test_smollm_knows_that_paris_is_likelier_than_nonsense(smollm: Any) -> None:
    choices = smollm.choose(
        asked("What is the capital of France?", "The capital of France is"), [" Paris", " purple", " London"]
    )
    assert max(choices, key=lambda choice: choice.logprob).option == " Paris"


def test_a_vocabulary_whose_characters_are_not_known_exactly_is_refused(
    tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindchat.errors import ModelMissingError
    from mindchat.models.decode.detokenizer import Vocabulary
    from mindchat.models.local import LocalModel

    model = tiny("llama")
    monkeypatch.setattr(Vocabulary, "_spell", lambda self, token: b"##")
    with pytest.raises(ModelMissingError, match="tokenizer"):
        LocalModel(model.backbone.model, model.vocabulary.tokenizer, model.section, id="odd")

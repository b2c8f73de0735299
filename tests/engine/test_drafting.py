"""Sentences out of a stream: which tokens and attention rows belong to which, and nothing shown twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mindchat.engine.drafting import SentenceStream, beginning, joined
from mindchat.events import Event, TokenDrafted
from mindchat.models.scripted import ScriptedModel
from mindchat.text.language import language
from mindchat.values import Draft, Finish, Message, Prompt, Signal, StreamItem, Text

from ..fakes import draft

PROMPT = Prompt((Message("user", (Text("?"),)),))
ALL = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})


class Counted:
    """A stream that knows how far it was pulled and whether it was closed."""

    def __init__(self, items: Iterator[StreamItem]) -> None:
        self.items, self.pulled, self.closed = items, 0, False

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> StreamItem:
        item = next(self.items)
        self.pulled += 1
        return item

    def close(self) -> None:
        self.closed = True


def stream(text: str, want: frozenset[Signal] = ALL, limit: int = 64) -> SentenceStream:
    return SentenceStream(
        ScriptedModel([text]).stream(PROMPT, want=want, max_tokens=256), language("en"), want=want, limit=limit
    )


def drain(one: SentenceStream) -> tuple[list[Draft], list[str]]:
    """All sentences, and the words as they were shown."""
    drafts, shown = [], []
    while True:
        steps, events = one.next(), list[Event]()
        while True:
            try:
                events.append(next(steps))
            except StopIteration as end:
                got: Draft | None = end.value
                break
        shown += [event.token.text for event in events if isinstance(event, TokenDrafted)]
        if got is None:
            return drafts, shown
        drafts.append(got)


TEXT = "Lang{1,0.2} was born in St. Louis. He{2,0.9} died there. So the answer is Lang."


@pytest.mark.parametrize("want", [ALL, ALL - {Signal.ATTENTION}, frozenset[Signal]()])
def test_sentences_join_to_the_text_and_every_token_is_shown_once(want: frozenset[Signal]) -> None:
    drafts, shown = drain(stream(TEXT, want))
    assert [d.text for d in drafts] == ["Lang was born in St. Louis.", " He died there.", " So the answer is Lang."]
    assert "".join(shown) == "".join(d.text for d in drafts)


def test_tokens_are_numbered_from_zero_in_each_sentence() -> None:
    drafts, _ = drain(stream(TEXT))
    assert [[t.index for t in d.tokens] for d in drafts] == [list(range(len(d.tokens))) for d in drafts]


def test_attention_is_that_of_the_sentences_own_later_tokens() -> None:
    drafts, _ = drain(stream(TEXT))
    first, second = drafts[0].received, drafts[1].received
    assert first is not None
    assert second is not None
    assert (first[0], second[0]) == (0.2, 0.9)
    assert (first[-1], second[-1]) == (0.0, 0.0), "a last token has no later one in its sentence"
    assert max(first[1:]) <= 0.1, "what the second sentence pays to the first does not count"


def test_only_the_last_sentence_carries_the_finish() -> None:
    drafts, _ = drain(stream(TEXT))
    assert [d.finish for d in drafts] == [Finish.OPEN, Finish.OPEN, Finish.EOS]


def test_a_sentence_without_end_is_cut_at_the_limit() -> None:
    drafts, shown = drain(stream("word " * 25, limit=10))
    assert [len(d.tokens) for d in drafts[:2]] == [10, 10]
    assert "".join(shown) == "".join(d.text for d in drafts)


def test_nothing_gives_nothing() -> None:
    assert drain(stream("")) == ([], [])


def test_the_model_is_not_run_ahead_of_the_sentence() -> None:
    items = Counted(ScriptedModel([TEXT]).stream(PROMPT, want=frozenset(), max_tokens=256))
    one = SentenceStream(items, language("en"), want=frozenset(), limit=64)
    list(one.next())
    assert items.pulled == 1 + 6 + 1, "prefill, the sentence's words, and the word that shows its end"
    one.close()
    assert items.closed


def test_beginning_keeps_only_whole_tokens() -> None:
    sentence = draft(("Fritz", 1.0), (" Lang", 1.0), (" died", 1.0))
    assert beginning(sentence, 10).text == "Fritz Lang"
    assert beginning(sentence, 9).text == "Fritz"
    assert beginning(sentence, 0).tokens == ()
    assert beginning(sentence, 99) == sentence


def test_joined_numbers_through_and_keeps_signals() -> None:
    both = joined(
        draft(
            ("Fritz", 1.0),
        ),
        draft(
            (" Lang", 2.0),
        ),
    )
    assert (both.text, [t.index for t in both.tokens], [t.entropy for t in both.tokens]) == (
        "Fritz Lang",
        [0, 1],
        [1.0, 2.0],
    )
    assert joined(Draft(""), draft(("a", 1.0))).text == "a"

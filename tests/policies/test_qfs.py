"""DRAGIN by hand: the score on a toy sentence, and the query that its attention picks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.models.scripted import ScriptedModel
from mindchat.policies.dragin import Dragin
from mindchat.policies.qfs import Weighted, flagged_spans, qfs, select, weighted_words
from mindchat.policies.queries import by_attention
from mindchat.ports import NEVER, Cancel
from mindchat.text.language import language
from mindchat.values import Draft, Piece, Prompt, Signal, Span, Text, Trigger, TurnState

from ..fakes import ALL, MeteredAsk, ask, config, draft

EN = language("en")
QUESTION = "Who is the mother of the director of Metropolis?"


class Hot(ScriptedModel):
    """Attends to the tokens that contain one of the given texts, and to nothing else."""

    def __init__(self, weights: dict[str, float]) -> None:
        super().__init__([], provides=ALL)
        self.weights = weights
        self.spans: list[Span] = []

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        self.spans.append(span)
        pieces = [Piece("<user>", 1.0, "template")]
        for message in prompt.messages:
            for segment in message.segments:
                assert isinstance(segment, Text)
                # tokens of three characters: words are in pieces
                pieces += [Piece(segment.text[i : i + 3], 0.0, segment.origin) for i in range(0, len(segment.text), 3)]
            pieces.append(Piece("<end>", 1.0, "template"))
        pieces += [Piece(token.text, 0.0, "reasoning") for token in draft.tokens[: span.start]]
        return [
            Piece(p.text, max((w for key, w in self.weights.items() if key in p.text), default=p.weight), p.origin)
            for p in pieces
        ]


def hot(weights: dict[str, float]) -> MeteredAsk:
    return MeteredAsk(Hot(weights), NEVER, 0)


SENTENCE = draft(
    (" Fritz", 0.1),
    (" Lang", 0.1),
    ("'s", 0.1),
    (" mother", 0.1),
    (" was", 0.1),
    (" Paula", 5.0),
    (" Schle", 4.0),
    ("singer", 2.0),
    (".", 0.1),
)
PAULA = SENTENCE.text.index("Paula")


def test_one_hot_cell_yields_exactly_that_word_and_no_flagged_word() -> None:
    query = qfs(SENTENCE, [PAULA], TurnState(1, QUESTION), hot({"tro": 0.9, "Paula": 0.8}), EN, 1)
    assert (query.text, query.by) == ("Metropolis", "attention")


def test_flagged_words_are_left_out_even_when_they_are_attended_to() -> None:
    flagged = [PAULA, SENTENCE.text.index("Schle")]
    query = qfs(
        SENTENCE, flagged, TurnState(1, QUESTION), hot({"Lang": 0.5, "Paula": 0.9, "Schle": 0.9, "sing": 0.9}), EN, 3
    )
    words = query.text.split()
    assert "Lang's" in words
    assert not {"Paula", "Schlesinger"} & set(words)


def test_the_query_is_in_text_order_and_has_at_most_n_words() -> None:
    query = qfs(
        SENTENCE,
        [PAULA],
        TurnState(1, QUESTION, accepted="Metropolis is German."),
        hot({"Lang": 0.9, "erm": 0.5, "oth": 0.7, "rec": 0.1}),
        EN,
        3,
    )
    assert query.text.split() == ["mother", "German", "Lang's"]


def test_no_template_token_gives_a_word() -> None:
    words = weighted_words(
        [Piece("<user>", 1.0, "template"), Piece("Lang", 0.1, "question"), Piece("assistant", 1.0, "template")]
    )
    assert words == [Weighted("Lang", 0.1)]


def test_the_weight_of_a_word_is_the_sum_over_its_tokens() -> None:
    words = weighted_words(
        [
            Piece("Met", 0.1, "question"),
            Piece("ro", 0.2, "question"),
            Piece("polis", 0.3, "question"),
            Piece(" is", 0.5, "question"),
        ]
    )
    assert [(w.text, w.weight) for w in words] == [("Metropolis", pytest.approx(0.6)), ("is", 0.5)]


def test_words_do_not_run_together_across_messages() -> None:
    words = weighted_words(
        [Piece("Lang", 0.1, "question"), Piece("|", 0.0, "template"), Piece("uage", 0.1, "reasoning")]
    )
    assert [w.text for w in words] == ["Lang", "uage"]


def test_neighbouring_flagged_words_cost_one_call() -> None:
    asked = hot({"Lang": 1.0})
    qfs(SENTENCE, [PAULA, SENTENCE.text.index("Schle")], TurnState(1, QUESTION), asked, EN, 5)
    model = asked._model
    assert isinstance(model, Hot)
    assert model.spans == [Span(5, 8)]
    assert flagged_spans(SENTENCE, [1, PAULA]) == [Span(0, 1), Span(5, 6)]


def test_without_any_content_word_the_question_is_the_query() -> None:
    sentence = draft(
        ("It", 5.0),
    )
    query = qfs(sentence, [0], TurnState(1, "Who was it?"), hot({}), EN, 5)
    assert (query.text, query.by) == ("Who was it?", "question")


words = st.lists(
    st.builds(Weighted, st.sampled_from(["Lang", "the", "Vienna", "lang", ".", "1890", "film"]), st.floats(0, 1)),
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(words, st.integers(1, 5))
def test_selection_is_a_subset_in_order_without_repeats(made: list[Weighted], n: int) -> None:
    chosen = select(made, ["Film"], EN, n)
    assert len(chosen) <= n
    assert len({word.casefold() for word in chosen}) == len(chosen)
    assert not {"film", "the", "."} & {word.casefold() for word in chosen}
    firsts = [next(i for i, w in enumerate(made) if w.text.casefold() == c.casefold()) for c in chosen]
    assert firsts == sorted(firsts)


# ── the policy
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_scores_of_dragin_by_hand() -> None:
    sentence = draft(("Lang", 0.5, 0.1), (" died", 2.0, 0.3), (" there", 9.0, 0.2))
    verdict = Dragin(config("dragin.theta=2.9")).when(sentence, TurnState(0, QUESTION), ask())
    # mean attention of the three words: (0.1 + 0.3 + 0.2) / 3, the last word's being the mean of the others
    assert [w.score for w in verdict.words] == pytest.approx([0.5 * 0.5, 2.0 * 1.5, 0.0])
    assert verdict.threshold == 2.9
    assert verdict.trigger is not None
    assert verdict.trigger.word == "died"


def test_words_of_the_question_may_trigger_in_dragin() -> None:
    sentence = draft(("Metropolis", 5.0, 0.2), (" is", 0.1, 0.1), (" old", 0.1, 0.1))
    verdict = Dragin(config()).when(sentence, TurnState(0, QUESTION), ask())
    assert verdict.trigger is not None
    assert not verdict.words[0].anchor


def test_a_sentence_where_only_function_words_exceed_the_threshold_does_not_retrieve() -> None:
    sentence = draft((" The", 9.0, 0.5), (" city", 0.1, 0.1), (" was", 9.0, 0.5), (" it", 9.0, 0.5))
    assert Dragin(config()).when(sentence, TurnState(0, QUESTION), ask()).trigger is None


def test_the_sentence_written_after_a_search_is_accepted_and_the_next_one_judged() -> None:
    policy, hop = Dragin(config()), TurnState(1, QUESTION)
    flagged = policy.when(SENTENCE, hop, ask())
    assert flagged.trigger is not None
    policy.what(flagged.trigger, SENTENCE, [], (), hop, hot({"Lang": 1.0}))
    again = policy.when(SENTENCE, hop, ask())
    assert again.trigger is None
    assert "accepted" in again.formula
    assert again.words == flagged.words, "every factor is told all the same"
    assert policy.when(SENTENCE, TurnState(1, QUESTION, sentences=("one",)), ask()).trigger is not None


def test_the_attention_writer_falls_back_to_entities_without_attention() -> None:
    deaf = ask(provides=frozenset({Signal.ENTROPY}))
    trigger = Trigger("Paula", PAULA, 1.0, 0.5)
    assert by_attention(config(), trigger, SENTENCE, [], (), TurnState(1, QUESTION), deaf).by == "entities"
    assert (
        by_attention(config(), trigger, SENTENCE, [], (), TurnState(1, QUESTION), hot({"Lang": 1.0})).by == "attention"
    )

"""RIND by hand: every factor, the threshold, what can trigger and what cannot."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mindchat.config import RindSection
from mindchat.events import SentenceJudged
from mindchat.policies.rind import FORMULAS, judge, measure, score, threshold
from mindchat.text.language import language
from mindchat.values import Draft, Verdict, WordScore

from ..fakes import draft, of, run

EN = language("en")
PLAIN = RindSection(min_words=1)


def word(entropy: float, attention: float, *, content: bool = True) -> WordScore:
    return WordScore("w", 0, 1, entropy, attention, attention, content, entropy * attention)


def by_word(verdict: Verdict) -> dict[str, WordScore]:
    return {w.text: w for w in verdict.words}


def test_theta_of_the_unit_vector() -> None:
    theta, terms = threshold([word(1, 0.2), word(3, 0.4)], RindSection(alpha=0.5, beta=1.0, min_words=1))
    assert theta == pytest.approx(1.3)
    assert dict(terms) == pytest.approx({"alpha": 0.5, "mean_entropy": 2.0, "beta": 1.0, "mean_attention": 0.3})


def test_scores_of_the_unit_vector() -> None:
    # the third word only gives the second one a later token; its own attention is replaced by the mean, so it does not
    # change it
    sentence = draft(("Lyon", 2.0, 0.1), (" Paris", 1.0, 0.3), (" Rome", 0.0, 0.2))
    scored = score(measure(sentence, "", EN, anchors=False), "sentence")
    assert [w.attention for w in scored[:2]] == pytest.approx([0.5, 1.5])
    assert [w.score for w in scored[:2]] == pytest.approx([1.0, 1.5])


def test_a_word_of_several_tokens_has_mean_entropy_and_maximum_attention() -> None:
    sentence = draft(("Tré", 3.0, 0.1), ("mo", 1.0, 0.4), ("ille", 0.5, 0.2), (" died", 0.0, 0.1), (" there", 0.0, 0.1))
    first = measure(sentence, "", EN, anchors=False)[0]
    assert (first.word.text, first.entropy, first.attention) == ("Trémoille", pytest.approx(1.5), pytest.approx(0.4))


def test_the_last_word_has_the_mean_attention_of_the_others() -> None:
    sentence = draft(("Fritz", 1.0, 0.2), (" Lang", 1.0, 0.4), (" Vienna", 2.0, 0.9))
    assert measure(sentence, "", EN, anchors=False)[-1].attention == pytest.approx(0.3)


def test_raw_attention_gives_smaller_scores_than_normalised() -> None:
    sentence = draft(("Lang", 3.0, 0.1), (" visited", 0.1, 0.1), (" Vienna", 0.1, 0.1), (" twice", 0.1, 0.1))
    raw = judge(sentence, "", EN, PLAIN, attention="raw")
    normal = judge(sentence, "", EN, PLAIN, attention="sentence")
    assert by_word(raw)["Lang"].score == pytest.approx(0.3)
    assert by_word(normal)["Lang"].score == pytest.approx(3.0)
    assert (raw.formula.partition(";")[0], normal.formula.partition(";")[0]) == (FORMULAS["raw"], FORMULAS["sentence"])


def test_without_attention_the_score_is_the_entropy_and_the_formula_says_so() -> None:
    bare = replace(draft(("Lang", 2.0), (" visited", 0.5), (" Vienna", 0.5)), received=None)
    verdict = judge(bare, "", EN, PLAIN, attention="none")
    assert [w.score for w in verdict.words] == pytest.approx([2.0, 0.5, 0.5])
    assert [w.attention_raw for w in verdict.words] == [None, None, None]
    assert "not available" in verdict.formula


@pytest.mark.parametrize("attention", ["raw", "sentence", "none"])
def test_a_sentence_in_which_only_function_words_are_unsure_does_not_trigger(attention: str) -> None:
    sentence = draft(
        (" The", 9.0, 0.9),
        (" capital", 0.1, 0.1),
        (" of", 9.0, 0.9),
        (" France", 0.1, 0.1),
        (" is", 9.0, 0.9),
        (" the", 9.0, 0.9),
        (".", 9.0, 0.9),
    )
    verdict = judge(sentence, "", EN, RindSection(), attention=attention)
    assert verdict.trigger is None
    assert all(w.score == 0 for w in verdict.words if not w.content)
    assert all(math.isfinite(value) for w in verdict.words for value in (w.score, w.attention or 0.0, w.entropy or 0.0))


def test_a_sentence_of_function_words_alone_has_no_trigger_and_no_nan() -> None:
    verdict = judge(
        draft((" It", 5.0), (" is", 5.0), (" so", 5.0), (".", 5.0)), "", EN, RindSection(), attention="sentence"
    )
    assert verdict.trigger is None
    assert verdict.threshold == RindSection().fixed


def test_an_anchor_never_triggers_but_counts_in_the_threshold_and_for_the_fewest_words() -> None:
    cells = (
        ("Metropolis", 9.0, 0.5),
        (" was", 0.1, 0.1),
        (" directed", 0.1, 0.1),
        (" by", 0.1, 0.1),
        (" Fritz", 0.4, 0.3),
        (" Lang", 0.1, 0.1),
        (".", 0.1),
    )
    verdict = judge(draft(*cells), "Who directed Metropolis?", EN, RindSection(), attention="sentence")
    words = by_word(verdict)
    assert (words["Metropolis"].anchor, words["directed"].anchor, words["Fritz"].anchor) == (True, True, False)
    assert (words["Metropolis"].content, words["Metropolis"].score) == (True, 0.0)
    # four content words, two of them anchors: enough for Eq 3
    assert dict(verdict.terms)["mean_entropy"] == pytest.approx((9.0 + 0.1 + 0.4 + 0.1) / 4)
    assert verdict.trigger is None
    assert judge(draft(*cells), "", EN, RindSection(), attention="sentence").trigger is not None


def test_a_word_counts_as_anchor_only_if_all_its_parts_stand_in_the_question() -> None:
    sentence = draft(("Lang's", 1.0), (" mother-in-law", 1.0), (" Lang", 1.0), (" left", 1.0))
    words = by_word(judge(sentence, "Who was Fritz Lang?", EN, RindSection(), attention="none"))
    assert words["Lang"].anchor
    assert not words["mother-in-law"].anchor


def test_few_content_words_fall_back_to_the_fixed_threshold() -> None:
    sentence = draft(("Vienna", 5.0, 0.1), (" is", 0.1, 0.1), (" it", 0.1, 0.1))
    verdict = judge(sentence, "", EN, RindSection(min_words=2, fixed=1.0), attention="none")
    assert verdict.terms == (("fixed", 1.0),)
    assert verdict.trigger is not None
    assert judge(sentence, "", EN, RindSection(min_words=1), attention="none").trigger is None, (
        "Eq 3 over one word cannot trigger"
    )


def test_the_running_window_takes_the_means_over_earlier_words_too() -> None:
    sentence = draft(("Lang", 1.0), (" visited", 1.0), (" Vienna", 1.0), (" twice", 1.0))
    earlier = [word(5.0, 1.0), word(7.0, 1.0, content=False)]
    verdict = judge(sentence, "", EN, RindSection(alpha=1, beta=0), attention="none", earlier=earlier)
    assert verdict.threshold == pytest.approx((5 + 4 * 1.0) / 5)


def test_the_trigger_is_the_first_word_above_the_threshold() -> None:
    sentence = draft(("Lang", 0.1), (" visited", 2.0), (" Vienna", 3.0), (" twice", 0.1))
    verdict = judge(sentence, "", EN, RindSection(threshold="fixed", fixed=1.5), attention="none")
    assert verdict.trigger is not None
    assert (verdict.trigger.word, verdict.trigger.start, verdict.trigger.score) == ("visited", 5, 2.0)


def test_a_score_equal_to_the_threshold_does_not_trigger() -> None:
    sentence = draft(("Lang", 1.5), (" visited", 0.1), (" Vienna", 0.1))
    assert judge(sentence, "", EN, RindSection(threshold="fixed", fixed=1.5), attention="none").trigger is None


@pytest.mark.parametrize(("length", "text"), [(5, "Lang was born in Vienna."), (15, "Lang " * 15), (40, "Lang " * 40)])
def test_flat_signals_do_not_trigger_at_any_length(length: int, text: str) -> None:
    cells = [(f" {part}", 0.3, 0.1) for part in text.split()]
    assert judge(draft(*cells), "", EN, RindSection(), attention="sentence").trigger is None, f"{length} words"


def recomputed(verdict: Verdict) -> tuple[float, list[float]]:
    """θ and S from nothing but the printed factors."""
    terms = dict(verdict.terms)
    theta = (
        terms["fixed"]
        if "fixed" in terms
        else terms["alpha"] * terms["mean_entropy"] + terms["beta"] * terms["mean_attention"]
    )
    return theta, [(w.entropy or 0) * (w.attention or 0) * (w.content and not w.anchor) for w in verdict.words]


cells = st.lists(
    st.tuples(
        st.sampled_from([" Lang", " the", " Vienna", ".", " 1890", " film", ","]),
        st.floats(0, 12),
        st.floats(0, 1, allow_subnormal=False),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(cells, st.sampled_from(["raw", "sentence", "none"]), st.sampled_from(["dynamic", "fixed"]))
def test_theta_and_scores_recompute_from_the_factors(
    made: list[tuple[str, float, float]], attention: str, kind: str
) -> None:
    options = RindSection(threshold="fixed" if kind == "fixed" else "dynamic")
    verdict = judge(draft(*made), "Who made the film?", EN, options, attention=attention)
    theta, scores = recomputed(verdict)
    assert verdict.threshold == pytest.approx(theta, abs=1e-6)
    assert [w.score for w in verdict.words] == pytest.approx(scores, abs=1e-6)
    assert (verdict.trigger is not None) == any(s > theta for s in scores)


def test_the_event_holds_every_factor_also_without_a_trigger() -> None:
    tape = ["Metropolis was directed by Fritz Lang.{0.2} So the answer is Lang.", "Fritz Lang"]
    events = run("Who directed Metropolis?", tape, "engine.policy=mind")
    judged = of(events, SentenceJudged)
    assert len(judged) == 2
    for event in judged:
        assert event.verdict.trigger is None
        theta, scores = recomputed(event.verdict)
        assert event.verdict.threshold == pytest.approx(theta, abs=1e-6)
        assert [w.score for w in event.verdict.words] == pytest.approx(scores, abs=1e-6)


def test_an_empty_draft_is_judged_without_an_error() -> None:
    assert judge(Draft(""), "", EN, RindSection(), attention="sentence").trigger is None


def test_the_beginning_of_a_rewritten_sentence_counts_in_its_threshold() -> None:
    """Else the rest of a sentence, short as it is, would fall back to the fixed threshold after every search."""
    tape = [
        "Old records tell whether Otto{9,0.9} Droid lived there.",
        " Otto",
        " Where was Fritz Lang born?",
        " Hans Zimmer lived.",
        "Hans",
    ]
    events = run("Who lived in the tower?", tape, "engine.filter=none", retriever=None)
    first, second = of(events, SentenceJudged)[:2]
    assert first.verdict.trigger is not None
    begun = [w for w in first.verdict.words if w.end <= first.verdict.trigger.start and w.content]
    counted = [*begun, *(w for w in second.verdict.words if w.content)]
    assert len(counted) >= 4 > len(counted) - len(begun)
    assert dict(second.verdict.terms)["mean_entropy"] == pytest.approx(
        sum(w.entropy or 0 for w in counted) / len(counted)
    )

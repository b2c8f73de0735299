from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.lab.evals import drop, metrics
from mindchat.lab.evals.examples import Gold
from mindchat.lab.evals.metrics import contains, dragin_strategyqa, exact, normalise, polar_word, score, token_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S.", "us"),
        ("a well-known  Thing", "wellknown thing"),
        ("1,000", "1000"),
        ("An apple, the pear", "apple pear"),
        ("theatre another", "theatre another"),
        ("“Quoted” – Café", "“quoted” – café"),
        ("", ""),
        ("The", ""),
    ],
)
def test_squad_normalisation(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_f1_counts_tokens_with_multiplicity() -> None:
    assert token_f1("new new york", "new york", polar=True) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
    assert token_f1("Paris", "London", polar=True) == 0.0


def test_yes_no_rule_of_hotpotqa_and_its_absence_in_musique() -> None:
    assert token_f1("yes it is", "yes", polar=True) == 0.0
    assert token_f1("yes", "yes it is", polar=True) == 0.0
    assert token_f1("Yes.", "yes", polar=True) == 1.0
    assert token_f1("noanswer", "no", polar=True) == 0.0
    assert token_f1("yes", "yes it is", polar=False) == pytest.approx(0.5)


def test_two_empty_strings() -> None:
    assert token_f1("", "the", polar=False) == 1.0
    assert token_f1("", "", polar=True) == 0.0
    assert token_f1("", "x", polar=False) == 0.0


def test_aliases_take_the_best_of_em_and_f1_separately() -> None:
    gold = Gold(("Washington", "George Washington the first"))
    found = score("musique", "George Washington first", gold)
    assert found["em"] == 1.0
    found = score("musique", "General George Washington first", gold)
    assert found["em"] == 0.0
    assert found["f1"] == pytest.approx(2 * (3 / 4) * 1 / (3 / 4 + 1))


def test_demonym_counts_officially_but_not_for_dragin() -> None:
    found = score("2wikimultihopqa", "American", Gold(("United States",), demonyms=("American",)))
    assert (found["em"], found["em_dragin"]) == (1.0, 0.0)
    assert (found["f1"], found["f1_dragin"]) == (1.0, 0.0)


def test_open_variant_uses_the_rule_of_its_dataset() -> None:
    assert "em_dragin" in score("2wikimultihopqa_open", "x", Gold(("x",)))


@pytest.mark.parametrize(
    ("text", "word"),
    [("Yes, because", "yes"), ("no", "no"), ("True", "yes"), ("Nothing", ""), ("", ""), ("The yes", "yes")],
)
def test_polar_word(text: str, word: str) -> None:
    assert polar_word(text) == word


def test_strategyqa_is_accuracy() -> None:
    assert score("strategyqa", "Yes, they do", Gold(("yes",)))["accuracy"] == 1.0
    assert score("strategyqa", "maybe", Gold(("no",)))["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("text", "read"),
    [("So the answer is yes.", "yes"), ("the answer is Yesterday", "yes"), ("the answer is maybe", "no"), ("Yes.", "")],
)
def test_dragin_reading_of_strategyqa(text: str, read: str) -> None:
    assert dragin_strategyqa(text) == read


def test_strategyqa_both_ways() -> None:
    found = score("strategyqa", "yes", Gold(("yes",)), reply="They are old. So the answer is yes.")
    assert (found["em"], found["em_dragin"]) == (1.0, 1.0)
    assert score("strategyqa", "yes", Gold(("yes",)), reply="Yes.")["em_dragin"] == 0.0


def test_scifact_labels() -> None:
    assert score("scifact", "SUPPORTS the claim", Gold(("SUPPORT",)))["em"] == 1.0
    assert score("scifact", "Refuted", Gold(("CONTRADICT",)))["em"] == 1.0
    assert score("scifact", "unclear", Gold(("CONTRADICT",)))["em"] == 0.0


def test_iirc_two_spans_one_given() -> None:
    gold = Gold(("Paris", "London"))
    found = score("iirc", "Paris", gold)
    assert found["em"] == 1.0
    assert found["em_set"] == 0.0
    assert found["f1_set"] == 0.5
    both = score("iirc", "London and Paris", gold)
    assert both["em"] == 0.0
    assert both["em_set"] == 1.0


@pytest.mark.parametrize(
    ("guess", "golds", "expected"),
    [
        (["38"], ["38.0"], (1.0, 1.0)),
        (["1,000"], ["1000"], (1.0, 1.0)),
        (["38 years"], ["39 years"], (0.0, 0.0)),
        (["38 years"], ["38"], (0.0, 0.67)),
        (["well-known man"], ["the well known man"], (1.0, 1.0)),
        (["a", "b"], ["b"], (0.0, 0.5)),
        (["x y", "z"], ["z", "x"], (0.0, 0.83)),
    ],
)
def test_drop_alignment(guess: list[str], golds: list[str], expected: tuple[float, float]) -> None:
    assert drop.score_spans(guess, golds) == pytest.approx(expected)


def test_single_span_with_a_comma_is_not_torn() -> None:
    assert drop.score("Washington, D.C.", ["Washington, D.C."]) == (1.0, 1.0)
    assert drop.score("", ["x"]) == (0.0, 0.0)


def test_unanswerable_questions_want_a_refusal() -> None:
    gold = Gold(("whatever",), answerable=False)
    assert score("musique", "whatever", gold)["em"] == 0.0
    assert score("musique", "cannot be determined", gold)["em"] == 1.0
    assert score("musique", "x", gold, abstained=True)["f1"] == 1.0


def test_contained_answer_needs_whole_words() -> None:
    assert contains("It was Paris, France", "Paris") == 1.0
    assert contains("Parisian", "Paris") == 0.0
    assert contains("x", "the") == 0.0


@given(st.text(), st.text())
def test_ranges_and_symmetry(a: str, b: str) -> None:
    for polar in (True, False):
        f1 = token_f1(a, b, polar=polar)
        assert 0.0 <= f1 <= 1.0
        assert f1 == pytest.approx(token_f1(b, a, polar=polar))
    assert exact(a, a) == 1.0
    if exact(a, b) and normalise(a):
        assert token_f1(a, b, polar=True) == 1.0


@given(st.lists(st.sampled_from(["red", "blue", "12", "green hill"]), min_size=1, max_size=5))
def test_set_scores_do_not_depend_on_order(spans: list[str]) -> None:
    assert drop.score_spans(spans, list(reversed(spans))) == (1.0, 1.0)


@pytest.mark.parametrize("dataset", [*metrics.RULES, "demo"])
def test_every_rule_gives_the_primary_scores(dataset: str) -> None:
    found = score(dataset, "yes", Gold(("yes",)))
    assert {"em", "f1", "accuracy"} <= found.keys()

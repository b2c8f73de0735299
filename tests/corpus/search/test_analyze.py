from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.corpus.search.analyze import MAX_TERM, STEMMERS, Analyzer
from mindchat.text.folding import fold


def terms(text: str, language: str = "en") -> list[str]:
    return [term.decode() for term in Analyzer(language).terms(text)]


def test_words_are_folded_stemmed_and_stop_words_dropped():
    assert terms("The Running of Dogs") == ["run", "dog"]


def test_accents_and_compatibility_forms_fold_alike():
    assert terms("La Trémoille") == terms("la TREMOILLE")
    assert terms("ﬁnance ｆｕｌｌ") == terms("finance full")
    assert terms("Trémoille") == terms("Tre\u0301moille")


def test_scripts_without_spaces_become_bigrams():
    assert terms("東京都庁", "ja") == ["東京", "京都", "都庁"]
    assert terms("北", "zh") == ["北"]
    assert terms("Sony東京", "ja") == ["sony", "東京"]


def test_voicing_marks_and_indic_vowels_stay():
    assert fold("が") == "が"
    assert terms("हिन्दी", "hi") == ["हिन्दी"]


def test_an_unknown_language_only_folds():
    assert terms("The Running", "tlh") == ["the", "running"]


@pytest.mark.parametrize("language", sorted(STEMMERS))
def test_every_named_stemmer_exists(language):
    assert Analyzer(language).terms("Informationen 12")


def test_apostrophes_underscores_and_digits():
    assert terms("Poe's snake_case 1764–1839") == ["poe", "snake", "case", "1764", "1839"]


@given(st.text())
def test_any_text_has_terms_that_are_short_utf8(text):
    for term in Analyzer("en").terms(text):
        assert 0 < len(term.decode("utf-8")) <= MAX_TERM


@given(st.text())
def test_counts_agree_with_terms(text):
    analyzer = Analyzer("de")
    assert analyzer.counts(text).total() == len(analyzer.terms(text))

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.corpus.chunk import Chunker, count_words
from mindchat.values import Chunk


def split(text: str, words: int = 20) -> list[str]:
    return [text[chunk.start : chunk.end] for chunk in Chunker(words).split(text)]


def test_short_text_is_one_passage_without_outer_space():
    assert split("\n  One. Two.\n\n") == ["One. Two."]


def test_sentences_are_packed_up_to_the_budget():
    text = " ".join(f"Sentence number {n} has six words." for n in range(9))
    pieces = split(text, 20)
    assert [count_words(piece) for piece in pieces] == [18, 18, 18]
    assert all(piece.endswith(".") for piece in pieces)


def test_a_paragraph_that_does_not_fit_opens_a_new_passage():
    first, second = "One two three four five six seven eight nine ten eleven twelve.", "Uno dos tres cuatro cinco seis siete ocho nueve. Diez once."
    assert split(f"{first}\n\n{second}", 20) == [first, second]


def test_abbreviations_and_initials_do_not_end_a_sentence():
    sentence = "Dr. J. R. Smith met Mrs. Poe at No. 12 in the U.S. Embassy then."
    assert split(f"{sentence} Then {sentence}", 20) == [sentence, f"Then {sentence}"]


def test_cjk_sentences_split_without_spaces():
    assert split("東京は日本の首都である。" * 4, 20) == ["東京は日本の首都である。" * 3, "東京は日本の首都である。"]


def test_a_word_without_end_is_cut():
    pieces = split("x" * 10_000, 20)
    assert "".join(pieces) == "x" * 10_000
    assert max(map(len, pieces)) <= 16 * 20


def test_passages_never_cross_the_readers_boundaries():
    text = "Alpha beta.Gamma delta."
    chunks = Chunker(20).split(text, [Chunk(0, 11, page=1, heading="A"), Chunk(11, 23, page=2, heading="B")])
    assert [(text[c.start : c.end], c.page, c.heading) for c in chunks] == [("Alpha beta.", 1, "A"), ("Gamma delta.", 2, "B")]


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("aB1 .\n\t。日!?é\u200b"), max_size=600), st.integers(20, 40))
def test_passages_cover_every_visible_character_once_in_order(text, words):
    chunks = Chunker(words).split(text)
    assert "".join("".join(text[c.start : c.end].split()) for c in chunks) == "".join(text.split())
    for chunk in chunks:
        piece = text[chunk.start : chunk.end]
        assert piece == piece.strip() != ""
        assert count_words(piece) <= words
    assert all(a.end <= b.start for a, b in pairwise(chunks))

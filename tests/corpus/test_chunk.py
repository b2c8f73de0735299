from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.corpus.chunk import Chunker, _Ahead, count_words
from mindchat.errors import Interrupted
from mindchat.ports import Cancel
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
    first, second = (
        "One two three four five six seven eight nine ten eleven twelve.",
        "Uno dos tres cuatro cinco seis siete ocho nueve. Diez once.",
    )
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
    assert [(text[c.start : c.end], c.page, c.heading) for c in chunks] == [
        ("Alpha beta.", 1, "A"),
        ("Gamma delta.", 2, "B"),
    ]


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


LONG = {
    "200,000 rows": "\n".join(f"{n},{n * 7},value" for n in range(200_000)),
    "empty lines": "\n" * 3_000_000 + "end",
    "empty lines with blanks": "\n \t" * 1_000_000 + "end",
    "one line": "word " * 600_000,
    "full stops": "." * 2_000_000,
    "one word": "x" * 2_000_000,
    "sentences": "He was here. " * 150_000,
    "abbreviations": "Mr. " * 400_000,
    "paragraphs of a word": "a\n\n" * 400_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_time_and_memory_are_linear(kind: str) -> None:
    """A quadratic step takes minutes for these; what is held beside the result is small."""
    import tracemalloc

    text = LONG[kind]
    began = time.perf_counter()
    found = Chunker().split(text)
    seconds = time.perf_counter() - began
    assert found[-1].end == len(text.rstrip())
    assert seconds < 30
    tracemalloc.start()
    for _ in Chunker()._pack(_Ahead(Chunker()._units(text[:200_000], 0, len(text[:200_000])))):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_cutting_can_be_left() -> None:
    wish = Cancel()
    calls = 0

    def count(piece: str) -> int:
        nonlocal calls
        calls += 1
        if calls == 1000:
            wish.set()
        return count_words(piece)

    with pytest.raises(Interrupted):
        Chunker(20, count).split("He was here, and there. " * 100_000, None, wish)
    assert calls < 1100

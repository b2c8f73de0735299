"""Text primitives agree wherever they are used: one folding, one rule for sentence ends."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mindchat
from mindchat.corpus.search.analyze import Analyzer
from mindchat.engine.answering import locate
from mindchat.text.folding import find_all, fold, folded_with_offsets
from mindchat.text.language import language

PACKAGE = Path(mindchat.__file__).parent
NAMES = [
    "Łódź",
    "Żuławski",
    "Ørsted",
    "Đorđević",
    "Þingvellir",
    "Æsop",
    "Cœur",
    "İstanbul",
    "ガンダム",
    "カ\u3099ンタ\u3099ム",
    "ｶﾞﾝﾀﾞﾑ",
    "Ωmega",
    "Straße",
    "naïve",
    "שָׁלוֹם",
    "ÅNGSTRÖM",
    "ﬁn",
]


@pytest.mark.parametrize("name", NAMES)
def test_memory_index_and_citations_fold_alike(name: str) -> None:
    text = f"It says: {name}, and more."
    (start, end, _), *_ = find_all(text, fold(name))
    assert locate(fold(name), text) == (start, end) == locate(name, text)
    assert text[start:end] == name
    analyzer = Analyzer("xx")
    assert analyzer.terms(name) == analyzer.terms(fold(name)) != []
    assert folded_with_offsets(name)[0] == fold(name)


@pytest.mark.parametrize("module", ["unicodedata"])
def test_nothing_else_folds(module: str) -> None:
    """Whoever imports unicodedata folds, or has a reason."""
    allowed = {
        "text/folding.py": "the one folding",
        "word_signals.py": "kinds of characters",
        "text/clean.py": "kinds of characters",
    }
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import) and any(alias.name == module for alias in node.names)
    }
    assert found - set(allowed) == set()


SENTENCES = [
    ("Rev. King spoke. He left.", ["Rev. King spoke.", "He left."]),
    ("J. R. Smith won 3.5 points. Then he slept.", ["J. R. Smith won 3.5 points.", "Then he slept."]),
    ("“Is it?” she asked. “Yes!” He ran…", ["“Is it?” she asked.", "“Yes!”", "He ran…"]),
    ("First line\nsecond line. Third", ["First line", "second line.", "Third"]),
    ("東京です。大阪です！終わり", ["東京です。", "大阪です！", "終わり"]),
    ("He came (in Jan. 1920) to St. Louis, Mo. and stayed.", ["He came (in Jan. 1920) to St. Louis, Mo. and stayed."]),
    ('No. 5 is e.g. here. "It is." Done.', ["No. 5 is e.g. here.", '"It is."', "Done."]),
    ("", []),
    ("  \n ", []),
]


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_sentence_ends(text: str, expected: list[str]) -> None:
    words = language("en")
    assert [text[span.start : span.end] for span in words.sentence_spans(text)] == expected
    assert "".join(words.sentences(text)) == text
    streamed, rest = [], text
    while rest and (end := words.first_end(rest, closed=True)) is not None:
        streamed.append(rest[:end].strip())
        rest = rest[end:]
    assert [sentence for sentence in streamed if sentence] == expected


def test_sentences_take_linear_time() -> None:
    """A quadratic rule would need minutes for these."""
    for text in ("a." * 400_000, "." * 800_000, "x \n" * 300_000, "Mr. " * 200_000):
        assert sum(1 for _ in language("en").sentence_spans(text)) > 0

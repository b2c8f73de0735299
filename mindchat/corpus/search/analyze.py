"""From text to index terms, the same for passages and queries.

Owns: word boundaries, stop words, stemming, n-grams for scripts without spaces. Does not own: folding (text.folding),
scoring, storage. A query is only ever analysed here, never parsed: no character of it has a meaning as syntax.
Sources: Snowball stemmers (PyStemmer); stop lists as shipped with Whoosh.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from mindchat.text.folding import fold

VERSION = 2
"""Part of every index manifest: an index built by another version is rebuilt."""
MAX_TERM = 64
"""Characters of the longest term; the rest of a longer word is ignored (base64, hashes)."""
_CACHE_LIMIT = 400_000

STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "en": "english", "es": "spanish", "fi": "finnish", "fr": "french", "hu": "hungarian",
    "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""Language code → Snowball algorithm. Other codes index words as they are, only folded."""

WORD = re.compile(
    r"[^\W_]+(?:[\u0900-\u0963\u0966-\u0dff]+[^\W_]*)*"
)  # Indic vowel signs are no word characters to `re`
_PLAIN = re.compile(r"[^\W_]+")
_ASCII = re.compile("[a-z0-9]+")
_NGRAM = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003134f"
RUNS = re.compile(f"[{_NGRAM}]+|[^{_NGRAM}]+")
HAS_NGRAM = re.compile(f"[{_NGRAM}]")


def unspaced(text: str) -> bool:
    """Whether something of it belongs to a script that puts no spaces between words."""
    return HAS_NGRAM.search(text) is not None


class Analyzer:
    """Terms of one language. Instances are cheap to make and keep a cache of stems; not shared between threads while
    indexing.
    """

    def __init__(self, language: str = "en") -> None:
        self.language = language
        self._stops, self._stemmer = _resources(language)
        self._known = _Known(self._term)

    def terms(self, text: str) -> list[bytes]:
        """UTF-8 terms in text order, stop words left out; [] if nothing is searchable."""
        return list(filter(None, map(self._known.__getitem__, _words(text))))

    def words(self, text: str) -> list[tuple[str, list[bytes]]]:
        """(word as it stands, its terms) of each searchable word, in text order without repeats."""
        return [(word, terms) for word in dict.fromkeys(_PLAIN.findall(text)) if (terms := self.terms(word))]

    def searches(self, word: str) -> bool:
        """Whether one folded word is a term, not a stop word."""
        return bool(self._known[word])

    def counts(self, text: str) -> Counter[bytes]:
        """How often each term stands in the text."""
        return Counter(filter(None, map(self._known.__getitem__, _words(text))))

    def _term(self, word: str) -> bytes:
        stop, short = word in self._stops, word[:MAX_TERM]
        term = "" if stop else self._stemmer.stemWord(short) if self._stemmer else short
        # a lone surrogate cannot be written as UTF-8; such a word simply has no term
        return term.encode("utf-8", "ignore")


class _Known(dict[str, bytes]):
    """The terms of words that were met; b"" for those that are not searched."""

    def __init__(self, find: Callable[[str], bytes]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, word: str) -> bytes:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        self[word] = term = self._find(word)
        return term


def _words(text: str) -> list[str]:
    """The folded words of a text; of scripts without spaces, their pieces."""
    folded = fold(text)
    if folded.isascii():
        return _ASCII.findall(folded)
    words: list[str] = WORD.findall(folded)
    return [piece for word in words for piece in _pieces(word)] if HAS_NGRAM.search(folded) else words


def _pieces(word: str) -> Sequence[str]:
    """Overlapping bigrams for runs of a script without spaces, other runs whole."""
    pieces: list[str] = []
    for run in RUNS.findall(word):
        if len(run) > 1 and HAS_NGRAM.match(run):
            pieces += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            pieces.append(run)
    return pieces


def _resources(language: str) -> tuple[frozenset[str], Any]:
    """(stop words, stemmer or None) of a language code; both empty for a language we have nothing for."""
    if language not in STEMMERS:
        return frozenset(), None
    import Stemmer
    from whoosh.lang.stopwords import stoplists

    words = stoplists.get(language, frozenset())
    pieces = {piece for word in words for piece in WORD.findall(fold(word))}
    return frozenset(pieces | {"s", "t"} if language == "en" else pieces), Stemmer.Stemmer(STEMMERS[language], 0)

"""One folding for texts, names and queries, so that "zulawski" finds "Żuławski".

Owns: fold(), names' normal form, FTS text and FTS queries, and finding folded text at exact offsets. Does not own:
storage. Folding: NFKC, case folded, Latin accents stripped, letters without decomposition mapped (ł→l, ø→o), dashes and
quotes unified, white space collapsed.
"""

from __future__ import annotations

import re
import unicodedata

_LETTERS = {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ı": "i", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h", "ŧ": "t"}
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670]")
"""Accents of alphabets and vowel points; voicing marks of kana and vowel signs of Indic scripts are not among them."""
_VOICING = "\u3099\u309a"
_DASHES = "‐‑‒–—―−﹘﹣－"
_QUOTES = "‘’‚‛′´`＇“”„‟″«»＂"


def _fold_character(character: str) -> str:
    if character in _DASHES:
        return "-"
    if character in _QUOTES:
        return '"' if character in "“”„‟″«»＂" else "'"
    if (
        "\u3040" <= character <= "\u30ff" or "\uff65" <= character <= "\uff9f"
    ):  # voiced kana are letters of their own, not accents
        return unicodedata.normalize("NFKC", character)
    parts = unicodedata.normalize("NFKD", character).casefold()
    kept = "".join(_LETTERS.get(part, part) for part in parts if not _MARKS.match(part))
    return " " if kept and kept.isspace() else unicodedata.normalize("NFC", kept)


class _Table(dict[int, str]):
    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_character(chr(code))
        return folded


_TABLE = _Table()
_FOREIGN = re.compile("([^\x00-\x7f]+)")
_PUNCTUATION = re.compile(r"[^\w]+")
_PARENTHESIS = re.compile(r"\s*\(([^()]*)\)\s*$")
_ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)")


def fold(text: str) -> str:
    """The folded text; searching in it is insensitive to case, accents, dashes, quotes and white space."""
    return " ".join((text.lower() if text.isascii() else _folded(text)).split())


def _folded(text: str) -> str:
    """Character by character only where one is not ASCII: of most texts that is a small part."""
    parts = _FOREIGN.split(unicodedata.normalize("NFC", text).replace("`", "'"))
    parts[::2] = [part.lower() for part in parts[::2]]
    parts[1::2] = [part.translate(_TABLE) for part in parts[1::2]]
    return unicodedata.normalize("NFC", "".join(parts))


def norm(name: str) -> str:
    """Normal form of a name or value: folded, punctuation as single spaces, no leading article. "" if nothing is left."""
    bare = _PUNCTUATION.sub(" ", fold(name)).replace("_", " ").strip()
    return _ARTICLE.sub("", bare) or bare


def split_title(title: str) -> tuple[str, str]:
    """("Polish-Russian War", "film") of "Polish-Russian War (film)"; the second is "" without a parenthesis."""
    match = _PARENTHESIS.search(title)
    return (title[: match.start()].strip(), match[1].strip()) if match and match.start() else (title.strip(), "")


def _bigrams(text: str) -> list[str]:
    runs = re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]{2,}", text)  # unicode61 keeps such a run as one token
    return [run[i : i + 2] for run in runs for i in range(len(run) - 1)]


def search_text(*parts: str) -> str:
    """FTS text of a fact, at most 800 characters."""
    folded = " ".join(fold(part) for part in parts if part)
    return " ".join([folded, *_bigrams(folded)])[:800]


_STOP_WORDS = """
a an and are as at be been by did do does for from had has have he her his how i in is it its my of on or our she that the their
them they this to was we were what when where which who whom whose why will with you your me
"""
STOP = frozenset(_STOP_WORDS.split())


def search_query(text: str, drop: frozenset[str] = frozenset()) -> str:
    """An FTS5 expression that any content word may match; "" if there is none. Words of `drop` (predicates) match too
    many rows.
    """
    folded = fold(text)
    words = dict.fromkeys(
        word
        for word in re.findall(r"\w+", folded)
        if word not in STOP and word not in drop and (len(word) > 1 or not word.isascii())
    )
    return " OR ".join(f'"{word}"' for word in [*words, *dict.fromkeys(_bigrams(folded))][:24])


def folded_with_offsets(text: str) -> tuple[str, list[int]]:
    """The folded text, not stripped, and for each of its characters the offset of the one in `text` that it comes from."""
    characters: list[str] = []
    offsets: list[int] = []
    for index, character in enumerate(text):
        for folded in _TABLE[ord(character)]:
            if folded == " " and (not characters or characters[-1] == " "):
                continue
            if folded in _VOICING and characters:  # written apart from its kana
                characters[-1] = unicodedata.normalize("NFC", characters[-1] + folded)[:1]
                continue
            characters.append(folded)
            offsets.append(index)
    return "".join(characters), offsets


def find_all(text: str, words: str) -> list[tuple[int, int, bool]]:
    """Every whole-word place of `words` in `text` as (start, end, exact); exact: text[start:end] == words. Exact ones
    first.
    """
    needle = fold(words)
    if not needle:
        return []
    haystack, offsets = folded_with_offsets(text)
    found, at = [], haystack.find(needle)
    while at >= 0:
        end = at + len(needle)
        edge = (
            at == 0 or not (haystack[at - 1].isalnum() and needle[0].isalnum() and haystack[at - 1].isascii())
        ) and (
            end == len(haystack) or not (haystack[end].isalnum() and needle[-1].isalnum() and haystack[end].isascii())
        )
        if edge:
            start, stop = offsets[at], offsets[end - 1] + 1
            while stop < len(text) and unicodedata.combining(text[stop]):
                stop += 1
            found.append((start, stop, text[start:stop] == words.strip()))
        at = haystack.find(needle, at + 1)
    return sorted(found, key=lambda place: (not place[2], place[0]))

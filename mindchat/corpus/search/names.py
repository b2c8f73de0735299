"""Names: what a passage is about, and which of the known names a text mentions.

Owns: the form in which names are compared (keys), reading names off a passage, finding them in texts, link targets.
Does not own: the graph that is made of them (graph, weave), ranking (links).
A key is a name's folded words with a space between; the key of a file is its path after a NUL, so that no text can
spell it.
Names in running text must begin with a capital, a digit, or a letter of a script without case; one short word, and
words that search ignores ("The", "When"), are never found there. Links may name anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from os.path import dirname, join, normpath, splitext
from urllib.parse import unquote

from msgspec import Struct

from mindchat.corpus.reading.readers.script import SEPARATOR
from mindchat.corpus.search.analyze import HAS_NGRAM, RUNS, WORD, Analyzer
from mindchat.text.folding import fold
from mindchat.values import Passage

VERSION = 1
"""Part of every graph: one made by another version is made anew."""
MAX_WORDS = 12
"""A longer title is a sentence, which nobody repeats."""
SHORTEST = 4
"""Letters of the shortest name of one word."""
_MOST_HEADINGS = 4
_FEW = 50
_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")

_PLAIN = re.compile("[A-Za-z0-9]+")
_PARENTHESIS = re.compile(r"\s*\([^()]*\)\s*$")
_BOLD = re.compile(r"\s*(?:#{1,6}[^\n]{0,300}\n\s*)?(?:\*\*|__)(?=\S)([^*_\n]{2,100}?)(?:\*\*|__)")
_HEADING = re.compile(  # between blank lines, or underlined; no end mark
    r"(?:\A|\n[ \t]*\n)[ \t]*([^\W_][^\n]{0,78}[^\s.!?:;,|])[ \t]*" r"(?=\n[ \t]*\n|\n[ \t]*[=~-]{3,}[ \t]*(?:\n|\Z))"
)
_WIKILINK = re.compile(r"\[\[([^\[\]|#\n]{0,300})(?:#[^\[\]|\n]{0,300})?(?:\|[^\[\]\n]{0,300})?\]\]")
_LINK = re.compile(r"\]\(<?([^()<>\s#]{1,500})(?:#[^()<>\s]{0,300})?>?(?:\s+[\"'][^\n\"']{0,200}[\"'])?\)")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*:")
_ALIASES = re.compile(r"^alias(?:es)?:[ \t]*(.*)\n?((?:[ \t]*-[ \t]+.*(?:\n|\Z))*)", re.MULTILINE)
_QUOTES = " \t\"'“”‘’"


class About(Struct, frozen=True):
    """One thing that a passage is about."""

    key: str
    first: bool
    """Whether this passage is where one would begin to read about it: a document's first, a section's first."""


@lru_cache(maxsize=1 << 17)
def _folded(word: str) -> str:
    return fold(word).replace(" ", "")


def split(text: str) -> tuple[list[str], list[str]]:
    """The words of a text as written, and folded; of scripts without spaces, each character is one."""
    if text.isascii():
        return _PLAIN.findall(text), _PLAIN.findall(text.lower())
    raw: list[str] = WORD.findall(text)
    if HAS_NGRAM.search(text):
        raw = [part for word in raw for part in _parts(word)]
    return raw, [_folded(word) for word in raw]


def _parts(word: str) -> Iterator[str]:
    for run in RUNS.findall(word):
        yield from run if HAS_NGRAM.match(run) else (run,)


def key_of(name: str) -> str:
    """How a name is compared; "" if it has no words or too many."""
    words = split(name)[1]
    return " ".join(words) if len(words) <= MAX_WORDS else ""


def file_key(path: str) -> str:
    """The key of a file, which links find by its path."""
    return f"\0{path}"


def findable(key: str, analyzer: Analyzer) -> bool:
    """Whether running text may mention it: no file's key, no short single word, no words that search ignores."""
    if key.startswith("\0"):
        return False
    words = key.split(" ")
    if HAS_NGRAM.match(key):
        # two Han characters are a word; of the other scripts two are a syllable
        return len(words) > (1 if "\u3400" <= key[0] <= "\ufaff" and not "\uac00" <= key[0] <= "\ud7af" else 2)
    return (len(words) > 1 or len(key) >= SHORTEST) and any(map(analyzer.searches, words))


# ── what a passage is about
# ──────────────────────────────────────────────────────────────────────────────────────────────


def document_names(passage: Passage) -> list[str]:
    """Keys of its document: title with and without its parenthesis, the file's name and path."""
    found = [key_of(_PARENTHESIS.sub("", passage.title)), key_of(passage.title)]
    if "#" not in passage.document:  # a line of a corpus file is named by its title alone
        stem = splitext(passage.document.rpartition("/")[2].rpartition("\\")[2])[0]
        found += [key_of(stem), file_key(passage.document)]
    return [key for key in dict.fromkeys(found) if key]


def own_names(passage: Passage) -> list[str]:
    """Keys of the passage itself: its heading's last part, a bold name at its beginning, heading-like lines."""
    found = [key_of(passage.heading.rpartition(SEPARATOR)[2])]
    if match := _BOLD.match(passage.text):
        found.append(key_of(match[1]))
    if "\n" in passage.text and not passage.heading:
        lines = [match[1] for match in _HEADING.finditer(passage.text)]
        found += [key_of(line) for line in lines[:_MOST_HEADINGS]]
    return [key for key in dict.fromkeys(found) if key]


def may_have_aliases(passage: Passage) -> bool:
    """Whether front matter stands before a document's first passage, in which no passage lies."""
    return passage.start > 0 and passage.document.lower().endswith(_MARKDOWN)


def aliases(front: str) -> list[str]:
    """Keys of the aliases in Markdown's front matter: `aliases: [a, b]`, `alias: a`, or a list below it."""
    found: list[str] = []
    for match in _ALIASES.finditer(front):
        inline = match[1].strip().removeprefix("[").removesuffix("]").split(",")
        below = [line.strip().removeprefix("-") for line in match[2].splitlines()]
        found += [key_of(name.strip(_QUOTES)) for name in (*inline, *below)]
    return [key for key in dict.fromkeys(found) if key]


# ── what a text mentions
# ─────────────────────────────────────────────────────────────────────────────────────────────────


def linked(text: str, uri: str) -> list[str]:
    """Keys that the links name, in order: `[[Note|label]]` by name, `[label](path.md)` by path."""
    found: list[str] = []
    if "[[" in text:
        for match in _WIKILINK.finditer(text):
            name = match[1].rpartition("/")[2].strip()
            found.append(key_of(splitext(name)[0] if name.lower().endswith(_MARKDOWN) else name))
    if "](" in text:
        for match in _LINK.finditer(text):
            if not _SCHEME.match(match[1]):
                found.append(file_key(normpath(join(dirname(uri), unquote(match[1])))))
    return [key for key in dict.fromkeys(found) if key]


class Finder:
    """Finds known names in texts: the longest at each place, one look at each word."""

    def __init__(self, keys: Iterable[str], analyzer: Analyzer) -> None:
        """`keys`: distinct; find() answers with positions in them."""
        self.number = {key: number for number, key in enumerate(keys)}
        self._begins = {key.partition(" ")[0] for key in self.number}
        self._known: dict[str, int] = {}
        """Name → number, or -1 for what only begins a name."""
        for key, number in self.number.items():
            if findable(key, analyzer):
                self._known[key] = number
                end = key.find(" ")
                while end >= 0:
                    self._known.setdefault(key[:end], -1)
                    end = key.find(" ", end + 1)

    def find(self, text: str, uri: str = "") -> list[int]:
        """Numbers of the names that the text mentions or links to, each once, in order."""
        raw, low = split(text)
        known, found, at = self._known, dict[int, None](), -1
        for start, word in enumerate(low):
            if start > at and word in known and not raw[start][0].islower():
                number, end = self._longest(low, start)
                if number >= 0:
                    found[number], at = None, end
        for key in linked(text, uri):
            if key in self.number:
                found[self.number[key]] = None
        return list(found)

    def may_find(self, text: str) -> bool:
        """False if find() surely finds nothing; quicker where the names are few."""
        if len(self._begins) > _FEW or "[[" in text or "](" in text or (not text.isascii() and HAS_NGRAM.search(text)):
            return True
        low = fold(text)
        return any(word in low for word in self._begins)

    def _longest(self, low: Sequence[str], start: int) -> tuple[int, int]:
        """(number or -1, position of its last word) of the longest name that begins at a word."""
        known, phrase = self._known, low[start]
        number, end = known[phrase], start
        for at in range(start + 1, min(start + MAX_WORDS, len(low))):
            phrase = f"{phrase} {low[at]}"
            more = known.get(phrase)
            if more is None:
                break
            if more >= 0:
                number, end = more, at
        return number, end


def surface(key: str, text: str) -> str:
    """How the text spells a name; the key's own words if it is only the target of a link."""
    raw, low = split(text)
    wanted = key.split(" ")
    for start in range(len(low) - len(wanted) + 1):
        if low[start] == wanted[0] and low[start : start + len(wanted)] == wanted:
            at, begin = 0, -1
            for number, word in enumerate(raw[: start + len(wanted)]):  # the words stand in this order
                at = text.index(word, at)
                begin = at if number == start else begin
                at += len(word)
            return " ".join(text[begin:at].split())
    return splitext(key.rpartition("/")[2])[0] if key.startswith("\0") else key

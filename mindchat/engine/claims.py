"""Whether the sentences of an answer stand in the passages that they name.

Owns: the marks [n] of a full answer. A mark stays if the names and numbers of its sentence stand in the passages that
the sentence names; a sentence without such a mark gets one if they stand in one passage, or in two of which each adds
something and whose titles the sentence has; all other marks go. Does not own: where the short answer stands
(engine.answering), the verdict (engine.verdict).
Source: ours. The model's numbers count documents from 0, as CoRe's templates print them; the marks that people read
count citations from 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from mindchat.engine.answering import folded_words, locate
from mindchat.text.language import Language
from mindchat.text.names import find_names, find_numbers
from mindchat.values import Citation, Passage

_CODE = re.compile(r"(```.*?(?:```|\Z))", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_LATE = re.compile(r"([.!?])((?:\s*\[\d{1,3}\])+)")
"""A mark behind the full stop belongs to the sentence before it."""
_MARK = re.compile(r"\s*\(?(?:\b[Dd]ocuments?\s+)?\[(?:[Dd]ocuments?\s+)?(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]\)?(?!\()")
_LEAD = re.compile(r"\s*(?:[Aa]ccording to|[Aa]s stated in|[Ff]rom)\s*(?=,|$)\s*,?\s*")
"""What is left of "according to Document [2]," without the mark."""
_END = re.compile(r"[\s.!?:;,]*\Z")
_STEM = 5
_NOTE = re.compile(r"\s*\([^()]*\)\s*$")


class Checked(Struct, frozen=True):
    """A full answer with marks that hold."""

    text: str
    citations: tuple[Citation, ...]
    """Numbered in the order of the marks; each is the sentence of its passage that is most like the answer's."""
    sentences: int
    """Sentences that claim something: with a name or a number."""
    unsupported: tuple[str, ...]
    """Those of which the names and numbers stand in no passage."""


class _Marker:
    """One text on its way through."""

    def __init__(self, read: Sequence[Passage], words: Language, question: str) -> None:
        self.read, self.words = read, words
        self.held = [folded_words(f"{p.title}\n{p.text}") for p in read]
        self.stems = [{word[:_STEM] for word in held} for held in self.held]
        self.asked = {word[:_STEM] for word in folded_words(question)}
        self.cited: dict[str, Citation] = {}
        self.sentences = 0
        self.unsupported: list[str] = []

    def sentence(self, text: str) -> str:
        """The sentence with the marks that hold, before its last punctuation."""
        named = [int(number) for match in _MARK.finditer(text) for number in re.findall(r"\d+", match[1])]
        bare = _LEAD.sub("", _MARK.sub("", text)) if named else text
        claims = self._claims(bare)
        self.sentences += bool(claims)
        places = self._places(bare, claims, [n for n in dict.fromkeys(named) if n < len(self.read)])
        self.unsupported += [bare] if claims and not places else []
        # a blank between: "[1][2]" is a link to Markdown
        marks = " ".join(f"[{self._cite(n, bare, by='model' if n in named else 'span').n}]" for n in places)
        end = _END.search(bare)
        at = end.start() if end is not None else len(bare)
        return f"{bare[:at]} {marks}{bare[at:]}" if marks else bare

    def _claims(self, sentence: str) -> list[str]:
        """Names and numbers, without a first word that is capitalised only for standing first."""
        names = [(name, start) for name, start, _, _ in find_names(sentence, self.words)]
        first = len(sentence) - len(sentence.lstrip())
        found = [name for name, start in names if start > first or " " in name or self._known(name)]
        return [*found, *(text for text, _, _ in find_numbers(sentence) if all(text not in name for name in found))]

    def _known(self, name: str) -> bool:
        return any(name in passage.text or name in passage.title for passage in self.read)

    def _holds(self, n: int, claim: str) -> bool:
        passage = self.read[n]
        if locate(claim, f"{passage.title}\n{passage.text}") is not None:
            return True
        parts = folded_words(re.sub(r"['’]s\b", "", claim))
        return bool(parts) and self.held[n].issuperset(parts)

    def _places(self, sentence: str, claims: list[str], named: list[int]) -> list[int]:
        """The passages that the sentence rests on, none if nothing does; those that it names itself come first."""
        holding = [frozenset(claim for claim in claims if self._holds(n, claim)) for n in range(len(self.read))]
        own = {word[:_STEM] for word in folded_words(sentence) if self.words.content(word)}

        def rests(group: Sequence[int]) -> bool:
            if len(group) > 1 and not all(self._entitled(n, sentence) for n in group):
                return False
            said = set().union(*(self.stems[n] for n in group))
            whole = set().union(*(holding[n] for n in group)) == set(claims)
            adds = (
                all(holding[n] - set().union(*(holding[m] for m in group if m != n)) for n in group)
                if len(group) > 1
                else True
            )
            return whole and adds and 2 * len(own & said) >= len(own)

        own_group = [n for n in named if holding[n]]
        if claims and own_group and set().union(*(holding[n] for n in own_group)) == set(claims):
            alone = [n for n in own_group if holding[n] == set(claims)]
            if alone or all(self._entitled(n, sentence) for n in own_group):
                return alone or own_group
        if named and not claims and own:
            return [n for n in named if 2 * len(own & self.stems[n]) >= len(own)]
        if not claims:
            return []
        order = sorted(range(len(self.read)), key=lambda n: (n not in named, -len(own & self.stems[n]), n))
        groups = [*((n,) for n in order), *combinations(order, 2)]
        return sorted(next((group for group in groups if rests(group)), ()))

    def _entitled(self, n: int, sentence: str) -> bool:
        """Whether the sentence has the passage's title: else two passages could be blended into a claim that neither
        makes.
        """
        title = folded_words(_NOTE.sub("", self.read[n].title))
        return bool(title) and title <= folded_words(sentence)

    def _cite(self, n: int, sentence: str, by: str) -> Citation:
        passage = self.read[n]
        if passage.id not in self.cited:
            start, end = likest(sentence, passage.text, self.words)
            kind = "model" if by == "model" else "span"
            quote, first = passage.text[start:end], passage.start
            self.cited[passage.id] = Citation(
                len(self.cited) + 1,
                passage.document,
                passage.id,
                first + start,
                first + end,
                quote,
                "model" if kind == "model" else "span",
            )
        return self.cited[passage.id]


def unmarked(sentence: str) -> str:
    """A sentence without marks, where nothing is to be claimed of it yet."""
    return _MARK.sub("", sentence)


def likest(sentence: str, text: str, words: Language) -> tuple[int, int]:
    """[start, end) of the sentence of a text that shares most words with a given one, without blanks around it; the
    first one of equals.
    """
    own = {word[:_STEM] for word in folded_words(sentence)}
    best, at, most = (0, len(text)), 0, -1
    for piece in words.sentences(text):
        shared = len(own & {word[:_STEM] for word in folded_words(piece)})
        if shared > most and piece.strip():
            start = at + len(piece) - len(piece.lstrip())
            best, most = (start, start + len(piece.strip())), shared
        at += len(piece)
    return best


def check(text: str, read: Sequence[Passage], words: Language, question: str = "") -> Checked:
    """The text with marks that hold; code stays as it is. `read`: the passages as the prompt numbered them, from 0."""
    marker, out = _Marker(read, words, question), []
    for index, piece in enumerate(_CODE.split(text)):
        out.append(piece if index % 2 else "\n".join(_line(line, marker) for line in piece.split("\n")))
    return Checked("".join(out).strip(), tuple(marker.cited.values()), marker.sentences, tuple(marker.unsupported))


def _line(line: str, marker: _Marker) -> str:
    item = _ITEM.match(line)
    head, body = (item[0], line[item.end() :]) if item else ("", line)
    body = _LATE.sub(r"\2\1", body)
    return head + "".join(marker.sentence(sentence) for sentence in marker.words.sentences(body))

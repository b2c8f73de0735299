"""Markdown: the text stays as written; headings give the title and each passage's path.

Owns: ATX and setext headings, front matter, fences (a # inside one is no heading). Does not own: rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mindchat.corpus.reading.encoding import read_text
from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.script import SEPARATOR
from mindchat.corpus.reading.readers.text import refuse_secrets
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FRONT = re.compile(r"---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_LONGEST = 1000
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.{1,300}?)[\"']?[ \t]{0,9}$", re.MULTILINE)


class MarkdownReader(BaseReader):
    """One document; a stretch for each heading, the heading line itself included."""

    suffixes = frozenset({".md", ".markdown", ".mdown", ".mkd"})
    simple = True

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Title: front matter, else the only heading of level 1, else the file's name: several such headings are
        sections beside each other.
        """
        text = read_text(path)
        refuse_secrets(text, path.name)
        front = _FRONT.match(text, 0, 20_000)
        start = front.end() if front else 0
        headings = list(find_headings(text, start))
        title = _FRONT_TITLE.search(front[0]) if front else None
        tops = [words for _, level, words in headings if level == 1]
        name = title[1] if title else (tops[0] if len(tops) == 1 else "") or title_of(path)
        yield self.document(path, name, text), sections(text, headings, start, clean_line(name))


def find_headings(text: str, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """(offset of its first line, level 1..6, words) of each heading."""
    at, fence, previous = start, "", (start, "")
    for line in text[start:].splitlines(keepends=True):
        bare = line.rstrip("\n")
        if len(bare) > _LONGEST:  # no heading, and no food for a backtracking pattern
            previous = (at, "")
            at += len(line)
            continue
        if fence:
            if (match := _FENCE.match(bare)) and match[1].startswith(fence) and not bare.strip().strip(fence[0]):
                fence = ""
        elif match := _FENCE.match(bare):
            fence = match[1]
        elif match := _ATX.match(bare):
            yield at, len(match[1]), match[2] or ""
        elif (match := _SETEXT.match(bare)) and _could_be_heading(previous[1]):
            yield previous[0], 1 if match[1][0] == "=" else 2, previous[1].strip()
        previous = (at, "" if fence else bare)
        at += len(line)


def _could_be_heading(line: str) -> bool:
    return (
        bool(line.strip())
        and not line.startswith(("    ", "\t"))
        and not re.match(r" {0,3}(?:[-*+>|#=]|\d+[.)])", line)
    )


def sections(text: str, headings: Sequence[tuple[int, int, str]], start: int, title: str) -> list[Chunk]:
    """Stretches from heading to heading, each with its path; a heading that is the document's title is left out of the
    path.
    """
    found = [Chunk(start, headings[0][0] if headings else len(text))]
    path: list[tuple[int, str]] = []
    for number, (at, level, words) in enumerate(headings):
        path = [(above, name) for above, name in path if above < level] + [(level, clean_line(words))]
        end = headings[number + 1][0] if number + 1 < len(headings) else len(text)
        names = [name for above, name in path if name and not (name == title and above == path[0][0])]
        found.append(Chunk(at, end, heading=SEPARATOR.join(names)))
    return [chunk for chunk in found if text[chunk.start : chunk.end].strip()]

"""HTML: what a person would read, block by block.

Owns: which elements are blocks, which say nothing. Does not own: parsing (lxml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.encoding import decode, normalise, read_bytes
from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_CHARSET = re.compile(
    rb"""<(?:meta[^>]+charset\s*=\s*["']?|\?xml[^>]+encoding\s*=\s*["'])([A-Za-z0-9_.:-]+)""", re.IGNORECASE
)
_SILENT = {
    "audio", "button", "canvas", "form", "head", "iframe", "math", "nav", "noscript", "object", "script", "select", "style", "svg", "template",
    "video",
}  # fmt: skip
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure",
    "footer", "header", "hr", "html", "li", "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


class HtmlReader(BaseReader):
    """One document; its title is <title>, else the first h1."""

    suffixes = frozenset({".html", ".htm", ".xhtml"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for a page without text."""
        script = Script()
        title = render(to_unicode(read_bytes(path), path.name), script)
        yield self.document(path, title or title_of(path), script.text()), script.chunks()


def to_unicode(data: bytes, name: str) -> str:
    """Decoded as the page says itself, else as it looks."""
    match = _CHARSET.search(data, 0, 4096)
    if match and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        try:
            return normalise(data.decode(match[1].decode("ascii")))
        except (LookupError, UnicodeDecodeError):
            pass  # the page is wrong about itself
    return decode(data, name)


def render(page: str, script: Script) -> str:
    """Add the page's blocks to the script; its title, "" if it has none. Raises DocumentError if it cannot be parsed."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(page.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"is no HTML ({error.msg})") from error
    if root is None:
        raise DocumentError("holds no text")
    title = clean_line(" ".join(root.xpath("string(//head/title[1])").split()), 300)
    first = clean_line(" ".join(root.xpath("string(//h1[1])").split()), 300)
    _Renderer(script).run(root)
    return title or first


class _Renderer:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.words: list[str] = []
        self.verbatim = 0

    def run(self, root: Any) -> None:
        from lxml import etree

        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            tag = element.tag if isinstance(element.tag, str) else ""
            if event == "start":
                if tag in _SILENT or element.get("hidden") is not None:
                    walker.skip_subtree()
                    continue
                self._open(tag)
                self._say(element.text)
            else:
                self._close(tag)
                self._say(element.tail)
        self._flush()

    def _open(self, tag: str) -> None:
        if tag in _BLOCKS or tag in _HEADINGS:
            self._flush()
        elif tag == "br":
            self.words.append("\n")
        elif tag in ("td", "th") and self.words and "".join(self.words).strip():
            self.words.append(" | ")
        self.verbatim += tag == "pre"

    def _close(self, tag: str) -> None:
        if tag in _HEADINGS:
            words, self.words = "".join(self.words), []
            self.script.heading(_HEADINGS[tag], words)
        elif tag in _BLOCKS:
            self._flush()
        self.verbatim -= tag == "pre"

    def _say(self, text: str | None) -> None:
        if text:
            self.words.append(text if self.verbatim else re.sub(r"\s+", " ", text))

    def _flush(self) -> None:
        lines = "".join(self.words).split("\n")
        self.words = []
        self.script.block("\n".join(line.rstrip() if self.verbatim else " ".join(line.split()) for line in lines))

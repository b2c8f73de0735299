"""Word and OpenDocument texts, and EPUB books.

Owns: their blocks, headings and titles. Does not own: opening the archive (archive), Word's XML (python-docx), pages of
a book (html).
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.archive import member, open_archive, parse_xml
from mindchat.corpus.reading.readers.html import render, to_unicode
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_WORD_HEADING = re.compile(r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift)\s*(\d)", re.IGNORECASE)


class DocxReader(BaseReader):
    """Word: paragraphs, tables row by row, headings by style."""

    suffixes = frozenset({".docx"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for encrypted and broken files."""
        open_archive(path).close()
        import docx
        from docx.table import Table

        try:
            word = docx.Document(str(path))
            script = Script()
            for item in word.iter_inner_content():
                if isinstance(item, Table):
                    _word_table(item, script)
                else:
                    _word_paragraph(item, script)
            title = clean_line(word.core_properties.title or "", 300)
        except (DocumentError, MemoryError):
            raise
        except Exception as error:
            raise DocumentError(f"is broken ({type(error).__name__}: {clean_line(str(error), 100)})") from error
        yield self.document(path, title or title_of(path), script.text()), script.chunks()


def _word_paragraph(paragraph: Any, script: Script) -> None:
    style = (paragraph.style.name if paragraph.style is not None else "") or ""
    if match := _WORD_HEADING.match(style):
        script.heading(int(match[1]), paragraph.text)
    elif style == "Title":
        script.heading(0, paragraph.text)
    else:
        script.block(paragraph.text)


def _word_table(table: Any, script: Script) -> None:
    for row in table.rows:
        cells: list[str] = []
        for cell in row.cells:
            words = " ".join(cell.text.split())
            if not cells or cells[-1] != words:  # a merged cell is given once for each column it spans
                cells.append(words)
        script.block(" | ".join(cells))


_ODF = {
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
}


class OdtReader(BaseReader):
    """OpenDocument text."""

    suffixes = frozenset({".odt"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for encrypted and broken files."""
        with open_archive(path) as archive:
            if "META-INF/manifest.xml" in archive.namelist() and b"encryption-data" in member(
                archive, "META-INF/manifest.xml"
            ):
                raise DocumentError("is encrypted with a password")
            root = parse_xml(member(archive, "content.xml"), "content.xml")
            title = (
                _first(parse_xml(member(archive, "meta.xml"), "meta.xml"), "//dc:title")
                if "meta.xml" in archive.namelist()
                else ""
            )
        script = Script()
        for body in root.iterfind(".//office:text", _ODF):
            _open_text(body, script)
        yield self.document(path, title or title_of(path), script.text()), script.chunks()


def _open_text(body: Any, script: Script) -> None:
    text, table = f"{{{_ODF['text']}}}", f"{{{_ODF['table']}}}"
    from lxml import etree

    walker = etree.iterwalk(body, events=("start",))
    for _, element in walker:
        if element.tag == text + "h":
            script.heading(int(element.get(text + "outline-level", "1")), _open_words(element))
        elif element.tag == text + "p":
            script.block(_open_words(element))
        elif element.tag == table + "table-row":
            cells = [_open_words(cell) for cell in element.iterfind("table:table-cell", _ODF)]
            script.block(" | ".join(cells))
        elif element.tag not in (text + "tracked-changes", text + "table-of-content"):
            continue
        walker.skip_subtree()


def _open_words(element: Any) -> str:
    """All words below an element, with its coded spaces, tabs and line breaks."""
    text = f"{{{_ODF['text']}}}"
    coded = {text + "s": " ", text + "tab": "\t", text + "line-break": "\n"}
    parts = [element.text or ""]
    for child in element:
        parts += [
            coded.get(child.tag, "") or ("" if child.tag == text + "note" else _open_words(child)),
            child.tail or "",
        ]
    return "".join(parts)


class EpubReader(BaseReader):
    """A book: its pages in reading order, each page's headings below the book."""

    suffixes = frozenset({".epub"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """A page that cannot be read is complained about; a book without any raises DocumentError."""
        script, tell = Script(), complain or (lambda _: None)
        with open_archive(path) as archive:
            container = parse_xml(member(archive, "META-INF/container.xml"), "container.xml")
            places = container.xpath("//*[local-name()='rootfile']/@full-path")
            if not places:
                raise DocumentError("is broken (names no content)")
            package = parse_xml(member(archive, str(places[0])), str(places[0]))
            protected = _protected(archive)
            for name in _spine(package, str(places[0])):
                if name in protected:
                    raise DocumentError("is protected (DRM)")
                try:
                    render(to_unicode(member(archive, name), name), script)
                except DocumentError as error:
                    tell(f"{name}: {error.message}")
        yield self.document(path, _first(package, "//dc:title") or title_of(path), script.text()), script.chunks()


def _protected(archive: zipfile.ZipFile) -> set[str]:
    if "META-INF/encryption.xml" not in archive.namelist():
        return set()
    root = parse_xml(member(archive, "META-INF/encryption.xml"), "encryption.xml")
    return {unquote(str(uri)) for uri in root.xpath("//*[local-name()='CipherReference']/@URI")}


def _spine(package: Any, place: str) -> list[str]:
    """Archive names of the book's pages in reading order, each once."""
    items = {
        item.get("id"): item.get("href")
        for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']")
    }
    order = [str(ref) for ref in package.xpath("//*[local-name()='spine']/*[local-name()='itemref']/@idref")]
    folder = posixpath.dirname(place)
    named = (
        posixpath.normpath(posixpath.join(folder, unquote(items[ref].partition("#")[0])))
        for ref in order
        if items.get(ref)
    )
    return list(dict.fromkeys(named))


def _first(root: Any, expression: str) -> str:
    found = root.xpath(expression, namespaces=_ODF)
    return clean_line("".join(found[0].itertext()), 300) if found else ""

"""PDF, page by page.

Owns: page numbers, bookmarks as headings, saying why nothing can be read. Does not own: text extraction (pypdf).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.encoding import normalise
from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_HYPHEN = re.compile(r"(?<=[a-zà-öø-ÿ])-\n(?=[a-zà-öø-ÿ])")
_DEEPEST = 8


class PdfReader(BaseReader):
    """One document; a stretch a page."""

    suffixes = frozenset({".pdf"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Encrypted, scanned, empty and broken files raise DocumentError; a single bad page is complained about."""
        pdf = _open(path)
        script, tell = Script(), complain or (lambda _: None)
        bookmarks, empty = _bookmarks(pdf), 0
        current: list[str] = []
        for number, page in enumerate(pdf.pages, 1):
            script.page = number
            current = bookmarks.get(number - 1, current)
            script.outline(current)
            try:
                words = normalise(page.extract_text() or "")
            except Exception as error:  # noqa: BLE001 - a malformed page may raise anything; the other pages go on
                tell(f"page {number}: cannot be read ({type(error).__name__})")
                continue
            empty += not words.strip()
            script.block(_HYPHEN.sub("", words))
        if not script.text():
            raise DocumentError(
                "has no text layer (scanned?); run it through OCR first" if len(pdf.pages) else "has no pages"
            )
        if empty:
            tell(f"{empty:,} of {len(pdf.pages):,} pages have no text (pictures or scans)")
        yield self.document(path, _title(pdf) or title_of(path), script.text()), script.chunks()


def _open(path: Path) -> Any:
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        pdf = pypdf.PdfReader(path)
        if pdf.is_encrypted and not pdf.decrypt(""):
            raise DocumentError("is encrypted with a password")
        len(pdf.pages)
    except (DocumentError, MemoryError):
        raise
    except DependencyError as error:
        raise DocumentError(
            "is encrypted with AES; the package cryptography is needed to see whether it opens without a password"
        ) from error
    except PyPdfError as error:
        raise DocumentError(f"is broken ({clean_line(str(error), 100)})") from error
    except Exception as error:
        raise DocumentError(
            f"is broken or encrypted ({type(error).__name__}: {clean_line(str(error), 100)})"
        ) from error
    return pdf


def _title(pdf: Any) -> str:
    try:
        title = clean_line(str((pdf.metadata or {}).get("/Title") or ""), 300)
    except Exception:  # noqa: BLE001 - malformed metadata is no reason not to read the text
        return ""
    return "" if re.fullmatch(r"(?i)untitled|microsoft word - .*|.*\.(docx?|indd|tex|dvi)", title) else title


def _bookmarks(pdf: Any) -> dict[int, list[str]]:
    """Page index → path of the last bookmark that starts on it; {} without an outline that can be read."""
    found: dict[int, list[str]] = {}

    def visit(items: Any, path: list[str]) -> None:
        last = path
        for item in items:
            if isinstance(item, list):
                if len(path) < _DEEPEST:
                    visit(item, last)
                continue
            last = [*path, str(item.title)]
            page = pdf.get_destination_page_number(item)
            if page is not None and page >= 0:
                found[page] = last

    try:
        visit(pdf.outline, [])
    except Exception:  # noqa: BLE001 - an outline is a help; a malformed one is as good as none
        return {}
    return found

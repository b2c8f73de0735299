"""Excel workbooks: each row says its column names, as in a CSV file; each sheet is a heading.

Owns: their form as text. Does not own: opening the archive (archive), Excel's XML (openpyxl). Formulas give the value
that was stored with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.archive import open_archive
from mindchat.corpus.reading.readers.script import Script
from mindchat.corpus.reading.readers.tables import named_row
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document


class WorkbookReader(BaseReader):
    """One document; the first row of a sheet that is not empty names its columns."""

    suffixes = frozenset({".xlsx", ".xlsm"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for encrypted and broken files; a sheet that cannot be read is complained about."""
        open_archive(path).close()
        import openpyxl

        tell, script = complain or (lambda _: None), Script()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that openpyxl does not keep, which matter only to who writes
            try:
                book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
            except MemoryError:
                raise
            except Exception as error:
                raise DocumentError(f"is broken ({type(error).__name__}: {clean_line(str(error), 100)})") from error
            try:
                for sheet in book.worksheets:
                    _read_sheet(sheet, script, tell)
                title = clean_line(str(book.properties.title or ""), 300)
            finally:
                book.close()
        yield self.document(path, title or title_of(path), script.text()), script.chunks()


def _read_sheet(sheet: Any, script: Script, tell: Complain) -> None:
    script.outline([str(sheet.title)])
    sheet.reset_dimensions()  # a file may claim a million empty columns
    names: list[str] | None = None
    try:
        for row in sheet.iter_rows(values_only=True):
            cells = [_words(value) for value in row]
            if not any(cells):
                continue
            if names is None:
                names = cells
                script.block(" | ".join(cell for cell in cells if cell))
            else:
                script.block(named_row(names, cells))
    except (DocumentError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a malformed sheet may raise anything; the other sheets go on
        tell(f"sheet {clean_line(str(sheet.title), 60)}: cannot be read ({type(error).__name__})")


def _words(value: Any) -> str:
    """A cell as it is read: whole numbers without a point, days without a time."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).split())

"""PowerPoint presentations: a slide is a page, its title a heading; speaker notes follow the slide.

Owns: their order and form as text. Does not own: opening the archive (archive), PowerPoint's XML (python-pptx).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.archive import open_archive
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_NO_TITLE = re.compile(r"(?i)powerpoint[- ]pr\w+|(?:presentation|präsentation|présentation)\s*\d*|untitled|.*\.pptx?")
_DEEPEST = 20


class SlidesReader(BaseReader):
    """One document; a stretch a slide."""

    suffixes = frozenset({".pptx"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for encrypted and broken files; a slide that cannot be read is complained about."""
        open_archive(path).close()
        import pptx

        tell, script = complain or (lambda _: None), Script()
        try:
            show = pptx.Presentation(str(path))
            slides = list(show.slides)
            title = clean_line(str(show.core_properties.title or ""), 300)
        except MemoryError:
            raise
        except Exception as error:
            raise DocumentError(f"is broken ({type(error).__name__}: {clean_line(str(error), 100)})") from error
        for number, slide in enumerate(slides, 1):
            script.page = number
            try:
                _read_slide(slide, script)
            except (DocumentError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - a malformed slide may raise anything; the other slides go on
                tell(f"slide {number}: cannot be read ({type(error).__name__})")
        made_up = _NO_TITLE.fullmatch(title) is not None
        yield self.document(path, title_of(path) if made_up else title, script.text()), script.chunks()


def _read_slide(slide: Any, script: Script) -> None:
    head = slide.shapes.title
    name = clean_line(head.text_frame.text, 200) if head is not None else ""
    script.outline([name] if name else [])
    script.block(name)
    # python-pptx makes a new object at each access: a shape is known by its id
    first = head.shape_id if head is not None else None
    for words in _texts((shape for shape in slide.shapes if shape.shape_id != first), _DEEPEST):
        script.block(words)
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        script.block(notes.text)


def _texts(shapes: Iterable[Any], depth: int) -> Iterator[str]:
    """Paragraphs and table rows of shapes and of groups of them, in the file's order."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _texts(shape.shapes, depth - 1) if depth else ()
        elif shape.has_text_frame:
            yield from (paragraph.text.replace("\v", "\n") for paragraph in shape.text_frame.paragraphs)
        elif shape.has_table:
            for row in shape.table.rows:
                yield " | ".join(words for cell in row.cells if (words := " ".join(cell.text.split())))

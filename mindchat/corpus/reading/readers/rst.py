"""reStructuredText: rendered to blocks by docutils, which may neither include files nor run raw content.

Owns: section titles as heading path. Does not own: the markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.encoding import read_text
from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.script import Script
from mindchat.corpus.reading.readers.text import refuse_secrets
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "_disable_config": True,
    "line_length_limit": 1_000_000,
    "smart_quotes": False,
    "doctitle_xform": False,
}
_BLOCKS = (
    "paragraph",
    "literal_block",
    "doctest_block",
    "line_block",
    "term",
    "field",
    "math_block",
    "caption",
    "attribution",
)


class RstReader(BaseReader):
    """One document; its title is that of its first section."""

    suffixes = frozenset({".rst", ".rest"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError where docutils gives up."""
        from docutils.core import publish_doctree

        text = read_text(path)
        refuse_secrets(text, path.name)
        try:
            tree = publish_doctree(text, settings_overrides=_SETTINGS)
        except (Exception, SystemExit) as error:
            if isinstance(error, MemoryError):
                raise
            raise DocumentError(f"cannot be parsed ({type(error).__name__})") from error
        script = Script()
        _render(tree, script, 0)
        title = next((str(section[0].astext()) for section in tree.children if type(section).__name__ == "section"), "")
        yield self.document(path, clean_line(title) or title_of(path), script.text()), script.chunks()


def _render(node: Any, script: Script, level: int) -> None:
    for child in node.children:
        name = type(child).__name__
        if name == "title":
            script.heading(max(level, 1), child.astext())
        elif name == "row":
            script.block(" | ".join(" ".join(cell.astext().split()) for cell in child.children))
        elif name in _BLOCKS:
            words = child.astext()
            script.block(words if name in ("literal_block", "doctest_block") else " ".join(words.split()))
        elif name not in ("system_message", "comment", "substitution_definition", "target", "Text"):
            _render(child, script, level + (name == "section"))

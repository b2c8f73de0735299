"""How rare a word is, told alike by the impact matrix, the index of record and an index in memory."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.errors import IndexMissingError
from mindchat.ports import CountsWords


@pytest.mark.parametrize("matrix", [True, False])
def test_every_engine_counts_alike(make_library: Any, matrix: bool) -> None:
    library = make_library(IndexSection(matrix=matrix))
    library.put(
        river_Tamar="A river of Devon. Rivers flow.",
        river_Tavy="It joins the Tamar.",
        bread="Flour and water, 日本 too.",
    )
    library.index.build()
    question = "Which river joins the Tamar, in Atlantis or 日本?"
    counts = library.index.count_words(question)
    assert isinstance(library.index, CountsWords)
    assert counts.passages == 3
    assert dict(counts.words) == {"river": 2, "joins": 1, "Tamar": 2, "Atlantis": 0, "日本": 1}
    assert MemoryIndex(list(library.registry.passages())).count_words(question) == counts


def test_what_was_removed_is_not_counted(library: Any) -> None:
    library.put(river="A river.", bread="Flour.")
    library.index.build()
    library.registry.remove(["/nowhere/river"])
    library.index.build()
    assert library.index.count_words("river flour").words == (("river", 0), ("flour", 1))


def test_nothing_indexed(library: Any) -> None:
    with pytest.raises(IndexMissingError):
        library.index.count_words("river")

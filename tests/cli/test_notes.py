"""A folder of notes as people keep them: what stands in a linked note is found, and the path to it is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .notes import write_notes

K = "5"
"""Passages asked for: of the hundred notes that speak of an office, chance would bring the right one in 5 of 100."""


def test_answers_in_linked_notes_are_found_by_the_link_with_the_path(run: Any, tmp_path: Path) -> None:
    asked = write_notes(tmp_path / "notes")
    assert len(list((tmp_path / "notes").rglob("*.md"))) == 300
    added = run("index", "add", str(tmp_path / "notes"))
    assert "300 added" in added.out
    found, alone = 0, 0
    for item in asked[::5]:
        hits = run("index", "search", item.question, "-k", K, "--json").json["hits"]
        by_name = [hit for hit in hits if hit["title"] == item.person and item.answer in hit["text"]]
        sources = {hit["passage"] for hit in hits if hit["title"] == item.project}
        found += any(hit["found"]["by"] == "link" and hit["found"]["from"] in sources for hit in by_name)
        plain = run("index", "search", item.question, "-k", K, "--json", "--set", "retrieve.links=off").json["hits"]
        alone += any(item.answer in hit["text"] for hit in plain)
    assert found == 20
    assert alone <= 3


def test_why_tells_the_path_through_each_kind_of_link(run: Any, tmp_path: Path) -> None:
    asked = write_notes(tmp_path / "notes")
    run("index", "add", str(tmp_path / "notes"))
    for item in asked[:3]:  # a wikilink, one with another text, a Markdown link
        out = run("index", "search", item.question, "-k", K, "--why").out
        assert item.answer in out
        path = rf"why: by its words: \[1\] {item.project} → “[^”]+” → \[[2-5]\] {item.person}\n"
        assert re.search(path, out), out

"""Prompt history and the unsent draft, kept in the state folder.

Owns: prompts.jsonl (one JSON string a line, append-only, cut to MOST when read) and draft.txt. Both are private (0600)
and hold nothing of an incognito session.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json

MOST = 1000


class PromptHistory:
    """Earlier questions, newest last. Without a folder nothing is written."""

    def __init__(self, folder: Path | None) -> None:
        self._file = folder / "prompts.jsonl" if folder else None
        self._draft_file = folder / "draft.txt" if folder else None
        self.entries: list[str] = self._read()

    def _read(self) -> list[str]:
        if self._file is None or not self._file.is_file():
            return []
        found = []
        for row in self._file.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(ValueError):  # a line cut by a crash is skipped, the others stand
                entry = decode_json(row)
                if isinstance(entry, str):
                    found.append(entry)
        if len(found) > MOST * 2:
            found = found[-MOST:]
            write_atomic(self._file, "".join(json.dumps(entry) + "\n" for entry in found))
        return found[-MOST:]

    def add(self, text: str, *, keep: bool = True) -> None:
        """Remember a text; on disk too unless `keep` is False."""
        if self.entries and self.entries[-1] == text:
            return
        self.entries.append(text)
        if keep and self._file is not None:
            private(self._file.parent)
            handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.write(json.dumps(text) + "\n")

    def save_draft(self, text: str) -> None:
        """Keep an unsent text for the next start; "" removes it."""
        if self._draft_file is None:
            return
        if text.strip():
            private(self._draft_file.parent)
            write_atomic(self._draft_file, text)
        else:
            self._draft_file.unlink(missing_ok=True)

    def take_draft(self) -> str:
        """The text kept by save_draft."""
        if self._draft_file is None or not self._draft_file.is_file():
            return ""
        text = self._draft_file.read_text(encoding="utf-8", errors="replace")
        self._draft_file.unlink(missing_ok=True)
        return text

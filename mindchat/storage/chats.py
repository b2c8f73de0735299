"""Chats: sessions, turns and their recorded events in chats.db.

Owns: what was asked and answered, from before the first token on, and finding, copying, exporting and erasing it.
Does not own: facts (facts.py); erasing a chat forgets no fact, and forgetting a fact erases no chat.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mindchat.errors import NotFoundError, UsageError
from mindchat.storage.clock import ago, now, short_id
from mindchat.storage.erasing import erase, left_over
from mindchat.storage.migrations import CHATS, open_store
from mindchat.text.clean import clean, clean_line
from mindchat.text.folding import fold, search_query
from mindchat.text.foreign_json import decode_json

Status = Literal["running", "done", "failed", "cancelled"]
_TITLE = 60


class Chat(Struct, frozen=True):
    """A session as a list shows it."""

    id: str
    title: str
    project: str
    created_at: str
    updated_at: str
    turns: int
    forked_from: str | None = None


class ChatTurn(Struct, frozen=True):
    """One question and its answer."""

    id: int
    ordinal: int
    """From 1."""
    question: str
    answer: str
    status: Status
    created_at: str
    report: dict[str, Any] | None = None
    """The `ask --json` object, if the turn came so far."""


class ChatHit(Struct, frozen=True):
    """One turn that a search found."""

    chat: str
    title: str
    turn: int
    """Its ordinal, from 1."""
    question: str
    answer: str


class Transcript(Struct, frozen=True):
    """A whole session."""

    chat: Chat
    turns: tuple[ChatTurn, ...]


_CHAT = "SELECT s.*, (SELECT count(*) FROM turn t WHERE t.session_id=s.id) AS turns FROM session s"


def _chat(row: Any) -> Chat:
    return Chat(
        row["uid"], row["title"], row["project"], row["created_at"], row["updated_at"], row["turns"], row["forked_from"]
    )


def _search(question: str, answer: str) -> str:
    return fold(f"{question}\n{answer}")


def _remembered(row: Any) -> tuple[str, str]:
    report = decode_json(row["report"]) if row["report"] else {}
    short = "" if report.get("abstained") else report.get("short")
    return str(report.get("standalone") or row["question"]), str(short or row["answer"])


class ChatStore:
    """chats.db. Every method commits before it returns; a killed process loses at most what came after the last
    save_partial.
    """

    def __init__(self, path: Path) -> None:
        self.store = open_store(path, CHATS)

    # ── recording
    # ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, project: str = "", title: str = "") -> str:
        """A new session; its id."""
        uid, moment = short_id("s", now(), os.urandom(8).hex()), now()
        with self.store.write() as connection:
            connection.execute(
                "INSERT INTO session(uid, project, title, created_at, updated_at) VALUES(?,?,?,?,?)",
                (uid, project, clean_line(title, _TITLE), moment, moment),
            )
        return uid

    def begin_turn(self, session: str, question: str) -> int:
        """Commit the question before anything is generated; the turn's key. The first question becomes the title."""
        question, moment = clean(question), now()
        with self.store.write() as connection:
            key = self._key(session)
            ordinal = connection.execute(
                "SELECT coalesce(max(ordinal), 0) + 1 FROM turn WHERE session_id=?", (key,)
            ).fetchone()[0]
            turn = connection.execute(
                "INSERT INTO turn(session_id, ordinal, question, search, created_at) VALUES(?,?,?,?,?)",
                (key, ordinal, question, fold(question), moment),
            ).lastrowid
            connection.execute(
                "UPDATE session SET updated_at=?, title=CASE title WHEN '' THEN ? ELSE title END WHERE id=?",
                (moment, clean_line(question, _TITLE), key),
            )
        assert turn is not None
        return turn

    def save_partial(self, turn: int, text: str) -> None:
        """What can be read so far of a running turn; a search finds it."""
        text = clean(text)
        with self.store.write() as connection:
            row = connection.execute("SELECT question FROM turn WHERE id=? AND status='running'", (turn,)).fetchone()
            if row is not None:
                connection.execute(
                    "UPDATE turn SET answer=?, search=? WHERE id=?", (text, _search(row["question"], text), turn)
                )

    def finish_turn(
        self, turn: int, answer: str, report: str = "", events: bytes = b"", status: Status = "done"
    ) -> None:
        """Close a turn: the answer (or the partial text), the report's JSON and the events' JSON lines."""
        answer = clean(answer)
        packed = zlib.compress(events) if events else None
        with self.store.write() as connection:
            row = connection.execute("SELECT question, session_id FROM turn WHERE id=?", (turn,)).fetchone()
            if row is None:
                raise NotFoundError("This turn no longer exists.", "Its session was deleted while it ran.")
            connection.execute(
                "UPDATE turn SET answer=?, search=?, status=?, report=?, events_z=?, ended_at=? WHERE id=?",
                (answer, _search(row["question"], answer), status, report or None, packed, now(), turn),
            )
            connection.execute("UPDATE session SET updated_at=? WHERE id=?", (now(), row["session_id"]))

    # ── reading
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def resolve(self, prefix: str) -> str:
        """The full id of a session from any unique prefix of at least three characters. Raises NotFoundError,
        UsageError.
        """
        wanted = prefix.strip().lower()
        if len(wanted) < 3:
            raise UsageError(
                f"{prefix!r} is too short for a session id.",
                "Give at least three characters; mindchat sessions list shows them.",
            )
        rows = self.store.rows("SELECT uid FROM session WHERE substr(uid, 1, ?) = ? LIMIT 2", (len(wanted), wanted))
        if not rows:
            raise NotFoundError(f"No session {clean_line(prefix, 20)}.", "mindchat sessions list shows them.")
        if len(rows) > 1:
            raise UsageError(f"Several sessions begin with {clean_line(prefix, 20)}.", "Give more characters.")
        return str(rows[0]["uid"])

    def _key(self, session: str) -> int:
        key = self.store.value("SELECT id FROM session WHERE uid=?", (self.resolve(session),))
        return int(key)

    def latest(self, project: str | None = None) -> str | None:
        """The session used last, of this project if one is named."""
        found = self.store.value(
            "SELECT uid FROM session WHERE ? IS NULL OR project=? ORDER BY updated_at DESC, id DESC LIMIT 1",
            (project, project),
        )
        return None if found is None else str(found)

    def list(self, n: int = 50, project: str | None = None) -> tuple[Chat, ...]:
        """The sessions used last, newest first."""
        sql = f"{_CHAT} WHERE ? IS NULL OR project=? ORDER BY updated_at DESC, s.id DESC LIMIT ?"
        return tuple(_chat(row) for row in self.store.rows(sql, (project, project, n)))

    def search(self, words: str, n: int = 20) -> tuple[ChatHit, ...]:
        """Turns that hold any of the words, best first; accents and case do not matter."""
        if not (query := search_query(words)):
            raise UsageError("There is no word to search for.", "Give a name or a rare word.")
        sql = """SELECT s.uid, s.title, t.ordinal, t.question, t.answer FROM turn_fts JOIN turn t ON t.id=turn_fts.rowid
                 JOIN session s ON s.id=t.session_id WHERE turn_fts MATCH ? ORDER BY bm25(turn_fts), t.id LIMIT ?"""
        return tuple(ChatHit(*row) for row in self.store.rows(sql, (query, n)))

    def show(self, session: str) -> Transcript:
        """A session with all its turns."""
        uid = self.resolve(session)
        chat = self.store.row(f"{_CHAT} WHERE uid=?", (uid,))
        rows = self.store.rows(
            "SELECT t.* FROM turn t JOIN session s ON s.id=t.session_id WHERE s.uid=? ORDER BY ordinal", (uid,)
        )
        turns = tuple(
            ChatTurn(
                row["id"],
                row["ordinal"],
                row["question"],
                row["answer"],
                row["status"],
                row["created_at"],
                decode_json(row["report"]) if row["report"] else None,
            )
            for row in rows
        )
        return Transcript(_chat(chat), turns)

    def history(self, session: str, n: int | None = None) -> tuple[tuple[str, str], ...]:
        """(standalone question, short answer) of the finished turns, oldest first; of the last n if given. Without a
        report: as they were written.
        """
        sql = """SELECT question, answer, report FROM turn t JOIN session s ON s.id=t.session_id
                 WHERE s.uid=? AND t.status='done' ORDER BY ordinal DESC LIMIT ?"""
        rows = self.store.rows(sql, (self.resolve(session), -1 if n is None else n))
        return tuple(_remembered(row) for row in reversed(rows))

    def past(self, session: str) -> tuple[tuple[str, str, Status], ...]:
        """(question, answer, status) of every turn, oldest first; of one that is not done, what was written of its
        answer.
        """
        sql = (
            "SELECT question, answer, status FROM turn t JOIN session s ON s.id=t.session_id WHERE s.uid=? ORDER BY"
            " ordinal"
        )
        return tuple(
            (row["question"], row["answer"], row["status"]) for row in self.store.rows(sql, (self.resolve(session),))
        )

    def newest(self, session: str) -> tuple[int, bytes] | None:
        """Key and events of a session's newest turn; None if it has none."""
        row = self.store.row(
            "SELECT id FROM turn WHERE session_id=? ORDER BY ordinal DESC LIMIT 1", (self._key(session),)
        )
        return None if row is None else (int(row["id"]), self.events(int(row["id"])))

    def events(self, turn: int) -> bytes:
        """The JSON lines of a finished turn; b"" if none were recorded."""
        packed = self.store.value("SELECT events_z FROM turn WHERE id=?", (turn,))
        return zlib.decompress(packed) if packed else b""

    # ── changing
    # ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def rename(self, session: str, title: str) -> str:
        """A new title, cleaned and cut to 60 characters; returns it."""
        if not (title := clean_line(title, _TITLE)):
            raise UsageError("A title needs at least one character.", "mindchat sessions rename ID TITLE")
        with self.store.write() as connection:
            connection.execute("UPDATE session SET title=? WHERE id=?", (title, self._key(session)))
        return title

    def fork(self, session: str, upto: int | None = None) -> str:
        """A copy with the turns up to ordinal `upto` (all of them if None); its id."""
        source = self._key(session)
        uid, moment = short_id("s", now(), os.urandom(8).hex()), now()
        with self.store.write() as connection:
            key = connection.execute(
                "INSERT INTO session(uid, project, title, forked_from, created_at, updated_at) "
                "SELECT ?, project, title, uid, ?, ? FROM session WHERE id=?",
                (uid, moment, moment, source),
            ).lastrowid
            connection.execute(
                """INSERT INTO turn(session_id, ordinal, question, answer, search, status, report, events_z, created_at, ended_at)
                   SELECT ?, ordinal, question, answer, search, CASE status WHEN 'running' THEN 'cancelled' ELSE status END, report, events_z,
                          created_at, ended_at FROM turn WHERE session_id=? AND (? IS NULL OR ordinal<=?) ORDER BY ordinal""",
                (key, source, upto, upto),
            )
        return uid

    def delete(self, session: str) -> None:
        """Erase a session and its turns; no byte of them stays in the file, its WAL or its backups. A notice of the
        store says if some do.
        """
        with self.store.write() as connection:
            connection.execute("DELETE FROM session WHERE id=?", (self._key(session),))
        self._erase()

    def purge(self, older_than: str) -> int:
        """Erase every session not used since `older_than` ago (30d, 2w); how many."""
        with self.store.write() as connection:
            removed = connection.execute("DELETE FROM session WHERE updated_at < ?", (ago(older_than),)).rowcount
        if removed:
            self._erase()
        return removed

    def erase_all(self) -> int:
        """Erase every session (`forget --hard --chats`); how many."""
        with self.store.write() as connection:
            removed = connection.execute("DELETE FROM session").rowcount
        self._erase()
        return removed

    def _erase(self) -> None:
        erase(self.store, "turn_fts")
        self.store.notices += left_over(self.store.path)

    def export(self, session: str, form: Literal["md", "json"] = "md") -> str:
        """The session as Markdown for reading, or as JSON with the reports."""
        transcript = self.show(session)
        if form == "json":
            return msgspec.json.format(msgspec.json.encode(transcript), indent=2).decode()
        parts = [
            f"# {transcript.chat.title or transcript.chat.id}",
            f"Session {transcript.chat.id}, begun {transcript.chat.created_at}.",
        ]
        for turn in transcript.turns:
            parts.append(f"## {turn.ordinal}. {' '.join(turn.question.split())}")
            parts.append(turn.answer or f"*({turn.status})*")
        return "\n\n".join(parts) + "\n"

    def take_notices(self) -> Sequence[str]:
        """What was repaired or found damaged in the file since the last call (ports.TellsRepairs)."""
        return self.store.take_notices()

    def close(self) -> None:
        """Close all connections."""
        self.store.close()

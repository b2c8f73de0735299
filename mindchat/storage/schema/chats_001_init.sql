-- chats.db, schema 1: conversations, kept apart from memory.db because erasing a chat and forgetting a fact are separate promises.
CREATE TABLE session(
  id         INTEGER PRIMARY KEY,
  uid        TEXT NOT NULL UNIQUE,          -- 7 characters, shown to people
  project    TEXT NOT NULL DEFAULT '',
  title      TEXT NOT NULL DEFAULT '',
  forked_from TEXT,                         -- uid of the session this one began as a copy of
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX session_recent ON session(updated_at DESC);

CREATE TABLE turn(
  id         INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE,
  ordinal    INTEGER NOT NULL,
  question   TEXT NOT NULL,
  answer     TEXT NOT NULL DEFAULT '',      -- the partial text while status = 'running'
  search     TEXT NOT NULL DEFAULT '',      -- question and answer, folded in Python: FTS text
  status     TEXT NOT NULL DEFAULT 'running' CHECK(status IN ('running','done','failed','cancelled')),
  report     TEXT,                          -- JSON, the `ask --json` object
  events_z   BLOB,                          -- zlib of the turn's JSON lines
  created_at TEXT NOT NULL,
  ended_at   TEXT,
  UNIQUE(session_id, ordinal)
) STRICT;

CREATE VIRTUAL TABLE turn_fts USING fts5(
  search, content='turn', content_rowid='id',
  tokenize="unicode61 remove_diacritics 2", prefix='3'
);
CREATE TRIGGER turn_ai AFTER INSERT ON turn BEGIN
  INSERT INTO turn_fts(rowid, search) VALUES (new.id, new.search);
END;
CREATE TRIGGER turn_ad AFTER DELETE ON turn BEGIN
  INSERT INTO turn_fts(turn_fts, rowid, search) VALUES('delete', old.id, old.search);
END;
CREATE TRIGGER turn_au AFTER UPDATE OF search ON turn BEGIN
  INSERT INTO turn_fts(turn_fts, rowid, search) VALUES('delete', old.id, old.search);
  INSERT INTO turn_fts(rowid, search) VALUES (new.id, new.search);
END;

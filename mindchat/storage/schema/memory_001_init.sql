-- memory.db, schema 1: documents, entities, facts, evidence, tombstones, events. PRAGMAs are the connection's affair (store.py).
CREATE TABLE meta(
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE scope(
  id        INTEGER PRIMARY KEY,
  kind      TEXT NOT NULL CHECK(kind IN ('global','project','session')),
  name      TEXT NOT NULL,                 -- 'global' | project root id | session uid
  UNIQUE(kind, name)
) STRICT;

CREATE TABLE session(
  id         INTEGER PRIMARY KEY,
  uid        TEXT NOT NULL UNIQUE,
  scope_id   INTEGER NOT NULL REFERENCES scope(id),      -- project (or global) it ran in
  started_at TEXT NOT NULL,
  ended_at   TEXT,
  model_id   TEXT,
  mode       TEXT NOT NULL DEFAULT 'on' CHECK(mode IN ('on','readonly','off'))
) STRICT;                                   -- incognito sessions get NO row at all

CREATE TABLE turn(
  id         INTEGER PRIMARY KEY,
  session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE,
  ordinal    INTEGER NOT NULL,
  role       TEXT NOT NULL CHECK(role IN ('user','assistant')),
  text_sha   TEXT NOT NULL,                 -- the text itself lives in the chat log, not here
  created_at TEXT NOT NULL,
  UNIQUE(session_id, ordinal)
) STRICT;

CREATE TABLE document(
  id         INTEGER PRIMARY KEY,
  uri        TEXT NOT NULL UNIQUE,          -- normalised absolute path, or corpus file and line id
  external_id TEXT,                         -- the id of a corpus line
  collection TEXT NOT NULL DEFAULT 'user',
  title      TEXT NOT NULL DEFAULT '',
  text_z     BLOB NOT NULL,                 -- decoded, normalised text, zlib: the index is rebuilt and quotes are shown from it
  sha256     TEXT NOT NULL,                 -- of that text
  generation INTEGER NOT NULL DEFAULT 1,
  status     TEXT NOT NULL DEFAULT 'active' CHECK(status IN ('active','deleted')),
  trust      INTEGER NOT NULL DEFAULT 1,    -- 0 untrusted 1 corpus 2 user-authored
  mtime_ns   INTEGER, size INTEGER,
  indexed_at TEXT NOT NULL
) STRICT;

CREATE TABLE chunk(
  id          INTEGER PRIMARY KEY,
  document_id INTEGER NOT NULL REFERENCES document(id) ON DELETE CASCADE,
  sha256      TEXT NOT NULL,                -- of NFKC + whitespace-folded chunk text
  ordinal     INTEGER NOT NULL,
  passage     TEXT NOT NULL,                -- the id that the index, citations and prompts use
  char_start  INTEGER NOT NULL,
  char_end    INTEGER NOT NULL,
  page        INTEGER, heading TEXT,        -- where a reader would look
  status      TEXT NOT NULL DEFAULT 'active' CHECK(status IN ('active','gone'))
) STRICT;
CREATE INDEX document_sha ON document(sha256);
CREATE INDEX document_collection ON document(collection, status);
CREATE INDEX chunk_doc    ON chunk(document_id, status, sha256);
CREATE INDEX chunk_passage ON chunk(passage);
CREATE INDEX chunk_sha    ON chunk(sha256) WHERE status='active';

CREATE TABLE entity(
  id          INTEGER PRIMARY KEY,
  name        TEXT NOT NULL,                -- canonical surface form, original script
  norm        TEXT NOT NULL,                -- NFKC casefold, punctuation folded
  etype       TEXT NOT NULL DEFAULT 'other',-- person|org|place|work|event|date|number|user|other
  disambig    TEXT NOT NULL DEFAULT '',     -- e.g. '1984 film', wiki title suffix, document uri
  merged_into INTEGER REFERENCES entity(id),
  created_at  TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX entity_key ON entity(norm, etype, disambig) WHERE merged_into IS NULL;

CREATE TABLE alias(
  norm      TEXT NOT NULL,
  entity_id INTEGER NOT NULL REFERENCES entity(id) ON DELETE CASCADE,
  surface   TEXT NOT NULL,
  source    TEXT NOT NULL CHECK(source IN ('surface','title','parenthetical','user')),
  n         INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY(norm, entity_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX alias_entity ON alias(entity_id);
CREATE INDEX entity_merged ON entity(merged_into) WHERE merged_into IS NOT NULL;

CREATE TABLE predicate(
  name        TEXT PRIMARY KEY,             -- 'director', 'date_of_birth', 'spouse' …
  cardinality TEXT NOT NULL CHECK(cardinality IN ('one','many')),
  mutable     INTEGER NOT NULL DEFAULT 0,   -- 0 birth date, 1 employer/chief executive/lives_in
  range_type  TEXT NOT NULL DEFAULT 'any',  -- person|place|date|number|any …
  inverse     TEXT,
  ttl_days    INTEGER                       -- only for mutable ones
) STRICT, WITHOUT ROWID;

CREATE TABLE fact(
  id           INTEGER PRIMARY KEY,
  uid          TEXT NOT NULL UNIQUE,        -- short id shown to people: 7 chars Crockford base32
  kind         TEXT NOT NULL CHECK(kind IN ('document','user')),
  scope_id     INTEGER NOT NULL REFERENCES scope(id),
  subject_id   INTEGER NOT NULL REFERENCES entity(id),
  predicate    TEXT NOT NULL REFERENCES predicate(name),
  object_id    INTEGER REFERENCES entity(id),
  object_text  TEXT NOT NULL,
  object_norm  TEXT NOT NULL,
  statement    TEXT NOT NULL CHECK(length(statement) <= 300),  -- template-rendered, shown to people
  search       TEXT NOT NULL CHECK(length(search) <= 800),     -- folded statement + aliases (ł→l, ø→o, ß→ss …): FTS text
  lang         TEXT NOT NULL DEFAULT 'und',
  polarity     INTEGER NOT NULL DEFAULT 1 CHECK(polarity IN (0,1)),
  fact_key     TEXT NOT NULL,               -- sha256(subject_id|predicate|object_norm|polarity)
  slot_key     TEXT NOT NULL,               -- sha256(subject_id|predicate)
  status       TEXT NOT NULL CHECK(status IN ('candidate','active','disputed','superseded','stale')),
  prev_status  TEXT,                        -- what it was before 'stale': revival must not promote a candidate or settle a dispute
  confidence   REAL NOT NULL CHECK(confidence BETWEEN 0 AND 1),  -- never raw conf(e)
  calibrated   INTEGER NOT NULL DEFAULT 0,  -- 1: confidence comes from a calibration file
  support      INTEGER NOT NULL DEFAULT 0,  -- distinct live (document|turn) sources
  valid_from   TEXT, valid_to TEXT,         -- world time, ISO-8601 prefix (YYYY[-MM[-DD]])
  recorded_at  TEXT NOT NULL,               -- transaction time
  closed_at    TEXT,                        -- when it stopped being served
  closed_by    INTEGER REFERENCES fact(id) ON DELETE SET NULL,
  closed_why   TEXT,                        -- superseded|source_changed|source_deleted|expired|user
  pinned       INTEGER NOT NULL DEFAULT 0 CHECK(pinned IN (0,1)),
  use_count    INTEGER NOT NULL DEFAULT 0,
  last_used_at TEXT,
  expires_at   TEXT
) STRICT;
CREATE UNIQUE INDEX fact_live ON fact(scope_id, fact_key) WHERE status IN ('candidate','active','disputed','stale');
CREATE INDEX fact_slot   ON fact(scope_id, slot_key, status);
CREATE INDEX fact_object ON fact(object_id) WHERE object_id IS NOT NULL;
CREATE INDEX fact_subject ON fact(subject_id);
CREATE INDEX fact_closed_by ON fact(closed_by) WHERE closed_by IS NOT NULL;
CREATE INDEX fact_list   ON fact(status, recorded_at DESC);
CREATE INDEX fact_evict  ON fact(scope_id, pinned, confidence, last_used_at);

CREATE TABLE evidence(
  id           INTEGER PRIMARY KEY,
  fact_id      INTEGER NOT NULL REFERENCES fact(id) ON DELETE CASCADE,
  source_type  TEXT NOT NULL CHECK(source_type IN ('chunk','turn','manual','import')),
  document_id  INTEGER REFERENCES document(id) ON DELETE CASCADE,
  chunk_id     INTEGER REFERENCES chunk(id)    ON DELETE CASCADE,
  chunk_sha    TEXT,                        -- kept even when the chunk row goes
  quote        TEXT CHECK(quote IS NULL OR length(quote) <= 400),
  quote_start  INTEGER, quote_end INTEGER,  -- offsets inside the document text
  turn_id      INTEGER REFERENCES turn(id) ON DELETE CASCADE,
  session_id   INTEGER REFERENCES session(id) ON DELETE SET NULL,
  hop          INTEGER,                     -- 0 = chat turn, 1.. = retrieval hop
  subquery     TEXT,
  extractor    TEXT NOT NULL,               -- 'slot-v1/qwen2.5-1.5b-q4@sha' | 'heuristic-v2'
  grounding    INTEGER NOT NULL CHECK(grounding IN (0,1,2)),  -- 0 none 1 normalised 2 exact
  conf_max     REAL, conf_min REAL,         -- paper's conf(e) and its min-aggregate
  h_mean       REAL, h_max REAL, attn_max REAL, p_true REAL,
  margin       REAL,                        -- p_true of the claim minus the best distractor's
  status       TEXT NOT NULL DEFAULT 'live' CHECK(status IN ('live','stale','withdrawn')),
  created_at   TEXT NOT NULL,
  CHECK((source_type='chunk') = (chunk_id IS NOT NULL AND chunk_sha IS NOT NULL)),
  CHECK((source_type='turn')  = (turn_id   IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX evidence_once_chunk ON evidence(fact_id, chunk_id, quote_start) WHERE source_type='chunk';
CREATE UNIQUE INDEX evidence_once_turn  ON evidence(fact_id, turn_id) WHERE source_type='turn';
CREATE INDEX evidence_fact  ON evidence(fact_id, status);
CREATE INDEX evidence_session ON evidence(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX evidence_chunk ON evidence(chunk_id) WHERE chunk_id IS NOT NULL;
CREATE INDEX evidence_doc   ON evidence(document_id, status) WHERE document_id IS NOT NULL;

CREATE TABLE tombstone(                     -- "forget" must survive re-reading the same document
  scope_id   INTEGER NOT NULL REFERENCES scope(id),
  kind       TEXT NOT NULL CHECK(kind IN ('fact','slot','entity')),
  key_hmac   TEXT NOT NULL,                 -- HMAC(meta.tombstone_key, norm subject|predicate|object): no plaintext
  created_at TEXT NOT NULL,
  PRIMARY KEY(scope_id, kind, key_hmac)
) STRICT, WITHOUT ROWID;

CREATE TABLE event(                         -- audit + evaluation trail; ring-limited
  id         INTEGER PRIMARY KEY,
  at         TEXT NOT NULL,
  session_id INTEGER, turn_ordinal INTEGER, hop INTEGER,
  name       TEXT NOT NULL,                 -- store|merge|supersede|dispute|drop|stale|relocate|forget|hit|skip|audit_ok|audit_bad
  fact_id    INTEGER,
  detail     TEXT                            -- JSON, validated in Python
) STRICT;
CREATE INDEX event_name ON event(name, at);
CREATE INDEX event_fact ON event(fact_id) WHERE fact_id IS NOT NULL;
CREATE INDEX event_session ON event(session_id, turn_ordinal) WHERE session_id IS NOT NULL;

CREATE VIRTUAL TABLE fact_fts USING fts5(
  search, content='fact', content_rowid='id',
  tokenize="unicode61 remove_diacritics 2", prefix='3'
);
CREATE TRIGGER fact_ai AFTER INSERT ON fact BEGIN
  INSERT INTO fact_fts(rowid, search) VALUES (new.id, new.search);
END;
CREATE TRIGGER fact_ad AFTER DELETE ON fact BEGIN
  INSERT INTO fact_fts(fact_fts, rowid, search) VALUES('delete', old.id, old.search);
END;
CREATE TRIGGER fact_au AFTER UPDATE OF search ON fact BEGIN
  INSERT INTO fact_fts(fact_fts, rowid, search) VALUES('delete', old.id, old.search);
  INSERT INTO fact_fts(rowid, search) VALUES (new.id, new.search);
END;

-- provenance cascade: document -> chunk -> evidence -> fact
CREATE TRIGGER doc_deleted AFTER UPDATE OF status ON document
WHEN new.status='deleted' AND old.status<>'deleted' BEGIN
  UPDATE chunk SET status='gone' WHERE document_id=new.id AND status='active';
END;
CREATE TRIGGER chunk_gone AFTER UPDATE OF status ON chunk
WHEN new.status='gone' AND old.status='active' BEGIN
  UPDATE evidence SET status='stale' WHERE chunk_id=new.id AND status='live';
END;
CREATE TRIGGER evidence_status AFTER UPDATE OF status ON evidence WHEN new.status<>old.status BEGIN
  UPDATE fact SET support = (SELECT count(DISTINCT CASE source_type WHEN 'chunk' THEN 'd'||document_id
                     WHEN 'turn' THEN 't'||turn_id ELSE source_type||id END)
               FROM evidence WHERE fact_id=new.fact_id AND status='live') WHERE id=new.fact_id;
  UPDATE fact SET prev_status=status, status='stale', closed_why='source_changed',
                  closed_at=strftime('%Y-%m-%dT%H:%M:%fZ','now')
   WHERE id=new.fact_id AND support=0 AND status IN ('active','candidate','disputed');
  UPDATE fact SET status=coalesce(prev_status,'candidate'), prev_status=NULL, closed_at=NULL, closed_why=NULL
   WHERE id=new.fact_id AND support>0 AND status='stale';
END;
CREATE TRIGGER evidence_new AFTER INSERT ON evidence BEGIN
  UPDATE fact SET support = (SELECT count(DISTINCT CASE source_type WHEN 'chunk' THEN 'd'||document_id
                     WHEN 'turn' THEN 't'||turn_id ELSE source_type||id END)
               FROM evidence WHERE fact_id=new.fact_id AND status='live') WHERE id=new.fact_id;
  UPDATE fact SET prev_status=status, status='stale', closed_why='source_changed',
                  closed_at=strftime('%Y-%m-%dT%H:%M:%fZ','now')
   WHERE id=new.fact_id AND support=0 AND status IN ('active','candidate','disputed');
  UPDATE fact SET status=coalesce(prev_status,'candidate'), prev_status=NULL, closed_at=NULL, closed_why=NULL
   WHERE id=new.fact_id AND support>0 AND status='stale';
END;
CREATE TRIGGER evidence_gone AFTER DELETE ON evidence BEGIN
  UPDATE fact SET support = (SELECT count(DISTINCT CASE source_type WHEN 'chunk' THEN 'd'||document_id
                     WHEN 'turn' THEN 't'||turn_id ELSE source_type||id END)
               FROM evidence WHERE fact_id=old.fact_id AND status='live') WHERE id=old.fact_id;
  UPDATE fact SET prev_status=status, status='stale', closed_why='source_changed',
                  closed_at=strftime('%Y-%m-%dT%H:%M:%fZ','now')
   WHERE id=old.fact_id AND support=0 AND status IN ('active','candidate','disputed');
END;
CREATE TRIGGER event_ring AFTER INSERT ON event WHEN new.id % 1000 = 0 BEGIN
  DELETE FROM event WHERE id <= new.id - 50000;
END;

-- the only relation the engine may read: never 'stale', 'candidate', closed, expired
CREATE VIEW servable AS
SELECT f.* FROM fact f
WHERE f.status='active' AND f.support>0
  AND (f.expires_at IS NULL OR f.expires_at > strftime('%Y-%m-%dT%H:%M:%fZ','now'));

-- shown as "sources disagree", never served as a fact and never a reason to skip a search
CREATE VIEW servable_disputed AS
SELECT f.* FROM fact f WHERE f.status='disputed' AND f.support>0;

-- The first layout. A file like this one never changes once it is released: add the next number.

PRAGMA application_id = 0x54484c4e;  -- "THLN": tells our files from other SQLite files

-- Tenants and sessions are known by a number inside the file: the rows that point to them are many.
CREATE TABLE tenants (
    number  INTEGER PRIMARY KEY,
    tenant  TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE sessions (
    number   INTEGER PRIMARY KEY,
    session  TEXT NOT NULL UNIQUE,
    tenant   INTEGER NOT NULL REFERENCES tenants (number),
    created  REAL NOT NULL,     -- by the store's clock, as is touched
    touched  REAL NOT NULL,     -- last append or hit: what retention goes by
    last     INTEGER NOT NULL,  -- seq of the last event; events have no gaps, so this also counts them
    turns    INTEGER NOT NULL,
    oldest   REAL,              -- time of the first event, and of the last
    newest   REAL
) STRICT;

CREATE INDEX sessions_by_touch ON sessions (touched DESC, session);
CREATE INDEX sessions_by_tenant ON sessions (tenant, touched DESC, session);

-- Positions follow the order of commits across all sessions, and none is ever used twice.
CREATE TABLE events (
    position  INTEGER PRIMARY KEY AUTOINCREMENT,
    session   INTEGER NOT NULL REFERENCES sessions (number),
    seq       INTEGER NOT NULL,
    id        TEXT NOT NULL,
    parent    TEXT NOT NULL,
    at        TEXT NOT NULL,     -- a float as text: exact, also when many rows are handed over as one
    type      TEXT NOT NULL,
    version   INTEGER NOT NULL,
    about     TEXT,              -- the turn that a refusal is about, the session that a fork goes on from
    data      TEXT NOT NULL      -- JSON, to the byte
) STRICT;

CREATE UNIQUE INDEX events_by_session ON events (session, seq);
CREATE INDEX events_thoughts ON events (parent, session) WHERE type = 'reasoning';
CREATE INDEX events_about ON events (about) WHERE about IS NOT NULL;

CREATE TABLE memories (
    number    INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES sessions (number),
    turn      TEXT NOT NULL,
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,
    entries   INTEGER NOT NULL,  -- how many it makes in a listing; 0: it has no thoughts
    chars     INTEGER NOT NULL,  -- of all of them together
    at        REAL NOT NULL,
    memo      TEXT NOT NULL      -- the memory as JSON, without its thoughts: those are in the log
) STRICT;

CREATE UNIQUE INDEX memories_by_turn ON memories (session, turn);
CREATE INDEX memories_with_thoughts ON memories (provider, model, session, entries, chars, at)
WHERE entries > 0;

CREATE TABLE names (
    tenant  INTEGER NOT NULL REFERENCES tenants (number),
    name    BLOB NOT NULL,
    memory  INTEGER NOT NULL REFERENCES memories (number),
    PRIMARY KEY (tenant, name, memory)
) STRICT, WITHOUT ROWID;

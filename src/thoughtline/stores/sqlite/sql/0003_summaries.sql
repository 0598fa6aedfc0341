-- Summaries: what listings and statistics read in place of a million rows. They are derived, and
-- follow the tables in slices; `summarised` says how far they are. Appends do not write them.

-- Sessions that a person made by library or command line, which retention leaves alone.
ALTER TABLE sessions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET kept = 1
WHERE tenant = (SELECT number FROM tenants WHERE tenant = 'local');

CREATE TABLE entry_groups (
    number    INTEGER PRIMARY KEY,
    tenant    INTEGER NOT NULL REFERENCES tenants (number),
    provider  TEXT NOT NULL,
    endpoint  TEXT NOT NULL,
    model     TEXT NOT NULL,
    entries   INTEGER NOT NULL,  -- turns with thoughts
    chars     INTEGER NOT NULL,
    UNIQUE (tenant, provider, endpoint, model)
) STRICT;

CREATE TABLE listed_entries (
    memory  INTEGER PRIMARY KEY REFERENCES memories (number),
    kind    INTEGER NOT NULL REFERENCES entry_groups (number),
    shown   INTEGER NOT NULL,    -- how many rows it makes in a listing: one per call
    chars   INTEGER NOT NULL,
    at      REAL NOT NULL
) STRICT;

CREATE INDEX listed_entries_by_kind ON listed_entries (kind, memory);
CREATE INDEX listed_entries_by_time ON listed_entries (at);

CREATE TABLE listed_calls (
    call    TEXT NOT NULL,
    memory  INTEGER NOT NULL REFERENCES memories (number),
    PRIMARY KEY (call, memory)
) STRICT, WITHOUT ROWID;

-- What became of thoughts, per interval; deleting sessions does not change what happened.
CREATE TABLE turn_counts (
    seconds   INTEGER NOT NULL,  -- length of the interval
    at        INTEGER NOT NULL,  -- when it began
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,
    counts    TEXT NOT NULL,     -- JSON: name → count
    PRIMARY KEY (seconds, at, provider, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE summarised (
    source    TEXT PRIMARY KEY,
    position  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO summarised VALUES ('memories', 0), ('events', 0);

DROP INDEX memories_with_thoughts;

-- The first layout. A file like this one never changes once it is released: add the next number.

PRAGMA application_id = 0x54484c31;  -- "THL1": tells our files from other SQLite files

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
    newest   REAL,
    kept     INTEGER NOT NULL   -- a person made it by library or command line: it does not expire
) STRICT;

CREATE INDEX sessions_by_touch ON sessions (touched DESC, session);
CREATE INDEX sessions_by_tenant ON sessions (tenant, touched DESC, session);

-- One row for the events of a turn in a batch, with the turn's index entry in it. `stores/row.py`
-- says what the columns hold.
CREATE TABLE batches (
    position  INTEGER PRIMARY KEY,  -- of its last event among those of all sessions, in the order
                                    -- of commits; none is used twice
    session   INTEGER NOT NULL REFERENCES sessions (number),
    first     INTEGER NOT NULL,  -- seq of its first event
    count     INTEGER NOT NULL,  -- of its events, whose positions follow one another
    id        TEXT NOT NULL,     -- the batch's, at its first row: written twice, it is one
    turn      TEXT NOT NULL,
    parent    TEXT NOT NULL,     -- the turn that is continued, where the turn starts here
    kinds     INTEGER NOT NULL,  -- a bit for each type of event
    began     REAL NOT NULL,
    provider  TEXT NOT NULL,
    endpoint  TEXT NOT NULL,
    model     TEXT NOT NULL,
    asked     TEXT NOT NULL,
    served    TEXT NOT NULL,
    outcome   TEXT NOT NULL,
    entries   INTEGER NOT NULL,  -- how many the index entry makes in a listing
    chars     INTEGER NOT NULL,  -- of all of them together
    ended     REAL NOT NULL,
    memo      BLOB NOT NULL,     -- the index entry; empty: none is filed here
    thoughts  BLOB NOT NULL,
    said      BLOB NOT NULL      -- last: a look-up does not read it
) STRICT;

-- The last position that a deleted row may have had: AUTOINCREMENT would write it with every row.
CREATE TABLE newest (
    position  INTEGER NOT NULL
) STRICT;

INSERT INTO newest VALUES (0);

CREATE INDEX batches_by_session ON batches (session, first);
CREATE INDEX batches_by_turn ON batches (turn, session);
CREATE INDEX batches_continuing ON batches (parent) WHERE parent <> '';

-- All that listings and statistics of thoughts ask for: they do not read the rows.
CREATE INDEX batches_listed ON batches
    (position, session, provider, endpoint, model, asked, entries, chars, ended)
WHERE entries > 0;

CREATE INDEX batches_listed_by_time ON batches (ended, session) WHERE entries > 0;

-- Turns with thoughts, added up: the triggers keep it true, whatever is done to the rows.
CREATE TABLE entry_sums (
    tenant    INTEGER NOT NULL,
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,     -- as asked for
    entries   INTEGER NOT NULL,
    listed    INTEGER NOT NULL,  -- these in a listing, which has each once for every tool call
    chars     INTEGER NOT NULL,
    PRIMARY KEY (tenant, provider, model)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER entry_added AFTER INSERT ON batches WHEN NEW.entries > 0
BEGIN
    INSERT INTO entry_sums
    SELECT s.tenant, NEW.provider, CASE NEW.asked WHEN '' THEN NEW.model ELSE NEW.asked END,
        1, NEW.entries, NEW.chars / NEW.entries
    FROM sessions AS s WHERE s.number = NEW.session
    ON CONFLICT DO UPDATE SET entries = entries + 1, listed = listed + excluded.listed,
        chars = chars + excluded.chars;
END;

CREATE TRIGGER entry_deleted AFTER DELETE ON batches WHEN OLD.entries > 0
BEGIN
    UPDATE entry_sums SET entries = entries - 1, listed = listed - OLD.entries,
        chars = chars - OLD.chars / OLD.entries
    WHERE tenant = (SELECT tenant FROM sessions WHERE number = OLD.session)
      AND provider = OLD.provider
      AND model = CASE OLD.asked WHEN '' THEN OLD.model ELSE OLD.asked END;
END;

CREATE TRIGGER entry_changed AFTER UPDATE OF entries, chars ON batches WHEN OLD.entries > 0
BEGIN
    UPDATE entry_sums SET entries = entries - (NEW.entries = 0),
        listed = listed - OLD.entries + NEW.entries,
        chars = chars - OLD.chars / OLD.entries + coalesce(NEW.chars / nullif(NEW.entries, 0), 0)
    WHERE tenant = (SELECT tenant FROM sessions WHERE number = OLD.session)
      AND provider = OLD.provider
      AND model = CASE OLD.asked WHEN '' THEN OLD.model ELSE OLD.asked END;
END;

-- Where index entries are found: the key, or the name of a tool call (blinded, if the file is
-- sealed), and the row.
CREATE TABLE lookup_keys (
    tenant    INTEGER NOT NULL REFERENCES tenants (number),
    name      BLOB NOT NULL,
    position  INTEGER NOT NULL REFERENCES batches (position),
    PRIMARY KEY (tenant, name, position)
) STRICT, WITHOUT ROWID;

-- The turns that quarantines are about, and the sessions that forks go on from. There are few.
CREATE TABLE pointers (
    session   INTEGER NOT NULL REFERENCES sessions (number),  -- where it was said
    type      TEXT NOT NULL,
    about     TEXT NOT NULL,
    thoughts  TEXT NOT NULL      -- positions of refused thoughts, as a JSON array; empty: all
) STRICT;

CREATE INDEX pointers_about ON pointers (about);
CREATE INDEX pointers_by_session ON pointers (session);

-- What became of thoughts, per interval; deleting sessions does not change what happened.
CREATE TABLE turn_counts (
    seconds   INTEGER NOT NULL,  -- length of the interval
    at        INTEGER NOT NULL,  -- when it began
    provider  TEXT NOT NULL,
    model     TEXT NOT NULL,
    name      TEXT NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (seconds, at, provider, model, name)
) STRICT, WITHOUT ROWID;

-- Keys of tenants, wrapped by master keys that are not in this file, and which of those wraps what
-- is new. See `stores/sealing`.
CREATE TABLE tenant_keys (
    tenant   TEXT NOT NULL,
    version  INTEGER NOT NULL,   -- 0: of look-up keys; above: of values, of which the highest seals
    master   TEXT NOT NULL,
    wrapped  BLOB NOT NULL,
    PRIMARY KEY (tenant, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE sealing (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    master   TEXT NOT NULL,      -- empty: nothing is sealed
    plain    INTEGER NOT NULL,   -- whether some of a sealed file may be plain
    changes  INTEGER NOT NULL    -- rises with every change of a key: what is held ready is void then
) STRICT;

INSERT INTO sealing VALUES (1, '', 0, 0);

CREATE TRIGGER key_added AFTER INSERT ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

CREATE TRIGGER key_replaced AFTER UPDATE ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

CREATE TRIGGER key_deleted AFTER DELETE ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

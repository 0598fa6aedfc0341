-- One row for the events of a turn in a batch, in place of one per event, with the turn's index
-- entry in it. `stores/row.py` says what the columns hold. What the tables of before have is moved
-- by `one_row_per_turn.py`, in the same transaction.

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

-- Where index entries are found: the key (blinded, if the file is sealed) and the row.
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

-- The summaries follow the new rows from the start; what was counted per interval stays.
DROP TABLE listed_calls;
DROP TABLE listed_entries;
DELETE FROM entry_groups;
UPDATE summarised SET source = 'entries', position = 0 WHERE source = 'memories';

CREATE TABLE listed_entries (
    position  INTEGER PRIMARY KEY REFERENCES batches (position),
    kind      INTEGER NOT NULL REFERENCES entry_groups (number),
    shown     INTEGER NOT NULL,  -- how many rows it makes in a listing: one per call
    chars     INTEGER NOT NULL,
    at        REAL NOT NULL
) STRICT;

CREATE INDEX listed_entries_by_kind ON listed_entries (kind, position);
CREATE INDEX listed_entries_by_time ON listed_entries (at);

CREATE TABLE listed_calls (
    call      BLOB NOT NULL,     -- blinded, if the file is sealed
    position  INTEGER NOT NULL REFERENCES batches (position),
    PRIMARY KEY (call, position)
) STRICT, WITHOUT ROWID;

-- The first layout. A file like this one never changes once it is released: add the next number.
-- Ids are ours and are bytes; numbers that the database hands out order rows and identify nothing.

CREATE TABLE layout (
    version     int NOT NULL,        -- number of the last migration
    works_from  int NOT NULL         -- the oldest layout whose code may go on with this one
);
INSERT INTO layout VALUES (0, 0);

-- One row: which database this is. After a failover or a restore elsewhere, transaction ids may
-- start anew: then the era rises, and so does every position in the log.
CREATE TABLE home (
    era          int NOT NULL,
    cluster      bigint NOT NULL,    -- system identifier
    timeline     int NOT NULL,
    fingerprint  bytea               -- of the secret that all nodes share
);

CREATE TABLE tenants (
    tenant  bytea PRIMARY KEY,
    epoch   bigint NOT NULL          -- rises when something of the tenant is deleted or refused
);

CREATE TABLE sessions (
    session  bytea PRIMARY KEY,
    tenant   bytea NOT NULL,
    created  float8 NOT NULL,
    touched  float8 NOT NULL,        -- last append or hit: what retention goes by
    last     int NOT NULL,           -- seq of the last event
    turns    int NOT NULL,
    oldest   float8,                 -- time of the first event, and of the last
    newest   float8,
    kept     bool NOT NULL           -- a person made it: it does not expire
) WITH (fillfactor = 70);

CREATE INDEX sessions_by_touch ON sessions (touched DESC, session);
CREATE INDEX sessions_by_tenant ON sessions (tenant, touched DESC, session);

CREATE SEQUENCE filings CACHE 1;

-- What was written about one turn at once. A batch has one row, and more where it is about more.
CREATE TABLE batches (
    session   bytea NOT NULL,
    id        bytea NOT NULL,        -- the batch's: written twice, it is one
    nth       smallint NOT NULL,     -- which row of its batch
    tenant    bytea NOT NULL,
    first     int NOT NULL,          -- seq of the first event
    count     int NOT NULL,
    era       int NOT NULL,
    xid       xid8 NOT NULL DEFAULT pg_current_xact_id(),
    filed     bigint NOT NULL,
    kinds     bigint NOT NULL,       -- types of its events, a bit each
    newest    float8 NOT NULL,
    entry     bytea,                 -- the index entry that its thoughts belong to
    turn      bytea,                 -- the turn that starts here
    parent    bytea,                 -- and the turn that it continues
    said      bytea NOT NULL,        -- the events, without the data of thoughts
    thoughts  bytea,
    PRIMARY KEY (session, id, nth)
);
ALTER TABLE batches ALTER said SET STORAGE EXTERNAL, ALTER thoughts SET STORAGE EXTERNAL;

CREATE UNIQUE INDEX batches_by_session ON batches (session, first, nth);
CREATE INDEX batches_by_order ON batches (era, xid, filed);
CREATE INDEX batches_by_entry ON batches (entry) WHERE thoughts IS NOT NULL;
CREATE INDEX batches_by_parent ON batches (parent) WHERE parent IS NOT NULL;

-- Index entries: what a look-up finds.
CREATE TABLE entries (
    id        bytea PRIMARY KEY,     -- made of session and turn
    session   bytea NOT NULL,
    turn      bytea NOT NULL,
    tenant    bytea NOT NULL,
    filed     bigint NOT NULL,       -- the last filed comes first; names of another filing are void
    rev       bigint NOT NULL,       -- changes with what the entry or its thoughts say
    at        float8 NOT NULL,
    provider  bytea NOT NULL,
    endpoint  bytea NOT NULL,
    model     bytea NOT NULL,
    shown     int NOT NULL,          -- how many it makes in a listing
    chars     int NOT NULL,
    memo      bytea NOT NULL         -- the entry without its thoughts: those are in the log
);
ALTER TABLE entries ALTER memo SET STORAGE EXTERNAL;

CREATE INDEX entries_by_session ON entries (session, filed);
CREATE INDEX entries_shown ON entries (filed) WHERE shown > 0;
CREATE INDEX entries_shown_of_tenant ON entries (tenant, filed) WHERE shown > 0;

CREATE TABLE names (
    name   bytea NOT NULL,           -- a look-up key of a tenant
    filed  bigint NOT NULL,
    entry  bytea NOT NULL,
    PRIMARY KEY (name, filed) INCLUDE (entry)
);

-- Refusals of thoughts, and forks.
CREATE TABLE pointers (
    about    bytea NOT NULL,         -- the refused turn, the session that was forked
    kind     "char" NOT NULL,        -- r or f
    session  bytea NOT NULL,
    tenant   bytea NOT NULL,
    data     bytea NOT NULL
);
CREATE INDEX pointers_by_target ON pointers (about);
CREATE INDEX pointers_by_session ON pointers (session);

-- What was deleted: a batch that waited on a node meanwhile is changed before it is written.
CREATE TABLE gone (
    tenant  bytea NOT NULL,          -- empty: of all tenants
    epoch   bigint NOT NULL,
    at      float8 NOT NULL,
    what    bytea NOT NULL
);
CREATE INDEX gone_by_tenant ON gone (tenant, epoch);
CREATE INDEX gone_by_time ON gone (at);

-- Work that one node does for all, and how far it is.
CREATE TABLE jobs (
    name    text PRIMARY KEY,
    holder  text NOT NULL,
    until   timestamptz NOT NULL,
    cursor  numeric NOT NULL DEFAULT 0
);

-- What became of thoughts, per interval; deleting sessions does not change what happened.
CREATE TABLE turn_counts (
    seconds   int NOT NULL,
    at        bigint NOT NULL,
    provider  bytea NOT NULL,
    model     bytea NOT NULL,
    name      text NOT NULL,
    count     bigint NOT NULL,
    PRIMARY KEY (seconds, at, provider, model, name)
);

-- Turns that are under way, while somebody looks.
CREATE UNLOGGED TABLE running (
    node  text NOT NULL,
    seen  timestamptz NOT NULL,
    data  bytea NOT NULL,
    PRIMARY KEY (node)
);

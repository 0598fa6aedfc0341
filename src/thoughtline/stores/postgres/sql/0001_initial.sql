-- The first layout. A file like this one never changes once it is released: add the next number.
-- Ids are ours and are bytes; numbers that the database hands out order rows and identify nothing.

CREATE TABLE thoughtline_layout (
    version     int NOT NULL,        -- number of the last migration
    works_from  int NOT NULL         -- the oldest layout whose code may go on with this one
);
INSERT INTO thoughtline_layout VALUES (0, 0);

-- One row: which database this is. After a failover or a restore elsewhere, transaction ids may
-- start anew: then the era rises, and so does every position in the log.
CREATE TABLE home (
    era          int NOT NULL,
    cluster      bigint NOT NULL,    -- system identifier
    timeline     int NOT NULL,
    fingerprint  bytea               -- of the secret that all nodes share
);
CREATE UNIQUE INDEX home_is_one ON home ((true));  -- whoever starts at the same time

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

-- Work that one node does for all.
CREATE TABLE jobs (
    name    text PRIMARY KEY,
    holder  text NOT NULL,
    until   timestamptz NOT NULL
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

-- Keys of tenants, wrapped by master keys that are not in this database, and which of those wraps
-- what is new. See `stores/sealing`.
CREATE TABLE tenant_keys (
    tenant   bytea NOT NULL,
    version  int NOT NULL,           -- 0: of look-up keys; above: of values, the highest seals
    master   text NOT NULL,
    wrapped  bytea NOT NULL,
    PRIMARY KEY (tenant, version)
);

CREATE TABLE sealing (
    one      bool PRIMARY KEY DEFAULT true CHECK (one),
    master   text NOT NULL,          -- empty: nothing is sealed
    plain    bool NOT NULL           -- whether some of a sealed database may be plain
);
INSERT INTO sealing VALUES (true, '', false);

-- Functions. Code of two releases may work on one database: one that takes other arguments stands
-- beside the one that it replaces.

-- Locks sessions until the transaction ends. That needs no transaction id: so of two transactions
-- on one session the later has the higher id, and feeds, which go by it, keep a session's order.
CREATE FUNCTION lock_sessions(sessions bytea[]) RETURNS void LANGUAGE sql AS $$
    SELECT count(pg_advisory_xact_lock(key)) FROM (
        SELECT DISTINCT ('x' || left(md5(session), 16))::bit(64)::bigint AS key
        FROM unnest(sessions) AS s (session) ORDER BY key
    ) AS keys
$$;

-- The time: the database's, unless one is given.
CREATE FUNCTION store_time(given float8) RETURNS float8 LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(given, extract(epoch FROM clock_timestamp())::float8)
$$;

-- Notes that something of these tenants was deleted or refused. The number is taken when the row is
-- ours: of two who wait for it, the later one has the higher number. What is noted for all tenants
-- waits for what is noted for one, so that the highest number that can be seen never comes first.
CREATE FUNCTION raise_epoch(changed bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ''::bytea = ANY (changed) THEN
        PERFORM pg_advisory_xact_lock(7305, 3);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(7305, 3);
    END IF;
    INSERT INTO tenants AS t
    SELECT tenant, nextval('filings') FROM unnest(changed) AS c (tenant) ORDER BY tenant
    ON CONFLICT (tenant) DO UPDATE SET epoch = nextval('filings');
END
$$;

-- Whether these are the newest keys of these tenants: what is sealed with another one could be lost.
-- A version of 0 says that the node has no keys, which is right while nothing is sealed; -1 says that
-- it is plain on purpose. The keys cannot change before the transaction ends; who looks whether
-- anything is sealed, or plain, waits until then, too (`lock_sealing`).
CREATE FUNCTION keys_current(tenants_ bytea[], versions_ int[]) RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7306, key) FROM (
        SELECT DISTINCT hashtext(encode(tenant, 'hex')) AS key FROM unnest(tenants_) AS t (tenant)
        ORDER BY key
    ) AS locks;
    PERFORM pg_advisory_xact_lock_shared(7305, 4);
    IF -1 = ANY (versions_) THEN
        UPDATE sealing SET plain = true WHERE master <> '' AND NOT plain;
    END IF;
    RETURN NOT EXISTS (
        SELECT FROM unnest(tenants_, versions_) AS k (tenant, version)
        WHERE k.version = 0 AND (SELECT master FROM sealing) <> '' OR k.version > 0
          AND k.version IS DISTINCT FROM (
              SELECT max(t.version) FROM tenant_keys AS t WHERE t.tenant = k.tenant)
    );
END
$$;

-- What is written is sent as rows. `batch` is the number of a batch, from 1; the names of an entry are
-- sent as one value.
CREATE TYPE batch_values AS (
    id bytea, session bytea, tenant bytea, expect int, count int, turns int, oldest float8,
    newest float8, kept bool, epoch bigint, key int
);
CREATE TYPE row_values AS (
    batch int, nth int, skip int, count int, kinds bigint, newest float8, entry bytea, turn bytea,
    parent bytea, said bytea, thoughts bytea
);
CREATE TYPE entry_values AS (
    batch int, names bytea, id bytea, turn bytea, at float8, provider bytea, endpoint bytea,
    model bytea, shown int, chars int, memo bytea
);
CREATE TYPE pointer_values AS (batch int, about bytea, kind text, data bytea);

-- Files index entries of batches under their names; those that were there before are replaced.
-- Returns the entries that were replaced, for their old names to be deleted.
CREATE FUNCTION file_entries(
    session_ bytea[], tenant_ bytea[], entries_ entry_values[],
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM unnest(entries_));
    filed_ bigint[] := ARRAY(SELECT nextval('filings') FROM generate_subscripts(entries_, 1));
BEGIN
    SELECT array_agg(e.id), array_agg(e.filed), array_agg(e.memo) INTO old_id, old_filed, old_memo
    FROM entries AS e WHERE e.id = ANY (ids);
    INSERT INTO entries
    SELECT t.id, session_[t.batch], t.turn, tenant_[t.batch], t.filed, t.filed, t.at, t.provider,
           t.endpoint, t.model, t.shown, t.chars, t.memo
    FROM unnest(entries_, filed_) AS t (batch, names, id, turn, at, provider, endpoint, model, shown,
                                        chars, memo, filed)
    ON CONFLICT (id) DO UPDATE SET
        filed = excluded.filed, rev = excluded.rev, at = excluded.at, provider = excluded.provider,
        endpoint = excluded.endpoint, model = excluded.model, shown = excluded.shown,
        chars = excluded.chars, memo = excluded.memo;
    INSERT INTO names
    SELECT substr(t.names, k * 24 + 1, 24), t.filed, t.id
    FROM unnest(entries_, filed_) AS t (batch, names, id, turn, at, provider, endpoint, model, shown,
                                        chars, memo, filed),
        generate_series(0, length(t.names) / 24 - 1) AS k;
END
$$;

-- Writes a group of batches in one transaction, or none of them.
-- Returns a verdict on each batch, and the last seq before it. Where all are 'n' (new), all are
-- written; else none is, and the node tries again without those that are
-- 'w' (written before), 't' (of another tenant), 'e' (not as expected) or 'g' (deleted meanwhile).
-- Where the keys that they are sealed with are not the newest, all are 'k'.
-- Each row is looked up by its key however the tables are thought to be: a plan that was made while
-- they were small is kept until they are analysed. Only the primary key gives the order that is asked
-- for.
CREATE FUNCTION append(
    now_ float8, batches_ batch_values[], rows_ row_values[], entries_ entry_values[],
    pointers_ pointer_values[],
    OUT verdicts text, OUT lasts int[], OUT xid_ bigint,
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    sessions_ bytea[] := ARRAY(SELECT session FROM unnest(batches_));
    tenants_ bytea[] := ARRAY(SELECT tenant FROM unnest(batches_));
    at_ float8;
BEGIN
    IF NOT keys_current(tenants_, ARRAY(SELECT key FROM unnest(batches_))) THEN
        verdicts := repeat('k', cardinality(batches_));
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(7305, 2);  -- who deletes waits, see note_deletion
    PERFORM lock_sessions(sessions_);
    at_ := store_time(now_);

    SELECT string_agg(verdict, '' ORDER BY n), array_agg(last ORDER BY n) INTO verdicts, lasts
    FROM (
        SELECT b.n,
               CASE WHEN s.tenant <> b.tenant THEN 't' WHEN w.first IS NOT NULL THEN 'w'
                    WHEN b.expect <> coalesce(s.last, -1) THEN 'e'
                    WHEN b.epoch < (
                        SELECT max(t.epoch) FROM tenants AS t WHERE t.tenant IN (b.tenant, '')
                    ) THEN 'g' ELSE 'n' END AS verdict,
               CASE WHEN w.first IS NOT NULL THEN w.first - 1 ELSE coalesce(s.last, -1) + (
                   sum(b.count) OVER (PARTITION BY b.session ORDER BY b.n)
               )::int - b.count END AS last
        FROM unnest(batches_) WITH ORDINALITY
             AS b (id, session, tenant, expect, count, turns, oldest, newest, kept, epoch, key, n)
        LEFT JOIN LATERAL (
            SELECT s.tenant, s.last FROM sessions AS s WHERE s.session = b.session LIMIT 1
        ) AS s ON true
        LEFT JOIN LATERAL (
            SELECT w.session, w.id, w.first FROM batches AS w
            WHERE (w.session, w.id, w.nth) >= (b.session, b.id, 0::smallint)
            ORDER BY w.session, w.id, w.nth LIMIT 1
        ) AS w ON w.session = b.session AND w.id = b.id
    ) AS judged;
    IF verdicts ~ '[^n]' THEN
        RETURN;
    END IF;

    xid_ := pg_current_xact_id()::text::bigint;
    INSERT INTO sessions AS s
    SELECT b.session, (array_agg(b.tenant))[1], at_, at_, sum(b.count)::int - 1, sum(b.turns)::int,
           min(b.oldest), max(b.newest), bool_or(b.kept)
    FROM unnest(batches_) AS b
    GROUP BY b.session
    ON CONFLICT (session) DO UPDATE SET
        touched = greatest(s.touched, at_), last = s.last + excluded.last + 1,
        turns = s.turns + excluded.turns, oldest = least(s.oldest, excluded.oldest),
        newest = greatest(s.newest, excluded.newest), kept = s.kept OR excluded.kept;

    INSERT INTO batches
    SELECT sessions_[r.batch], (batches_[r.batch]).id, r.nth, tenants_[r.batch],
           lasts[r.batch] + 1 + r.skip, r.count, home.era, pg_current_xact_id(),
           nextval('filings'), r.kinds, r.newest, r.entry, r.turn, r.parent, r.said, r.thoughts
    FROM home, unnest(rows_) AS r;

    -- More thoughts of a turn change the entry that it has already.
    UPDATE entries AS e SET rev = nextval('filings') WHERE e.id = ANY (ARRAY(
        SELECT r.entry FROM unnest(rows_) AS r
        WHERE r.entry IS NOT NULL AND r.thoughts IS NOT NULL
    ));

    IF cardinality(entries_) > 0 THEN
        SELECT f.old_id, f.old_filed, f.old_memo INTO old_id, old_filed, old_memo
        FROM file_entries(sessions_, tenants_, entries_) AS f;
    END IF;
    IF cardinality(pointers_) > 0 THEN
        INSERT INTO pointers
        SELECT p.about, p.kind::"char", sessions_[p.batch], tenants_[p.batch], p.data
        FROM unnest(pointers_) AS p;
        PERFORM raise_epoch(ARRAY(
            SELECT DISTINCT tenants_[p.batch] FROM unnest(pointers_) AS p WHERE p.kind = 'r'
        ));
    END IF;
END
$$;

-- Look-ups go in groups. Each is of one tenant, with its names as one value.
CREATE TYPE look_up AS (tenant bytea, names bytea);

-- Does several look-ups, of any tenants: at most `most` entries for each name, the last filed first.
-- Returns a row for each entry, with the numbers of its names (two bytes each, from 0) among those of
-- its look-up, whose number is `nth`, and without what the node knows: `known` has the ids of entries,
-- each with its revision, as one value. The first rows are about the tenants, one for each look-up.
-- `idle` is the session of an entry, if its last use was noted longer than `every` ago.
-- A look-up is planned once for a connection: the settings leave one way through the tables.
CREATE FUNCTION find(
    asked look_up[], known bytea, most int, retention float8, every float8, now_ float8
) RETURNS TABLE (
    epoch bigint, learned int, entry bytea, revision bigint, matched bytea, memo bytea,
    thoughts bytea[], refusals bytea[], idle bytea, nth int
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    at_ float8 := store_time(now_);
    tokens bytea[] := ARRAY(
        SELECT substr(known, n * 24 + 1, 24) FROM generate_series(0, length(known) / 24 - 1) AS n
    );
    since float8 := CASE WHEN retention > 0 THEN at_ - retention END;
BEGIN
    RETURN QUERY SELECT
        coalesce((SELECT max(t.epoch) FROM tenants AS t WHERE t.tenant IN (a.tenant, '')), 0),
        coalesce((SELECT s.last FROM sessions AS s WHERE s.session = 'thoughtline:learned'), -1),
        NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bytea[], NULL::bytea[],
        NULL::bytea, a.nth::int - 1
    FROM unnest(asked) WITH ORDINALITY AS a (tenant, names, nth);
    RETURN QUERY
    WITH hits AS (
        SELECT a.nth, f.id, max(f.filed) AS filed, string_agg(int2send(k::int2), '') AS matched
        FROM unnest(asked) WITH ORDINALITY AS a (tenant, names, nth),
        generate_series(0, length(a.names) / 24 - 1) AS k, LATERAL (
            SELECT e.id, e.filed FROM names AS n JOIN entries AS e ON e.id = n.entry
            WHERE n.name = substr(a.names, k * 24 + 1, 24) AND e.filed = n.filed
              AND e.tenant = a.tenant
              AND (since IS NULL OR e.at >= since OR EXISTS (
                  SELECT FROM sessions AS s
                  WHERE s.session = e.session AND (s.touched >= since OR s.kept)))
            ORDER BY n.filed DESC LIMIT most
        ) AS f
        GROUP BY a.nth, f.id
    )
    SELECT NULL::bigint, NULL::int, e.id, e.rev, h.matched,
        CASE WHEN k.unknown THEN e.memo END,
        CASE WHEN k.unknown THEN (
            SELECT array_agg(b.thoughts ORDER BY b.first) FROM batches AS b
            WHERE b.entry = e.id AND b.thoughts IS NOT NULL
        ) END, (
            SELECT array_agg(p.data) FROM pointers AS p
            WHERE p.about = e.turn AND p.kind = 'r' AND p.tenant = e.tenant
        ), (
            SELECT s.session FROM sessions AS s
            WHERE s.session = e.session AND s.touched < at_ - every
        ), h.nth::int - 1
    FROM hits AS h JOIN entries AS e ON e.id = h.id
    CROSS JOIN LATERAL (SELECT e.id || int8send(e.rev) <> ALL (tokens) AS unknown) AS k
    ORDER BY h.filed DESC;
END
$$;

-- Notes that sessions were used. Those that are being written are not waited for: that is a use.
CREATE FUNCTION touch(sessions_ bytea[], now_ float8) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    at_ float8 := store_time(now_);
BEGIN
    UPDATE sessions AS s SET touched = at_
    FROM (
        SELECT session FROM sessions
        WHERE session = ANY (sessions_) AND touched < at_
        ORDER BY session FOR UPDATE SKIP LOCKED
    ) AS used
    WHERE s.session = used.session;
END
$$;

-- How far turns were continued: 1 by a turn, 2 by a turn that was continued itself.
CREATE FUNCTION continued(tenant_ bytea, turns_ bytea[])
RETURNS TABLE (turn bytea, depth int) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
    SELECT b.parent, 1 + max(EXISTS (
        SELECT FROM batches AS f WHERE f.parent = b.turn
    )::int) FROM batches AS b WHERE b.parent = ANY (turns_) AND b.tenant = tenant_ GROUP BY b.parent
$$;

-- Deletes sessions that no other session forks, with all that belongs to them; `names_` and
-- `filed_` are the names of their entries. Those that were used since are left alone.
CREATE FUNCTION purge(
    sessions_ bytea[], untouched_since float8, names_ bytea[], filed_ bigint[]
) RETURNS int LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    doomed bytea[];
    tenants_ bytea[];
BEGIN
    PERFORM lock_sessions(sessions_);
    SELECT array_agg(s.session), array_agg(DISTINCT s.tenant) INTO doomed, tenants_
    FROM sessions AS s WHERE s.session = ANY (sessions_)
      AND (untouched_since IS NULL OR s.touched < untouched_since)
      AND NOT EXISTS (
          SELECT FROM pointers AS p
          WHERE p.about = s.session AND p.kind = 'f' AND p.session <> s.session
      );
    IF doomed IS NULL THEN
        RETURN 0;
    END IF;
    DELETE FROM names AS n USING unnest(names_, filed_) AS g (name, filed)
    WHERE n.name = g.name AND n.filed = g.filed
      AND EXISTS (SELECT FROM entries AS e WHERE e.id = n.entry AND e.session = ANY (doomed));
    DELETE FROM entries WHERE session = ANY (doomed);
    DELETE FROM batches WHERE session = ANY (doomed);
    DELETE FROM pointers WHERE session = ANY (doomed);
    DELETE FROM sessions WHERE session = ANY (doomed);
    PERFORM raise_epoch(tenants_);
    RETURN cardinality(doomed);
END
$$;

-- Replaces the index entries of turns of one session, and deletes those in `remove`; not if they are
-- sealed with another key than the newest of the tenant.
CREATE FUNCTION reindex(
    session_ bytea, tenant_ bytea, key_ int, remove bytea[], entries_ entry_values[],
    OUT current bool, OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    gone_id bytea[];
    gone_filed bigint[];
    gone_memo bytea[];
BEGIN
    current := keys_current(ARRAY[tenant_], ARRAY[key_]);
    IF NOT current THEN
        RETURN;
    END IF;
    PERFORM lock_sessions(ARRAY[session_]);
    IF NOT EXISTS (SELECT FROM sessions WHERE session = session_ AND tenant = tenant_) THEN
        RETURN;
    END IF;
    WITH deleted AS (
        DELETE FROM entries WHERE session = session_ AND id = ANY (remove)
        RETURNING id, filed, memo
    )
    SELECT array_agg(id), array_agg(filed), array_agg(memo) INTO gone_id, gone_filed, gone_memo
    FROM deleted;
    SELECT f.old_id, f.old_filed, f.old_memo INTO old_id, old_filed, old_memo
    FROM file_entries(ARRAY[session_], ARRAY[tenant_], entries_) AS f;
    old_id := old_id || gone_id;
    old_filed := old_filed || gone_filed;
    old_memo := old_memo || gone_memo;
    PERFORM raise_epoch(ARRAY[tenant_]);
END
$$;

-- What says with which key a value is sealed; empty for a plain one.
CREATE FUNCTION key_of(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN substr(value, 1, 1) = '\x01' THEN substr(value, 1, 3) ELSE '' END
$$;

-- Changes what entries say, where nobody else has since, and they are still sealed with the same
-- key; returns the ids of those. What is changed is locked by session, as appends and deletions do
-- it: two who change several rows do not wait for each other.
CREATE FUNCTION rewrite_entries(
    id_ bytea[], rev_ bigint[], shown_ int[], chars_ int[], memo_ bytea[]
) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_sessions(ARRAY(SELECT session FROM entries WHERE id = ANY (id_)));
    RETURN QUERY
    WITH changed AS (
        UPDATE entries AS e
        SET rev = nextval('filings'), shown = t.shown, chars = t.chars, memo = t.memo
        FROM unnest(id_, rev_, shown_, chars_, memo_) AS t (id, rev, shown, chars, memo)
        WHERE e.id = t.id AND e.rev = t.rev AND key_of(e.memo) = key_of(t.memo)
        RETURNING e.id, e.tenant
    ), raised AS (
        SELECT raise_epoch(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT id FROM changed, raised;
END
$$;

-- Changes the thoughts of rows, and what their entries say, where they are still sealed with the
-- same key; returns the places of those in the arrays, from 1.
CREATE FUNCTION rewrite_thoughts(
    session_ bytea[], batch_ bytea[], nth_ int[], thoughts_ bytea[]
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_sessions(session_);
    RETURN QUERY
    WITH changed AS (
        UPDATE batches AS b SET thoughts = t.thoughts
        FROM unnest(session_, batch_, nth_, thoughts_) WITH ORDINALITY
             AS t (session, id, nth, thoughts, place)
        WHERE b.session = t.session AND b.id = t.id AND b.nth = t.nth
          AND key_of(b.thoughts) = key_of(t.thoughts)
        RETURNING b.entry, b.tenant, t.place
    ), revised AS (
        UPDATE entries AS e SET rev = nextval('filings')
        WHERE e.id IN (SELECT entry FROM changed)
    ), raised AS (
        SELECT raise_epoch(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT place FROM changed, raised;
END
$$;

-- Notes what is about to be deleted, for batches that wait on some node (see `gone`). Waits for
-- those that are being written: they have seen the epoch before, and what they write is deleted.
CREATE FUNCTION note_deletion(tenant_ bytea, what_ bytea, now_ float8) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(7305, 2);
    SELECT raise_epoch(ARRAY[tenant_]);
    INSERT INTO gone SELECT tenant_, epoch, store_time(now_), what_ FROM tenants WHERE tenant = tenant_
$$;

-- Takes or renews a lease on a job; whether this holder has it now.
CREATE FUNCTION lease(name_ text, holder_ text, seconds float8) RETURNS bool LANGUAGE sql AS $$
    INSERT INTO jobs AS j VALUES (name_, holder_, clock_timestamp() + seconds * interval '1 s')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE j.holder = excluded.holder OR j.until < clock_timestamp()
    RETURNING true
$$;

-- Shows other nodes what runs on one of them, if somebody looks; whether somebody does.
CREATE FUNCTION show_running(node_ text, turns bytea) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    looked_at bool := EXISTS (
        SELECT FROM jobs WHERE name = 'look at running' AND until > clock_timestamp()
    );
BEGIN
    IF looked_at AND turns IS NOT NULL THEN
        INSERT INTO running VALUES (node_, clock_timestamp(), turns)
        ON CONFLICT (node) DO UPDATE SET seen = excluded.seen, data = excluded.data;
    END IF;
    RETURN looked_at;
END
$$;

-- What other nodes show. They go on for some seconds, and those that are gone are forgotten.
CREATE FUNCTION look_at_running(node_ text) RETURNS TABLE (node text, data bytea)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobs AS j VALUES ('look at running', '', clock_timestamp() + interval '10 s')
    ON CONFLICT (name) DO UPDATE SET until = excluded.until
    WHERE j.until < clock_timestamp() + interval '5 s';
    DELETE FROM running AS r WHERE r.seen < clock_timestamp() - interval '1 min';
    RETURN QUERY SELECT r.node, r.data FROM running AS r
    WHERE r.node <> node_ AND r.seen > clock_timestamp() - interval '4 s';
END
$$;

-- Which database this is. Raises the era when it is another one than before, or goes on from
-- another point: there, transaction ids may be given anew. The first fingerprint stays.
CREATE FUNCTION home(fingerprint_ bytea) RETURNS TABLE (era int, fingerprint bytea) LANGUAGE plpgsql AS $$
DECLARE
    cluster_ bigint := (SELECT system_identifier FROM pg_control_system());
    timeline_ int := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
BEGIN
    IF NOT EXISTS (SELECT FROM home) THEN
        PERFORM pg_advisory_xact_lock(7305, 1);
        INSERT INTO home SELECT 1, cluster_, timeline_, NULL WHERE NOT EXISTS (SELECT FROM home);
    END IF;
    UPDATE home AS h SET era = h.era + 1, cluster = cluster_, timeline = timeline_
    WHERE h.cluster <> cluster_ OR h.timeline <> timeline_;
    IF fingerprint_ <> '' THEN
        UPDATE home AS h SET fingerprint = fingerprint_ WHERE h.fingerprint IS NULL;
    END IF;
    RETURN QUERY SELECT h.era, h.fingerprint FROM home AS h;
END
$$;

CREATE FUNCTION lock_keys(tenants_ bytea[]) RETURNS void LANGUAGE sql AS $$
    SELECT count(pg_advisory_xact_lock(7306, key)) FROM (
        SELECT DISTINCT hashtext(encode(tenant, 'hex')) AS key FROM unnest(tenants_) AS t (tenant)
        ORDER BY key
    ) AS locks
$$;

-- Waits until all that is being written is committed; nothing else is written before this
-- transaction ends.
CREATE FUNCTION lock_sealing() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(7305, 4)
$$;

-- Makes the first keys of a tenant, wrapped with `master_`, unless it has some, or another master
-- key wraps what is new.
CREATE FUNCTION make_keys(
    tenant_ bytea, master_ text, versions_ int[], wrapped_ bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_keys(ARRAY[tenant_]);
    IF (SELECT master FROM sealing) = '' THEN
        PERFORM lock_sealing();
    END IF;
    UPDATE sealing SET master = master_, plain = EXISTS (SELECT FROM sessions) WHERE master = '';
    IF FOUND THEN
        PERFORM raise_epoch(ARRAY[''::bytea]);  -- for the nodes without keys
    END IF;
    INSERT INTO tenant_keys
    SELECT tenant_, k.version, master_, k.wrapped
    FROM unnest(versions_, wrapped_) AS k (version, wrapped)
    WHERE (SELECT master FROM sealing) = master_
      AND NOT EXISTS (SELECT FROM tenant_keys WHERE tenant = tenant_);
    PERFORM raise_epoch(ARRAY[tenant_]);
END
$$;

-- Adds keys of tenants that have some, newer ones only; returns how many. A key of look-up keys
-- (a version below 0) comes together with the key of values that it begins with, or not at all.
CREATE FUNCTION add_keys(tenants_ bytea[], versions_ int[], masters_ text[], wrapped_ bytea[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    added int;
BEGIN
    PERFORM lock_keys(tenants_);
    INSERT INTO tenant_keys
    SELECT k.tenant, k.version, k.master, k.wrapped
    FROM unnest(tenants_, versions_, masters_, wrapped_) AS k (tenant, version, master, wrapped)
    WHERE abs(k.version) > (SELECT max(t.version) FROM tenant_keys AS t WHERE t.tenant = k.tenant);
    GET DIAGNOSTICS added = ROW_COUNT;
    PERFORM raise_epoch(ARRAY(SELECT DISTINCT t FROM unnest(tenants_) AS t));
    RETURN added;
END
$$;

-- Replaces wrapped keys that are still the same; where `new_` is null, they are deleted.
CREATE FUNCTION replace_keys(
    tenants_ bytea[], versions_ int[], old_ bytea[], masters_ text[], new_ bytea[]
) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    changed int;
    gone int;
BEGIN
    PERFORM lock_keys(tenants_);
    UPDATE tenant_keys AS t SET master = k.master, wrapped = k.new
    FROM unnest(tenants_, versions_, old_, masters_, new_) AS k (tenant, version, old, master, new)
    WHERE t.tenant = k.tenant AND t.version = k.version AND t.wrapped = k.old AND k.new IS NOT NULL;
    GET DIAGNOSTICS changed = ROW_COUNT;
    DELETE FROM tenant_keys AS t
    USING unnest(tenants_, versions_, old_, new_) AS k (tenant, version, old, new)
    WHERE t.tenant = k.tenant AND t.version = k.version AND t.wrapped = k.old AND k.new IS NULL;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM raise_epoch(ARRAY(SELECT DISTINCT t FROM unnest(tenants_) AS t));
    RETURN changed + gone;
END
$$;

-- Deletes the keys of a tenant: nothing of it can be read any more.
CREATE FUNCTION drop_keys(tenant_ bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_keys(ARRAY[tenant_]);
    DELETE FROM tenant_keys WHERE tenant = tenant_;
    PERFORM raise_epoch(ARRAY[tenant_]);
END
$$;

-- Writes an entry that was sealed again, and its other names; whether nobody has changed it since.
CREATE FUNCTION reseal_entry(
    id_ bytea, rev_ bigint, memo_ bytea, filed_ bigint, old_names bytea[], new_names bytea[]
) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    UPDATE entries SET memo = memo_ WHERE id = id_ AND rev = rev_ AND filed = filed_;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM names WHERE name = ANY (old_names) AND filed = filed_;
    INSERT INTO names SELECT name, filed_, id_ FROM unnest(new_names) AS n (name)
    ON CONFLICT DO NOTHING;
    RETURN true;
END
$$;

-- Notes that everything is sealed, or plain, if it is. Most is looked through before the lock: under
-- it, only what may have been committed since, and the entries.
CREATE FUNCTION finish_sealing(plain_ bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    since xid8 := pg_snapshot_xmin(pg_current_snapshot());
BEGIN
    IF EXISTS (SELECT FROM batches WHERE (substr(said, 1, 1) = '\x01') = plain_) THEN
        RETURN;
    END IF;
    PERFORM lock_sealing();
    IF EXISTS (
        SELECT FROM home AS h JOIN batches AS b ON b.era = h.era AND b.xid >= since
        WHERE (substr(b.said, 1, 1) = '\x01') = plain_
    ) OR EXISTS (SELECT FROM entries WHERE (substr(memo, 1, 1) = '\x01') = plain_) THEN
        RETURN;
    END IF;
    IF plain_ THEN
        DELETE FROM tenant_keys;
        UPDATE sealing SET master = '', plain = false;
    ELSE
        UPDATE sealing SET plain = false WHERE plain;
    END IF;
    PERFORM raise_epoch(ARRAY[''::bytea]);
END
$$;

-- Makes a master key the one that wraps what is new; the first one seals a database.
CREATE FUNCTION set_primary(master_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT master FROM sealing) = '' THEN
        PERFORM lock_sealing();
    END IF;
    UPDATE sealing SET master = master_,
        plain = CASE master WHEN '' THEN EXISTS (SELECT FROM sessions) ELSE plain END;
END
$$;

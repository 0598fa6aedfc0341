-- Deletes sessions that no other session forks, with all that belongs to them; `names_` and
-- `filed_` are the names of their entries. Those that were used since are left alone.
CREATE FUNCTION purge_1(
    sessions_ bytea[], untouched_since float8, names_ bytea[], filed_ bigint[]
) RETURNS int LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    doomed bytea[];
    tenants_ bytea[];
BEGIN
    PERFORM lock_sessions_1(sessions_);
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
    PERFORM raise_epoch_1(tenants_);
    RETURN cardinality(doomed);
END
$$;

-- Replaces the index entries of turns of one session, and deletes those in `remove`.
CREATE FUNCTION reindex_1(
    session_ bytea, remove bytea[],
    e_batch int[], e_id bytea[], e_turn bytea[], e_at float8[], e_provider bytea[],
    e_endpoint bytea[], e_model bytea[], e_shown int[], e_chars int[], e_memo bytea[],
    n_entry int[], n_name bytea[],
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    tenant_ bytea;
    gone_id bytea[];
    gone_filed bigint[];
    gone_memo bytea[];
BEGIN
    PERFORM lock_sessions_1(ARRAY[session_]);
    SELECT tenant INTO tenant_ FROM sessions WHERE session = session_;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    WITH deleted AS (
        DELETE FROM entries WHERE session = session_ AND id = ANY (remove)
        RETURNING id, filed, memo
    )
    SELECT array_agg(id), array_agg(filed), array_agg(memo) INTO gone_id, gone_filed, gone_memo
    FROM deleted;
    SELECT f.old_id, f.old_filed, f.old_memo INTO old_id, old_filed, old_memo
    FROM file_entries_1(ARRAY[session_], ARRAY[tenant_], e_batch, e_id, e_turn, e_at, e_provider,
                        e_endpoint, e_model, e_shown, e_chars, e_memo, n_entry, n_name) AS f;
    old_id := old_id || gone_id;
    old_filed := old_filed || gone_filed;
    old_memo := old_memo || gone_memo;
    PERFORM raise_epoch_1(ARRAY[tenant_]);
END
$$;

-- Changes what entries say, where nobody else has since; returns the ids of those.
CREATE FUNCTION rewrite_entries_1(
    id_ bytea[], rev_ bigint[], shown_ int[], chars_ int[], memo_ bytea[]
) RETURNS SETOF bytea LANGUAGE sql AS $$
    WITH changed AS (
        UPDATE entries AS e
        SET rev = nextval('filings'), shown = t.shown, chars = t.chars, memo = t.memo
        FROM unnest(id_, rev_, shown_, chars_, memo_) AS t (id, rev, shown, chars, memo)
        WHERE e.id = t.id AND e.rev = t.rev
        RETURNING e.id, e.tenant
    ), raised AS (
        SELECT raise_epoch_1(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT id FROM changed, raised
$$;

-- Changes the thoughts of rows, and what their entries say.
CREATE FUNCTION rewrite_thoughts_1(
    session_ bytea[], batch_ bytea[], nth_ int[], thoughts_ bytea[]
) RETURNS void LANGUAGE sql AS $$
    WITH changed AS (
        UPDATE batches AS b SET thoughts = t.thoughts
        FROM unnest(session_, batch_, nth_, thoughts_) AS t (session, id, nth, thoughts)
        WHERE b.session = t.session AND b.id = t.id AND b.nth = t.nth
        RETURNING b.entry, b.tenant
    ), revised AS (
        UPDATE entries AS e SET rev = nextval('filings')
        WHERE e.id IN (SELECT entry FROM changed)
    )
    SELECT raise_epoch_1(ARRAY(SELECT DISTINCT tenant FROM changed))
$$;

-- Notes what is about to be deleted, for batches that wait on some node (see `gone`). Waits for
-- those that are being written: they have seen the epoch before, and what they write is deleted.
CREATE FUNCTION note_deletion_1(tenant_ bytea, what_ bytea, now_ float8) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(7305, 2);
    SELECT raise_epoch_1(ARRAY[tenant_]);
    INSERT INTO gone SELECT tenant_, epoch, now_1(now_), what_ FROM tenants WHERE tenant = tenant_
$$;

-- Adds to the counts of intervals, if nobody has counted these events since.
CREATE FUNCTION add_counts_1(
    before numeric, after numeric, seconds_ int[], at_ bigint[], provider_ bytea[], model_ bytea[],
    name_ text[], count_ bigint[]
) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobs VALUES ('turn counts', '', now(), 0) ON CONFLICT DO NOTHING;
    UPDATE jobs SET cursor = after WHERE name = 'turn counts' AND cursor = before;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO turn_counts AS t
    SELECT * FROM unnest(seconds_, at_, provider_, model_, name_, count_)
    ON CONFLICT (seconds, at, provider, model, name) DO UPDATE SET count = t.count + excluded.count;
    RETURN true;
END
$$;

-- Takes or renews a lease on a job; whether this holder has it now.
CREATE FUNCTION lease_1(name_ text, holder_ text, seconds float8) RETURNS bool LANGUAGE sql AS $$
    INSERT INTO jobs AS j VALUES (name_, holder_, clock_timestamp() + seconds * interval '1 s', 0)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE j.holder = excluded.holder OR j.until < clock_timestamp()
    RETURNING true
$$;

-- Shows other nodes what runs on one of them, if somebody looks; whether somebody does.
CREATE FUNCTION show_running_1(node_ text, turns bytea) RETURNS bool LANGUAGE plpgsql AS $$
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
CREATE FUNCTION look_at_running_1(node_ text) RETURNS TABLE (node text, data bytea)
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobs AS j VALUES ('look at running', '', clock_timestamp() + interval '10 s', 0)
    ON CONFLICT (name) DO UPDATE SET until = excluded.until
    WHERE j.until < clock_timestamp() + interval '5 s';
    DELETE FROM running AS r WHERE r.seen < clock_timestamp() - interval '1 min';
    RETURN QUERY SELECT r.node, r.data FROM running AS r
    WHERE r.node <> node_ AND r.seen > clock_timestamp() - interval '4 s';
END
$$;

-- Which database this is. Raises the era when it is another one than before, or goes on from
-- another point: there, transaction ids may be given anew. The first fingerprint stays.
CREATE FUNCTION home_1(fingerprint_ bytea) RETURNS TABLE (era int, fingerprint bytea) LANGUAGE plpgsql AS $$
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

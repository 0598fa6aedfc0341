-- Functions carry a version: code of two releases may work on one database, each with its own.

-- Locks sessions until the transaction ends. That needs no transaction id: so of two transactions
-- on one session the later has the higher id, and feeds, which go by it, keep a session's order.
CREATE FUNCTION lock_sessions_1(sessions bytea[]) RETURNS void LANGUAGE sql AS $$
    SELECT count(pg_advisory_xact_lock(key)) FROM (
        SELECT DISTINCT ('x' || left(md5(session), 16))::bit(64)::bigint AS key
        FROM unnest(sessions) AS s (session) ORDER BY key
    ) AS keys
$$;

-- The time: the database's, unless one is given.
CREATE FUNCTION now_1(given float8) RETURNS float8 LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(given, extract(epoch FROM clock_timestamp())::float8)
$$;

-- Notes that something of these tenants was deleted or refused.
CREATE FUNCTION raise_epoch_1(changed bytea[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO tenants AS t
    SELECT tenant, nextval('filings') FROM unnest(changed) AS c (tenant) ORDER BY tenant
    ON CONFLICT (tenant) DO UPDATE SET epoch = excluded.epoch
$$;

-- Files index entries under their names; those that were there before are replaced. Returns the
-- entries that were replaced, for their old names to be deleted.
CREATE FUNCTION file_entries_1(
    b_session bytea[], b_tenant bytea[],
    e_batch int[], e_id bytea[], e_turn bytea[], e_at float8[], e_provider bytea[],
    e_endpoint bytea[], e_model bytea[], e_shown int[], e_chars int[], e_memo bytea[],
    n_entry int[], n_name bytea[],
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    filed_ bigint[] := ARRAY(SELECT nextval('filings') FROM generate_subscripts(e_id, 1));
BEGIN
    SELECT array_agg(e.id), array_agg(e.filed), array_agg(e.memo) INTO old_id, old_filed, old_memo
    FROM entries AS e WHERE e.id = ANY (e_id);
    INSERT INTO entries
    SELECT t.id, b_session[t.batch], t.turn, b_tenant[t.batch], t.filed, t.filed, t.at, t.provider,
           t.endpoint, t.model, t.shown, t.chars, t.memo
    FROM unnest(e_batch, e_id, e_turn, e_at, e_provider, e_endpoint, e_model, e_shown, e_chars,
                e_memo, filed_)
         AS t (batch, id, turn, at, provider, endpoint, model, shown, chars, memo, filed)
    ON CONFLICT (id) DO UPDATE SET
        filed = excluded.filed, rev = excluded.rev, at = excluded.at, provider = excluded.provider,
        endpoint = excluded.endpoint, model = excluded.model, shown = excluded.shown,
        chars = excluded.chars, memo = excluded.memo;
    INSERT INTO names
    SELECT n.name, filed_[n.entry], e_id[n.entry] FROM unnest(n_entry, n_name) AS n (entry, name);
END
$$;

-- Writes a group of batches in one transaction, or none of them. `b_` has an item for each batch,
-- `r_` for each row of `batches`, `e_` for each index entry, `n_` for each name, `p_` for each
-- pointer; `r_batch` and the like say to which item they belong.
-- Returns a verdict on each batch, and the last seq before it. Where all are 'n' (new), all are
-- written; else none is, and the node tries again without those that are
-- 'w' (written before), 't' (of another tenant), 'e' (not as expected) or 'g' (deleted meanwhile).
-- Where the keys that they are sealed with are not the newest, all are 'k'.
CREATE FUNCTION append_1(
    now_ float8,
    b_id bytea[], b_session bytea[], b_tenant bytea[], b_expect int[], b_count int[], b_turns int[],
    b_oldest float8[], b_newest float8[], b_kept bool[], b_epoch bigint[], b_key int[],
    r_batch int[], r_nth int[], r_offset int[], r_count int[], r_kinds bigint[], r_newest float8[],
    r_entry bytea[], r_turn bytea[], r_parent bytea[], r_said bytea[], r_thoughts bytea[],
    e_batch int[], e_id bytea[], e_turn bytea[], e_at float8[], e_provider bytea[],
    e_endpoint bytea[], e_model bytea[], e_shown int[], e_chars int[], e_memo bytea[],
    n_entry int[], n_name bytea[],
    p_batch int[], p_about bytea[], p_kind text[], p_data bytea[],
    OUT verdicts text, OUT lasts int[], OUT xid_ bigint,
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    at_ float8;
BEGIN
    IF NOT keys_current_1(b_tenant, b_key) THEN
        verdicts := repeat('k', cardinality(b_key));
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(7305, 2);  -- who deletes waits, see note_deletion_1
    PERFORM lock_sessions_1(b_session);
    at_ := now_1(now_);

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
        FROM unnest(b_id, b_session, b_tenant, b_expect, b_count, b_epoch) WITH ORDINALITY
             AS b (id, session, tenant, expect, count, epoch, n)
        LEFT JOIN sessions AS s ON s.session = b.session
        LEFT JOIN batches AS w ON w.session = b.session AND w.id = b.id AND w.nth = 0
    ) AS judged;
    IF verdicts ~ '[^n]' THEN
        RETURN;
    END IF;

    xid_ := pg_current_xact_id()::text::bigint;
    INSERT INTO sessions AS s
    SELECT b.session, (array_agg(b.tenant))[1], at_, at_, sum(b.count)::int - 1, sum(b.turns)::int,
           min(b.oldest), max(b.newest), bool_or(b.kept)
    FROM unnest(b_session, b_tenant, b_count, b_turns, b_oldest, b_newest, b_kept)
         AS b (session, tenant, count, turns, oldest, newest, kept)
    GROUP BY b.session
    ON CONFLICT (session) DO UPDATE SET
        touched = greatest(s.touched, at_), last = s.last + excluded.last + 1,
        turns = s.turns + excluded.turns, oldest = least(s.oldest, excluded.oldest),
        newest = greatest(s.newest, excluded.newest), kept = s.kept OR excluded.kept;

    INSERT INTO batches
    SELECT b_session[r.batch], b_id[r.batch], r.nth, b_tenant[r.batch],
           lasts[r.batch] + 1 + r.skip, r.count, home.era, pg_current_xact_id(), nextval('filings'), r.kinds,
           r.newest, r.entry, r.turn, r.parent, r.said, r.thoughts
    FROM home, unnest(r_batch, r_nth, r_offset, r_count, r_kinds, r_newest, r_entry, r_turn,
                      r_parent, r_said, r_thoughts)
         AS r (batch, nth, skip, count, kinds, newest, entry, turn, parent, said, thoughts);

    -- More thoughts of a turn change the entry that it has already.
    UPDATE entries AS e SET rev = nextval('filings')
    FROM unnest(r_entry, r_thoughts) AS r (entry, thoughts)
    WHERE e.id = r.entry AND r.thoughts IS NOT NULL;

    IF cardinality(e_id) > 0 THEN
        SELECT f.old_id, f.old_filed, f.old_memo INTO old_id, old_filed, old_memo
        FROM file_entries_1(b_session, b_tenant, e_batch, e_id, e_turn, e_at, e_provider,
                            e_endpoint, e_model, e_shown, e_chars, e_memo, n_entry, n_name) AS f;
    END IF;
    IF cardinality(p_batch) > 0 THEN
        INSERT INTO pointers
        SELECT p.about, p.kind::"char", b_session[p.batch], b_tenant[p.batch], p.data
        FROM unnest(p_batch, p_about, p_kind, p_data) AS p (batch, about, kind, data);
        PERFORM raise_epoch_1(ARRAY(
            SELECT DISTINCT b_tenant[p.batch]
            FROM unnest(p_batch, p_kind) AS p (batch, kind) WHERE p.kind = 'r'
        ));
    END IF;
END
$$;

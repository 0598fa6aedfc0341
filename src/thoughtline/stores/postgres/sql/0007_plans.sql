-- As `append_1`, and each row is looked up by its key however the tables are thought to be. A plan
-- that was made while they were small is kept until they are analysed: that of `append_1` read all
-- of `batches` for each group meanwhile. Only the primary key gives the order that is asked for.
CREATE FUNCTION append_2(
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
    UPDATE entries AS e SET rev = nextval('filings') WHERE e.id = ANY (ARRAY(
        SELECT r.entry FROM unnest(r_entry, r_thoughts) AS r (entry, thoughts)
        WHERE r.entry IS NOT NULL AND r.thoughts IS NOT NULL
    ));

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

-- As `find_1`, which read the thoughts of what the node knows, and threw them away.
CREATE FUNCTION find_2(
    tenant_ bytea, names_ bytea, known bytea, most int, retention float8, every float8, now_ float8
) RETURNS TABLE (
    epoch bigint, learned int, entry bytea, revision bigint, matched bytea, memo bytea,
    thoughts bytea[], refusals bytea[], idle bytea
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    at_ float8 := now_1(now_);
    tokens bytea[] := ARRAY(
        SELECT substr(known, n * 24 + 1, 24) FROM generate_series(0, length(known) / 24 - 1) AS n
    );
    since float8 := CASE WHEN retention > 0 THEN at_ - retention END;
BEGIN
    RETURN QUERY SELECT
        coalesce((SELECT max(t.epoch) FROM tenants AS t WHERE t.tenant IN (tenant_, '')), 0),
        coalesce((SELECT s.last FROM sessions AS s WHERE s.session = 'thoughtline:learned'), -1),
        NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bytea[], NULL::bytea[],
        NULL::bytea;
    RETURN QUERY
    WITH hits AS (
        SELECT f.id, max(f.filed) AS filed, string_agg(int2send(k::int2), '') AS matched
        FROM generate_series(0, length(names_) / 24 - 1) AS k, LATERAL (
            SELECT e.id, e.filed FROM names AS n JOIN entries AS e ON e.id = n.entry
            WHERE n.name = substr(names_, k * 24 + 1, 24) AND e.filed = n.filed AND e.tenant = tenant_
              AND (since IS NULL OR e.at >= since OR EXISTS (
                  SELECT FROM sessions AS s
                  WHERE s.session = e.session AND (s.touched >= since OR s.kept)))
            ORDER BY n.filed DESC LIMIT most
        ) AS f
        GROUP BY f.id
    )
    SELECT NULL::bigint, NULL::int, e.id, e.rev, h.matched,
        CASE WHEN k.unknown THEN e.memo END,
        CASE WHEN k.unknown THEN (
            SELECT array_agg(b.thoughts ORDER BY b.first) FROM batches AS b
            WHERE b.entry = e.id AND b.thoughts IS NOT NULL
        ) END, (
            SELECT array_agg(p.data) FROM pointers AS p
            WHERE p.about = e.turn AND p.kind = 'r' AND p.tenant = tenant_
        ), (
            SELECT s.session FROM sessions AS s
            WHERE s.session = e.session AND s.touched < at_ - every
        )
    FROM hits AS h JOIN entries AS e ON e.id = h.id
    CROSS JOIN LATERAL (SELECT e.id || int8send(e.rev) <> ALL (tokens) AS unknown) AS k
    ORDER BY h.filed DESC;
END
$$;

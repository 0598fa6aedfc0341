-- Looks up names of a tenant, which are sent as one value: at most `most` entries for each name, the last filed first. Returns
-- a row for each entry, with the numbers of its names (two bytes each, from 0), and without what the
-- node knows: `known` has the ids of entries, each with its revision, as one value. The first row is about the tenant and has no entry.
-- `idle` is the session of an entry, if its last use was noted longer than `every` ago.
CREATE FUNCTION find_1(
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
    SELECT NULL::bigint, NULL::int, e.id, e.rev, h.matched, b.memo, b.thoughts, (
        SELECT array_agg(p.data) FROM pointers AS p
        WHERE p.about = e.turn AND p.kind = 'r' AND p.tenant = tenant_
    ), (
        SELECT s.session FROM sessions AS s
        WHERE s.session = e.session AND s.touched < at_ - every
    )
    FROM hits AS h JOIN entries AS e ON e.id = h.id
    LEFT JOIN LATERAL (
        SELECT e.memo, (
            SELECT array_agg(b.thoughts ORDER BY b.first) FROM batches AS b
            WHERE b.entry = e.id AND b.thoughts IS NOT NULL
        ) AS thoughts
    ) AS b ON e.id || int8send(e.rev) <> ALL (tokens)
    ORDER BY h.filed DESC;
END
$$;

-- Notes that sessions were used. Those that are being written are not waited for: that is a use.
CREATE FUNCTION touch_1(sessions_ bytea[], now_ float8) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off AS $$
DECLARE
    at_ float8 := now_1(now_);
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
CREATE FUNCTION continued_1(tenant_ bytea, turns_ bytea[])
RETURNS TABLE (turn bytea, depth int) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
    SELECT b.parent, 1 + max(EXISTS (
        SELECT FROM batches AS f WHERE f.parent = b.turn
    )::int) FROM batches AS b WHERE b.parent = ANY (turns_) AND b.tenant = tenant_ GROUP BY b.parent
$$;

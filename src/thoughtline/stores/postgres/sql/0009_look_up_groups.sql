-- Look-ups go in groups. Each is of one tenant, with its names as one value.
CREATE TYPE lookup_1 AS (tenant bytea, names bytea);

-- Does several look-ups, of any tenants: as `find_2` does one, whose number each row has as `nth`.
-- What the node knows is that of all of them. The first rows are about the tenants, one for each
-- look-up; in those of its entries, `matched` has numbers of its own names.
CREATE FUNCTION find_3(
    asked lookup_1[], known bytea, most int, retention float8, every float8, now_ float8
) RETURNS TABLE (
    epoch bigint, learned int, entry bytea, revision bigint, matched bytea, memo bytea,
    thoughts bytea[], refusals bytea[], idle bytea, nth int
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    at_ float8 := now_1(now_);
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

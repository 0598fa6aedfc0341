-- The index entries of a session, the first filed first, with their thoughts and refusals, and the
-- names that they are really filed under.
SELECT e.id, e.filed, e.tenant, e.session, e.turn, e.memo, (
    SELECT array_agg(b.thoughts ORDER BY b.first) FROM batches AS b
    WHERE b.entry = e.id AND b.thoughts IS NOT NULL
) AS thoughts, (
    SELECT array_agg(p.data) FROM pointers AS p
    WHERE p.about = e.turn AND p.kind = 'r' AND p.tenant = e.tenant
) AS refusals
FROM entries AS e WHERE e.session = $1 ORDER BY e.filed

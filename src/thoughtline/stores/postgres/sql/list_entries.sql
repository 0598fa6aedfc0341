-- Index entries that match a filter, the last filed first, a page from a filing downwards.
-- Parameters: tenant, session, entry, provider, its endpoints, model, names of a call, filing,
-- how many, whether only those with thoughts to show.
SELECT e.id, e.rev, e.filed, e.tenant, e.session, e.turn, e.memo, s.touched, s.kept
FROM entries AS e JOIN sessions AS s ON s.session = e.session
WHERE ($1::bytea IS NULL OR e.tenant = $1)
  AND ($2::bytea IS NULL OR e.session = $2)
  AND ($3::bytea IS NULL OR e.turn = $3)
  AND ($4::bytea IS NULL OR e.provider = $4 OR e.endpoint = ANY ($5::bytea[]))
  AND ($6::bytea IS NULL OR e.model = $6)
  AND ($7::bytea[] IS NULL OR e.id IN (SELECT n.entry FROM names AS n WHERE n.name = ANY ($7)))
  AND e.filed <= $8::bigint AND e.shown > 0
ORDER BY e.filed DESC LIMIT $9

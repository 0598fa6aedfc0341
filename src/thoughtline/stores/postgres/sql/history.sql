-- Rows of all sessions from a position on, in the order of writing, and where the log ends.
-- Only what no running transaction can precede: what is skipped would never be seen.
-- Parameters: era, xid and filing of the position; kinds; time since when; how many rows.
WITH gate AS MATERIALIZED (
    SELECT home.era AS now, pg_snapshot_xmin(pg_current_snapshot()) AS xmin FROM home
), ending AS (
    SELECT b.era, b.xid, b.filed, b.count FROM gate, batches AS b
    WHERE b.era < gate.now OR b.xid < gate.xmin
    ORDER BY b.era DESC, b.xid DESC, b.filed DESC LIMIT 1
), page AS (
    SELECT b.* FROM gate, batches AS b
    WHERE (b.era, b.xid, b.filed) >= ($1::int, $2::text::xid8, $3::bigint)
      AND (b.era < gate.now OR b.xid < gate.xmin)
      AND b.kinds & $4::bigint <> 0 AND b.newest >= $5::float8
    ORDER BY b.era, b.xid, b.filed LIMIT $6::int
)
SELECT gate.now, gate.xmin::text::bigint AS xmin, ending.era AS end_era,
       ending.xid::text::bigint AS end_xid, ending.filed AS end_filed, ending.count AS end_count,
       page.era, page.xid::text::bigint AS xid, page.filed, page.session, page.tenant, page.first,
       page.said, page.thoughts, page.id, page.nth, page.entry, page.turn,
       page.count
FROM gate LEFT JOIN ending ON true LEFT JOIN page ON true
ORDER BY page.era, page.xid, page.filed

-- When the first and the last of the indexed turns with thoughts ended.
WITH
rest (at) AS (
    SELECT b.ended FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    WHERE b.position > (SELECT position FROM summarised WHERE source = 'entries') AND b.entries > 0
      AND (:tenant IS NULL
           OR s.tenant = (SELECT number FROM tenants WHERE tenant = :tenant))
),
own (at) AS (
    SELECT l.at FROM entry_groups AS g CROSS JOIN listed_entries AS l ON l.kind = g.number
    WHERE :tenant IS NOT NULL
      AND g.tenant = (SELECT number FROM tenants WHERE tenant = :tenant)
)
SELECT min(first), max(last) FROM (
    SELECT (SELECT min(at) FROM listed_entries) AS first,
           (SELECT max(at) FROM listed_entries) AS last
    WHERE :tenant IS NULL
    UNION ALL SELECT min(at), max(at) FROM own
    UNION ALL SELECT min(at), max(at) FROM rest
)

-- When the first and the last of the indexed turns with thoughts ended.
WITH
rest (at) AS (
    SELECT m.at FROM memories AS m CROSS JOIN sessions AS s ON s.number = m.session
    WHERE m.number > (SELECT position FROM summarised WHERE source = 'memories') AND m.entries > 0
      AND (NOT json_valid(m.memo)
           OR coalesce(json_extract(m.memo, '$.outcome'), 'completed') = 'completed')
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

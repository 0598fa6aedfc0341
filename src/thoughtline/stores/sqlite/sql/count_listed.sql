-- How many entries a listing has: an indexed turn with thoughts has one for each of its calls.
WITH asked (tenant) AS (SELECT number FROM tenants WHERE tenant = :tenant)
SELECT coalesce(sum(shown), 0) FROM (
    SELECT shown FROM listed_entries
    WHERE :tenant IS NULL OR kind IN (
        SELECT number FROM entry_groups WHERE tenant IN (SELECT tenant FROM asked)
    )
    UNION ALL
    SELECT b.entries FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    WHERE b.position > (SELECT position FROM summarised WHERE source = 'entries') AND b.entries > 0
      AND (:tenant IS NULL OR s.tenant IN (SELECT tenant FROM asked))
)

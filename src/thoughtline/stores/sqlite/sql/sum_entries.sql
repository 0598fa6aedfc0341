-- Turns with thoughts and their characters, by provider and model: what is summarised, and the rest.
WITH asked (tenant) AS (SELECT number FROM tenants WHERE tenant = :tenant)
SELECT provider, model, sum(entries), sum(chars) FROM (
    SELECT provider, model, entries, chars FROM entry_groups
    WHERE :tenant IS NULL OR tenant IN (SELECT tenant FROM asked)
    UNION ALL
    SELECT m.provider, m.model, 1, m.chars / m.entries
    FROM memories AS m CROSS JOIN sessions AS s ON s.number = m.session
    WHERE m.number > (SELECT position FROM summarised WHERE source = 'memories') AND m.entries > 0
      AND (NOT json_valid(m.memo)
           OR coalesce(json_extract(m.memo, '$.outcome'), 'completed') = 'completed')
      AND (:tenant IS NULL OR s.tenant IN (SELECT tenant FROM asked))
)
GROUP BY provider, model

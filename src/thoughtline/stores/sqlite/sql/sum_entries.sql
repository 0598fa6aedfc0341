-- Turns with thoughts and their characters, by provider and model: what is summarised, and the rest.
WITH asked (tenant) AS (SELECT number FROM tenants WHERE tenant = :tenant)
SELECT provider, model, sum(entries), sum(chars) FROM (
    SELECT provider, model, entries, chars FROM entry_groups
    WHERE :tenant IS NULL OR tenant IN (SELECT tenant FROM asked)
    UNION ALL
    SELECT b.provider, CASE b.asked WHEN '' THEN b.model ELSE b.asked END, 1, b.chars / b.entries
    FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    WHERE b.position > (SELECT position FROM summarised WHERE source = 'entries') AND b.entries > 0
      AND (:tenant IS NULL OR s.tenant IN (SELECT tenant FROM asked))
)
GROUP BY provider, model

-- Adds the index entries with thoughts of a slice to the summaries.
INSERT OR IGNORE INTO entry_groups (tenant, provider, endpoint, model, entries, chars)
SELECT DISTINCT
    s.tenant, b.provider, b.endpoint, CASE b.asked WHEN '' THEN b.model ELSE b.asked END, 0, 0
FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
WHERE b.position > :after AND b.position <= :last AND b.entries > 0;

INSERT INTO listed_entries (position, kind, shown, chars, at)
SELECT b.position, g.number, b.entries, b.chars / b.entries, b.ended
FROM batches AS b
CROSS JOIN sessions AS s ON s.number = b.session
CROSS JOIN entry_groups AS g
    ON g.tenant = s.tenant AND g.provider = b.provider AND g.endpoint = b.endpoint
    AND g.model = CASE b.asked WHEN '' THEN b.model ELSE b.asked END
WHERE b.position > :after AND b.position <= :last AND b.entries > 0;

UPDATE entry_groups SET entries = entries + new.count, chars = chars + new.size
FROM (
    SELECT kind, count(*) AS count, sum(chars) AS size FROM listed_entries
    WHERE position > :after AND position <= :last GROUP BY kind
) AS new WHERE number = new.kind

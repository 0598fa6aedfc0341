-- Adds the index entries with thoughts of a slice to the summaries. `memo` is that of an entry, or
-- an empty one where it is damaged.
INSERT OR IGNORE INTO entry_groups (tenant, provider, endpoint, model, entries, chars)
SELECT DISTINCT
    s.tenant, m.provider, coalesce(json_extract({memo}, '$.origin.endpoint'), ''), m.model, 0, 0
FROM memories AS m CROSS JOIN sessions AS s ON s.number = m.session
WHERE m.number > :after AND m.number <= :last AND m.entries > 0
  AND coalesce(json_extract({memo}, '$.outcome'), 'completed') = 'completed';

INSERT INTO listed_entries (memory, kind, shown, chars, at)
SELECT m.number, g.number, m.entries, m.chars / m.entries, m.at
FROM memories AS m
CROSS JOIN sessions AS s ON s.number = m.session
CROSS JOIN entry_groups AS g
    ON g.tenant = s.tenant AND g.provider = m.provider AND g.model = m.model
    AND g.endpoint = coalesce(json_extract({memo}, '$.origin.endpoint'), '')
WHERE m.number > :after AND m.number <= :last AND m.entries > 0
  AND coalesce(json_extract({memo}, '$.outcome'), 'completed') = 'completed';

UPDATE entry_groups SET entries = entries + new.count, chars = chars + new.size
FROM (
    SELECT kind, count(*) AS count, sum(chars) AS size FROM listed_entries
    WHERE memory > :after AND memory <= :last GROUP BY kind
) AS new WHERE number = new.kind;

INSERT OR IGNORE INTO listed_calls (call, memory)
SELECT c.value, m.number
FROM listed_entries AS l
CROSS JOIN memories AS m ON m.number = l.memory
CROSS JOIN json_each({memo}, '$.calls') AS c
WHERE l.memory > :after AND l.memory <= :last AND c.value <> ''

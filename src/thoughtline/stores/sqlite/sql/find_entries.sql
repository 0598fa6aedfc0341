-- Index entries by key, with their thoughts and quarantines: one statement, one row.
-- The parameters are the tenant and the keys; `max` is how many entries a key may give. The first
-- column says whether the file is sealed, and how often keys were changed.
WITH
tenant (number) AS MATERIALIZED (
    SELECT number FROM tenants WHERE tenant = ?
),
asked (name) AS (
    VALUES {slots}
),
hits AS MATERIALIZED (
    SELECT asked.name, k.position
    FROM tenant CROSS JOIN asked CROSS JOIN lookup_keys AS k
    WHERE k.tenant = tenant.number
      AND k.name = asked.name
      AND k.position IN (
          SELECT n.position FROM lookup_keys AS n
          WHERE n.tenant = tenant.number AND n.name = asked.name
          ORDER BY n.position DESC LIMIT {max}
      )
),
found AS MATERIALIZED (
    SELECT b.position, b.session, b.turn, {row} AS row, b.memo, s.session AS name
    FROM batches AS b CROSS JOIN sessions AS s ON s.number = b.session
    WHERE b.position IN (SELECT position FROM hits) AND b.memo <> x''
)
SELECT
    (SELECT json_array(master, plain, changes) FROM sealing),
    (SELECT group_concat(hex(name) || ' ' || position, char(10)) FROM hits),
    (SELECT {memos} FROM found AS f),
    (
        SELECT {thoughts} FROM found AS f CROSS JOIN batches AS b
        WHERE b.turn = f.turn AND b.session = f.session AND b.thoughts <> x''
    ),
    (
        SELECT json_group_array(json_array(f.position, p.thoughts))
        FROM found AS f CROSS JOIN pointers AS p CROSS JOIN sessions AS s CROSS JOIN tenant
        WHERE p.about = f.turn AND p.type = 'quarantined'
          AND s.number = p.session AND s.tenant = tenant.number
    )

-- Index entries (memories) by key (name), with their thoughts and quarantines: one statement, one row.
-- The parameters are the tenant and the keys; `max` is how many entries a key may give.
WITH
tenant (number) AS MATERIALIZED (
    SELECT number FROM tenants WHERE tenant = ?
),
asked (name) AS (
    VALUES {slots}
),
hits AS MATERIALIZED (
    SELECT asked.name, names.memory
    FROM tenant CROSS JOIN asked CROSS JOIN names
    WHERE names.tenant = tenant.number
      AND names.name = asked.name
      AND names.memory IN (
          SELECT n.memory FROM names AS n
          WHERE n.tenant = tenant.number AND n.name = asked.name
          ORDER BY n.memory DESC LIMIT {max}
      )
),
found AS MATERIALIZED (
    SELECT number, session, turn, memo FROM memories
    WHERE number IN (SELECT memory FROM hits)
)
SELECT
    (SELECT group_concat(hex(name) || ' ' || memory, char(30)) FROM hits),
    (SELECT group_concat(number || ' ' || memo, char(30)) FROM found),
    (
        SELECT group_concat(
            f.number || ' ' || e.position || ' ' || e.version || ' ' || e.data, char(30)
        )
        FROM found AS f CROSS JOIN events AS e
        WHERE e.type = 'reasoning' AND e.parent = f.turn AND e.session = f.session
    ),
    (
        SELECT group_concat(f.number || ' ' || e.data, char(30))
        FROM found AS f CROSS JOIN events AS e CROSS JOIN sessions AS s CROSS JOIN tenant
        WHERE e.about = f.turn AND e.type = 'quarantined'
          AND s.number = e.session AND s.tenant = tenant.number
    )

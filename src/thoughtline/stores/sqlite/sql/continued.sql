-- How far turns were continued: 1 by a turn, 2 by a turn that was continued itself; one row.
-- The parameters are the tenant and the ids of the turns.
WITH tenant (number) AS MATERIALIZED (
    SELECT number FROM tenants WHERE tenant = ?
),
asked (turn) AS (
    VALUES {slots}
)
SELECT json_group_object(turn, depth) FROM (
    SELECT asked.turn, 1 + max(EXISTS (
        SELECT 1 FROM events AS further
        WHERE further.parent = e.id AND further.type = 'turn_started' AND further.parent <> ''
    )) AS depth
    FROM tenant CROSS JOIN asked CROSS JOIN events AS e CROSS JOIN sessions AS s
    WHERE e.parent = asked.turn AND e.type = 'turn_started' AND e.parent <> ''
      AND s.number = e.session AND s.tenant = tenant.number
    GROUP BY asked.turn
)

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
        SELECT 1 FROM batches AS further
        WHERE further.parent = b.turn AND further.parent <> ''
    )) AS depth
    FROM tenant CROSS JOIN asked CROSS JOIN batches AS b CROSS JOIN sessions AS s
    WHERE b.parent = asked.turn AND b.parent <> ''
      AND s.number = b.session AND s.tenant = tenant.number
    GROUP BY asked.turn
)

-- What must be known before a group is written: its sessions, its tenants, the entries (memories) of
-- its turns, which of its batches are there already, and the last numbers.
SELECT
    (
        SELECT json_group_object(s.session, json_array(s.number, t.tenant, t.number, s.last))
        FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
        WHERE s.session IN ({slots})
    ),
    (SELECT json_group_object(tenant, number) FROM tenants WHERE tenant IN ({slots})),
    (
        SELECT json_group_array(
            json_array(s.session, m.turn, json_array(m.number, s.tenant, m.memo))
        )
        FROM (VALUES {slots}) AS asked
        CROSS JOIN sessions AS s ON s.session = asked.column1
        CROSS JOIN memories AS m ON m.session = s.number AND m.turn = asked.column2
    ),
    (
        SELECT json_group_array(json_array(s.session, e.batch, e.seq))
        FROM (VALUES {slots}) AS asked
        CROSS JOIN sessions AS s ON s.session = asked.column1
        CROSS JOIN events AS e ON e.session = s.number AND e.batch = asked.column2
        WHERE e.batch <> ''
    ),
    (SELECT coalesce(max(number), 0) FROM tenants),
    (SELECT coalesce(max(number), 0) FROM sessions),
    (SELECT coalesce(max(number), 0) FROM memories)

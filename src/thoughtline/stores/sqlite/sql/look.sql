-- All that must be known before a group is written: its sessions, its tenants, the last numbers.
SELECT
    (
        SELECT json_group_object(s.session, json_array(s.number, t.tenant, t.number, s.last))
        FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
        WHERE s.session IN ({slots})
    ),
    (SELECT json_group_object(tenant, number) FROM tenants WHERE tenant IN ({slots})),
    (SELECT coalesce(max(number), 0) FROM tenants),
    (SELECT coalesce(max(number), 0) FROM sessions),
    (SELECT coalesce(max(number), 0) FROM memories)

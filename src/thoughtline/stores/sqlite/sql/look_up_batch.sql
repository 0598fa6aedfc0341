-- What must be known before a group is written: its sessions, its tenants, which of its batches are
-- there already, the entries of its turns, under which of its keys something is filed, which of its
-- turns were refused, the last numbers, and whether the file is sealed.
SELECT
    (
        SELECT json_group_object(
            s.session, json_array(s.number, t.tenant, t.number, s.last, s.touched)
        )
        FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
        WHERE s.session IN ({slots})
    ),
    (SELECT json_group_object(tenant, number) FROM tenants WHERE tenant IN ({slots})),
    (
        SELECT json_group_array(
            json_array(s.session, b.turn, b.id, b.first, b.position, b.memo <> x'')
        )
        FROM (VALUES {slots}) AS asked
        CROSS JOIN sessions AS s ON s.session = asked.column1
        CROSS JOIN batches AS b ON b.turn = asked.column2 AND b.session = s.number
        WHERE b.memo <> x'' OR (b.id = asked.column3 AND b.id <> '')
    ),
    (
        SELECT json_group_array(json_array(asked.column1, hex(asked.column2)))
        FROM (VALUES {slots}) AS asked CROSS JOIN tenants AS t ON t.tenant = asked.column1
        WHERE EXISTS (
            SELECT 1 FROM lookup_keys AS k WHERE k.tenant = t.number AND k.name = asked.column2
        )
    ),
    (
        SELECT json_group_array(about) FROM pointers
        WHERE about IN ({slots}) AND type = 'quarantined'
    ),
    (SELECT coalesce(max(number), 0) FROM tenants),
    (SELECT coalesce(max(number), 0) FROM sessions),
    (SELECT max(position, (SELECT coalesce(max(position), 0) FROM batches)) FROM newest),
    (SELECT json_array(master, plain, changes) FROM sealing)

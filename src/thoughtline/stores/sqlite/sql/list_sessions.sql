-- A page of sessions, the most recently touched first.
SELECT json_group_array(json_array(number, session, tenant, created, touched, events)) FROM (
    SELECT
        s.number, s.session, t.tenant, printf('%!.17g', s.created) AS created,
        printf('%!.17g', s.touched) AS touched, s.last + 1 AS events
    FROM sessions AS s JOIN tenants AS t ON t.number = s.tenant
    WHERE {only} s.touched <= :touched AND (s.touched < :touched OR s.session > :session)
    ORDER BY s.touched DESC, s.session LIMIT :limit
)

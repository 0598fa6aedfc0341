-- The index entries (memories) of a session, with their thoughts and quarantines: one row.
WITH found AS MATERIALIZED (
    SELECT m.number, m.session, m.turn, m.memo, s.tenant
    FROM sessions AS s CROSS JOIN memories AS m ON m.session = s.number
    WHERE s.session = :session
)
SELECT
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
        FROM found AS f CROSS JOIN events AS e CROSS JOIN sessions AS s
        WHERE e.about = f.turn AND e.type = 'quarantined'
          AND s.number = e.session AND s.tenant = f.tenant
    )

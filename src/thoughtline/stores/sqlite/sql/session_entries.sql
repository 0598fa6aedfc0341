-- The index entries of a session, with their thoughts and quarantines: one row.
WITH found AS MATERIALIZED (
    SELECT b.position, b.session, b.turn, {row} AS row, b.memo, s.session AS name, s.tenant
    FROM sessions AS s CROSS JOIN batches AS b ON b.session = s.number
    WHERE s.session = :session AND b.memo <> x''
)
SELECT
    (SELECT {memos} FROM found AS f),
    (
        SELECT {thoughts} FROM found AS f CROSS JOIN batches AS b
        WHERE b.turn = f.turn AND b.session = f.session AND b.thoughts <> x''
    ),
    (
        SELECT json_group_array(json_array(f.position, p.thoughts))
        FROM found AS f CROSS JOIN pointers AS p CROSS JOIN sessions AS s
        WHERE p.about = f.turn AND p.type = 'quarantined'
          AND s.number = p.session AND s.tenant = f.tenant
    )

-- Sessions of a group: new ones are inserted, known ones get their counts.
INSERT INTO sessions
    (number, session, tenant, created, touched, last, turns, oldest, newest, kept)
VALUES {slots}
ON CONFLICT DO UPDATE SET
    touched = max(touched, excluded.touched),
    kept = max(kept, excluded.kept),
    last = excluded.last,
    turns = turns + excluded.turns,
    oldest = min(coalesce(oldest, excluded.oldest), coalesce(excluded.oldest, oldest)),
    newest = max(coalesce(newest, excluded.newest), coalesce(excluded.newest, newest))

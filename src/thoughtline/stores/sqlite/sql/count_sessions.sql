-- Known sessions of a group that were touched a moment ago get their counts; `touched`, and with it
-- two indexes, stays as it is.
INSERT INTO sessions
    (number, session, tenant, created, touched, last, turns, oldest, newest, kept)
VALUES {slots}
ON CONFLICT DO UPDATE SET
    kept = max(kept, excluded.kept),
    last = excluded.last,
    turns = turns + excluded.turns,
    oldest = min(coalesce(oldest, excluded.oldest), coalesce(excluded.oldest, oldest)),
    newest = max(coalesce(newest, excluded.newest), coalesce(excluded.newest, newest))

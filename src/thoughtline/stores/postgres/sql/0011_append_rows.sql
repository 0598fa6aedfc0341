-- What `append_2` takes as an array for each column, as rows: a node sends that with less work.
CREATE TYPE batch_1 AS (
    id bytea, session bytea, tenant bytea, expect int, count int, turns int, oldest float8,
    newest float8, kept bool, epoch bigint, key int
);
CREATE TYPE row_1 AS (
    batch int, nth int, skip int, count int, kinds bigint, newest float8, entry bytea, turn bytea,
    parent bytea, said bytea, thoughts bytea
);
CREATE TYPE entry_1 AS (
    batch int, names bytea, id bytea, turn bytea, at float8, provider bytea, endpoint bytea,
    model bytea, shown int, chars int, memo bytea
);
CREATE TYPE pointer_1 AS (batch int, about bytea, kind text, data bytea);

-- As `append_2`. The names of an entry are sent as one value; `batch` is the number of a batch, from 1.
CREATE FUNCTION append_3(
    now_ float8, batches_ batch_1[], rows_ row_1[], entries_ entry_1[], pointers_ pointer_1[],
    OUT verdicts text, OUT lasts int[], OUT xid_ bigint,
    OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT a.* INTO verdicts, lasts, xid_, old_id, old_filed, old_memo
    FROM (
        SELECT array_agg(id) AS id, array_agg(session) AS session, array_agg(tenant) AS tenant,
            array_agg(expect) AS expect, array_agg(count) AS count, array_agg(turns) AS turns,
            array_agg(oldest) AS oldest, array_agg(newest) AS newest, array_agg(kept) AS kept,
            array_agg(epoch) AS epoch, array_agg(key) AS key
        FROM unnest(batches_)
    ) AS b, (
        SELECT array_agg(batch) AS batch, array_agg(nth) AS nth, array_agg(skip) AS skip,
            array_agg(count) AS count, array_agg(kinds) AS kinds, array_agg(newest) AS newest,
            array_agg(entry) AS entry, array_agg(turn) AS turn, array_agg(parent) AS parent,
            array_agg(said) AS said, array_agg(thoughts) AS thoughts
        FROM unnest(rows_)
    ) AS r, (
        SELECT array_agg(batch) AS batch, array_agg(id) AS id, array_agg(turn) AS turn,
            array_agg(at) AS at, array_agg(provider) AS provider,
            array_agg(endpoint) AS endpoint, array_agg(model) AS model,
            array_agg(shown) AS shown, array_agg(chars) AS chars, array_agg(memo) AS memo
        FROM unnest(entries_)
    ) AS e, (
        SELECT array_agg(e.n::int) AS entry, array_agg(substr(e.names, k * 24 + 1, 24)) AS name
        FROM (SELECT names, row_number() OVER () AS n FROM unnest(entries_)) AS e,
            generate_series(0, length(e.names) / 24 - 1) AS k
    ) AS n, (
        SELECT array_agg(batch) AS batch, array_agg(about) AS about, array_agg(kind) AS kind,
            array_agg(data) AS data
        FROM unnest(pointers_)
    ) AS p, append_2(
        now_, b.id, b.session, b.tenant, b.expect, b.count, b.turns, b.oldest, b.newest, b.kept,
        b.epoch, b.key, r.batch, r.nth, r.skip, r.count, r.kinds, r.newest, r.entry, r.turn,
        r.parent, r.said, r.thoughts, e.batch, e.id, e.turn, e.at, e.provider, e.endpoint, e.model,
        e.shown, e.chars, e.memo, n.entry, n.name, p.batch, p.about, p.kind, p.data
    ) AS a;
END
$$;

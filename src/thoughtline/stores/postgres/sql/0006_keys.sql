-- Keys are replaced while others write: nothing may be sealed with a key that is being deleted.

-- What says with which key a value is sealed; empty for a plain one.
CREATE FUNCTION key_of_1(value bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN substr(value, 1, 1) = '\x01' THEN substr(value, 1, 3) ELSE '' END
$$;

-- Adds keys of tenants that have some, newer ones only; returns how many. A key of look-up keys
-- (a version below 0) comes together with the key of values that it begins with, or not at all.
CREATE FUNCTION add_keys_2(tenants_ bytea[], versions_ int[], masters_ text[], wrapped_ bytea[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    added int;
BEGIN
    PERFORM lock_keys_1(tenants_);
    INSERT INTO tenant_keys
    SELECT k.tenant, k.version, k.master, k.wrapped
    FROM unnest(tenants_, versions_, masters_, wrapped_) AS k (tenant, version, master, wrapped)
    WHERE abs(k.version) > (SELECT max(t.version) FROM tenant_keys AS t WHERE t.tenant = k.tenant);
    GET DIAGNOSTICS added = ROW_COUNT;
    PERFORM raise_epoch_1(ARRAY(SELECT DISTINCT t FROM unnest(tenants_) AS t));
    RETURN added;
END
$$;

-- Replaces index entries, as `reindex_1` does, if they are sealed with the newest key of the tenant.
CREATE FUNCTION reindex_2(
    session_ bytea, tenant_ bytea, key_ int, remove bytea[],
    e_batch int[], e_id bytea[], e_turn bytea[], e_at float8[], e_provider bytea[],
    e_endpoint bytea[], e_model bytea[], e_shown int[], e_chars int[], e_memo bytea[],
    n_entry int[], n_name bytea[],
    OUT current bool, OUT old_id bytea[], OUT old_filed bigint[], OUT old_memo bytea[]
) LANGUAGE plpgsql AS $$
BEGIN
    current := keys_current_1(ARRAY[tenant_], ARRAY[key_]);
    IF current THEN
        SELECT r.old_id, r.old_filed, r.old_memo INTO old_id, old_filed, old_memo
        FROM reindex_1(session_, remove, e_batch, e_id, e_turn, e_at, e_provider, e_endpoint,
                       e_model, e_shown, e_chars, e_memo, n_entry, n_name) AS r;
    END IF;
END
$$;

-- Writes an entry that was sealed again, as `reseal_entry_1` does; whether nobody has changed it since.
CREATE FUNCTION reseal_entry_2(
    id_ bytea, rev_ bigint, memo_ bytea, filed_ bigint, old_names bytea[], new_names bytea[]
) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM entries WHERE id = id_ AND rev = rev_ AND filed = filed_ FOR UPDATE;
    IF FOUND THEN
        PERFORM reseal_entry_1(id_, rev_, memo_, filed_, old_names, new_names);
        RETURN true;
    END IF;
    RETURN false;
END
$$;

-- Changes what entries say, where nobody else has since, and they are still sealed with the same
-- key; returns the ids of those.
CREATE FUNCTION rewrite_entries_2(
    id_ bytea[], rev_ bigint[], shown_ int[], chars_ int[], memo_ bytea[]
) RETURNS SETOF bytea LANGUAGE sql AS $$
    WITH changed AS (
        UPDATE entries AS e
        SET rev = nextval('filings'), shown = t.shown, chars = t.chars, memo = t.memo
        FROM unnest(id_, rev_, shown_, chars_, memo_) AS t (id, rev, shown, chars, memo)
        WHERE e.id = t.id AND e.rev = t.rev AND key_of_1(e.memo) = key_of_1(t.memo)
        RETURNING e.id, e.tenant
    ), raised AS (
        SELECT raise_epoch_1(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT id FROM changed, raised
$$;

-- Changes the thoughts of rows, and what their entries say, where they are still sealed with the
-- same key; returns the places of those in the arrays, from 1.
CREATE FUNCTION rewrite_thoughts_2(
    session_ bytea[], batch_ bytea[], nth_ int[], thoughts_ bytea[]
) RETURNS SETOF bigint LANGUAGE sql AS $$
    WITH changed AS (
        UPDATE batches AS b SET thoughts = t.thoughts
        FROM unnest(session_, batch_, nth_, thoughts_) WITH ORDINALITY
             AS t (session, id, nth, thoughts, place)
        WHERE b.session = t.session AND b.id = t.id AND b.nth = t.nth
          AND key_of_1(b.thoughts) = key_of_1(t.thoughts)
        RETURNING b.entry, b.tenant, t.place
    ), revised AS (
        UPDATE entries AS e SET rev = nextval('filings')
        WHERE e.id IN (SELECT entry FROM changed)
    ), raised AS (
        SELECT raise_epoch_1(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT place FROM changed, raised
$$;

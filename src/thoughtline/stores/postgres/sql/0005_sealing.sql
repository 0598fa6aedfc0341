-- Keys of tenants, wrapped by master keys that are not in this database, and which of those wraps
-- what is new. See `stores/sealing`.
CREATE TABLE tenant_keys (
    tenant   bytea NOT NULL,
    version  int NOT NULL,           -- 0: of look-up keys; above: of values, the highest seals
    master   text NOT NULL,
    wrapped  bytea NOT NULL,
    PRIMARY KEY (tenant, version)
);

CREATE TABLE sealing (
    one      bool PRIMARY KEY DEFAULT true CHECK (one),
    master   text NOT NULL,          -- empty: nothing is sealed
    plain    bool NOT NULL           -- whether some of a sealed database may be plain
);
INSERT INTO sealing VALUES (true, '', false);

-- Whether these are the newest keys of these tenants: what is sealed with another one could be lost.
-- A version of 0 says that the node has no keys, which is right while nothing is sealed; -1 says that
-- it is plain on purpose. The keys cannot change before the transaction ends.
CREATE FUNCTION keys_current_1(tenants_ bytea[], versions_ int[]) RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7306, key) FROM (
        SELECT DISTINCT hashtext(encode(tenant, 'hex')) AS key FROM unnest(tenants_) AS t (tenant)
        ORDER BY key
    ) AS locks;
    IF -1 = ANY (versions_) THEN
        UPDATE sealing SET plain = true WHERE master <> '' AND NOT plain;
    END IF;
    RETURN NOT EXISTS (
        SELECT FROM unnest(tenants_, versions_) AS k (tenant, version)
        WHERE k.version = 0 AND (SELECT master FROM sealing) <> '' OR k.version > 0
          AND k.version IS DISTINCT FROM (
              SELECT max(t.version) FROM tenant_keys AS t WHERE t.tenant = k.tenant)
    );
END
$$;

CREATE FUNCTION lock_keys_1(tenants_ bytea[]) RETURNS void LANGUAGE sql AS $$
    SELECT count(pg_advisory_xact_lock(7306, key)) FROM (
        SELECT DISTINCT hashtext(encode(tenant, 'hex')) AS key FROM unnest(tenants_) AS t (tenant)
        ORDER BY key
    ) AS locks
$$;

-- Makes the first keys of a tenant, wrapped with `master_`, unless it has some, or another master
-- key wraps what is new.
CREATE FUNCTION make_keys_1(tenant_ bytea, master_ text, versions_ int[], wrapped_ bytea[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_keys_1(ARRAY[tenant_]);
    PERFORM FROM sealing WHERE master = '' FOR UPDATE;
    UPDATE sealing SET master = master_, plain = EXISTS (SELECT FROM sessions) WHERE master = '';
    IF FOUND THEN
        PERFORM raise_epoch_1(ARRAY[''::bytea]);  -- for the nodes without keys
    END IF;
    INSERT INTO tenant_keys
    SELECT tenant_, k.version, master_, k.wrapped
    FROM unnest(versions_, wrapped_) AS k (version, wrapped)
    WHERE (SELECT master FROM sealing) = master_
      AND NOT EXISTS (SELECT FROM tenant_keys WHERE tenant = tenant_);
    PERFORM raise_epoch_1(ARRAY[tenant_]);
END
$$;

-- Adds keys of tenants that have some; returns how many were not there yet.
CREATE FUNCTION add_keys_1(tenants_ bytea[], versions_ int[], masters_ text[], wrapped_ bytea[])
RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    added int;
BEGIN
    PERFORM lock_keys_1(tenants_);
    INSERT INTO tenant_keys SELECT * FROM unnest(tenants_, versions_, masters_, wrapped_)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    PERFORM raise_epoch_1(ARRAY(SELECT DISTINCT t FROM unnest(tenants_) AS t));
    RETURN added;
END
$$;

-- Replaces wrapped keys that are still the same; where `new_` is null, they are deleted.
CREATE FUNCTION replace_keys_1(
    tenants_ bytea[], versions_ int[], old_ bytea[], masters_ text[], new_ bytea[]
) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    changed int;
    gone int;
BEGIN
    PERFORM lock_keys_1(tenants_);
    UPDATE tenant_keys AS t SET master = k.master, wrapped = k.new
    FROM unnest(tenants_, versions_, old_, masters_, new_) AS k (tenant, version, old, master, new)
    WHERE t.tenant = k.tenant AND t.version = k.version AND t.wrapped = k.old AND k.new IS NOT NULL;
    GET DIAGNOSTICS changed = ROW_COUNT;
    DELETE FROM tenant_keys AS t
    USING unnest(tenants_, versions_, old_, new_) AS k (tenant, version, old, new)
    WHERE t.tenant = k.tenant AND t.version = k.version AND t.wrapped = k.old AND k.new IS NULL;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM raise_epoch_1(ARRAY(SELECT DISTINCT t FROM unnest(tenants_) AS t));
    RETURN changed + gone;
END
$$;

-- Deletes the keys of a tenant: nothing of it can be read any more.
CREATE FUNCTION drop_keys_1(tenant_ bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_keys_1(ARRAY[tenant_]);
    DELETE FROM tenant_keys WHERE tenant = tenant_;
    PERFORM raise_epoch_1(ARRAY[tenant_]);
END
$$;

-- Writes an entry that was sealed again, if nobody has changed it since, and its other names.
CREATE FUNCTION reseal_entry_1(
    id_ bytea, rev_ bigint, memo_ bytea, filed_ bigint, old_names bytea[], new_names bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE entries SET memo = memo_ WHERE id = id_ AND rev = rev_ AND filed = filed_;
    IF FOUND THEN
        DELETE FROM names WHERE name = ANY (old_names) AND filed = filed_;
        INSERT INTO names SELECT name, filed_, id_ FROM unnest(new_names) AS n (name)
        ON CONFLICT DO NOTHING;
    END IF;
END
$$;

-- Notes that everything is sealed, or plain, if it is.
CREATE FUNCTION finish_sealing_1(plain_ bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM sealing FOR UPDATE;
    IF plain_ THEN
        IF NOT EXISTS (SELECT FROM batches WHERE substr(said, 1, 1) = '\x01')
           AND NOT EXISTS (SELECT FROM entries WHERE substr(memo, 1, 1) = '\x01') THEN
            DELETE FROM tenant_keys;
            UPDATE sealing SET master = '', plain = false;
            PERFORM raise_epoch_1(ARRAY[''::bytea]);
        END IF;
    ELSIF NOT EXISTS (SELECT FROM batches WHERE substr(said, 1, 1) <> '\x01')
          AND NOT EXISTS (SELECT FROM entries WHERE substr(memo, 1, 1) <> '\x01') THEN
        UPDATE sealing SET plain = false WHERE plain;
        PERFORM raise_epoch_1(ARRAY[''::bytea]);
    END IF;
END
$$;

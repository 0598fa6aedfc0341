-- Who looks waits for those who are about to commit. These replace functions of the same version:
-- nodes of earlier releases call them as well.

-- Notes that something of these tenants was deleted or refused. The number is taken when the row is
-- ours: of two who wait for it, the later one has the higher number. What is noted for all tenants
-- waits for what is noted for one, so that the highest number that can be seen never comes first.
CREATE OR REPLACE FUNCTION raise_epoch_1(changed bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ''::bytea = ANY (changed) THEN
        PERFORM pg_advisory_xact_lock(7305, 3);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(7305, 3);
    END IF;
    INSERT INTO tenants AS t
    SELECT tenant, nextval('filings') FROM unnest(changed) AS c (tenant) ORDER BY tenant
    ON CONFLICT (tenant) DO UPDATE SET epoch = nextval('filings');
END
$$;

-- As before. Who writes with these keys holds a lock that ends with the transaction: who looks
-- whether anything is sealed, or plain, waits for it (`lock_sealing_1`).
CREATE OR REPLACE FUNCTION keys_current_1(tenants_ bytea[], versions_ int[]) RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7306, key) FROM (
        SELECT DISTINCT hashtext(encode(tenant, 'hex')) AS key FROM unnest(tenants_) AS t (tenant)
        ORDER BY key
    ) AS locks;
    PERFORM pg_advisory_xact_lock_shared(7305, 4);
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

-- Waits until all that is being written is committed; nothing else is written before this
-- transaction ends.
CREATE FUNCTION lock_sealing_1() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(7305, 4)
$$;

CREATE OR REPLACE FUNCTION make_keys_1(
    tenant_ bytea, master_ text, versions_ int[], wrapped_ bytea[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_keys_1(ARRAY[tenant_]);
    IF (SELECT master FROM sealing) = '' THEN
        PERFORM lock_sealing_1();
    END IF;
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

-- Notes that everything is sealed, or plain, if it is. Most is looked through before the lock: under
-- it, only what may have been committed since, and the entries.
CREATE OR REPLACE FUNCTION finish_sealing_1(plain_ bool) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    since xid8 := pg_snapshot_xmin(pg_current_snapshot());
BEGIN
    IF EXISTS (SELECT FROM batches WHERE (substr(said, 1, 1) = '\x01') = plain_) THEN
        RETURN;
    END IF;
    PERFORM lock_sealing_1();
    IF EXISTS (
        SELECT FROM home AS h JOIN batches AS b ON b.era = h.era AND b.xid >= since
        WHERE (substr(b.said, 1, 1) = '\x01') = plain_
    ) OR EXISTS (SELECT FROM entries WHERE (substr(memo, 1, 1) = '\x01') = plain_) THEN
        RETURN;
    END IF;
    IF plain_ THEN
        DELETE FROM tenant_keys;
        UPDATE sealing SET master = '', plain = false;
    ELSE
        UPDATE sealing SET plain = false WHERE plain;
    END IF;
    PERFORM raise_epoch_1(ARRAY[''::bytea]);
END
$$;

-- Makes a master key the one that wraps what is new; the first one seals a database.
CREATE FUNCTION set_primary_1(master_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT master FROM sealing) = '' THEN
        PERFORM lock_sealing_1();
    END IF;
    UPDATE sealing SET master = master_,
        plain = CASE master WHEN '' THEN EXISTS (SELECT FROM sessions) ELSE plain END;
END
$$;

-- As before. What is changed is locked by session, as appends and deletions do it: two who change
-- several rows do not wait for each other.
CREATE OR REPLACE FUNCTION rewrite_entries_2(
    id_ bytea[], rev_ bigint[], shown_ int[], chars_ int[], memo_ bytea[]
) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_sessions_1(ARRAY(SELECT session FROM entries WHERE id = ANY (id_)));
    RETURN QUERY
    WITH changed AS (
        UPDATE entries AS e
        SET rev = nextval('filings'), shown = t.shown, chars = t.chars, memo = t.memo
        FROM unnest(id_, rev_, shown_, chars_, memo_) AS t (id, rev, shown, chars, memo)
        WHERE e.id = t.id AND e.rev = t.rev AND key_of_1(e.memo) = key_of_1(t.memo)
        RETURNING e.id, e.tenant
    ), raised AS (
        SELECT raise_epoch_1(ARRAY(SELECT DISTINCT tenant FROM changed))
    )
    SELECT id FROM changed, raised;
END
$$;

CREATE OR REPLACE FUNCTION rewrite_thoughts_2(
    session_ bytea[], batch_ bytea[], nth_ int[], thoughts_ bytea[]
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_sessions_1(session_);
    RETURN QUERY
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
    SELECT place FROM changed, raised;
END
$$;

-- One row, whoever starts at the same time.
CREATE UNIQUE INDEX home_is_one ON home ((true));

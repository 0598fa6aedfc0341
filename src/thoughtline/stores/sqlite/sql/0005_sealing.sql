-- Keys of tenants, wrapped by master keys that are not in this file, and which of those wraps what
-- is new. See `stores/sealing`.
CREATE TABLE tenant_keys (
    tenant   TEXT NOT NULL,
    version  INTEGER NOT NULL,   -- 0: of look-up keys; above: of values, of which the highest seals
    master   TEXT NOT NULL,
    wrapped  BLOB NOT NULL,
    PRIMARY KEY (tenant, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE sealing (
    only     INTEGER PRIMARY KEY CHECK (only = 1),
    master   TEXT NOT NULL,      -- empty: nothing is sealed
    plain    INTEGER NOT NULL,   -- whether some of a sealed file may be plain
    changes  INTEGER NOT NULL    -- rises with every change of a key: what is held ready is void then
) STRICT;

INSERT INTO sealing VALUES (1, '', 0, 0);

CREATE TRIGGER key_added AFTER INSERT ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

CREATE TRIGGER key_replaced AFTER UPDATE ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

CREATE TRIGGER key_deleted AFTER DELETE ON tenant_keys
BEGIN UPDATE sealing SET changes = changes + 1; END;

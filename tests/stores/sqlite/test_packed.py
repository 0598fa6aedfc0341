"""Rows with BLOBs of any bytes come back from one value."""

import os
import sqlite3

from thoughtline.stores.sqlite.packed import packed, unpacked


def test_any_bytes_come_back():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (number INTEGER, name TEXT, one BLOB, two BLOB) STRICT")
    rows = [
        [1, "ä\x00\x1e\n", b"", b"\x00"],
        [2, "", bytes(range(256)), b"\n[1]\n"],
        [3, '"', os.urandom(100_000), b"\xff\xfe"],
    ]
    for row in rows:
        db.execute("INSERT INTO t VALUES (?, ?, ?, ?)", row)
    statement = packed("SELECT {rows} FROM t", ["number", "name"], ["one", "two"])
    assert list(unpacked(db.execute(statement).fetchone()[0], 2)) == rows
    assert list(unpacked(db.execute(f"{statement} WHERE number > 9").fetchone()[0], 2)) == []

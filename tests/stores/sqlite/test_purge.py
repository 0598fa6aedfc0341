"""What is purged is gone from the file."""

from stores.samples import notes, turn
from support.sqlite_files import NAME, look


async def test_what_was_purged_is_not_left_in_the_file(store, tmp_path):
    await store.append(turn("s", "t1", '"a secret thought"', keys=[NAME]))
    await store.append(notes("other", 50))
    await store.purge(session="s")
    await store.close()
    assert b"secret" not in (tmp_path / "store.db").read_bytes()


async def test_tenants_without_sessions_are_forgotten(store, tmp_path):
    await store.append(notes("a", tenant="A"))
    await store.append(notes("b", tenant="B"))
    await store.append(notes("c", tenant="B"))
    await store.purge(session="a")
    await store.purge(session="b")
    assert look(tmp_path / "store.db", "SELECT tenant FROM tenants") == [("B",)]

"""An entry is in the row of its turn; filed again, the older one leaves nothing behind."""

from stores.samples import turn
from support.sqlite_files import look
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch

A, B = b"a" * 16, b"b" * 16


def again(*keys):
    return Batch(session="s", tenant="T", drafts=(), index=(IndexEntry("s", "t1", keys=keys),))


async def test_the_older_entry_goes_with_its_keys(store, tmp_path):
    path = tmp_path / "store.db"
    await store.append(turn("s", "t1", '"one"', keys=[A]))
    await store.append(again(A, B))
    await store.append(again(B))
    rows = "SELECT count, memo <> x'' FROM batches ORDER BY position"
    assert look(path, rows) == [(3, 0), (0, 1)]
    assert look(path, "SELECT name FROM lookup_keys") == [(B,)]
    assert [t.raw for t in (await store.find("T", [B]))[B][0].thoughts] == ['"one"']

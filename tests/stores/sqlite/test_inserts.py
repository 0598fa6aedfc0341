"""Any number of rows is written."""

import pytest
from msgspec.structs import asdict, replace

from stores.samples import appended, notes, turn
from support.sqlite_files import look
from thoughtline.stores.row import pack
from thoughtline.stores.sqlite.inserts import row_values


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 511, 513, 1030])
async def test_any_number_of_rows_is_written(store, count):
    written = await appended(store, notes("s", count))
    assert await store.read("s") == written
    assert len(written) == count


async def test_the_values_of_a_row_are_in_the_order_of_the_columns(store, tmp_path):
    [row] = pack(replace(turn("s", "t1", '"x"'), id="t1"))
    await store.append(notes("s"))
    columns = [
        name
        for (name,) in look(tmp_path / "store.db", "SELECT name FROM pragma_table_info('batches')")
    ]
    values = dict(zip(columns, row_values(row, 7, 8, 9), strict=True))
    known = asdict(row) | {"position": 7, "session": 8, "first": 9}
    assert values == {name: known[name] for name in columns}

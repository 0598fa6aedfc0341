"""Any number of rows is written."""

import pytest

from stores.samples import notes


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 511, 513, 1030])
async def test_any_number_of_rows_is_written(store, count):
    written = await store.append(notes("s", count))
    assert await store.read("s") == written
    assert len(written) == count

"""A copy of a file in use: complete, or not there."""

import pytest

from stores.samples import turn
from thoughtline.errors import StoreError
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.sqlite.backup import back_up


async def test_a_copy_says_how_far_it_is_and_has_everything(tmp_path, monkeypatch):
    monkeypatch.setattr("thoughtline.stores.sqlite.backup._STEPS", 50)
    path, steps = tmp_path / "store.db", []
    store = SqliteStore(path)
    for n in range(20):
        await store.append(turn(f"s{n}", f"t{n}", '"x"'))
    size = back_up(path, tmp_path / "copy.db", lambda *step: steps.append(step))
    await store.append(turn("late", "late", '"x"'))
    await store.close()
    assert size == (tmp_path / "copy.db").stat().st_size and len(steps) > 2
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    copy = SqliteStore(tmp_path / "copy.db")
    assert len(await copy.sessions(limit=100)) == 20
    await copy.close()
    with pytest.raises(StoreError, match="is there already"):
        back_up(path, tmp_path / "copy.db")

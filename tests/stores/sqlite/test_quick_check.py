"""Damage is found where the structure is damaged, and the file is not changed."""

import pytest

from stores.samples import turn
from support.sqlite_files import NAME
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.sqlite.quick_check import quick_check


@pytest.fixture
async def path(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    for number in range(20):
        await store.append(turn("s", f"t{number}", f'"{"x" * 3_000}"', keys=(NAME,)))
    await store.close()
    return path


async def test_a_sound_file(path):
    before = path.read_bytes()
    assert quick_check(path, 60) == ""
    assert path.read_bytes() == before


@pytest.mark.parametrize("page", [1, 5, 11])
async def test_a_damaged_page(path, page):
    with path.open("r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xa5" * 4096)
    said = quick_check(path, 60)
    assert f"{path} is damaged" in said
    assert "salvage" in said


async def test_a_file_that_is_none_and_one_that_is_not_there(tmp_path):
    assert quick_check(tmp_path / "missing.db", 60) == ""
    other = tmp_path / "other.db"
    other.write_bytes(b"no database" * 1000)
    assert "is damaged" in quick_check(other, 60)


async def test_it_ends_when_its_time_is_over(path, monkeypatch):
    monkeypatch.setattr("thoughtline.stores.sqlite.quick_check._STEPS", 1)
    assert quick_check(path, -1.0) is None

"""What one process deletes stays deleted, also where it waits in another one."""

import asyncio

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from stores.samples import turn
from thoughtline.agents.log import open_log
from thoughtline.cli import main
from thoughtline.errors import Unavailable
from thoughtline.stores.base import EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.deletions import ERASE, KEPT, PURGE, DeletionFile, NotedDeletion
from thoughtline.stores.sqlite import SqliteStore

KEY, OTHER = b"k" * 16, b"o" * 16
WHOSE = EntryFilter(tenant="T")


def test_what_is_noted_is_read_in_order_and_forgotten_in_the_end(tmp_path):
    file = DeletionFile(tmp_path / "store.db")
    assert file.since(0) == []
    noted = [NotedDeletion(ERASE, WHOSE, at) for at in (10.0, 20.0, 30.0)]
    for deletion in noted:
        file.note(deletion)
    assert file.since(20.0) == noted[1:]
    path = tmp_path / "store.db-deletions"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes() + b'["erase",{"ten')  # cut
    assert file.since(0) == noted
    file.note(NotedDeletion(PURGE, WHOSE, 20.0 + KEPT))
    assert [deletion.at for deletion in file.since(0)] == [20.0, 30.0, 20.0 + KEPT]


class Detached(SqliteStore):
    """The store of a process that cannot write for a while."""

    down = True

    async def append(self, batch):
        if self.down:
            raise Unavailable("the disk does not answer")
        return await super().append(batch)


@pytest.fixture
async def neighbours(tmp_path):
    """Two processes on one file; a turn waits in the second one."""
    path = tmp_path / "store.db"
    one, two = SqliteStore(path), Detached(path)
    first = CachedStore(one, spill=path)
    second = CachedStore(two, spill=path, retry=60.0)
    await first.append(turn("s0", "t0", '"kept"', keys=(OTHER,)))
    with pytest.raises(Unavailable):
        await second.append(replace(turn("s1", "t1", '"waiting"', keys=(KEY,)), id="t1"))
    yield first, second
    await second.close()
    await first.close()


async def catch_up(store):
    store.store.down = False
    while store._backlog:
        await store._backlog._write_first()


async def raws(store, key):
    found = await store.find("T", [key])
    thoughts = [thought for entry in found.get(key, ()) for thought in entry.thoughts]
    return [thought.raw for thought in thoughts if not thought.forgotten]


async def test_a_turn_that_waits_elsewhere_is_written_when_nothing_was_deleted(neighbours):
    first, second = neighbours
    await catch_up(second)
    assert await raws(first, KEY) == ['"waiting"']


@pytest.mark.parametrize("act", ["erase", "forget", "purge the tenant", "purge the session"])
async def test_what_is_deleted_here_is_not_brought_back_from_there(neighbours, act):
    first, second = neighbours
    if act == "erase":
        await first.erase(WHOSE)
    elif act == "forget":
        await first.forget(WHOSE)
    else:
        await first.purge(**({"tenant": "T"} if "tenant" in act else {"session": "s1"}))
    await catch_up(second)
    assert await raws(first, KEY) == await raws(second, KEY) == []
    assert second.lost == 0
    written = await first.read("s1")
    assert (written == []) == act.startswith("purge")
    texts = b"".join(str(event).encode() for event in written)
    assert (b"waiting" in texts) == (act == "forget")


async def test_a_deletion_while_it_is_written_counts_too(neighbours):
    first, second = neighbours
    append = SqliteStore.append

    async def slow(batch):
        await first.erase(WHOSE)
        return await append(second.store, batch)

    second.store.append = slow
    await catch_up(second)
    assert await raws(first, KEY) == []
    assert "waiting" not in str(await first.read("s1"))


@pytest.mark.parametrize("fails", ["to read what was deleted", "to delete it again"])
async def test_a_deletion_while_it_is_written_counts_also_when_that_is_noticed_later(
    neighbours, fails
):
    first, second = neighbours
    append, erase = SqliteStore.append, second.store.erase
    noted = second._deletions.noted_since
    begun = []

    async def slow(batch):
        if not begun:
            begun.append(batch)
            await first.erase(WHOSE)
        return await append(second.store, batch)

    async def fail_once(*args):
        if len(begun) == 1:
            begun.append("failed")
            raise Unavailable("the disk does not answer")
        return await (noted if fails.endswith("what was deleted") else erase)(*args)

    second.store.append = slow
    if fails == "to delete it again":
        second.store.erase = fail_once
    else:
        second._deletions.noted_since = fail_once
    with pytest.raises(Unavailable):
        await catch_up(second)
    await catch_up(second)
    assert len(begun) == 2
    assert await raws(first, KEY) == []
    assert "waiting" not in str(await first.read("s1"))


async def test_what_is_said_after_a_deletion_is_kept(neighbours):
    first, second = neighbours
    await first.purge(tenant="T")
    with pytest.raises(Unavailable):
        await second.append(turn("s2", "t2", '"later"', keys=(OTHER,)))
    await catch_up(second)
    assert await raws(first, KEY) == []
    assert await raws(first, OTHER) == ['"later"']


@pytest.mark.parametrize("act", ["erase", "forget", "purge"])
async def test_what_waits_is_not_found_any_more_once_a_neighbour_deleted_it(neighbours, act):
    first, second = neighbours
    assert await raws(second, KEY) == ['"waiting"']
    await (first.purge(tenant="T") if act == "purge" else getattr(first, act)(WHOSE))
    assert await raws(second, KEY) == []
    await catch_up(second)
    assert await raws(second, KEY) == await raws(first, KEY) == []


@pytest.mark.parametrize("act", ["erase", "forget", "purge"])
async def test_what_waits_is_not_found_any_more_though_the_file_had_nothing_of_it(neighbours, act):
    first, second = neighbours
    await SqliteStore.append(second.store, turn("s2", "t2", '"mine"'))  # it has the file open
    assert await raws(second, KEY) == ['"waiting"']
    assert await raws(second, KEY) == ['"waiting"']
    which = EntryFilter(session="s1")
    await (first.purge(session="s1") if act == "purge" else getattr(first, act)(which))
    assert await raws(second, KEY) == []
    await catch_up(second)
    assert await raws(second, KEY) == await raws(first, KEY) == []


@pytest.mark.parametrize(
    "command", [("erase",), ("cache", "--clear"), ("delete", "s1")], ids=lambda words: words[0]
)
async def test_what_a_command_deletes_is_not_brought_back_either(neighbours, tmp_path, command):
    first, second = neighbours
    await first.append(turn("s1", "t2", '"written"', keys=(b"w" * 16,)))  # something to name
    words = [*command, "--yes", "--store", f"sqlite:///{tmp_path / 'store.db'}"]
    result = await asyncio.to_thread(CliRunner().invoke, main, words)
    assert result.exit_code == 0, result.output
    assert await raws(second, KEY) == []
    await catch_up(second)
    assert await raws(first, KEY) == await raws(second, KEY) == []


async def test_what_the_library_deletes_is_not_brought_back_either(neighbours, tmp_path):
    first, second = neighbours
    await first.append(turn("s1", "t2", '"written"', keys=(b"w" * 16,)))
    async with open_log(f"sqlite:///{tmp_path / 'store.db'}") as log:
        assert await log.delete("s1")
    await catch_up(second)
    assert await raws(first, KEY) == []
    assert await first.read("s1") == []

"""Batches that wait for the store: in order, each once, saved beside it, within bytes."""

import asyncio
import zlib

import pytest

from stores.samples import notes, turn
from stores.sealed_samples import keychain
from support.fragile_store import A, B
from support.waiting import eventually
from thoughtline.errors import Unavailable
from thoughtline.stores.backlog import Backlog, BacklogEvents
from thoughtline.stores.spill import SpillFile
from thoughtline.stores.waiting import batch_size


class Disk:
    """Writes when it is let."""

    def __init__(self):
        self.free = asyncio.Event()
        self.began = asyncio.Event()
        self.written = []
        self.lost = []
        self.unloaded = []
        self.emptied = 0
        self.failures = 0

    async def write(self, batches):
        self.began.set()
        await self.free.wait()
        return [self._write(batch) for batch, _ in batches]

    def _write(self, batch):
        if self.failures:
            self.failures -= 1
            return Unavailable("not yet")
        self.written.append(batch)
        return None

    def empty(self):
        self.emptied += 1

    def lose(self, batch, why):
        self.lost.append((batch, why))


@pytest.fixture
async def disk():
    return Disk()


def backlog(disk, limit=1 << 20, spill=None, retry=0, keychain=None):
    events = BacklogEvents(
        write=disk.write, unloaded=disk.unloaded.append, lost=disk.lose, caught_up=disk.empty
    )
    return Backlog(events, limit=limit, retry=retry, spill=spill, keychain=keychain)


async def added(waiting, *batches):
    for batch in batches:
        await waiting.add(batch, Unavailable("it is locked"))
    return waiting


async def test_written_in_order_and_tried_again(disk):
    batches = [notes("s"), notes("z"), notes("s", 2)]
    disk.failures = 2
    waiting = await added(backlog(disk), *batches)
    assert len(waiting) == 3
    disk.free.set()
    await eventually(lambda: disk.emptied)
    written = {name: [b for b in disk.written if b.session == name] for name in "sz"}
    assert written == {"s": batches[::2], "z": batches[1:2]}
    assert len(waiting) == 0
    assert waiting.size == 0


async def test_without_a_file_the_oldest_makes_room(disk):
    batches = [notes(name) for name in "abc"]
    waiting = backlog(disk, limit=2 * batch_size(batches[0]), retry=60)
    await added(waiting, *batches)
    assert [(batch, len(why) > 0) for batch, why in disk.lost] == [(batches[0], True)]
    assert "it is locked" in disk.lost[0][1]
    assert len(waiting) == 2
    disk.free.set()
    await waiting.close(60)
    assert disk.written == batches[1:]


async def test_the_one_that_is_being_written_is_not_given_up(disk):
    batches = [notes(name) for name in "abc"]
    waiting = await added(backlog(disk, limit=batch_size(batches[0])), batches[0])
    await disk.began.wait()
    await added(waiting, *batches[1:])
    assert [batch for batch, _ in disk.lost] == [batches[1]]
    disk.free.set()
    await eventually(lambda: disk.emptied)
    assert disk.written == [batches[0], batches[2]]


async def test_beyond_the_limit_they_are_only_in_the_file_and_are_found_there(disk, tmp_path):
    batches = [turn("s", f"t{n}", '"hm"', keys=(A, bytes([n]) * 16)) for n in range(4)]
    waiting = backlog(disk, batch_size(batches[0]), tmp_path / "store.db", retry=60)
    await added(waiting, *batches)
    assert disk.lost == []
    assert disk.unloaded == batches[:3]
    assert waiting.size <= batch_size(batches[0])
    found = await waiting.find("T", [A, B, bytes([2]) * 16])
    assert {key: [entry.turn for entry in entries] for key, entries in found.items()} == {
        A: ["t0", "t1", "t2"],
        bytes([2]) * 16: ["t2"],
    }
    assert not await waiting.find("other", [A])
    disk.free.set()
    await waiting.close(60)
    assert disk.written == batches
    assert not waiting.unloaded
    assert not list(tmp_path.iterdir())


async def test_what_a_dead_process_left_is_written_first(disk, tmp_path):
    store = tmp_path / "store.db"
    left = [turn("s", "t0", '"hm"', keys=(A,)), turn("s", "t1", keys=(B,))]
    file = SpillFile.create(store)
    for batch in left:
        file.append(batch)
    file.close()
    waiting = backlog(disk, spill=store)
    await waiting.adopt()
    await waiting.adopt()
    assert len(waiting) == 2
    assert [entry.turn for entry in (await waiting.find("T", [A]))[A]] == ["t0"]
    new = turn("s", "t2")
    await waiting.add(new, Unavailable("catching up"))
    disk.free.set()
    await eventually(lambda: disk.emptied)
    assert disk.written == [*left, new]
    assert not list(tmp_path.iterdir())


def altered(path):
    """Put another letter into the second line of a file, with a checksum that fits."""
    first, second, *rest = path.read_bytes().splitlines(keepends=True)
    text = second[9:-1]
    text = text[:-8] + (b"A" if text[-8:-7] != b"A" else b"B") + text[-7:]
    path.write_bytes(b"".join([first, b"%08x %b\n" % (zlib.crc32(text), text), *rest]))


async def test_a_sealed_line_that_was_altered_stops_no_other(disk, tmp_path):
    batches = [turn("s", "t0", '"hm"', keys=(A,)), turn("s", "t1", keys=(B,)), turn("s", "t2")]
    waiting = backlog(disk, limit=0, spill=tmp_path / "store.db", keychain=keychain())
    await added(waiting, *batches)
    altered(next(tmp_path.iterdir()))
    assert await waiting.find("T", [B]) == {}
    disk.free.set()
    await eventually(lambda: disk.emptied)
    assert disk.written == batches[::2]
    [(lost, why)] = disk.lost
    assert (lost.session, lost.tenant) == ("s", "T") and "was altered" in why


async def test_a_sealed_line_that_was_altered_is_not_said_to_be_erased(disk, tmp_path):
    waiting = backlog(disk, 0, tmp_path / "store.db", retry=60, keychain=keychain())
    await added(waiting, turn("s", "t0"), turn("s", "t1"))
    altered(next(tmp_path.iterdir()))
    with pytest.raises(Unavailable, match="is not erased"):
        await waiting.change(lambda batch: None)
    await waiting.close(0)


async def test_a_damaged_line_is_a_loss_that_is_said(disk, tmp_path):
    store = tmp_path / "store.db"
    file = SpillFile.create(store)
    file.append(notes("s"))
    file.close()
    file.path.write_bytes(file.path.read_bytes() + b"cut off")
    waiting = backlog(disk, spill=store)
    await waiting.adopt()
    [(_, why)] = disk.lost
    assert "damaged" in why
    assert len(waiting) == 1


async def test_when_the_file_cannot_be_written_either_the_loss_is_said(disk, tmp_path):
    batches = [notes(name) for name in "ab"]
    place = tmp_path / "gone" / "store.db"  # as a disk that is not there
    waiting = backlog(disk, batch_size(batches[0]), place, retry=60)
    await added(waiting, *batches)
    assert "No such file" in waiting.unsaved
    [(lost, why)] = disk.lost
    assert lost == batches[0]
    assert "it is locked" in why
    assert "No such file" in why
    place.parent.mkdir()
    await waiting.add(notes("c"), Unavailable("it is locked"))
    assert waiting.unsaved == ""
    assert len(disk.lost) == 1


async def test_a_deleted_batch_is_not_taken_for_an_equal_one_that_is_being_written(disk):
    first, second = notes("s"), notes("s")
    assert first == second
    waiting = await added(backlog(disk), first, second)
    await disk.began.wait()
    deleting = asyncio.ensure_future(waiting.change(lambda batch: None))
    disk.free.set()  # what is being written is written, and then deleted in the store
    await deleting
    await eventually(lambda: disk.emptied)
    assert len(disk.written) == 1
    assert disk.written[0] is first


@pytest.mark.parametrize("saved", [False, True])
async def test_waiting_batches_can_be_replaced_and_erased(disk, tmp_path, saved):
    store = tmp_path / "store.db"
    batches = [turn(name, f"t{name}", '"secret"', keys=(A,)) for name in "abc"]
    waiting = backlog(disk, 0 if saved else 1 << 20, store, retry=60)
    await added(waiting, *batches)
    other = notes("other")
    await waiting.change(lambda batch: {"a": None, "b": other}.get(batch.session, batch))
    [file] = tmp_path.iterdir()
    assert file.read_bytes().count(b"secret") == file.read_bytes().count(b"tc.0") * 2
    disk.free.set()
    await waiting.close(60)
    assert disk.written == [other, batches[2]]
    assert not list(tmp_path.iterdir())


async def test_what_cannot_be_written_at_the_end_is_left_for_the_next_process(disk, tmp_path):
    store = tmp_path / "store.db"
    disk.failures = 9
    disk.free.set()
    batches = [notes("s"), notes("z")]
    waiting = await added(backlog(disk, spill=store), *batches)
    disk.failures = 10**9
    await waiting.close(60)
    assert disk.lost == []
    later = Disk()
    later.free.set()
    again = backlog(later, spill=store)
    await again.adopt()
    await eventually(lambda: later.emptied)
    assert later.written == batches


async def test_a_batch_that_takes_long_is_held_and_released(disk, tmp_path):
    waiting = backlog(disk, spill=tmp_path / "store.db")
    held = await waiting.hold(notes("s"))
    assert len(list(tmp_path.iterdir())) == 1
    await waiting.release(held)
    assert not list(tmp_path.iterdir())
    assert await backlog(disk).hold(notes("s")) is None

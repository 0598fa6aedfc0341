"""What this process has written is counted without the file, and comes to the same."""

import random

import pytest
from msgspec.structs import replace

from stores.contract import decided
from support.plain_turn_counter import plain_counts
from thoughtline.log.turn_counts import COARSE, FINE, add_up
from thoughtline.stores.sqlite import SqliteStore, turn_counts

NOW = 1_000_000.0


def fail(*_, **__):
    raise AssertionError("the file was read")


async def written(store, seconds):
    """The counts in the table, and nothing beside it."""

    def read(db):
        asked = {"seconds": seconds, "length": seconds, "since": 0}
        (packed,) = db.execute(turn_counts._COUNTS, asked).fetchone()
        return {(seconds, *key): counts for *key, counts in turn_counts._rows.decode(packed)}

    return await store._read(read)


async def test_what_was_written_here_is_not_read(store, clock, monkeypatch):
    clock.now = NOW
    await store.summarise()
    for number in range(5):
        await store.append(decided("s", f"t{number}", at=NOW))
    await store.summarise()  # the file has what came before the first
    monkeypatch.setattr(turn_counts, "_count_rows", fail)
    for number in range(5):
        await store.append(decided("s", f"u{number}", at=NOW))
    await store.summarise()
    [counts] = (await written(store, FINE)).values()
    assert counts["turns"] == 10


@pytest.mark.parametrize("seed", range(12))
async def test_counts_are_those_of_the_log(store, clock, tmp_path, monkeypatch, seed):
    """Two processes, turns in one batch or two, batches that come twice, at any time."""
    monkeypatch.setattr(turn_counts, "ROWS", 5)
    monkeypatch.setattr(turn_counts, "PAGE", 3)
    chance = random.Random(seed)
    clock.now = NOW
    nodes = (store, SqliteStore(tmp_path / "store.db", clock=clock))
    open_turns = []
    for number in range(60):
        node, what = chance.choice(nodes[: 1 + seed % 2]), chance.random()
        batch = decided(f"s{number % 4}", f"t{number}", at=NOW - chance.random() * 2 * FINE)
        start, end = (replace(batch, drafts=(draft,), index=()) for draft in batch.drafts)
        if what < 0.4:
            await node.append(replace(batch, id=f"b{number}"))
            await chance.choice(nodes).append(replace(batch, id=f"b{number}"))
        elif what < 0.6:
            await node.append(start)
            open_turns.append(end)
        elif what < 0.8 and open_turns:
            await node.append(open_turns.pop(chance.randrange(len(open_turns))))
        else:
            await node.summarise()
    for node in nodes:
        await node.summarise()
    log = (await store.history(None, limit=1_000)).events
    expected = plain_counts(log)
    for seconds in (FINE, COARSE):
        of_length = {key: counts for key, counts in expected.items() if key[0] == seconds}
        assert await written(store, seconds) == of_length
        page = await store.turn_counts(seconds=seconds, since=0.0)
        assert page.complete
        assert page.counts == add_up(page.counts, seconds)
        assert {(seconds, int(c.at), c.provider, c.model): c.counts for c in page.counts} == (
            of_length
        )
    await nodes[1].close()


async def test_a_slice_that_could_not_be_written_is_read(store, clock, monkeypatch):
    clock.now = NOW
    await store.summarise()
    await store.append(decided("s", "t1", at=NOW))
    await store.summarise()
    await store.append(decided("s", "t2", at=NOW))
    store._upkeep._fresh.take()  # and nobody writes it
    await store.append(decided("s", "t3", at=NOW))
    await store.summarise()
    [counts] = (await written(store, FINE)).values()
    assert counts["turns"] == 3


async def test_nothing_is_counted_for_nobody(store, clock):
    await store.append(decided("s", "t1", at=NOW))
    assert store._writer.fresh_counts._counter.intervals == 0

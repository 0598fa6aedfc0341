"""Summaries say what the tables say, whatever is written and deleted, and in whatever order."""

import random

from stores.samples import ORIGIN, turn
from support.sqlite_files import look
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.sqlite import SqliteStore, summaries

PLAIN = """
SELECT count(*), coalesce(sum(chars / entries), 0), min(ended), max(ended)
FROM batches WHERE entries > 0
"""


async def told(store):
    stats = await store.stats()
    return stats.entries, stats.chars, stats.oldest_entry, stats.newest_entry


async def test_they_follow_the_index(store, tmp_path, monkeypatch):
    monkeypatch.setattr(summaries, "ENTRIES", 7)
    chance = random.Random(3)
    for number in range(200):
        session, tenant = f"s{number % 13}", f"T{number % 13 % 3}"
        raws = ['"hm"'] * chance.randrange(3)
        calls = ("a", "b", "c")[: chance.randrange(4)]
        await store.append(
            turn(session, f"t{number % 150}", *raws, tenant=tenant, calls=calls, at=float(number))
        )
        if not number % 11:
            await store.summarise()
        if not number % 17:
            await store.forget(EntryFilter(call="b", tenant=tenant))
        if not number % 23:
            await store.purge(session=session)
        if not number % 41:
            await store.erase(EntryFilter(session=f"s{(number + 1) % 13}"))
        assert [await told(store)] == look(tmp_path / "store.db", PLAIN)
        listed = await store.entries(limit=1000)
        assert (
            len({(entry.session, entry.turn) for entry in listed}) == (await store.stats()).entries
        )
    await store.forget(ALL_ENTRIES)
    assert await told(store) == (0, 0, None, None)


async def test_what_comes_after_a_deleted_entry_is_summarised(store):
    await store.append(turn("a", "t1", '"one"'))
    await store.append(turn("b", "t2", '"two"'))
    await store.summarise()
    await store.purge(session="b")
    await store.append(turn("c", "t3", '"three"', origin=ORIGIN))
    await store.summarise()
    assert [entry.turn for entry in await store.entries()] == ["t3", "t1"]
    assert (await store.stats()).entries == 2
    assert [e.turn for e in await store.entries(EntryFilter(provider="deepseek"))] == ["t3", "t1"]


async def test_two_processes_summarise_one_file(store, tmp_path):
    other = SqliteStore(tmp_path / "store.db")
    for number in range(50):
        await store.append(turn("s", f"t{number}", '"hm"'))
        if number % 5 == 0:
            await (other if number % 2 else store).summarise()
    await other.summarise()
    assert (await store.stats()).entries == (await other.stats()).entries == 50
    await other.close()


async def test_a_crash_between_two_slices_loses_nothing(store, tmp_path, monkeypatch):
    monkeypatch.setattr(summaries, "ENTRIES", 10)
    for number in range(35):
        await store.append(turn("s", f"t{number}", '"hm"'))
    await store._writer.run(summaries.add_entries)  # and then it ends
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    assert (await again.stats()).entries == 35
    await again.summarise()
    assert (await again.stats()).entries == 35
    assert look(tmp_path / "store.db", "SELECT position FROM summarised WHERE source = 'entries'")
    await again.close()


async def test_what_cannot_be_read_is_passed_over(store, tmp_path):
    await store.append(turn("s", "t1", '"hm"'))
    spoil = "UPDATE batches SET memo = CAST(x'c1' || memo AS BLOB)"
    await store._writer.run(lambda db: db.execute(spoil).rowcount)
    await store.summarise()
    assert (await store.stats()).entries == 1

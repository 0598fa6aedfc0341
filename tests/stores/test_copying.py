"""Copying a store into another one."""

import pytest
from msgspec.structs import replace

from stores.samples import StillClock, fork, notes, refusal, turn
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter
from thoughtline.stores.copying import copy_store
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore

A, B = b"a" * 16, b"b" * 16


async def filled(store):
    for n in range(5):
        for t in range(3):
            id = f"s{n}.t{t}"
            await store.append(replace(turn(f"s{n}", id, f'"{id}"', keys=[A, id.encode()]), id=id))
    await store.append(refusal("s1", "s1.t0", 0))
    await store.append(fork("branch", "s1"))
    await store.append(replace(turn("own", "o", '"mine"', keys=[B]), kept=True))
    await store.append(notes("other", 3, tenant="B"))
    await store.forget(EntryFilter(session="s2"))
    return store


async def everything(store):
    sessions = sorted(await store.sessions(), key=lambda s: s.session)
    return (
        [(s.session, s.tenant, s.events) for s in sessions],
        {s.session: await store.read(s.session) for s in sessions},
        {s.session: [f.entry for f in await store.index(s.session)] for s in sessions},
        {(e.turn, e.kept) for e in await store.entries(ALL_ENTRIES, limit=999)},
    )


async def test_everything_is_copied_and_a_second_time_nothing(tmp_path):
    source = await filled(MemoryStore(StillClock()))
    target = SqliteStore(tmp_path / "copy.db", clock=StillClock())
    seen = []
    report = await copy_store(source, target, lambda *of: seen.append(of))
    assert (report.sessions, report.copied, report.conflicts) == (8, 8, [])
    assert seen[-1] == (8, 8)
    assert await everything(target) == await everything(source)
    again = await copy_store(source, target)
    assert (again.copied, again.events, again.entries) == (0, 0, 0)
    back = MemoryStore(StillClock())
    await copy_store(target, back)
    assert await everything(back) == await everything(source)
    await target.close()


async def test_a_copy_that_was_interrupted_goes_on():
    source, target = await filled(MemoryStore(StillClock())), MemoryStore(StillClock())
    for event in (await source.read("s0"))[:3]:
        batch = notes("s0")
        made = replace(
            batch.drafts[0], **{f: getattr(event, f) for f in batch.drafts[0].__struct_fields__}
        )
        await target.append(replace(batch, drafts=(made,)))
    await copy_store(source, target)
    assert await everything(target) == await everything(source)
    await source.append(replace(turn("s0", "new", '"new"', keys=[A]), id="new"))
    report = await copy_store(source, target)
    assert (report.copied, report.events, report.entries) == (1, 3, 1)


async def test_a_session_with_other_events_is_left_alone():
    source, target = await filled(MemoryStore(StillClock())), MemoryStore(StillClock())
    await target.append(turn("s0", "different", '"x"'))
    report = await copy_store(source, target)
    assert report.conflicts == ["s0"]
    assert (await target.read("s0"))[0].id == "different"


@pytest.fixture(params=["memory", "sqlite"])
async def target(request, tmp_path):
    made = MemoryStore(StillClock())
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "copy.db", clock=StillClock())
    yield made
    await made.close()


async def test_what_was_erased_since_the_last_copy_is_erased_there_as_well(target):
    source = await filled(MemoryStore(StillClock()))
    await copy_store(source, target)
    assert await source.erase(EntryFilter(turn="s0.t1")) == 1
    await source.append(replace(turn("s0", "s0.t3", '"later"', keys=[A]), id="s0.t3"))
    report = await copy_store(source, target)
    assert (report.copied, report.forgotten) == (1, 1)
    assert await everything(target) == await everything(source)
    assert (await copy_store(source, target)).forgotten == 0


async def test_what_was_forgotten_since_the_last_copy_is_forgotten_there_as_well(target):
    source = await filled(MemoryStore(StillClock()))
    await source.append(turn("calls", "c", '"two"', keys=[B], calls=("one", "two")))
    await copy_store(source, target)
    assert await source.forget(EntryFilter(session="s3")) == 3
    assert await source.forget(EntryFilter(session="calls", call="one")) == 1
    assert (await copy_store(source, target)).forgotten == 4
    assert await everything(target) == await everything(source)
    assert (await copy_store(source, target)).forgotten == 0


async def test_what_was_erased_in_the_copy_stays_so(target):
    source = await filled(MemoryStore(StillClock()))
    await copy_store(source, target)
    assert await target.erase(EntryFilter(turn="s0.t1")) == 1
    assert await target.forget(EntryFilter(turn="s0.t2")) == 1
    before = await everything(target)
    await copy_store(source, target)
    assert await everything(target) == before

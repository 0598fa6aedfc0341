"""Looking through a store."""

from stores.samples import StillClock, notes, plain, turn
from thoughtline.stores.base import Batch
from thoughtline.stores.checking import check_store
from thoughtline.stores.memory import MemoryStore


async def test_a_sound_store():
    store = MemoryStore(StillClock())
    await store.append(turn("s", "t1", '"x"'))
    newer = Batch(session="s", tenant="T", drafts=(plain(type="turn_ended", version=99),))
    await store.append(newer)
    report = await check_store(store)
    assert (report.sessions, report.events, report.newer, report.sound) == (1, 4, 1, True)


async def test_gaps_and_what_cannot_be_read_are_named():
    class Damaged(MemoryStore):
        async def read(self, session, *, after=-1, limit=None):
            if session == "torn":
                raise ValueError("no")
            return (await super().read(session, after=after, limit=limit))[1:]

    store = Damaged(StillClock())
    await store.append(notes("gap", 3))
    await store.append(notes("torn"))
    report = await check_store(store)
    assert (report.gaps, report.unreadable, report.sound) == (["gap"], ["torn"], False)
    assert report.reasons == ["no"]


async def test_a_session_that_is_deleted_meanwhile_lacks_nothing():
    class Swept(MemoryStore):
        async def read(self, session, *, after=-1, limit=None):
            await self.purge(session=session)
            return await super().read(session, after=after, limit=limit)

    store = Swept(StillClock())
    await store.append(notes("s", 3))
    report = await check_store(store)
    assert report.sound and report.events == 0

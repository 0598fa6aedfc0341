"""What every store does with a value that is damaged. Subclass it, and say how to damage one."""

import pytest
from msgspec.structs import replace

from stores.contract import A, B, C
from stores.samples import StillClock, after, notes, turn
from thoughtline.errors import Unreadable
from thoughtline.log.events import DAMAGED, UserMessage, draft
from thoughtline.log.parts import UNREADABLE_THOUGHT, Text
from thoughtline.log.sessions import Session
from thoughtline.log.turn_counts import FINE
from thoughtline.stores.base import ALL_ENTRIES, EntryFilter, SessionQuery
from thoughtline.stores.checking import check_store

COLUMNS = ["memo", "thoughts", "said"]


def flipped(value):
    """A value with one bit of it flipped, by which it cannot be read any more."""
    place = len(value) // 2
    return value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]


class DamageContract:
    def open(self, place, clock):
        """A store at this place."""
        raise NotImplementedError

    async def damage(self, column, turn):
        """Damage the value of a turn in the store's file or database."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self):
        return StillClock()

    @pytest.fixture
    async def store(self, tmp_path, clock):
        store = self.open(tmp_path / "store.db", clock)
        words = {name: UserMessage(parts=(Text(text=f"words of {name}"),)) for name in ("t1", "t2")}
        for session, name, own in (("s", "t1", A), ("z", "t2", B)):
            said = draft(words[name], id=f"{name}.said", parent=name, at=1.5)
            batch = turn(
                session, name, f'"of {name}"', keys=(own, C), calls=(name,), drafts=(said,)
            )
            await store.append(replace(batch, id=name))
        await store.append(replace(after("s", "t3", "t1"), id="t3"))
        yield store
        await store.close()

    @pytest.mark.parametrize("column", COLUMNS)
    async def test_everything_else_is_there(self, store, column):
        sound = await store.read("s")
        await self.damage(column, "t2")
        found = await store.find("T", [A, B, C])
        assert [e.turn for e in found[A]] == ["t1"] and [e.turn for e in found[C]] == ["t2", "t1"]
        assert [t.raw for t in found[A][0].thoughts] == ['"of t1"']
        assert await store.read("s") == sound
        assert [one.session for one in await store.sessions()] == ["s", "z"]
        assert [one.session for one in (await store.search()).sessions] == ["s", "z"]
        for query in (SessionQuery(text="words of t1"), SessionQuery(provider="deepseek")):
            assert "s" in {one.session for one in (await store.search(query)).sessions}
        assert {e.session for e in (await store.history(["turn_started"])).events} >= {"s"}
        assert sound[0] in (await store.history(None)).events
        assert [e.turn for e in await store.entries(thoughts=True)][-1] == "t1"
        counts = await store.turn_counts(seconds=FINE, since=0)
        assert sum(one.counts["turns"] for one in counts) >= 2
        assert await store.count_calls("t1") == {"T": 1}

    @pytest.mark.parametrize("column", COLUMNS)
    async def test_it_is_told_once(self, store, column):
        told = []
        store.damage.tell = told.append
        await self.damage(column, "t2")
        for _ in range(2):
            await store.find("T", [A, B, C])
            await store.read("z")
            await store.read("s")
            await store.search(SessionQuery(text="words"))
        assert len(told) == 1 and "session 'z'" in told[0]
        assert "z" in store.damage and "s" not in store.damage
        assert "1 session(s) are damaged (z)" in str(store.damage)
        store.damage.clear()
        assert str(store.damage) == "" and "z" not in store.damage

    async def test_the_turn_of_an_entry_is_known(self, store):
        await self.damage("memo", "t2")
        [entry] = (await store.find("T", [B]))[B]
        assert (entry.session, entry.turn, entry.thoughts) == ("z", "t2", (UNREADABLE_THOUGHT,))
        assert len(await store.read("z")) == 4 and await store.index("z") == []

    async def test_thoughts_keep_their_places(self, store):
        await self.damage("thoughts", "t2")
        [entry] = (await store.find("T", [B]))[B]
        assert entry.thoughts == (UNREADABLE_THOUGHT,) and entry.keys == (B, C)
        assert [filed.entry for filed in await store.index("z")] == [entry]
        events = await store.read("z")
        assert [e.seq for e in events] == [0, 1, 2, 3] and events[1].type == "reasoning"
        with pytest.raises(Unreadable):
            events[1].body()
        assert Session("z").extend(events).path("t2")[0].thoughts == (UNREADABLE_THOUGHT,)

    async def test_events_keep_their_numbers(self, store):
        await self.damage("said", "t1")
        events = await store.read("s")
        assert [e.seq for e in events] == [0, 1, 2, 3, 4]
        assert [e.type for e in events] == [DAMAGED] * 4 + ["turn_started"]
        session = Session("s").extend(events)
        assert session.damaged == 4 and [turn.id for turn in session.turns] == ["t3"]
        assert await store.read("s", after=1, limit=2) == events[2:4]
        assert [t.raw for t in (await store.find("T", [A]))[A][0].thoughts] == ['"of t1"']

    @pytest.mark.parametrize("column", COLUMNS)
    async def test_the_check_of_the_store_names_the_session(self, store, column):
        await self.damage(column, "t2")
        report = await check_store(store)
        assert (report.unreadable, report.gaps, report.sessions) == (["z"], [], 2)
        assert not report.sound and report.newer == 0

    @pytest.mark.parametrize("column", COLUMNS)
    async def test_it_can_be_erased_and_deleted(self, store, column):
        await self.damage(column, "t2")
        assert (
            await store.erase(EntryFilter(session="z", turn="t2" if column != "memo" else None))
            == 1
        )
        events = await store.read("z")
        assert len(events) == 4
        if column != "said":
            assert events[1].body().thought.forgotten
        assert await store.forget(ALL_ENTRIES) == 1
        assert await store.purge(session="z") == 1
        await store.prune_index()
        assert B not in await store.find("T", [B]) and await store.read("z") == []
        assert await store.append(notes("z")) == 0

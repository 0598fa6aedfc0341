"""What every store must do. A store's tests subclass `StoreContract` and say how to open it."""

import asyncio
from math import inf

import pytest
from msgspec.structs import replace

from stores.samples import (
    ORIGIN,
    StillClock,
    after,
    appended,
    fork,
    notes,
    plain,
    refusal,
    thought,
    turn,
    watching,
)
from stores.seeking import Seeking
from thoughtline.errors import Conflict, StoreError, Unavailable
from thoughtline.log.decisions import Action, ReplayDecision
from thoughtline.log.events import Outcome, Reasoning, TurnEnded, TurnStarted, Usage, draft
from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.log.parts import UNREADABLE_THOUGHT, Carrier, Timing
from thoughtline.log.sessions import Session
from thoughtline.log.turn_counts import COARSE, FINE
from thoughtline.stores.base import (
    ALL_ENTRIES,
    CLIENTS_OWN,
    Batch,
    EntryCount,
    EntryFilter,
    SessionSummary,
    StoreStats,
    ThoughtEntry,
)

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16

JSON = [
    "{}",
    '{"a":1.0,"b":1,"c":1e2,"d":-0.0}',
    '{"big":123456789012345678901234567890}',
    ' {"spaced" :  [ 1 , 2 ] }\n',
    '{"twice":1,"twice":2}',
    '{"text":"ä 漢 🙂 \u2028 \\u2028 \\ud83d \\u0000 \\u001e"}',
    '"' + "x" * 100_000 + '"',
    "\x00\x1e not JSON \n",
]


class StoreContract:
    """Subclass it, and say how the store is opened."""

    def open(self, place, clock):
        """A store at this place; the same place is the same data, if it is kept at all."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self):
        return StillClock()

    @pytest.fixture
    async def store(self, tmp_path, clock):
        store = self.open(tmp_path / "store", clock)
        yield store
        await store.close()


class Appending(StoreContract):
    async def test_events_are_numbered_from_zero_without_gaps(self, store):
        first = await appended(store, notes("s", 3))
        second = await appended(store, notes("s", 2))
        assert [e.seq for e in first + second] == [0, 1, 2, 3, 4]
        assert {e.session for e in first} == {"s"}

    async def test_what_append_returns_is_what_read_returns(self, store):
        written = await appended(store, turn("s", "t1", '"one"', '"two"'))
        assert await store.read("s") == written

    @pytest.mark.parametrize("data", JSON, ids=range(len(JSON)))
    async def test_data_comes_back_to_the_byte(self, store, data):
        await store.append(Batch(session="s", tenant="T", drafts=(plain(data=data),)))
        (event,) = await store.read("s")
        assert event.data == data

    @pytest.mark.parametrize("text", ["", "ä漢🙂", "a b\n\t", 'quo"te\\', "\x1e\x1f\x00", "null"])
    async def test_every_field_comes_back(self, store, text):
        draft = plain(id=text, parent=text, type=text or "x", version=2**40)
        batch = Batch(session=f"s{text}", tenant=f"T{text}", drafts=(draft,))
        (written,) = await appended(store, batch)
        (event,) = await store.read(batch.session)
        assert event == written
        assert (event.id, event.parent, event.version) == (text, text, 2**40)
        (summary,) = await store.sessions(tenant=batch.tenant)
        assert (summary.session, summary.tenant) == (batch.session, batch.tenant)

    @pytest.mark.parametrize("at", [0.0, 0.1 + 0.2, 1763250000.1234567, 5e-324, 1.7e308, -1.0, inf])
    async def test_times_come_back_exactly(self, store, at):
        await store.append(Batch(session="s", tenant="T", drafts=(plain(at=at),)))
        (event,) = await store.read("s")
        assert event.at == at

    async def test_unknown_types_and_versions_are_kept(self, store):
        drafts = (plain(type="from_the_future"), plain(type="reasoning", version=99, data="[]"))
        await store.append(Batch(session="s", tenant="T", drafts=drafts))
        assert [(e.type, e.version) for e in await store.read("s")] == [
            ("from_the_future", 1),
            ("reasoning", 99),
        ]

    async def test_a_writer_may_say_what_it_expects(self, store):
        await store.append(notes("s", 2, expect=-1))
        await store.append(notes("s", expect=1))
        for wrong in (-1, 0, 1, 3):
            with pytest.raises(Conflict, match="'s'"):
                await store.append(notes("s", expect=wrong))
        assert len(await store.read("s")) == 3

    async def test_one_of_two_who_expect_the_same_wins(self, store):
        outcomes = await asyncio.gather(
            *(store.append(notes("s", expect=-1)) for _ in range(8)), return_exceptions=True
        )
        assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 7
        assert len(await store.read("s")) == 1

    async def test_the_same_batch_twice_is_one(self, store):
        batch = replace(turn("s", "t1", '"one"', keys=[A]), id="t1", expect=-1)
        await store.append(notes("other", 2))
        first = await appended(store, batch)
        await store.append(notes("s", 2))
        assert await appended(store, batch) == first
        assert await store.read("s", limit=3) == first
        assert len(await store.read("s")) == 5
        assert [m.thoughts for m in (await store.find("T", [A]))[A]] == [batch.index[0].thoughts]
        assert (await store.stats()).turns == 1

    async def test_the_same_batch_twice_at_once_is_one(self, store):
        batches = [replace(turn("s", f"t{n}", '"one"', keys=[A]), id=f"t{n}") for n in range(4)]
        written = await asyncio.gather(*map(store.append, batches * 3))
        assert written[:4] == written[4:8] == written[8:]
        assert len(await store.read("s")) == 12

    async def test_what_was_erased_does_not_come_back_with_the_same_batch(self, store):
        batch = replace(turn("s", "t1", '"one"', keys=[A]), id="t1")
        await store.append(batch)
        await store.erase(ALL_ENTRIES)
        await store.append(batch)
        assert '"one"' not in str([e.data for e in await store.read("s")])
        assert [t.forgotten for t in (await store.find("T", [A]))[A][0].thoughts] == [True]

    async def test_the_id_of_a_batch_counts_in_its_session_only(self, store):
        await store.append(notes("s", id="b"))
        await store.append(notes("z", id="b"))
        assert len(await store.read("s")) == len(await store.read("z")) == 1
        with pytest.raises(Conflict):
            await store.append(notes("s", id="b", tenant="B"))

    async def test_batches_without_an_id_are_all_written(self, store):
        for _ in range(2):
            await store.append(notes("s"))
        assert len(await store.read("s")) == 2

    async def test_a_session_belongs_to_one_tenant(self, store):
        await store.append(notes("s", tenant="A"))
        with pytest.raises(Conflict):
            await store.append(notes("s", tenant="B"))
        assert (await store.stats(tenant="B")).sessions == 0

    async def test_a_conflict_leaves_nothing(self, store):
        await store.append(turn("s", "t1", keys=[A]))
        refused = turn("s", "t1", '"no"', keys=[B], tenant="T")
        with pytest.raises(Conflict):
            await store.append(
                Batch(
                    **{f: getattr(refused, f) for f in refused.__struct_fields__} | {"expect": 99}
                )
            )
        assert len(await store.read("s")) == 2
        assert set(await store.find("T", [A, B])) == {A}

    async def test_a_memory_of_another_session_is_refused(self, store):
        indexed = IndexEntry(session="other", turn="t", keys=(A,))
        batch = Batch(session="s", tenant="T", drafts=(plain(),), index=(indexed,))
        with pytest.raises(StoreError, match="other"):
            await store.append(batch)
        assert await store.read("s") == []

    async def test_what_no_event_can_be_is_refused(self, store):
        for bad in ({"data": None}, {"type": None}, {"version": "1"}, {"at": "now"}, {"id": b""}):
            with pytest.raises(StoreError, match="type"):
                await store.append(Batch(session="s", tenant="T", drafts=(plain(**bad),)))
        assert await store.read("s") == []

    async def test_one_bad_batch_does_not_take_others_with_it(self, store):
        bad = Batch(session="bad", tenant="T", drafts=(plain(data=None),))
        batches = [bad if n % 3 == 1 else notes(f"s{n}", 2) for n in range(9)]
        outcomes = await asyncio.gather(*map(store.append, batches), return_exceptions=True)
        assert [isinstance(o, StoreError) for o in outcomes] == [n % 3 == 1 for n in range(9)]
        assert (await store.stats()).events == 12

    async def test_a_batch_may_be_empty(self, store):
        assert await store.append(notes("s", 0)) == 0
        assert await store.read("s") == []
        await store.append(notes("s", expect=-1))

    async def test_a_memory_may_come_later_than_its_turn(self, store):
        whole = turn("s", "t1", '"one"', keys=[A])
        await store.append(Batch(session="s", tenant="T", drafts=whole.drafts))
        await store.append(Batch(session="s", tenant="T", drafts=(), index=whole.index))
        assert (await store.find("T", [A]))[A] == list(whole.index)

    async def test_many_writers_of_one_session_leave_no_gap(self, store):
        batches = [notes("s", 1 + n % 4) for n in range(60)]
        firsts = await asyncio.gather(*map(store.append, batches))
        events = await store.read("s")
        assert [e.seq for e in events] == list(range(len(events)))
        for batch, first in zip(batches, firsts, strict=True):  # each batch stands together
            ids = [event.id for event in events[first : first + len(batch.drafts)]]
            assert ids == [one.id for one in batch.drafts]

    async def test_who_stops_waiting_does_no_harm(self, store):
        waiting = [asyncio.create_task(store.append(notes("s"))) for _ in range(5)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await store.append(notes("s"))
        events = await store.read("s")
        assert [e.seq for e in events] == list(range(len(events)))


class Reading(StoreContract):
    async def test_unknown_sessions_are_empty(self, store):
        assert await store.read("nobody") == []

    async def test_after_and_limit(self, store):
        await store.append(notes("s", 5))
        seqs = [e.seq for e in await store.read("s", after=1, limit=2)]
        assert seqs == [2, 3]
        assert await store.read("s", after=4) == []
        assert await store.read("s", limit=0) == []
        assert len(await store.read("s", after=-7)) == 5

    async def test_long_sessions_are_read_whole(self, store):
        for _ in range(3):
            await store.append(notes("s", 700))
        await store.append(notes("other", 3))
        assert [e.seq for e in await store.read("s")] == list(range(2100))
        assert [e.seq for e in await store.read("s", after=498, limit=600)] == list(
            range(499, 1099)
        )


class Finding(StoreContract):
    async def test_thoughts_come_back_from_the_log_in_order(self, store):
        batch = turn("s", "t1", '"one"', '"two"', keys=[A, B])
        await store.append(batch)
        found = await store.find("T", [A])
        assert found == {A: list(batch.index)}
        assert [t.raw for t in found[A][0].thoughts] == ['"one"', '"two"']

    async def test_keys_without_entries_are_left_out(self, store):
        await store.append(turn("s", "t1", keys=[A]))
        assert set(await store.find("T", [C, A, B, A])) == {A}
        assert await store.find("T", [C]) == {}
        assert await store.find("T", []) == {}

    async def test_nothing_is_found_across_tenants(self, store):
        await store.append(turn("s", "t1", keys=[A], tenant="A"))
        await store.append(turn("z", "t2", keys=[A], tenant="B"))
        assert await store.find("C", [A]) == {}
        assert [m.session for m in (await store.find("B", [A]))[A]] == ["z"]

    async def test_the_same_turn_id_elsewhere_is_another_turn(self, store):
        await store.append(turn("s", "t1", '"mine"', keys=[A]))
        await store.append(turn("z", "t1", '"theirs"', keys=[B]))
        await store.append(turn("y", "t1", '"foreign"', keys=[A], tenant="B"))
        found = await store.find("T", [A, B])
        assert [t.raw for t in found[A][0].thoughts] == ['"mine"']
        assert [t.raw for t in found[B][0].thoughts] == ['"theirs"']

    async def test_the_last_filed_comes_first(self, store):
        for n in range(4):
            await store.append(turn(f"s{n}", f"t{n}", keys=[A]))
        assert [m.turn for m in (await store.find("T", [A]))[A]] == ["t3", "t2", "t1", "t0"]

    async def test_filing_again_replaces(self, store):
        await store.append(turn("s", "t1", keys=[A, B]))
        await store.append(turn("s", "t2", keys=[A]))
        again = IndexEntry(session="s", turn="t1", keys=(A, C), shape="again")
        await store.append(Batch(session="s", tenant="T", drafts=(), index=(again,)))
        found = await store.find("T", [A, B, C])
        assert set(found) == {A, C}
        assert [m.turn for m in found[A]] == ["t1", "t2"]
        assert found[C][0].shape == "again"

    async def test_filing_twice_at_once_keeps_the_last(self, store):
        indexed = tuple(IndexEntry(session="s", turn="t1", keys=(A,), shape=o) for o in ("x", "xx"))
        batch = Batch(session="s", tenant="T", drafts=(), index=indexed)
        await asyncio.gather(*(store.append(batch) for _ in range(3)))
        assert [m.shape for m in (await store.find("T", [A]))[A]] == ["xx"]

    async def test_a_common_name_gives_the_newest_only(self, store):
        for n in range(MAX_CANDIDATES + 5):
            await store.append(turn(f"s{n}", f"t{n}", f'"{n}"', keys=[A]))
        found = (await store.find("T", [A]))[A]
        newest = [f"t{n}" for n in range(MAX_CANDIDATES + 5)][::-1][:MAX_CANDIDATES]
        assert [m.turn for m in found] == newest
        assert all(len(m.thoughts) == 1 for m in found)

    async def test_many_names_are_one_look_up(self, store):
        keys = [n.to_bytes(16, "big") for n in range(600)]
        for start in range(0, 600, 6):
            await store.append(turn("s", f"t{start}", '"x"', keys=keys[start : start + 6]))
        found = await store.find("T", [*keys, C])
        assert set(found) == set(keys)
        assert {m.turn for indexed in found.values() for m in indexed} == {
            f"t{n}" for n in range(0, 600, 6)
        }

    async def test_how_far_turns_were_continued(self, store):
        """Through forks and restarts: what counts is what is written."""
        await store.append(after("s", "t2", "t1"))
        await store.append(turn("s", "t1"))
        await store.append(after("fork", "t3", "t2"))
        await store.append(after("z", "t9", "t1", tenant="B"))
        await store.append(after("s", "t4", "t2"))
        asked = ["t1", "t2", "t3", "t4", "t1", "nobody", ""]
        assert await store.continued("T", asked) == {"t1": 2, "t2": 1}
        assert await store.continued("B", asked) == {"t1": 1}
        assert await store.continued("C", asked) == {}
        assert await store.continued("T", []) == {}

    async def test_what_is_purged_continues_nothing(self, store):
        await store.append(turn("s", "t1"))
        await store.append(after("fork", "t2", "t1"))
        await store.purge(session="fork")
        assert await store.continued("T", ["t1"]) == {}

    async def test_many_turns_are_asked_about_at_once(self, store):
        for number in range(0, 600, 5):
            await store.append(after("s", f"t{number}.0", f"t{number}"))
        found = await store.continued("T", [f"t{number}" for number in range(600)])
        assert found == {f"t{number}": 1 for number in range(0, 600, 5)}

    async def test_every_field_of_a_memory_comes_back(self, store):
        indexed = IndexEntry(
            session="s",
            turn="t1",
            parent="t0",
            origin=ORIGIN,
            at=0.1 + 0.2,
            shape="xcb",
            calls=("call_1", "functions.f:0"),
            text_digest="w",
            hints=("h1", "h2"),
            skipped={"ab": "foreign", "ü": "ö"},
            quarantined=frozenset({0, 3}),
            keys=(A, b"", b"\x00\xff"),
        )
        await store.append(Batch(session="s", tenant="T", drafts=(), index=(indexed,)))
        assert await store.find("T", [b"\x00\xff", b""]) == {b"\x00\xff": [indexed], b"": [indexed]}

    async def test_a_thought_that_cannot_be_read_keeps_its_place(self, store):
        newer = plain(type="reasoning", parent="t1", version=99, data='{"thought": 1}')
        garbage = plain(type="reasoning", parent="t2", data="{}")
        await store.append(turn("s", "t1", '"one"', keys=[A], drafts=(newer,)))
        await store.append(turn("s", "t2", '"two"', keys=[B], drafts=(garbage,)))
        found = await store.find("T", [A, B])
        left = [[t.unreadable for t in m.thoughts] for m in (*found[A], *found[B])]
        assert left == [[False, True], [False, True]]

    async def test_data_cannot_pretend_to_be_another_thought(self, store):
        body = '{"thought":{"type":"thought","carrier":"think","raw":"1"}}'
        for smuggled in (f"{body}],[1,1,1,{body}", f"{body},[1,1,1,{body}]", f"{body}]", "1,1"):
            draft = plain(type="reasoning", parent="t2", data=smuggled)
            await store.append(turn("s", "t1", '"mine"', keys=[A]))
            await store.append(turn("z", "t2", keys=[B], drafts=(draft,)))
            found = await store.find("T", [A, B])
            assert {t.raw for t in found[A][0].thoughts} == {'"mine"'}
            assert found[B][0].thoughts == (UNREADABLE_THOUGHT,) * len(found[B][0].thoughts)

    async def test_refusals_are_applied(self, store):
        await store.append(turn("s", "t1", '"a"', '"b"', '"c"', keys=[A]))
        await store.append(turn("s", "t2", '"a"', '"b"', keys=[B]))
        await store.append(refusal("s", "t1", 1))
        await store.append(refusal("s", "t2"))
        found = await store.find("T", [A, B])
        assert found[A][0].quarantined == {1}
        assert found[B][0].quarantined == {0, 1}
        await store.append(refusal("s", "t1", 2))
        assert (await store.find("T", [A]))[A][0].quarantined == {1, 2}

    async def test_refusals_count_before_the_memory_and_from_other_sessions(self, store):
        await store.append(refusal("early", "t1", 0))
        await store.append(turn("s", "t1", '"a"', '"b"', keys=[A]))
        assert (await store.find("T", [A]))[A][0].quarantined == {0}

    async def test_refusals_among_other_events_and_batches_are_applied(self, store):
        await store.append(turn("s", "t1", '"a"', '"b"', keys=[A]))
        two = replace(
            refusal("s", "t1"), drafts=refusal("s", "t1", 1).drafts + refusal("s", "t2", 0).drafts
        )
        late = turn("s", "t2", '"a"', '"b"', keys=[B])
        mixed = replace(late, drafts=(*late.drafts, *two.drafts))
        await asyncio.gather(*[store.append(batch) for batch in (notes("z", 3), mixed, notes("s"))])
        found = await store.find("T", [A, B])
        assert found[A][0].quarantined == {1}
        assert found[B][0].quarantined == {0}

    async def test_refusals_do_not_cross_tenants(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        await store.append(refusal("z", "t1", tenant="B"))
        assert (await store.find("T", [A]))[A][0].quarantined == frozenset()


class Retaining(StoreContract):
    async def test_listing(self, store, clock):
        await store.append(notes("a", 2))
        clock.now += 1
        await store.append(notes("b", tenant="B"))
        clock.now += 1
        await store.append(notes("a"))
        assert await store.sessions() == [
            SessionSummary(session="a", tenant="T", created=1000.0, touched=1002.0, events=3),
            SessionSummary(session="b", tenant="B", created=1001.0, touched=1001.0, events=1),
        ]
        assert [s.session for s in await store.sessions(tenant="B")] == ["b"]
        assert await store.sessions(tenant="nobody") == []

    async def test_listing_goes_on_where_it_stopped(self, store, clock):
        for n in range(7):
            clock.now += 1
            await store.append(notes(f"s{n}"))
        seen, before = [], None
        while page := await store.sessions(limit=3, before=before):
            seen += [s.session for s in page]
            before = page[-1].touched
        assert seen == [f"s{n}" for n in range(6, -1, -1)]
        assert await store.sessions(limit=0) == []

    async def test_who_only_looks_touches_nothing(self, store, clock):
        await store.append(turn("a", "t1", keys=[A]))
        clock.now += 5
        assert A in await store.find("T", [A])
        assert [s.touched for s in await store.sessions()] == [1000.0]

    async def test_a_use_touches_its_session(self, store, clock):
        await store.append(turn("a", "t1", keys=[A]))
        await store.append(turn("b", "t2", keys=[B]))
        clock.now += 5
        store.touch({"a", "nobody"})
        assert [(s.session, s.touched) for s in await store.sessions()] == [
            ("a", 1005.0),
            ("b", 1000.0),
        ]

    async def test_purge_without_a_condition_does_nothing(self, store):
        await store.append(notes("s"))
        assert await store.purge() == 0
        assert len(await store.sessions()) == 1

    async def test_purge_takes_everything_of_a_session(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        await store.append(turn("z", "t2", '"b"', keys=[A, B]))
        assert await store.purge(session="s") == 1
        assert await store.purge(session="s") == 0
        assert await store.read("s") == []
        assert [m.session for m in (await store.find("T", [A]))[A]] == ["z"]
        assert (await store.stats()).entries == 1
        await store.append(notes("s", expect=-1, tenant="somebody else"))

    async def test_purge_by_tenant_and_age(self, store, clock):
        await store.append(notes("old a", tenant="A"))
        await store.append(notes("old b", tenant="B"))
        clock.now += 10
        await store.append(notes("new a", tenant="A"))
        assert await store.purge(tenant="A", untouched_since=1005.0) == 1
        assert {s.session for s in await store.sessions()} == {"old b", "new a"}
        assert await store.purge(session="new a", tenant="B") == 0
        assert await store.purge(tenant="A") == 1
        assert await store.purge(untouched_since=1000.0) == 0
        assert await store.purge(untouched_since=1000.1) == 1

    async def test_what_endpoints_taught_does_not_expire(self, store, clock):
        await store.append(notes("thoughtline:learned", tenant=""))
        await store.append(notes("talk"))
        clock.now += 100
        assert await store.purge(untouched_since=1050.0) == 1
        assert [s.session for s in await store.sessions()] == ["thoughtline:learned"]
        assert await store.purge(session="thoughtline:learned") == 1

    async def test_what_is_expired_is_not_found_before_the_sweep(self, store, clock):
        store.retention = 100.0
        await store.append(turn("idle", "t1", '"a"', keys=[A]))
        await store.append(turn("used", "t2", '"b"', keys=[B]))
        await store.append(replace(turn("own", "t3", '"c"', keys=[A, B]), kept=True))
        clock.now += 90
        assert len((await store.find("T", [B]))[B]) == 2
        store.touch(["used"])
        clock.now += 20
        found = await store.find("T", [A, B])
        assert [[entry.session for entry in found[key]] for key in (A, B)] == [
            ["own"],
            ["own", "used"],
        ]
        assert await store.purge(untouched_since=clock.now - 100) == 1  # it was not used by that
        store.retention = 0.0

    async def test_thoughts_that_are_never_put_back_are_not_listed(self, store):
        for outcome in Outcome:
            batch = turn("s", f"t-{outcome}", '"hm"', keys=[A])
            entry = replace(batch.index[0], outcome=outcome)
            await store.append(replace(batch, index=(entry,)))
        assert [entry.turn for entry in await store.entries()] == ["t-completed"]
        assert (await store.stats()).entries == 1
        assert len((await store.find("T", [A]))[A]) == len(Outcome)  # they are there, as proof

    async def test_a_session_in_use_does_not_expire(self, store, clock):
        await store.append(turn("used", "t1", keys=[A]))
        await store.append(turn("idle", "t2", keys=[B]))
        clock.now += 100
        store.touch(["used"])
        assert await store.purge(untouched_since=1050.0) == 1
        assert [s.session for s in await store.sessions()] == ["used"]

    async def test_a_session_that_a_person_made_does_not_expire(self, store, clock):
        await store.append(notes("captured"))
        await store.append(notes("own", kept=True))
        await store.append(notes("own"))  # a gateway goes on in it
        clock.now += 100
        assert await store.purge(untouched_since=clock.now) == 1
        assert [s.session for s in await store.sessions()] == ["own"]
        assert await store.purge(session="own") == 1

    async def test_a_long_session_is_purged(self, store):
        await store.append(notes("s", 3_000))
        await store.append(turn("s", "t1", '"x"', keys=[A]))
        await store.append(notes("z", 2))
        seen = []
        assert await store.purge(tenant="T", progress=lambda *of: seen.append(of)) == 2
        assert seen[-1][0] == seen[-1][1] > 0
        assert await store.stats() == StoreStats()
        assert await store.find("T", [A]) == {}

    async def test_many_sessions_are_purged(self, store):
        for n in range(70):
            await store.append(turn(f"s{n}", f"t{n}", '"x"', keys=[A, n.to_bytes(16, "big")]))
        assert await store.purge(tenant="T") == 70
        assert await store.stats() == StoreStats()
        assert await store.find("T", [A]) == {}

    async def test_what_a_fork_goes_on_from_stays(self, store):
        await store.append(notes("root"))
        await store.append(fork("branch", "root"))
        await store.append(fork("twig", "branch"))
        assert await store.purge(session="root") == 0
        assert await store.purge(session="branch") == 0
        assert await store.purge(session="twig") == 1
        assert await store.purge(tenant="T") == 2

    async def test_forks_that_were_written_first_are_no_obstacle(self, store):
        await store.append(fork("twig", "branch"))
        await store.append(fork("branch", "root"))
        await store.append(notes("root"))
        await store.append(fork("self", "self"))
        assert await store.purge(tenant="T") == 4

    async def test_a_refusal_goes_with_its_session(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        await store.append(refusal("z", "t1"))
        await store.purge(session="z")
        assert (await store.find("T", [A]))[A][0].quarantined == frozenset()


class Counting(StoreContract):
    async def test_an_empty_store(self, store):
        assert await store.stats() == StoreStats()

    async def test_what_is_held(self, store):
        await store.append(turn("s", "t1", '"one"', '"two"', at=3.0, calls=("a", "b"), chars=6))
        await store.append(turn("s", "t2", '"3"', at=2.0, chars=1))
        await store.append(turn("z", "t3", tenant="B", at=9.0))
        assert await store.stats() == StoreStats(
            sessions=2,
            events=9,
            turns=3,
            oldest=2.0,
            newest=9.0,
            entries=2,  # a thought before two calls is one thought
            listed=3,  # and stands twice in a listing
            chars=7,
            oldest_entry=2.0,
            newest_entry=3.0,
            by_provider={"deepseek": EntryCount(entries=2, chars=7)},
            by_model={"v4": EntryCount(entries=2, chars=7)},
        )
        assert (await store.stats(sessions=False)).entries == 2
        assert (await store.stats(sessions=False, tenant="T")).listed == 3
        assert len(await store.entries(limit=9)) == 3
        assert (await store.stats()).listed == (await store.stats(tenant="T")).listed == 3
        assert (await store.stats(tenant="B")).listed == 0
        assert (await store.stats(tenant="T")).entries == 2
        assert (await store.stats(tenant="B")).entries == 0
        assert (await store.stats(tenant="B")).turns == 1
        assert await store.stats(tenant="nobody") == StoreStats()


def elsewhere(provider, model):
    return {"origin": replace(ORIGIN, provider=provider, model=model)}


async def ids(store, which=ALL_ENTRIES, **page):
    return [(e.turn, e.call) for e in await store.entries(which, **page)]


def decided(session, id, at):
    """A batch that is one turn, which two thoughts went back with, and its tokens."""
    restored = [ReplayDecision(turn=n, action=Action.RESTORED) for n in range(2)]
    bodies = (
        TurnStarted(target=ORIGIN, replay=tuple(restored)),
        TurnEnded(outcome=Outcome.COMPLETED, usage=Usage(input=9, cached=4)),
    )
    return replace(
        turn(session, id),
        drafts=(
            draft(bodies[0], id=id, parent="", at=at),
            draft(bodies[1], id=f"{id}.end", parent=id, at=at),
        ),
    )


class Listing(StoreContract):
    async def test_an_empty_store_has_no_entries(self, store):
        assert await store.entries() == []

    async def test_an_entry_for_each_turn_and_call(self, store, clock):
        await store.append(turn("s", "plain", '"hm"', at=2.5, chars=2))
        await store.append(turn("s", "thoughtless", calls=("c0",)))
        clock.now += 3
        await store.append(turn("s", "calls", '"hm"', calls=("c1", "c2"), tenant="T"))
        entries = await store.entries()
        assert [(e.turn, e.call) for e in entries] == [
            ("calls", "c1"),
            ("calls", "c2"),
            ("plain", ""),
        ]
        assert entries[-1] == ThoughtEntry(
            position=entries[-1].position,
            tenant="T",
            session="s",
            turn="plain",
            provider="deepseek",
            endpoint="https://api.test",
            model="v4",
            chars=2,
            at=2.5,
            touched=1003.0,
        )

    async def test_an_entry_says_whether_its_session_is_kept(self, store):
        await store.append(turn("s", "t1", '"a"'))
        await store.append(replace(turn("own", "t2", '"b"'), kept=True))
        assert [(e.turn, e.kept) for e in await store.entries()] == [("t2", True), ("t1", False)]

    async def test_thoughts_come_when_asked_for(self, store):
        await store.append(turn("s", "t1", '"one"', '"two"', calls=("c1", "c2")))
        await store.append(turn("s", "t2", '"three"'))
        entries = await store.entries(thoughts=True)
        assert [[t.raw for t in e.thoughts] for e in entries] == [
            ['"three"'],
            ['"one"', '"two"'],
            ['"one"', '"two"'],
        ]

    async def test_filters(self, store):
        await store.append(turn("s", "t1", '"a"', calls=("x", "y")))
        await store.append(turn("s", "t2", '"b"', calls=("x",), **elsewhere("kimi", "k3")))
        await store.append(turn("z", "t3", '"c"', tenant="B", **elsewhere("kimi", "k2")))
        assert await ids(store, EntryFilter(provider="deepseek")) == [("t1", "x"), ("t1", "y")]
        assert await ids(store, EntryFilter(provider="kimi")) == [("t3", ""), ("t2", "x")]
        assert await ids(store, EntryFilter(model="k2")) == [("t3", "")]
        assert await ids(store, EntryFilter(call="x")) == [("t2", "x"), ("t1", "x")]
        assert await ids(store, EntryFilter(call="x", provider="kimi")) == [("t2", "x")]
        assert await ids(store, EntryFilter(tenant="B")) == [("t3", "")]
        assert await ids(store, EntryFilter(session="s")) == [("t2", "x"), ("t1", "x"), ("t1", "y")]
        assert await ids(store, EntryFilter(session="s", turn="t2")) == [("t2", "x")]
        assert await ids(store, EntryFilter(session="z", turn="t2")) == []
        assert await ids(store, EntryFilter(turn="t2")) == [("t2", "x")]
        for nobody in (
            EntryFilter(provider="no"),
            EntryFilter(model="%"),
            EntryFilter(tenant=""),
            EntryFilter(call=""),
        ):
            assert await ids(store, nobody) == []

    async def test_the_model_is_the_one_that_was_asked_for(self, store):
        origin = replace(ORIGIN, model="v4-2026", asked="v4")
        await store.append(turn("s", "t1", '"a"', origin=origin))
        assert await ids(store, EntryFilter(model="v4")) == [("t1", "")]
        assert set((await store.stats()).by_model) == {"v4"}

    async def test_a_provider_is_also_known_by_its_endpoints(self, store):
        nebius = replace(ORIGIN, provider="generic", endpoint="https://api.nebius.test")
        await store.append(turn("s", "t1", '"a"', origin=nebius))
        await store.append(turn("s", "t2", '"b"'))
        await store.append(turn("s", "t3", '"c"', **elsewhere("nebius", "v4")))
        named = EntryFilter(provider="nebius", endpoints=("https://api.nebius.test",))
        assert await ids(store, named) == [("t3", ""), ("t1", "")]

    async def test_of_an_endpoint_only_one_account(self, store):
        there = "https://api.test"
        for number, account in enumerate(("work", "home", "T", "", "before")):
            origin = replace(ORIGIN, account=account)
            await store.append(turn("s", f"t{number}", '"a"', origin=origin))
        listed = await store.entries()
        assert [one.account for one in listed] == ["before", "", "T", "home", "work"]

        def only(account, provider="up"):
            named = EntryFilter(provider=provider, endpoints=(there,))
            return replace(named, accounts={there: account})

        assert await ids(store, only("work")) == [("t0", "")]
        assert await ids(store, only(CLIENTS_OWN)) == [("t3", ""), ("t2", "")]
        assert len(await ids(store, only("work", "deepseek"))) == 5  # the policy's name
        assert await store.forget(only("work")) == 1
        assert await store.erase(only("home")) == 1
        assert await ids(store, ALL_ENTRIES) == [("t4", ""), ("t3", ""), ("t2", "")]

    async def test_of_an_endpoint_only_one_provider(self, store):
        there = "https://api.test"
        for number, provider in enumerate(("deepseek", "kimi", "deepseek")):
            origin = replace(ORIGIN, provider=provider)
            await store.append(turn("s", f"t{number}", '"a"', origin=origin))
        named = EntryFilter(provider="up", endpoints=(there,))
        only = replace(named, providers={there: "kimi"})
        assert len(await ids(store, named)) == 3
        assert await ids(store, only) == [("t1", "")]
        assert await store.entries(only, offset=1) == []
        assert await store.forget(only) == 1
        assert await ids(store, named) == [("t2", ""), ("t0", "")]

    async def test_an_empty_thought_is_not_listed(self, store):
        await store.append(turn("s", "t1", '""', keys=[A], chars=0))
        assert await store.entries() == []
        assert (await store.stats()).entries == 0
        [found] = (await store.find("T", [A]))[A]
        assert [t.raw for t in found.thoughts] == ['""']

    async def test_who_has_a_call(self, store):
        await store.append(turn("s", "t1", '"a"', calls=("x", "y")))
        await store.append(turn("z", "t2", '"b"', calls=("x",), tenant="B"))
        assert dict(await store.count_calls("x")) == {"T": 1, "B": 1}
        assert dict(await store.count_calls("y")) == {"T": 1}
        assert dict(await store.count_calls("nobody")) == {}

    async def test_pages(self, store):
        for n in range(5):
            await store.append(turn("s", f"t{n}", '"a"', calls=tuple("abc"[: n % 4])))
        everything = await ids(store)
        assert len(everything) == 8
        for limit in (1, 2, 3, 7):
            seen, after = [], None
            while page := await store.entries(limit=limit, after=after):
                assert len(page) <= limit
                seen += [(e.turn, e.call) for e in page]
                after = page[-1].position
            assert seen == everything
        assert await ids(store) == everything
        assert await ids(store, offset=3, limit=2) == everything[3:5]
        assert await ids(store, offset=99) == []
        assert await ids(store, limit=0) == []

    async def test_a_turn_that_is_filed_again_is_listed_once(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        await store.append(turn("s", "t2", '"b"'))
        again = IndexEntry(session="s", turn="t1", shape="tx", chars=3, keys=(A,))
        await store.append(Batch(session="s", tenant="T", drafts=(), index=(again,)))
        assert await ids(store) == [("t1", ""), ("t2", "")]

    async def test_purged_sessions_are_not_listed(self, store):
        await store.append(turn("s", "t1", '"a"'))
        await store.append(turn("z", "t2", '"b"'))
        await store.purge(session="s")
        assert await ids(store) == [("t2", "")]


async def sent_back(store, key, tenant="T"):
    """What could be sent back of the thoughts under a key: turn → raw values."""
    return {
        entry.turn: [thought.raw for thought in entry.thoughts if not thought.forgotten]
        for entry in (await store.find(tenant, [key])).get(key, ())
    }


class Forgetting(StoreContract):
    async def test_the_index_forgets_and_the_log_does_not(self, store):
        await store.append(turn("s", "t1", '"one"', '"two"', keys=[A]))
        await store.append(turn("s", "t2", '"three"', keys=[B]))
        before = await store.read("s")
        assert await store.forget(EntryFilter(provider="deepseek", model="v4", tenant="T")) == 2
        assert await store.entries() == []
        assert (await store.stats()).entries == 0
        assert await store.read("s") == before

    async def test_a_forgotten_turn_is_known_and_its_thoughts_do_not_go_back(self, store):
        """Else an equal turn of another conversation could be taken for it."""
        await store.append(turn("s", "t1", '"one"', keys=[A]))
        await store.forget(ALL_ENTRIES)
        await store.append(turn("z", "t2", '"other"', keys=[A]))
        assert await sent_back(store, A) == {"t1": [], "t2": ['"other"']}
        [old] = [e for e in (await store.find("T", [A]))[A] if e.turn == "t1"]
        assert [t.raw for t in old.thoughts] == ["null"]

    async def test_one_of_two_parallel_calls(self, store):
        for _ in range(2):
            await store.append(turn("s", "t1", '"a"', keys=[A], calls=("x", "y")))
            assert await store.forget(EntryFilter(call="y")) == 1
            assert await ids(store) == [("t1", "x")]
            assert (await store.stats()).chars == 3
            assert await sent_back(store, A) == {"t1": ['"a"']}
            assert await store.forget(EntryFilter(call="y")) == 0
            assert await store.forget(EntryFilter(call="x")) == 1
            assert await sent_back(store, A) == {"t1": []}
            assert (await store.stats()).entries == 0
            await store.purge(session="s")

    async def test_only_what_is_meant(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A], calls=("x", "y")))
        await store.append(turn("s", "t2", '"b"', keys=[B], **elsewhere("kimi", "k3")))
        await store.append(turn("z", "t3", '"c"', keys=[A], tenant="B", calls=("x",)))
        assert await store.forget(EntryFilter(provider="nobody")) == 0
        assert await store.forget(EntryFilter(call="x", tenant="T")) == 1
        assert await ids(store) == [("t3", "x"), ("t2", ""), ("t1", "y")]
        assert await store.forget(EntryFilter(model="k3")) == 1
        assert await store.forget(EntryFilter(session="s", turn="t1")) == 1
        assert await store.forget(EntryFilter(tenant="B")) == 1
        assert await sent_back(store, A, "B") == {"t3": []}
        assert (await store.stats()).entries == 0

    async def test_everything(self, store):
        for n in range(150):
            await store.append(turn(f"s{n % 7}", f"t{n}", '"x"', keys=[n.to_bytes(16, "big"), A]))
        seen = []
        assert await store.forget(ALL_ENTRIES, progress=lambda *of: seen.append(of)) == 150
        assert seen[-1] == (150, 150)
        assert await store.forget(ALL_ENTRIES) == 0
        assert not any((await sent_back(store, A)).values())
        stats = await store.stats()
        assert (stats.entries, stats.chars, stats.by_provider, stats.sessions) == (0, 0, {}, 7)

    async def test_turns_without_thoughts_stay_known(self, store):
        await store.append(turn("s", "t1", keys=[A]))
        assert await store.forget(ALL_ENTRIES) == 0
        assert set(await store.find("T", [A])) == {A}

    async def test_what_is_being_written_is_forgotten_too(self, store):
        writing = [
            asyncio.create_task(store.append(turn("s", f"t{n}", '"x"', keys=[A]))) for n in range(9)
        ]
        await asyncio.sleep(0)
        forgotten = await store.forget(ALL_ENTRIES)
        await asyncio.gather(*writing)
        assert forgotten == 9
        assert not any((await sent_back(store, A)).values())


class Erasing(StoreContract):
    async def test_what_is_erased_is_not_sent_nor_read(self, store):
        timing = Timing(opened=5, closed=9)
        made = thought('"secret"', text="secret", id="rs_1", seals=("ab" * 16,), timing=timing)
        events = (draft(Reasoning(thought=made), id="e", parent="t1", at=1.0),)
        await store.append(turn("s", "t1", '"secret"', keys=[A], drafts=events))
        await store.append(turn("s", "t2", '"kept"', keys=[B]))
        before = await store.read("s")
        assert await store.erase(EntryFilter(provider="deepseek", model="v4", tenant="T")) == 3
        assert await sent_back(store, A) == {"t1": []}
        assert await store.entries() == []
        after = await store.read("s")
        assert [(e.seq, e.id, e.type, e.at) for e in after] == [
            (e.seq, e.id, e.type, e.at) for e in before
        ]
        assert not [e for e in after if "secret" in e.data or "kept" in e.data]
        left = [e.body().thought for e in after if e.type == "reasoning"]
        assert [t.raw for t in left] == ["null"] * 3
        assert all(t.forgotten and not t.seals and not t.id and t.origin == ORIGIN for t in left)
        assert left[1].timing == timing

    async def test_the_log_still_folds(self, store):
        await store.append(turn("s", "t1", '"secret"', keys=[A]))
        await store.erase(ALL_ENTRIES)
        await store.append(turn("s", "t2", '"new"', keys=[A]))
        session = Session("s").extend(await store.read("s"))
        assert [[t.raw for t in turn.thoughts] for turn in session.turns] == [["null"], ['"new"']]
        assert await sent_back(store, A) == {"t1": [], "t2": ['"new"']}

    async def test_what_the_index_forgot_or_never_knew_is_erased_as_well(self, store):
        await store.append(turn("s", "t1", '"secret one"', keys=[A]))
        await store.forget(ALL_ENTRIES)
        await store.append(replace(turn("s", "t2", '"secret two"'), index=()))
        await store.append(turn("z", "t3", '"other"', tenant="B"))
        assert await store.erase(EntryFilter(provider="deepseek", tenant="T")) == 2
        assert await store.erase(EntryFilter(tenant="T")) == 0
        assert not [e for e in await store.read("s") if "secret" in e.data]
        assert [e for e in await store.read("z") if "other" in e.data]

    async def test_only_what_is_meant(self, store):
        await store.append(turn("s", "t1", '"a"', calls=("x", "y")))
        await store.append(turn("z", "t2", '"b"'))
        assert await store.erase(EntryFilter(provider="nobody")) == 0
        assert await store.erase(EntryFilter(session="z")) == 1
        assert await ids(store) == [("t1", "x"), ("t1", "y")]
        assert await store.erase(EntryFilter(call="y")) == 1
        assert await ids(store) == []

    async def test_everything(self, store):
        for n in range(250):
            await store.append(turn(f"s{n % 7}", f"t{n}", '"x"'))
        seen = []
        assert await store.erase(ALL_ENTRIES, progress=lambda *of: seen.append(of)) == 250
        assert seen[-1][0] == seen[-1][1]
        assert await store.erase(ALL_ENTRIES) == 0

    async def test_thoughts_that_cannot_be_read_are_blanked_too(self, store):
        newer = plain(type="reasoning", parent="t1", version=99, data='{"thought": "secret"}')
        await store.append(turn("s", "t1", '"a"', keys=[A], drafts=(newer,)))
        assert await store.erase(ALL_ENTRIES) == 2
        last = (await store.read("s"))[-1]
        assert "secret" not in last.data
        assert last.body().thought.carrier is Carrier.REASONING_CONTENT


class CountingTurns(StoreContract):
    """What became of thoughts, per interval."""

    async def counts(self, store, seconds=FINE, since=0.0):
        found = await store.turn_counts(seconds=seconds, since=since)
        return {(c.at, c.provider, c.model): dict(c.counts) for c in found}

    async def test_nothing(self, store):
        assert await self.counts(store) == {}

    async def test_turns_and_decisions_of_each_interval(self, store, clock):
        clock.now = 1_000_000.0
        await store.append(decided("s", "t1", at=999_600.0))
        assert await self.counts(store) == {
            (999_600.0, "deepseek", "v4"): {
                "turns": 1,
                "restored": 2,
                "new_restored": 2,
                "input_tokens": 9,
                "cached_tokens": 4,
            }
        }
        await store.append(decided("s", "t2", at=999_899.0))
        await store.append(decided("z", "t3", at=999_900.0))
        found = await self.counts(store)
        assert {at: counts["turns"] for (at, *_), counts in found.items()} == {
            999_600.0: 2,
            999_900.0: 1,
        }
        assert len(await self.counts(store, since=999_900.0)) == 1
        [(_, coarse)] = (await self.counts(store, COARSE)).items()
        assert coarse["turns"] == 3

    async def test_a_turn_that_ends_later_counts_for_its_own_model(self, store, clock):
        clock.now = 1_000_000.0
        whole = decided("s", "t1", at=999_600.0)
        await store.append(replace(whole, drafts=whole.drafts[:1], index=()))
        await store.append(replace(whole, drafts=whole.drafts[1:]))
        [(key, counts)] = (await self.counts(store)).items()
        assert key == (999_600.0, "deepseek", "v4")
        assert (counts["turns"], counts["input_tokens"]) == (1, 9)

    async def test_deleting_does_not_change_what_happened(self, store, clock):
        clock.now = 1_000_000.0
        await store.append(decided("s", "t1", at=999_600.0))
        before = await self.counts(store)
        await store.purge(session="s")
        assert await self.counts(store) == before


class Indexing(StoreContract):
    async def test_the_index_of_a_session(self, store):
        first = turn("s", "t1", '"a"', '"b"', keys=[A, B])
        await store.append(first)
        await store.append(turn("z", "t2", '"c"', keys=[A]))
        await store.append(turn("s", "t3", keys=[C]))
        await store.append(refusal("s", "t1", 1))
        filed = await store.index("s")
        assert [one.entry.turn for one in filed] == ["t1", "t3"]
        assert filed[0].entry == replace(first.index[0], quarantined=frozenset({1}))
        assert [one.unfiled for one in filed] == [frozenset(), frozenset()]
        assert await store.index("nobody") == []

    async def test_entries_are_replaced_and_removed(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        await store.append(turn("s", "t2", '"b"', keys=[A]))
        await store.append(turn("z", "t3", '"c"', keys=[A], tenant="B"))
        [filed, _] = await store.index("s")
        again = replace(filed.entry, keys=(B,), hints=("h",))
        await store.reindex("s", [again], remove=["t2"])
        found = await store.find("T", [A, B])
        assert {key: [e.turn for e in entries] for key, entries in found.items()} == {B: ["t1"]}
        assert found[B][0].hints == ("h",)
        assert [t.raw for t in found[B][0].thoughts] == ['"a"']
        assert [e.turn for e in (await store.find("B", [A]))[A]] == ["t3"]
        assert (await store.stats()).entries == 2

    async def test_a_session_without_an_index_gets_one(self, store):
        whole = turn("s", "t1", '"a"', keys=[A])
        await store.append(replace(whole, index=()))
        assert await store.find("T", [A]) == {}
        await store.reindex("s", whole.index)
        assert [e.turn for e in (await store.find("T", [A]))[A]] == ["t1"]

    async def test_many_entries(self, store):
        batches = [turn("s", f"t{n}", '"a"', keys=[n.to_bytes(16, "big")]) for n in range(150)]
        for batch in batches:
            await store.append(replace(batch, index=()))
        await store.reindex("s", [batch.index[0] for batch in batches])
        await store.reindex("s", [batch.index[0] for batch in batches])  # again: the same
        assert [one.entry.turn for one in await store.index("s")] == [f"t{n}" for n in range(150)]
        assert (await store.stats()).entries == 150

    async def test_retention_is_not_extended(self, store, clock):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        [before] = await store.sessions()
        clock.now += 10
        [filed] = await store.index("s")
        await store.reindex("s", [filed.entry])
        assert await store.sessions() == [before]

    async def test_a_session_that_is_gone_stays_gone(self, store):
        whole = turn("s", "t1", '"a"', keys=[A])
        await store.reindex("s", whole.index, remove=["t0"])
        assert await store.sessions() == []
        assert await store.find("T", [A]) == {}

    async def test_nothing_to_prune(self, store):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        assert await store.prune_index() == 0
        assert await store.prune_index(dry_run=True) == 0


class Watching(StoreContract):
    async def test_one_session_from_its_beginning(self, store):
        await store.append(notes("s", 2))
        async with watching(store.watch("s")) as watcher:
            await watcher.has(2)
            await store.append(notes("other"))
            await store.append(notes("s", 2))
            assert [e.seq for e in await watcher.has(4)] == [0, 1, 2, 3]
        assert watcher.events == await store.read("s")

    async def test_one_session_from_somewhere(self, store):
        await store.append(notes("s", 3))
        async with watching(store.watch("s", after=1)) as watcher:
            await store.append(notes("s"))
            assert [e.seq for e in await watcher.has(2)] == [2, 3]

    async def test_a_session_that_is_yet_to_come(self, store):
        async with watching(store.watch("s")) as watcher:
            await store.append(notes("s"))
            assert [e.seq for e in await watcher.has(1)] == [0]

    async def test_all_sessions_from_now_on(self, store):
        await store.append(notes("s", 2))
        async with watching(store.watch()) as watcher:
            await store.append(notes("s"))
            await store.append(notes("z"))
            assert [(e.session, e.seq) for e in await watcher.has(2)] == [("s", 2), ("z", 0)]

    async def test_only_a_tenants_own(self, store):
        await store.append(notes("b", tenant="B"))
        async with (
            watching(store.watch(tenant="A")) as demands_all,
            watching(store.watch("b", tenant="A")) as of_one,
        ):
            await store.append(notes("b", tenant="B"))
            await store.append(notes("a", tenant="A"))
            assert [e.session for e in await demands_all.has(1)] == ["a"]
            await store.append(notes("a", tenant="A"))
            assert [e.session for e in await demands_all.has(2)] == ["a", "a"]
            assert of_one.events == []

    async def test_a_burst_is_shown_whole_and_in_order(self, store):
        async with watching(store.watch()) as all_of_them, watching(store.watch("s1")) as one:
            batches = [notes(f"s{n % 3}", 20) for n in range(90)]
            await asyncio.gather(*map(store.append, batches))
            seen = await all_of_them.has(1800)
            assert [e.seq for e in await one.has(600)] == list(range(600))
        for session in ("s0", "s1", "s2"):
            assert [e.seq for e in seen if e.session == session] == list(range(600))

    async def test_it_ends_when_the_store_is_closed(self, store):
        async with watching(store.watch()) as everything, watching(store.watch("s")) as one:
            await store.close()
            async with asyncio.timeout(60):
                await asyncio.gather(everything.task, one.task)


class Closing(StoreContract):
    async def test_closing_twice_is_harmless(self, store):
        await store.append(notes("s"))
        await store.close()
        await store.close()

    async def test_a_store_that_was_never_used_can_be_closed(self, store):
        await store.close()

    async def test_a_closed_store_says_so(self, store):
        await store.close()
        for call in (
            store.append(notes("s")),
            store.read("s"),
            store.find("T", [A]),
            store.sessions(),
            store.stats(),
            store.purge(session="s"),
            store.entries(),
            store.forget(ALL_ENTRIES),
            store.erase(ALL_ENTRIES),
            store.turn_counts(seconds=FINE, since=0.0),
            anext(store.watch("s")),
            anext(store.watch()),
        ):
            with pytest.raises(Unavailable, match="closed"):
                await call

    async def test_closing_finishes_what_is_queued(self, store):
        waiting = [asyncio.create_task(store.append(notes("s"))) for _ in range(20)]
        await asyncio.sleep(0)
        await store.close()
        assert [await task for task in waiting] == list(range(20))


class Keeping(StoreContract):
    """For stores whose data outlives them."""

    async def test_everything_is_there_after_reopening(self, store, tmp_path, clock):
        await store.append(turn("s", "t1", '"one"', keys=[A]))
        await store.append(refusal("s", "t1", 0))
        clock.now += 7
        found = await store.find("T", [A])
        before = await store.read("s"), await store.stats(), await store.sessions()
        await store.close()
        again = self.open(tmp_path / "store", clock)
        try:
            after = await again.read("s"), await again.stats(), await again.sessions()
            assert after == before
            assert await again.find("T", [A]) == found
            assert await again.append(notes("s")) == len(before[0])
        finally:
            await again.close()

    async def test_a_use_is_kept_when_the_store_is_closed_at_once(self, store, tmp_path, clock):
        await store.append(turn("s", "t1", keys=[A]))
        clock.now += 7
        store.touch(["s"])
        await store.close()
        again = self.open(tmp_path / "store", clock)
        try:
            assert [s.touched for s in await again.sessions()] == [1007.0]
        finally:
            await again.close()

    async def test_others_see_it_and_write_beside_it(self, store, tmp_path, clock):
        other = self.open(tmp_path / "store", clock)
        try:
            async with watching(store.watch("s")) as one, watching(store.watch()) as everything:
                await store.append(notes("s"))
                await everything.has(1)
                await asyncio.gather(
                    *(each.append(notes("s", 2)) for _ in range(10) for each in (store, other))
                )
                assert [e.seq for e in await one.has(41)] == list(range(41))
                assert [e.seq for e in await everything.has(41)] == list(range(41))
            assert await other.read("s") == await store.read("s")
        finally:
            await other.close()


class Sharing(StoreContract):
    """For stores that several processes use at once: A writes, B reads."""

    @pytest.fixture
    async def other(self, store, tmp_path, clock):
        other = self.open(tmp_path / "store", clock)
        yield other
        await other.close()

    async def test_what_one_has_written_the_other_finds_at_once(self, store, other):
        for n in range(20):
            writes, reads = (store, other) if n % 2 else (other, store)
            key = n.to_bytes(16, "big")
            assert await reads.find("T", [key]) == {}
            batch = turn("s", f"t{n}", '"x"', keys=[key, A])
            await writes.append(batch)
            assert (await reads.find("T", [key]))[key] == list(batch.index)
            assert next(e.turn for e in (await reads.find("T", [A]))[A]) == f"t{n}"

    async def test_the_same_batch_written_by_both_is_one(self, store, other):
        batches = [replace(turn("s", f"t{n}", '"x"', keys=[A]), id=f"t{n}") for n in range(6)]
        written = await asyncio.gather(
            *(each.append(batch) for batch in batches for each in (store, other))
        )
        assert written[::2] == written[1::2]
        assert [e.seq for e in await other.read("s")] == list(range(18))
        assert len((await store.find("T", [A]))[A]) == 6

    async def test_what_one_deletes_the_other_does_not_send(self, store, other):
        for n in range(3):
            await store.append(turn(f"s{n}", f"t{n}", f'"{n}"', keys=[A]))
        assert len(await sent_back(other, A)) == 3  # now it knows them
        await store.forget(EntryFilter(session="s0"))
        assert await sent_back(other, A) == {"t2": ['"2"'], "t1": ['"1"'], "t0": []}
        await store.erase(EntryFilter(session="s1"))
        assert await sent_back(other, A) == {"t2": ['"2"'], "t1": [], "t0": []}
        await store.purge(session="s0")
        assert await sent_back(other, A) == {"t2": ['"2"'], "t1": []}
        assert await other.read("s0") == []

    async def test_what_one_heard_refused_the_other_knows(self, store, other):
        await store.append(turn("s", "t1", '"a"', '"b"', keys=[A]))
        assert (await other.find("T", [A]))[A][0].quarantined == frozenset()
        await store.append(refusal("s", "t1", 1))
        assert (await other.find("T", [A]))[A][0].quarantined == {1}

    async def test_an_entry_that_is_filed_again_is_found_anew(self, store, other):
        await store.append(turn("s", "t1", '"a"', keys=[A]))
        assert len((await other.find("T", [A]))[A][0].thoughts) == 1
        more = draft(Reasoning(thought=thought('"b"')), id="m", parent="t1", at=2.0)
        again = turn("s", "t1", '"a"', '"b"', keys=[A, B]).index
        await store.append(Batch(session="s", tenant="T", drafts=(more,), index=again))
        found = await other.find("T", [A, B])
        assert [[t.raw for t in e.thoughts] for e in (*found[A], *found[B])] == [['"a"', '"b"']] * 2

    async def test_two_branches_of_one_session_are_both_there(self, store, other):
        await store.append(turn("s", "t0", '"root"', keys=[A]))
        await asyncio.gather(
            *(
                each.append(turn("s", f"{name}{n}", f'"{name}{n}"', keys=[B], parent="t0"))
                for n in range(8)
                for each, name in ((store, "a"), (other, "b"))
            )
        )
        events = await store.read("s")
        assert [e.seq for e in events] == list(range(3 * 17))
        assert events == await other.read("s")
        assert len((await other.find("T", [B]))[B]) == 16

    async def test_one_of_both_who_expect_the_same_wins(self, store, other):
        outcomes = await asyncio.gather(
            *(each.append(notes("s", expect=-1)) for each in (store, other, store, other)),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, int) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3


class Contract(
    Appending,
    Reading,
    Finding,
    Retaining,
    Counting,
    Listing,
    Forgetting,
    Erasing,
    CountingTurns,
    Indexing,
    Seeking,
    Watching,
    Closing,
):
    """All that every store must do."""


class KeepingContract(Contract, Keeping, Sharing):
    """And what those must do that keep what they were given."""

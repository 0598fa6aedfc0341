"""SQLite against a model: whatever is done to both, they say the same."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from stores.model import StoreModel
from stores.samples import StillClock, fork, notes, plain, refusal, turn
from thoughtline.errors import StoreError
from thoughtline.log.index import IndexEntry
from thoughtline.stores.base import Batch, EntryFilter
from thoughtline.stores.sqlite import SqliteStore

OWNERS = {"s0": "A", "s1": "A", "s2": "A", "s3": "B"}
TURNS = ["t0", "t1", "t2", "t3"]
NAMES = [bytes([n]) * 16 for n in range(6)]

sessions = st.sampled_from(list(OWNERS))
tenants = st.sampled_from(["A", "B"])
homes = st.one_of(*[st.just(home) for home in OWNERS.items()] * 3, st.tuples(sessions, tenants))
turns = st.sampled_from(TURNS)
keys = st.just(NAMES) | st.lists(st.sampled_from(NAMES), max_size=4, unique=True)
positions = st.lists(st.integers(0, 3), max_size=2).map(tuple)
raws = st.lists(st.sampled_from(['"a"', '"ä🙂"', '{"x": 1.0}', "[ ]"]), max_size=3)
expected = st.none() | st.integers(-1, 6)
times = st.sampled_from([0.25, 2.0, 1e9])
calls = st.lists(st.sampled_from(["c0", "c1", ""]), max_size=3).map(tuple)
filters = st.builds(
    EntryFilter,
    tenant=st.none() | tenants,
    provider=st.sampled_from([None, "deepseek", "kimi"]),
    model=st.sampled_from([None, "v4", ""]),
    call=st.sampled_from([None, "c0", "c1", ""]),
)


class Stores(RuleBasedStateMachine):
    """A store and its model, one clock, the same calls."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StillClock()
        self.model = StoreModel(self.clock)
        self.real = self.open()

    def open(self):
        return SqliteStore(Path(self.folder.name) / "store.db", clock=self.clock)

    def teardown(self):
        self.loop.run(self.real.close())
        self.loop.close()
        self.folder.cleanup()

    def both(self, call):
        """Do it to both; the answer, which must be the same, or the same kind of refusal."""
        answers = [self.loop.run(_outcome(call(store))) for store in (self.model, self.real)]
        assert answers[1] == answers[0]
        return answers[0]

    @initialize()
    def something_is_there(self):
        batch = turn("s0", "t0", '"a"', tenant="A", keys=NAMES[:2], at=5.0)
        self.both(lambda store: store.append(batch))

    @rule(seconds=st.sampled_from([0.5, 10.0]))
    def time_passes(self, seconds):
        self.clock.now += seconds

    @rule(home=homes, count=st.integers(0, 3), expect=expected, at=times)
    def append(self, home, count, expect, at):
        drafts = tuple(plain(n, at=at) for n in range(count))
        batch = Batch(session=home[0], tenant=home[1], drafts=drafts, expect=expect)
        self.both(lambda store: store.append(batch))

    @rule(home=homes, id=turns, raws=raws, keys=keys, at=times, calls=calls)
    def append_turn(self, home, id, raws, keys, at, calls):
        facts = {"calls": calls, "chars": len(raws)}
        batch = turn(home[0], id, *raws, tenant=home[1], keys=keys, at=at, **facts)
        self.both(lambda store: store.append(batch))

    @rule(home=homes, id=turns, keys=keys)
    def file_again(self, home, id, keys):
        indexed = IndexEntry(session=home[0], turn=id, keys=tuple(keys), at=self.clock.now)
        batch = Batch(session=home[0], tenant=home[1], drafts=(), index=(indexed,))
        self.both(lambda store: store.append(batch))

    @rule(home=homes, id=turns, positions=positions)
    def refuse(self, home, id, positions):
        self.both(lambda store: store.append(refusal(home[0], id, *positions, tenant=home[1])))

    @rule(home=homes, origin=sessions)
    def branch(self, home, origin):
        self.both(lambda store: store.append(fork(home[0], origin, tenant=home[1])))

    @rule(home=homes, type=st.sampled_from(["reasoning", "quarantined", "session_forked"]))
    def append_nonsense(self, home, type):
        drafts = (plain(type=type, parent="t0", data='{"turn": 5}'),)
        self.both(lambda store: store.append(Batch(session=home[0], tenant=home[1], drafts=drafts)))

    @rule(home=homes)
    def append_in_one_go(self, home):
        """A group with a bad batch in it: the others are written."""
        batches = [
            notes(home[0], 2, tenant=home[1]),
            Batch(session="s9", tenant="A", drafts=(plain(data="\x1e"),)),
            turn("s8", "t0", '"b"', tenant="A", keys=NAMES[:1]),
        ]

        async def go(store):
            return await asyncio.gather(*(_outcome(store.append(batch)) for batch in batches))

        self.both(go)

    @rule(tenant=tenants, keys=keys)
    def find(self, tenant, keys):
        self.both(lambda store: store.find(tenant, keys))

    @rule(session=sessions, after=st.integers(-2, 5), limit=st.none() | st.integers(0, 3))
    def read(self, session, after, limit):
        self.both(lambda store: store.read(session, after=after, limit=limit))

    @rule(session=sessions)
    def purge_one(self, session):
        self.both(lambda store: store.purge(session=session))

    @rule(
        session=st.none() | sessions,
        tenant=st.none() | tenants,
        age=st.none() | st.sampled_from([0.0, 1.0, 11.0]),
    )
    def purge(self, session, tenant, age):
        since = None if age is None else self.clock.now - age
        self.both(lambda store: store.purge(session=session, tenant=tenant, untouched_since=since))

    @rule(
        tenant=st.none() | tenants,
        limit=st.integers(0, 6),
        back=st.none() | st.sampled_from([0.0, 5.0]),
    )
    def list_sessions(self, tenant, limit, back):
        before = None if back is None else self.clock.now - back
        self.both(lambda store: store.sessions(tenant=tenant, limit=limit, before=before))

    @rule(which=filters, limit=st.integers(0, 6), offset=st.integers(0, 2), thoughts=st.booleans())
    def list_entries(self, which, limit, offset, thoughts):
        async def go(store):
            page = {"limit": limit, "thoughts": thoughts}
            first = await store.entries(which, offset=offset, **page)
            more = await store.entries(which, after=first[-1].position, **page) if first else []
            return [replace(entry, position=(0, 0)) for entry in first + more]

        self.both(go)

    @rule(which=filters)
    def forget(self, which):
        self.both(lambda store: store.forget(which))

    @rule(session=sessions)
    def read_index(self, session):
        self.both(lambda store: store.index(session))

    @rule(session=sessions, ids=st.lists(turns, unique=True), keys=keys, remove=st.lists(turns))
    def reindex(self, session, ids, keys, remove):
        entries = [IndexEntry(session=session, turn=id, keys=tuple(keys), shape="t") for id in ids]
        self.both(lambda store: store.reindex(session, entries, remove=remove))

    @rule(tenant=tenants)
    def count(self, tenant):
        self.both(lambda store: store.stats(tenant=tenant))

    @rule(tenant=tenants)
    def reopen(self, tenant):
        """After a late hit, which must not be lost."""
        self.clock.now += 3
        self.find(tenant, NAMES)
        self.loop.run(self.real.close())
        self.real = self.open()
        self.both(lambda store: store.sessions())

    @invariant()
    def the_same_is_held(self):
        self.both(lambda store: store.stats())


async def _outcome(call):
    try:
        return await call
    except StoreError as error:
        return type(error)


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=60, stateful_step_count=30)

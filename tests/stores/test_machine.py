"""SQLite against the reference: whatever is done to both, they say the same."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stores.samples import StillClock, fork, notes, plain, refusal, turn
from thoughtline.errors import StoreError
from thoughtline.memories import Memory
from thoughtline.stores.base import Batch
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore

SESSIONS = ["s0", "s1", "s2", "s3", "s4"]
TENANTS = ["A", "B"]
TURNS = ["t0", "t1", "t2", "t3"]
NAMES = [bytes([n]) * 16 for n in range(6)]

sessions = st.sampled_from(SESSIONS)
tenants = st.sampled_from(TENANTS)
turns = st.sampled_from(TURNS)
names = st.lists(st.sampled_from(NAMES), max_size=4, unique=True)
positions = st.lists(st.integers(0, 3), max_size=2).map(tuple)
raws = st.lists(st.sampled_from(['"a"', '"ä🙂"', '{"x": 1.0}', "[ ]"]), max_size=3)
expected = st.none() | st.integers(-1, 6)


class Stores(RuleBasedStateMachine):
    """Two stores, one clock, the same calls."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = StillClock()
        self.model = MemoryStore(self.clock)
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
        self.both(lambda store: store.append(turn("s0", "t0", '"a"', tenant="A", names=NAMES[:2])))

    @rule(seconds=st.sampled_from([0.5, 10.0]))
    def time_passes(self, seconds):
        self.clock.now += seconds

    @rule(session=sessions, tenant=tenants, count=st.integers(0, 3), expect=expected)
    def append(self, session, tenant, count, expect):
        self.both(lambda store: store.append(notes(session, count, tenant=tenant, expect=expect)))

    @rule(session=sessions, tenant=tenants, id=turns, raws=raws, names=names)
    def append_turn(self, session, tenant, id, raws, names):
        batch = turn(session, id, *raws, tenant=tenant, names=names, at=self.clock.now)
        self.both(lambda store: store.append(batch))

    @rule(session=sessions, tenant=tenants, id=turns, names=names)
    def file_again(self, session, tenant, id, names):
        memory = Memory(session=session, turn=id, names=tuple(names), at=self.clock.now)
        batch = Batch(session=session, tenant=tenant, drafts=(), memories=(memory,))
        self.both(lambda store: store.append(batch))

    @rule(session=sessions, tenant=tenants, id=turns, positions=positions)
    def refuse(self, session, tenant, id, positions):
        self.both(lambda store: store.append(refusal(session, id, *positions, tenant=tenant)))

    @rule(session=sessions, tenant=tenants, origin=sessions)
    def branch(self, session, tenant, origin):
        self.both(lambda store: store.append(fork(session, origin, tenant=tenant)))

    @rule(session=sessions, tenant=tenants, type=st.sampled_from(["reasoning", "quarantined"]))
    def append_nonsense(self, session, tenant, type):
        drafts = (plain(type=type, parent="t0", data='{"turn": 5}'),)
        self.both(lambda store: store.append(Batch(session=session, tenant=tenant, drafts=drafts)))

    @rule(tenant=tenants, session=sessions)
    def append_in_one_go(self, tenant, session):
        """A group with a bad batch in it: the others are written."""
        batches = [
            notes(session, 2, tenant=tenant),
            Batch(session="s9", tenant=tenant, drafts=(plain(data="\x1e"),)),
            turn("s8", "t0", '"b"', tenant=tenant, names=NAMES[:1]),
        ]

        async def go(store):
            return await asyncio.gather(*(_outcome(store.append(batch)) for batch in batches))

        self.both(go)

    @rule(tenant=tenants, names=names)
    def find(self, tenant, names):
        self.both(lambda store: store.find(tenant, names))

    @rule(session=sessions, after=st.integers(-2, 5), limit=st.none() | st.integers(0, 3))
    def read(self, session, after, limit):
        self.both(lambda store: store.read(session, after=after, limit=limit))

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
        limit=st.integers(0, 4),
        back=st.none() | st.sampled_from([0.0, 5.0]),
    )
    def list_sessions(self, tenant, limit, back):
        before = None if back is None else self.clock.now - back
        self.both(lambda store: store.sessions(tenant=tenant, limit=limit, before=before))

    @rule(tenant=tenants)
    def count(self, tenant):
        self.both(lambda store: store.stats(tenant=tenant))

    @rule()
    def reopen(self):
        self.loop.run(self.real.close())
        self.real = self.open()

    @invariant()
    def the_same_is_held(self):
        self.both(lambda store: store.stats())
        self.both(lambda store: store.sessions())


async def _outcome(call):
    try:
        return await call
    except StoreError as error:
        return type(error)


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=60, stateful_step_count=30)

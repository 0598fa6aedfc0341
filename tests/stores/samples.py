"""Small values for tests of stores: a clock that stands still, drafts, turns, index entries."""

import asyncio
from contextlib import asynccontextmanager

from thoughtline.log.events import (
    Draft,
    Outcome,
    Quarantined,
    Reasoning,
    SessionForked,
    TurnEnded,
    TurnStarted,
    draft,
)
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Carrier, Origin, Thought
from thoughtline.stores.base import Batch
from thoughtline.stores.rules import number_events

ORIGIN = Origin(dialect="chat", provider="deepseek", endpoint="https://api.test", model="v4")


class StillClock:
    """Time passes when it is told to."""

    def __init__(self):
        self.now = 1000.0
        self._ids = 0

    def wall(self):
        return self.now

    def mono(self):
        return int(self.now * 1e9)

    def new_id(self):
        self._ids += 1
        return f"id-{self._ids}"


def thought(raw='"hm"', **fields):
    return Thought(carrier=Carrier.REASONING_CONTENT, raw=raw, origin=ORIGIN, **fields)


def plain(number=0, **fields):
    """A draft of no particular meaning."""
    given = {
        "id": f"e{number}",
        "parent": "",
        "at": 1.5,
        "type": "note",
        "version": 1,
        "data": f'{{"n": {number}}}',
    }
    return Draft(**given | fields)


def notes(session, count=1, *, tenant="T", **fields):
    """A batch of such drafts."""
    drafts = tuple(plain(n) for n in range(count))
    return Batch(session=session, tenant=tenant, drafts=drafts, **fields)


def turn(session, id, *raws, tenant="T", keys=(), at=1.5, drafts=(), **fields):
    """A batch that is one whole turn with these thoughts, filed under these keys."""
    thoughts = tuple(thought(raw) for raw in raws)
    bodies = [Reasoning(thought=t) for t in thoughts]
    events = [
        draft(TurnStarted(target=ORIGIN), id=id, parent="", at=at),
        *(draft(body, id=f"{id}.{n}", parent=id, at=at) for n, body in enumerate(bodies)),
        draft(TurnEnded(outcome=Outcome.COMPLETED), id=f"{id}.end", parent=id, at=at),
        *drafts,
    ]
    given = {
        "session": session,
        "turn": id,
        "origin": ORIGIN,
        "at": at,
        "shape": "t" * len(raws) + "x",
        "thoughts": thoughts,
        "chars": sum(len(raw) for raw in raws),
        "keys": tuple(keys),
    }
    indexed = IndexEntry(**given | fields)
    return Batch(session=session, tenant=tenant, drafts=tuple(events), index=(indexed,))


def after(session, id, parent, *, tenant="T"):
    """A batch that starts a turn which continues another one."""
    drafts = (draft(TurnStarted(target=ORIGIN), id=id, parent=parent, at=2.0),)
    indexed = IndexEntry(session=session, turn=id, parent=parent)
    return Batch(session=session, tenant=tenant, drafts=drafts, index=(indexed,))


def refusal(session, turn, *positions, tenant="T"):
    body = Quarantined(turn=turn, thoughts=positions, reason="400")
    drafts = (draft(body, id=f"{turn}.refused", parent=turn, at=2.0),)
    return Batch(session=session, tenant=tenant, drafts=drafts)


def fork(session, origin, *, tenant="T"):
    drafts = (draft(SessionForked(session=origin, turn="t"), id="f", parent="", at=2.0),)
    return Batch(session=session, tenant=tenant, drafts=drafts)


class Watcher:
    """What a watch has shown so far."""

    def __init__(self, feed):
        self.events = []
        self._more = asyncio.Event()
        self.task = asyncio.create_task(self._follow(feed))

    async def _follow(self, feed):
        async for event in feed:
            self.events.append(event)
            self._more.set()

    async def has(self, count):
        """Wait until it has shown so many; the events."""
        async with asyncio.timeout(60):
            while len(self.events) < count:
                self._more.clear()
                await self._more.wait()
        return self.events


@asynccontextmanager
async def watching(feed):
    watcher = Watcher(feed)
    await asyncio.sleep(0)  # now it is listening
    try:
        yield watcher
    finally:
        watcher.task.cancel()
        await asyncio.gather(watcher.task, return_exceptions=True)
        await feed.aclose()


async def appended(store, batch):
    """Append a batch; returns its events."""
    return number_events(batch, await store.append(batch))

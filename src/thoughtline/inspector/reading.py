"""The log, read for people: in outline, or turn by turn, and never in the way of a request.

Events are read by the store's own threads and folded a few at a time, with the event loop free in
between. Outlines are kept, because a log only grows; what was said and thought is not kept here,
so that what is deleted or forgotten is gone.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from thoughtline.errors import ThoughtlineError, Unreadable
from thoughtline.events import Event
from thoughtline.inspector.outlines import ALL, Line, Outline
from thoughtline.sessions import Session
from thoughtline.stores.base import Query, Store, Summary
from thoughtline.turns import Turn

T = TypeVar("T")

SLICE = 50
"""Events that are folded at a time."""
PAGE = 500
"""Events that are read at a time."""
KEPT = 50_000
"""Turns of all outlines that are kept."""


class _Kept:
    """An outline, and of which session: an id may be used again when it was deleted."""

    def __init__(self, summary: Summary) -> None:
        self.created = summary.created
        self.outline = Outline(summary.session)
        self.lock = asyncio.Lock()


class Reading:
    """Reads sessions."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._turns = 0

    async def find(self, session: str) -> Summary | None:
        """What the store says of a session."""
        found = await self.store.search(Query(session=session), limit=1)
        return found.sessions[0] if found.sessions else None

    async def outline(self, summary: Summary) -> Outline:
        """The session in outline, with all events that the summary counts."""
        kept = self._kept.pop(summary.session, None)
        if kept is not None and (
            kept.created != summary.created or kept.outline.seq >= summary.events
        ):
            self._turns -= len(kept.outline.lines)
            kept = None
        kept = kept or _Kept(summary)
        self._kept[summary.session] = kept
        async with kept.lock:
            before = len(kept.outline.lines)
            while kept.outline.seq < summary.events - 1:
                events = await self.store.read(summary.session, after=kept.outline.seq, limit=PAGE)
                if not events:
                    break  # deleted meanwhile
                async for event in gently(events, SLICE):
                    kept.outline.apply(event)
            if self._kept.get(summary.session) is kept:
                self._turns += len(kept.outline.lines) - before
        while self._turns > KEPT and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._turns -= len(oldest.outline.lines)
        return kept.outline

    async def turns(self, outline: Outline, lines: Sequence[Line]) -> list[Turn]:
        """These turns, whole. Those that cannot be read are left out."""
        if not lines:
            return []
        first, last = min(line.first for line in lines), max(line.last for line in lines)
        session = Session(outline.session)
        session.seq = first - 1
        while session.seq < last:
            limit = min(PAGE, last - session.seq)
            events = await self.store.read(outline.session, after=session.seq, limit=limit)
            if not events:
                break
            async for event in gently(events, SLICE):
                _apply(session, event)
        wanted = {line.id for line in lines}
        known: dict[str, Turn] = {}
        async for id in gently(wanted):
            with contextlib.suppress(ThoughtlineError):
                known[id] = replace(session.turn(id), replay=outline.rulings(id))
        return [_barred(known[line.id], outline) for line in lines if line.id in known]


async def gently(items: Iterable[T], every: int = 5) -> AsyncIterator[T]:
    """One by one, with the event loop free every now and then."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


def _apply(session: Session, event: Event) -> None:
    try:
        session.apply(event)
    except Unreadable:  # one fact that is damaged does not hide the others
        session.seq = event.seq
    except ThoughtlineError:  # deleted, and written again meanwhile
        session.seq = event.seq


def _barred(turn: Turn, outline: Outline) -> Turn:
    """The turn with what was refused of it later on."""
    positions = outline.barred.get(turn.id, set())
    if not positions:
        return turn
    every = range(len(turn.thoughts)) if ALL in positions else positions
    return replace(turn, quarantined=turn.quarantined | frozenset(every))

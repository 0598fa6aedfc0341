"""Reads sessions from the store, and lists them with what runs and is not written yet.

Events are read by the store's own threads and folded a few at a time, with the event loop free in
between. Outlines are cached, because a log only grows; what was said and thought is not cached, so
that what is deleted or forgotten is gone.

20 open pages hear of one event at the same time and ask for the list at once: while feeds are open,
equal questions share one lookup. Then nobody is told of anything newer than what they get, and the
feed brings them back for more. With no feed open, every question is looked up again.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Generic, TypeVar

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.errors import ThoughtlineError
from thoughtline.inspector.feed import POLL_INTERVAL, LiveFeed
from thoughtline.inspector.outline import SessionOutline, TurnOutline
from thoughtline.inspector.shapes import SessionShape
from thoughtline.inspector.snippets import Snippet, find_snippet
from thoughtline.inspector.views import session_shape
from thoughtline.log.events import Event
from thoughtline.log.sessions import Session, with_quarantine
from thoughtline.log.titles import title_of
from thoughtline.log.turns import Turn
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import (
    INTERNAL_PREFIX,
    SessionCursor,
    SessionQuery,
    SessionSummary,
    Store,
)

T = TypeVar("T")

SLICE = 50
"""Events that are folded between two turns of the event loop."""
PAGE = 500
"""Events that are read at a time."""
MAX_SNIPPET_PAGES = 8
"""Pages of events that are looked through for a session's snippet."""
MAX_CACHED_TURNS = 50_000
"""Turns of all cached outlines together."""
RUNNING = "running"
FILTERS = ("failed", "missed", "tied", "dropped", "thinking_off")
"""What people look for in sessions."""
MAX_SCANNED = 1_000
"""Sessions that are looked through for one page of those that have something."""
MAX_AGE_NS = round(POLL_INTERVAL * 1_000_000_000)
"""Nanoseconds for which a lookup serves others: as often as the feed polls."""

FindRunning = Callable[[], Awaitable[list[tuple[str, Turn]]]]
"""Finds what runs right now: tenants and turns."""


class _CachedOutline:
    """An outline, and when its session began: an id may be used again after a deletion."""

    def __init__(self, summary: SessionSummary) -> None:
        self.created = summary.created
        self.outline = SessionOutline(summary.session)
        self.lock = asyncio.Lock()


class SessionReader:
    """Reads outlines, which it caches, and whole turns, which it does not."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._cache: OrderedDict[str, _CachedOutline] = OrderedDict()
        self._cached_turns = 0

    async def find(self, session: str) -> SessionSummary | None:
        """The store's summary of a session; None where there is no such session."""
        found = await self.store.search(SessionQuery(session=session), limit=1)
        return found.sessions[0] if found.sessions else None

    async def outline(self, summary: SessionSummary) -> SessionOutline:
        """The session in outline, with all events that the summary counts."""
        cached = self._cache.pop(summary.session, None)
        if cached is not None and (
            cached.created != summary.created or cached.outline.seq >= summary.events
        ):
            self._cached_turns -= len(cached.outline.turns)
            cached = None
        cached = cached or _CachedOutline(summary)
        self._cache[summary.session] = cached
        async with cached.lock:
            before = len(cached.outline.turns)
            await self._catch_up(cached.outline, summary.events - 1)
            if self._cache.get(summary.session) is cached:
                self._cached_turns += len(cached.outline.turns) - before
        while self._cached_turns > MAX_CACHED_TURNS and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached_turns -= len(oldest.outline.turns)
        return cached.outline

    async def _catch_up(self, outline: SessionOutline, last: int) -> None:
        while outline.seq < last:
            events = await self.store.read(outline.id, after=outline.seq, limit=PAGE)
            if not events:
                return  # deleted meanwhile
            async for event in cooperative(events, SLICE):
                outline.apply(event)

    async def turns(self, outline: SessionOutline, wanted: Sequence[TurnOutline]) -> list[Turn]:
        """These turns with all their contents. Those that cannot be read are left out."""
        if not wanted:
            return []
        first, last = min(turn.first for turn in wanted), max(turn.last for turn in wanted)
        session = Session(outline.id)
        session.seq = first - 1
        while session.seq < last:
            limit = min(PAGE, last - session.seq)
            events = await self.store.read(outline.id, after=session.seq, limit=limit)
            if not events:
                break
            async for event in cooperative(events, SLICE):
                _apply(session, event)
        found: dict[str, Turn] = {}
        async for id in cooperative(dict.fromkeys(turn.id for turn in wanted)):
            with contextlib.suppress(ThoughtlineError):
                found[id] = replace(session.turn(id), replay=outline.decisions(id))
        return [
            with_quarantine(found[turn.id], outline.quarantined.get(turn.id, ()))
            for turn in wanted
            if turn.id in found
        ]


async def cooperative(items: Iterable[T], every: int = 5) -> AsyncIterator[T]:
    """Iterate, and yield to the event loop after every few items."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)


def _apply(session: Session, event: Event) -> None:
    try:
        session.apply(event)
    except ThoughtlineError:  # the session was deleted, and written again meanwhile
        session.seq = event.seq


# -- the list ------------------------------------------------------------------------------------


class SessionList:
    """Pages through sessions: first those that run, then the most recently used."""

    def __init__(
        self, reader: SessionReader, find_running: FindRunning, prices: PriceTable
    ) -> None:
        self._reader = reader
        self._find_running = find_running
        self._prices = prices

    async def page(
        self,
        query: SessionQuery,
        limit: int,
        after: SessionCursor | None,
        has: str | None = None,
    ) -> tuple[list[SessionShape], SessionCursor | None]:
        """One page, and where the next one begins; `has` is one of `FILTERS`.

        A page of those that have something may be short, or empty, and still have a next one.
        """
        shapes, cursor = await self._page(query, limit, after, has)
        scanned = limit
        while has is not None and len(shapes) < limit and cursor and scanned < MAX_SCANNED:
            more, cursor = await self._page(query, limit, cursor, has)
            shapes += more
            scanned += limit
        return shapes, cursor

    async def _page(
        self, query: SessionQuery, limit: int, after: SessionCursor | None, has: str | None
    ) -> tuple[list[SessionShape], SessionCursor | None]:
        running: dict[str, list[tuple[str, Turn]]] = {}
        for tenant, turn in await self._find_running():
            running.setdefault(turn.session, []).append((tenant, turn))
        found = await self._reader.store.search(query, limit=limit, after=after)
        listed = [one for one in found.sessions if not one.session.startswith(INTERNAL_PREFIX)]
        shapes: list[SessionShape] = []
        if after is None and has is None:
            shapes += await self._unlisted(query, running, listed)
        async for summary in cooperative(listed):
            turns = [turn for _, turn in running.get(summary.session, ())]
            outline = await self.outline(summary, turns)
            if has is not None and not _has(outline, has):
                continue
            shape = session_shape(
                summary,
                outline,
                turns,
                prices=self._prices,
                damaged=summary.session in self._reader.store.damage,
            )
            if query.status not in {None, shape.status}:
                continue
            if query.text:
                shape = replace(shape, snippet=await self._snippet(outline, query.text))
            shapes.append(shape)
        if after is None:
            shapes.sort(key=lambda shape: shape.id not in running)  # what runs is in use now
        return shapes, found.after

    async def _snippet(self, outline: SessionOutline, text: str) -> Snippet | None:
        """Where a session has what was searched for."""
        after = -1
        for _ in range(MAX_SNIPPET_PAGES):
            events = await self._reader.store.read(outline.id, after=after, limit=PAGE)
            for event in events:
                if found := find_snippet(event, text):
                    return found
            if len(events) < PAGE:
                return None
            after = events[-1].seq
            await asyncio.sleep(0)
        return None

    async def _unlisted(
        self,
        query: SessionQuery,
        running: dict[str, list[tuple[str, Turn]]],
        listed: Sequence[SessionSummary],
    ) -> list[SessionShape]:
        """Sessions that run and are not on the first page: the newest first.

        A session that was last used long ago comes again with the page that it belongs to.
        """
        known = {summary.session for summary in listed}
        shapes: list[SessionShape] = []
        for session, turns in running.items():
            tenant, first = turns[0]
            if session in known or query.tenant not in {None, tenant}:
                continue
            summary = await self._reader.find(session) or unwritten(session, tenant, first)
            extra = [turn for _, turn in turns]
            outline = await self.outline(summary, extra)
            shape = session_shape(
                summary,
                outline,
                extra,
                prices=self._prices,
                damaged=summary.session in self._reader.store.damage,
            )
            if _matches(query, shape):
                shapes.append(shape)
        return sorted(shapes, key=lambda shape: -shape.touched)

    async def outline(self, summary: SessionSummary, running: Sequence[Turn]) -> SessionOutline:
        """A session in outline; with the title of its running turn if nothing is written yet."""
        if summary.events:
            return await self._reader.outline(summary)
        outline = SessionOutline(summary.session)
        outline.title = title_of(running[0].input) if running else ""
        return outline


def unwritten(session: str, tenant: str, first: Turn) -> SessionSummary:
    """The summary of a session whose first turn runs, and of which nothing is written."""
    return SessionSummary(
        session=session,
        tenant=tenant,
        created=first.started,
        touched=first.started,
        events=0,
    )


def _has(outline: SessionOutline, what: str) -> bool:
    """Whether a session has something that people look for."""
    if what == "failed":
        return any(turn.outcome == "failed" for turn in outline.turns.values())
    if what == "thinking_off":
        return any(turn.thinking_off for turn in outline.turns.values())
    return outline.totals[what] > 0


def _matches(query: SessionQuery, shape: SessionShape) -> bool:
    text = query.text.casefold() if query.text is not None else ""
    return (
        query.status in {None, RUNNING}
        and (query.provider is None or query.provider in shape.providers)
        and (query.model is None or query.model in shape.models)
        and text in shape.title.casefold()
    )


# -- one lookup for equal questions --------------------------------------------------------------


class _Lookup(Generic[T]):
    """A lookup under way, or done."""

    def __init__(self, task: asyncio.Task[T], version: int, began: int) -> None:
        self.task, self.version, self.began = task, version, began


class SharedLookups(Generic[T]):
    """Coalesces equal questions, while feeds are open: one lookup serves all who ask."""

    def __init__(self, feed: LiveFeed, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self._lookups: dict[str, _Lookup[T]] = {}

    async def get(self, question: str, look_up: Callable[[], Awaitable[T]]) -> T:
        """The result of `look_up`, or of a lookup that somebody else just asked for."""
        if not self._feed.subscribers:
            self.clear()
            return await look_up()
        now, version = self._clock.mono(), self._feed.version
        known = self._lookups.get(question)
        if known is None or known.version != version or now - known.began > MAX_AGE_NS:
            self._drop_expired(now)
            known = _Lookup(asyncio.ensure_future(look_up()), version, now)
            self._lookups[question] = known
        try:
            return await asyncio.shield(known.task)  # one who leaves does not end it for others
        except BaseException:
            if self._lookups.get(question) is known and known.task.done():
                del self._lookups[question]
            raise

    def clear(self) -> None:
        """Forget all results: they are out of date."""
        self._lookups.clear()

    def _drop_expired(self, now: int) -> None:
        expired = [key for key, one in self._lookups.items() if now - one.began > MAX_AGE_NS]
        for key in expired:
            del self._lookups[key]

"""Serves `/api/requests`: every request, the newest first, whatever became of it.

Nothing is written for this. Requests that a model answered are turns of the log, those that failed
are kept by `gateway.failed_requests`, those that passed through or were refused at the door are in
the memory of the process, and those that run are known to their recordings.
"""

import heapq
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from starlette.requests import Request

from thoughtline.gateway.build import Components
from thoughtline.gateway.failed_requests import FailedLog, UnwrittenRequest
from thoughtline.gateway.pages.page import page, row_limit, string
from thoughtline.inspector.cursors import (
    EXPECTED,
    PATTERN,
    Position,
    decoded_cursor,
    encoded_cursor,
)
from thoughtline.inspector.feed import LiveFeed
from thoughtline.inspector.outline import SessionOutline
from thoughtline.inspector.request_rows import (
    FILTERS,
    RequestFilter,
    RequestRow,
    failed_row,
    running_row,
    turn_row,
)
from thoughtline.inspector.sessions import SessionReader, SharedLookups, cooperative
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import INTERNAL_PREFIX, SessionQuery, SessionSummary

MAX_SESSIONS = 2_000
"""Sessions whose turns are looked through, the last used first."""
PAGE = 100


class RequestPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Requests, the newest first."""

    requests: list[RequestRow]
    next_cursor: str | None
    complete: bool  # false: there are more sessions than were looked through
    now: float


class RequestList:
    """Finds requests, wherever they are known."""

    def __init__(
        self,
        reader: SessionReader,
        feed: LiveFeed,
        failed: FailedLog,
        unwritten: Iterable[UnwrittenRequest],
        prices: PriceTable,
    ) -> None:
        self._reader = reader
        self._feed = feed
        self._failed = failed
        self._unwritten = unwritten
        self._prices = prices

    async def page(
        self, which: RequestFilter, limit: int, before: Position | None
    ) -> tuple[list[RequestRow], Position | None, bool]:
        """One page, where the next one begins, and whether everything was looked through."""
        found = _Newest(which, limit + 1, before)
        running = await self._feed.turns(which.session)
        for tenant, turn in running:
            found.add(running_row(tenant, turn))
        for event, body in await self._failed.newest_first():
            found.add(failed_row(event.id, event.at, body))
        for id, at, body in self._unwritten:
            found.add(failed_row(id, at, body))
        complete = await self._add_turns(found, which, {turn.id for _, turn in running})
        rows = found.rows()
        after = _position(rows[limit - 1]) if len(rows) > limit else None
        return rows[:limit], after, complete

    async def _add_turns(self, found: "_Newest", which: RequestFilter, running: set[str]) -> bool:
        """Add the turns of the log; a session that was used earlier than all wanted ends it."""
        query = SessionQuery(session=which.session, provider=which.provider, model=which.model)
        seen, after = 0, None
        while seen < MAX_SESSIONS:
            listing = await self._reader.store.search(query, limit=PAGE, after=after)
            async for summary in cooperative(listing.sessions):
                if found.all_newer_than(summary.touched):
                    return True
                if summary.session.startswith(INTERNAL_PREFIX):
                    continue
                outline = await self._reader.outline(summary)
                for turn in outline.turns.values():
                    if turn.id not in running:
                        found.consider(turn.started, turn.id, summary, outline, self._prices)
            seen += PAGE
            after = listing.after
            if after is None:
                return True
        return False


class _Newest:
    """The newest requests before a position that fulfil a filter."""

    def __init__(self, which: RequestFilter, limit: int, before: Position | None) -> None:
        self._which, self._limit, self._before = which, limit, before
        self._heap: list[tuple[Position, RequestRow]] = []
        self._ids: set[str] = set()

    def add(self, row: RequestRow) -> None:
        """Take in a request, if it is one of the newest."""
        if self._wanted(_position(row)) and self._which.matches(row) and row.id not in self._ids:
            self._ids.add(row.id)
            heapq.heappush(self._heap, (_position(row), row))
            if len(self._heap) > self._limit:
                _, oldest = heapq.heappop(self._heap)
                self._ids.discard(oldest.id)

    def consider(
        self,
        at: float,
        id: str,
        summary: SessionSummary,
        outline: SessionOutline,
        prices: PriceTable,
    ) -> None:
        """Take in a turn; most are too old, and no row is made of them."""
        if self._wanted((at, id)):
            self.add(turn_row(outline.turns[id], summary, outline, prices))

    def _wanted(self, position: Position) -> bool:
        if self._before is not None and position >= self._before:
            return False
        return len(self._heap) < self._limit or position > self._heap[0][0]

    def all_newer_than(self, at: float) -> bool:
        """Whether nothing that happened up to then could be among them."""
        return len(self._heap) >= self._limit and self._heap[0][0][0] > at

    def rows(self) -> list[RequestRow]:
        """The requests, the newest first."""
        return [row for _, row in sorted(self._heap, key=lambda one: one[0], reverse=True)]


def _position(row: RequestRow) -> Position:
    return row.at, row.id


class RequestsApi:
    """The route of all requests."""

    def __init__(
        self, components: Components, reader: SessionReader, feed: LiveFeed, failed: FailedLog
    ) -> None:
        self._clock = components.clock
        unwritten = components.proxy.failed.unwritten
        self._list = RequestList(reader, feed, failed, unwritten, components.prices)
        self._lookups = SharedLookups[tuple[list[RequestRow], Position | None, bool]](
            feed, components.clock
        )

    @page(
        "/api/requests",
        parameters=[
            row_limit(),
            string(
                "cursor",
                "The `nextCursor` of the page before.",
                pattern=PATTERN,
                expected=EXPECTED,
            ),
            string(
                "has",
                "Only those that failed, run, passed through untouched, went out with thinking "
                "switched off, or in which thoughts were missed, tied or dropped.",
                enum=list(FILTERS),
                expected=f"one of {', '.join(FILTERS)}",
            ),
            string("provider", "Only of this provider."),
            string("model", "Only of this model, as asked for or as served."),
            string("session", "Only of this session."),
        ],
    )
    async def requests(self, request: Request, query: dict[str, Any]) -> RequestPage:
        """All requests, the newest first: answered, refused, failed and running."""
        names = ("has", "provider", "model", "session")
        which = RequestFilter(**{name: query[name] for name in names})
        before = decoded_cursor(query["cursor"])
        rows, after, complete = await self._lookups.get(
            request.url.query, lambda: self._list.page(which, query["limit"], before)
        )
        return RequestPage(
            requests=rows,
            next_cursor=encoded_cursor(after) if after else None,
            complete=complete,
            now=self._clock.wall(),
        )

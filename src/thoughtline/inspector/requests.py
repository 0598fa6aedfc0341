"""Serves `/api/requests`: every request, the newest first, whatever became of it.

Nothing is written for this. Requests that a model answered are turns of the log, those that failed
are kept by `gateway.failed_requests`, those that passed through or were refused at the door are in
the memory of the process, and those that run are known to their recordings.
"""

import heapq
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from starlette.requests import Request

from thoughtline.gateway.build import Components
from thoughtline.gateway.failed_requests import FailedLog, UnwrittenRequest
from thoughtline.gateway.pages.page import ANONYMOUS, integer, page, string
from thoughtline.inspector.advice import advice
from thoughtline.inspector.cursors import (
    EXPECTED,
    PATTERN,
    Position,
    decoded_cursor,
    encoded_cursor,
)
from thoughtline.inspector.feed import LiveFeed
from thoughtline.inspector.outline import SessionOutline, TurnOutline
from thoughtline.inspector.sessions import RUNNING, SessionReader, SharedLookups, cooperative
from thoughtline.inspector.shapes import DecisionCounts, UsageShape
from thoughtline.inspector.spending import turn_cost
from thoughtline.inspector.titles import title_of
from thoughtline.log.decisions import count_words
from thoughtline.log.events import RequestFailed
from thoughtline.log.turns import Turn
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import INTERNAL_PREFIX, SessionQuery, SessionSummary

MAX_LIMIT = 200
DEFAULT_LIMIT = 50
MAX_SESSIONS = 2_000
"""Sessions whose turns are looked through, the last used first."""
PAGE = 100
CLIENT_LEFT = 499
FILTERS = ("failed", "running", "missed", "tied", "dropped", "thinking_off", "passed")


class RequestRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One request."""

    id: str  # of the turn, or as `x-thoughtline-request` names it
    at: float
    outcome: str  # completed, failed, capped, aborted, running, refused or passed
    status: int | None  # what the client was told; null: nothing yet
    reason: str = ""  # in the provider's own words, or in the gateway's
    code: str = ""  # of the gateway's error; empty: the provider's own answer
    advice: str = ""  # what to do about it
    method: str = ""
    path: str = ""
    upstream: str = ""
    provider: str = ""
    dialect: str = ""
    model: str = ""
    asked: str = ""  # the model as asked for, where that is another name
    client: str = ""  # the dialect of the client, where the upstream speaks another
    tenant: str
    session: str | None = None
    turn: str | None = None  # of a failed request: the one that it went on from
    title: str = ""  # of its session
    calls: tuple[str, ...] = ()  # names of the tools that the model called
    replay: dict[str, int] = {}  # outputs by the words of the replay header
    thinking_off: bool = False
    corrected: bool = False  # it was sent once more
    seconds: float | None = None
    usage: UsageShape | None = None
    cost: float | None = None  # US dollars; null: not known


class RequestPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Requests, the newest first."""

    requests: list[RequestRow]
    next_cursor: str | None
    complete: bool  # false: there are more sessions than were looked through
    now: float


class RequestFilter(Struct, frozen=True, kw_only=True):
    """Conditions on requests; None matches everything."""

    has: str | None = None
    provider: str | None = None
    model: str | None = None
    session: str | None = None

    def matches(self, row: RequestRow) -> bool:
        """Whether a request fulfils them all."""
        return (
            self.provider in {None, row.provider}
            and self.model in {None, row.model, row.asked}
            and self.session in {None, row.session}
            and (self.has is None or has(row, self.has))
        )


def has(row: RequestRow, what: str) -> bool:
    """Whether a request has something that people look for."""
    if what == "failed":
        return row.outcome in ("failed", "refused")
    if what == "thinking_off":
        return row.thinking_off
    if what in (RUNNING, "passed"):
        return row.outcome == what
    return row.replay.get(what, 0) > 0


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
            found.add(_running_row(tenant, turn))
        for event, body in await self._failed.newest_first():
            found.add(_failed_row(event.id, event.at, body))
        for id, at, body in self._unwritten:
            found.add(_failed_row(id, at, body))
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
            self.add(_turn_row(outline.turns[id], summary, outline, prices))

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


# -- rows ----------------------------------------------------------------------------------------


def _turn_row(
    turn: TurnOutline, summary: SessionSummary, outline: SessionOutline, prices: PriceTable
) -> RequestRow:
    outcome = turn.outcome or RUNNING
    left = outcome == "aborted" and turn.reason == "the client left"
    status = None if turn.outcome is None else CLIENT_LEFT if left else 200
    usage = UsageShape(**asdict(turn.usage)) if turn.usage is not None else None
    return RequestRow(
        id=turn.id,
        at=turn.started,
        outcome=outcome,
        status=status,
        reason=turn.reason,
        advice=advice(502 if outcome == "failed" else status or 200, "", turn.reason),
        provider=turn.provider,
        dialect=turn.dialect,
        model=turn.model,
        asked=turn.asked if turn.asked != turn.model else "",
        client=turn.client,
        tenant=summary.tenant or ANONYMOUS,
        session=summary.session,
        turn=turn.id,
        title=outline.title,
        calls=turn.calls,
        replay=_words(turn.counts),
        thinking_off=turn.thinking_off,
        seconds=None if turn.ended is None else max(0.0, turn.ended - turn.started),
        usage=usage,
        cost=turn_cost(turn.provider, turn.model, turn.endpoint, turn.usage, prices),
    )


_NAMES = {"restored": "restored", "replaced": "corrected", "exact": "exact"}
_SAME = ("placeholder", "dropped", "missed", "tied")


def _words(counts: DecisionCounts) -> dict[str, int]:
    """The counts of a turn in the words of the replay header; no zeros."""
    named = {word: getattr(counts, name) for name, word in _NAMES.items()}
    named |= {name: getattr(counts, name) for name in _SAME}
    return {word: count for word, count in named.items() if count}


def _running_row(tenant: str, turn: Turn) -> RequestRow:
    target = turn.target
    counts = count_words(turn.replay)
    return RequestRow(
        id=turn.id,
        at=turn.started,
        outcome=RUNNING,
        status=None,
        provider=target.provider if target else "",
        dialect=target.dialect if target else "",
        model=target.model if target else "",
        tenant=tenant or ANONYMOUS,
        session=turn.session,
        turn=turn.id,
        title=title_of(turn.input),
        calls=tuple(call.name for call in turn.calls),
        replay={word.value: n for word, n in counts.items() if n and word.value != "absent"},
        thinking_off=turn.thinking_off,
    )


def _failed_row(id: str, at: float, body: RequestFailed) -> RequestRow:
    target = body.target
    failed = body.status >= 400
    return RequestRow(
        id=id,
        at=at,
        outcome="refused" if failed else "passed",
        status=body.status,
        reason=body.reason,
        code=body.code,
        advice=advice(body.status, body.code, body.reason),
        method=body.method,
        path=body.path,
        upstream=body.upstream,
        provider=target.provider if target else "",
        dialect=target.dialect if target else "",
        model=(target.asked or target.model) if target else "",
        tenant=body.tenant or ANONYMOUS,
        session=body.session or None,
        turn=body.turn or None,
        replay={word: count for word, count in body.replay.items() if word != "absent"},
        thinking_off=body.thinking_off,
        corrected=body.corrected,
        seconds=body.seconds,
    )


# -- the page ------------------------------------------------------------------------------------


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
            integer(
                "limit",
                "How many at once, at least 1; more than 200 are 200.",
                1,
                MAX_LIMIT,
                default=DEFAULT_LIMIT,
            ),
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

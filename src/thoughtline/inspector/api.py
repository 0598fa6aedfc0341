"""Serves `/api/sessions`, `/api/feed` and `/api/continuity`, which the inspector's page reads.

The text of thoughts is sent only when it is asked for, and each time that is logged: the address,
the session, the turns. A parameter that does not exist is refused. Only for the administrator.
"""

import contextlib
import re
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from thoughtline.gateway.build import Components
from thoughtline.gateway.pages.page import (
    MAX_LIMIT,
    NOT_FOUND,
    PageError,
    PageResponse,
    client_address,
    integer,
    page,
    row_limit,
    segment,
    string,
    tenant_named,
)
from thoughtline.inspector.continuity import ContinuityCounter
from thoughtline.inspector.cursors import EXPECTED, PATTERN, decoded_cursor, encoded_cursor
from thoughtline.inspector.feed import LiveFeed
from thoughtline.inspector.outline import SessionOutline, TurnOutline
from thoughtline.inspector.running_turns import RunningTurns
from thoughtline.inspector.sessions import (
    FILTERS,
    SessionList,
    SessionReader,
    SharedLookups,
    cooperative,
    unwritten,
)
from thoughtline.inspector.shapes import (
    Continuity,
    Deleted,
    ForkShape,
    SessionPage,
    Sessions,
    SessionShape,
    TurnPage,
)
from thoughtline.inspector.views import request_shape, session_shape, turn_shape
from thoughtline.log.sessions import TurnTree
from thoughtline.log.turns import Turn
from thoughtline.stores.base import EntryFilter, SessionCursor, SessionQuery, SessionSummary
from thoughtline.stores.deletions import PURGE, tell_deletion

MAX_SEARCH = 200
"""Characters of a text to search for."""
MAX_DECISIONS = 20
"""Decisions of each turn in a session's answer, the last ones."""
LAST_TURNS = 5
"""Turns of a page, the last ones, whose requests say which earlier thoughts went back."""
MAX_MESSAGES = 200
"""Messages of a request whose thoughts are looked up, the last ones."""
MAX_HOURS = 24 * 90
MAX_READING = 64
"""Readers of running turns that are remembered, so that each is logged once."""

_SESSION = segment("id", "The session's id.")
_THOUGHTS = string(
    "thoughts",
    "`1`: show the text of thoughts, which is logged.",
    enum=["0", "1"],
    expected="0 or 1",
)
_SESSIONS_QUERY = (
    row_limit(),
    string(
        "cursor",
        "The `nextCursor` of the page before; a search goes on until that is null.",
        pattern=PATTERN,
        expected=EXPECTED,
    ),
    string(
        "q",
        "Only sessions in which this was said, called or answered, whatever its case.",
        maxLength=MAX_SEARCH,
    ),
    string("provider", "Only with turns of this provider."),
    string("model", "Only with turns of this model."),
    string("tenant", "Only of this tenant."),
    string(
        "status",
        "How the last turn ended, or that it runs.",
        enum=["running", "completed", "failed", "capped", "aborted"],
    ),
    string(
        "has",
        "Only sessions with a turn that failed, that went out with thinking switched off, or in "
        "whose request thoughts were missed, tied or dropped.",
        enum=list(FILTERS),
        expected=f"one of {', '.join(FILTERS)}",
    ),
)
_STREAM = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


class InspectorApi:
    """The routes of the inspector's API."""

    def __init__(self, components: Components, running: RunningTurns) -> None:
        self._store = components.store
        self._clock = components.clock
        self._log = components.telemetry.log
        self.live_feed = LiveFeed(components.store, running, components.clock)
        self.reader = SessionReader(components.store)
        self._prices = components.prices
        self._session_list = SessionList(self.reader, self.live_feed.turns, self._prices)
        self._counter = ContinuityCounter(components.store, components.clock, self._prices)
        self._reading: deque[tuple[str, str]] = deque(maxlen=MAX_READING)
        self._lists = SharedLookups[tuple[list[SessionShape], SessionCursor | None]](
            self.live_feed, components.clock
        )

    # -- sessions --------------------------------------------------------------------------------

    @page("/api/sessions", parameters=_SESSIONS_QUERY)
    async def sessions(self, request: Request, query: dict[str, Any]) -> Sessions:
        """Sessions, the most recently used first."""
        which, limit, cursor = _which(query), query["limit"], decoded_cursor(query["cursor"])
        found, after = await self._lists.get(
            request.url.query, lambda: self._session_list.page(which, limit, cursor, query["has"])
        )
        return Sessions(
            sessions=found,
            next_cursor=encoded_cursor(after) if after else None,
            now=self._clock.wall(),
        )

    @page(
        "/api/sessions/{id}",
        parameters=[
            _SESSION,
            _THOUGHTS,
            row_limit(default=MAX_LIMIT),
            string("after", "The page's `nextAfter`."),
        ],
        errors=NOT_FOUND,
    )
    async def session(self, request: Request, query: dict[str, Any]) -> SessionPage:
        """One session: its tree, and a page of its turns."""
        thoughts, after, limit = query["thoughts"] == "1", query["after"], query["limit"]
        summary, outline, running = await self._find(request.path_params["id"])
        turns = list(outline.turns.values())
        start = 0
        if after is not None:
            if after not in outline.turns:
                raise PageError(
                    f"`after` is {after[:80]!r}, and the session has no such turn; "
                    "expected the `nextAfter` of the page before"
                )
            start = list(outline.turns).index(after) + 1
        page = turns[start : start + limit]
        more = start + limit < len(turns)
        shapes = [
            turn_shape(
                turn,
                thoughts=thoughts,
                replayed=outline.replayed.get(turn.id, 0),
                max_decisions=MAX_DECISIONS,
                counts=outline.turns[turn.id].counts,
                prices=self._prices,
            )
            async for turn in cooperative(await self.reader.turns(outline, page))
        ]
        if not more:
            shapes += [
                turn_shape(turn, thoughts=thoughts, running=True, max_decisions=MAX_DECISIONS)
                for turn in running
            ]
        if thoughts:
            self._log_thoughts(request, summary.session, [shape.id for shape in shapes])
        heads, branches = _tree(outline, running)
        origin = outline.origin
        return SessionPage(
            session=session_shape(
                summary,
                outline,
                running,
                prices=self._prices,
                damaged=summary.session in self._store.damage,
            ),
            turns=shapes,
            heads=heads,
            branches=branches,
            replayed={} if after is None else outline.carried(page[-LAST_TURNS:]),
            forked_from=ForkShape(session=origin.session, turn=origin.turn) if origin else None,
            next_after=page[-1].id if more else None,
            now=self._clock.wall(),
        )

    @page(
        "/api/sessions/{id}",
        method="DELETE",
        response="It is deleted.",
        parameters=[_SESSION],
        errors=NOT_FOUND | {409: PageResponse("Another session is a fork of it.")},
    )
    async def delete(self, request: Request, _: dict[str, Any]) -> Deleted:
        """Delete a session and everything in it."""
        session = request.path_params["id"]
        await self._find(session)
        deleted = await self._store.purge(session=session)
        self._lists.clear()
        if not deleted:
            raise PageError(
                f"session {session!r} was not deleted: another one is a fork of it, or its first "
                "turn still runs; delete the fork first, or wait",
                "session_in_use",
                409,
            )
        await tell_deletion(self._store, self._clock, PURGE, EntryFilter(session=session))
        peer = client_address(request.scope)
        self._log.info("purged", peer=peer, session=session, sessions=deleted)
        return Deleted(deleted=deleted)

    @page(
        "/api/sessions/{id}/turns/{turn}",
        parameters=[_SESSION, segment("turn", "The turn's id."), _THOUGHTS],
        errors=NOT_FOUND,
    )
    async def turn(self, request: Request, query: dict[str, Any]) -> TurnPage:
        """One turn, and what became of the thoughts in its request."""
        thoughts, id = query["thoughts"] == "1", request.path_params["turn"]
        summary, outline, running = await self._find(request.path_params["id"])
        live = next((turn for turn in running if turn.id == id), None)
        written = outline.turns.get(id)
        found = [live] if live else await self.reader.turns(outline, [written] if written else [])
        if not found:
            raise _missing(f"session {summary.session!r} has no turn {id[:80]!r}")
        turn = found[0]
        entries = [one.entry for one in turn.replay[-MAX_MESSAGES:] if one.entry]
        earlier = [outline.turns[entry] for entry in entries if entry in outline.turns]
        known = {one.id: one for one in await self.reader.turns(outline, earlier)}
        if thoughts:
            self._log_thoughts(request, summary.session, [turn.id, *known], live=live is not None)
        return TurnPage(
            turn=turn_shape(
                turn,
                thoughts=thoughts,
                replayed=outline.replayed.get(id, 0),
                running=live is not None,
                prices=self._prices,
            ),
            request=request_shape(turn, known, thoughts=thoughts),
            now=self._clock.wall(),
        )

    async def _find(self, session: str) -> tuple[SessionSummary, SessionOutline, list[Turn]]:
        """A session, with its turns that run and are not written yet."""
        running = await self.live_feed.turns(session)
        summary = await self.reader.find(session)
        if summary is None and running:
            tenant, first = running[0]
            summary = unwritten(session, tenant, first)
        if summary is None:
            raise _missing(f"there is no session {session[:80]!r}; it may have been deleted")
        outline = await self._session_list.outline(summary, [turn for _, turn in running])
        return summary, outline, [turn for _, turn in running if turn.id not in outline.turns]

    def _log_thoughts(
        self, request: Request, session: str, turns: list[str], *, live: bool = False
    ) -> None:
        """Log who reads which thoughts; who reads on while one is being thought is logged once."""
        peer = client_address(request.scope)
        if live:
            reading = (peer, turns[0])
            if reading in self._reading:
                return
            self._reading.append(reading)
        self._log.info("thoughts_shown", peer=peer, session=session, turns=sorted(set(turns)))

    # -- the feed, continuity --------------------------------------------------------------------

    @page(
        "/api/feed",
        response=PageResponse(
            "Server-sent events: `hello`, `event`, `live`, `deleted`, `reset`.",
            (),
            "text/event-stream",
        ),
        parameters=[
            string("session", "Only of this session."),
            integer(
                "after",
                "The last event that was seen.",
                -1,
                expected="the number of an event, or -1",
            ),
        ],
    )
    async def feed(self, request: Request, query: dict[str, Any]) -> Response:
        """What is written and what runs, as it happens; goes on by `Last-Event-ID`."""
        session, after = query["session"], query["after"]
        last = request.headers.get("last-event-id", "").strip()
        if re.fullmatch(r"[0-9]{1,15}", last):  # a browser reconnects: this is newer
            after = int(last)
        if session is None and after is not None:
            after = max(after, 0)
        body = self.live_feed.follow(session, after)
        first = await anext(body)  # a store that is down is a 503, and not an empty stream
        return StreamingResponse(_following(first, body), headers=_STREAM)

    @page(
        "/api/continuity",
        parameters=[
            integer(
                "hours",
                "How far to look back.",
                1,
                MAX_HOURS,
                expected=f"1 to {MAX_HOURS}",
                default=24,
            ),
            string("provider", "Only of this provider."),
            string("model", "Only of this model."),
        ],
    )
    async def continuity(self, _: Request, query: dict[str, Any]) -> Continuity:
        """What became of thoughts, over time."""
        return await self._counter.over(query["hours"], query["provider"], query["model"])


async def _following(
    first: bytes, rest: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _missing(message: str) -> PageError:
    return PageError(message, "not_found", 404)


def _tree(outline: SessionOutline, running: list[Turn]) -> tuple[list[str], dict[str, list[str]]]:
    """Heads and branches of a session, its running turns included."""
    if not running:
        return outline.heads, outline.branch_points
    tree = TurnTree[TurnOutline | Turn](outline.id)
    for written in outline.turns.values():
        tree.add(written.id, written.parent, written, tools=written.tools)
    for turn in running:
        tree.add(turn.id, turn.parent, turn, tools=turn.tools)
    return tree.heads, tree.branch_points


# -- parameters ----------------------------------------------------------------------------------


def _which(query: dict[str, Any]) -> SessionQuery:
    tenant = query["tenant"]
    return SessionQuery(
        tenant=None if tenant is None else tenant_named(tenant),
        provider=query["provider"],
        model=query["model"],
        status=query["status"],
        text=query["q"],
    )

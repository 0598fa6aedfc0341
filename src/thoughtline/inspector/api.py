"""`/api/sessions`, `/api/feed`, `/api/continuity`: what the inspector's page reads.

Thoughts are shown only when they are asked for, and each such look is logged: who, which session,
which turns. A parameter that does not exist is refused. Only for the administrator.
"""

import contextlib
import math
import re
import struct
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from thoughtline.gateway.build import Rooms
from thoughtline.gateway.pages import Json, Mistaken, peer
from thoughtline.gateway.parameters import asked_for, tenant_named, whole
from thoughtline.inspector import differences
from thoughtline.inspector.continuity import Counting
from thoughtline.inspector.feeds import Hub
from thoughtline.inspector.listing import Shelf
from thoughtline.inspector.live import Live
from thoughtline.inspector.outlines import Outline
from thoughtline.inspector.reading import Reading, gently
from thoughtline.inspector.rulings import ruled
from thoughtline.inspector.shapes import (
    Deleted,
    ForkShape,
    SessionPage,
    Sessions,
    SessionShape,
    TurnPage,
)
from thoughtline.inspector.sharing import Shared
from thoughtline.inspector.views import session_shape, turn_shape
from thoughtline.stores.base import Cursor, Query, Summary
from thoughtline.turns import Turn

STATUSES = ("running", "completed", "failed", "capped", "aborted")
MOST = 200
USUAL = 50
LONGEST = 200
"""Characters of a text that is sought."""
RULINGS = 20
"""Rulings of each turn in a session's answer."""
LAST = 5
"""Turns whose requests are looked at for what else they carried; a history only grows."""
DETAILED = 200
"""Messages of a request whose thoughts are looked up, the last ones."""
HOURS = 24 * 90

_CURSOR = re.compile(r"([0-9a-f]{16})\.((?:[0-9a-f]{2})*)")
_STREAM = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


class Api:
    """Answers the page."""

    def __init__(self, rooms: Rooms, live: Live) -> None:
        self._store = rooms.store
        self._clock = rooms.clock
        self._log = rooms.telemetry.log
        self.hub = Hub(rooms.store, live, rooms.clock)
        self._reading = Reading(rooms.store)
        self._shelf = Shelf(self._reading, self.hub.turns)
        self._counting = Counting(rooms.store, rooms.clock)
        self._lists = Shared[tuple[list[SessionShape], Cursor | None]](self.hub, rooms.clock)

    def routes(self) -> list[Route]:
        """Paths and who answers there."""
        return [
            Route("/api/sessions", self.sessions, methods=["GET"]),
            Route("/api/sessions/{id}", self.session, methods=["GET"]),
            Route("/api/sessions/{id}", self.delete, methods=["DELETE"]),
            Route("/api/sessions/{id}/turns/{turn}", self.turn, methods=["GET"]),
            Route("/api/feed", self.feed, methods=["GET"]),
            Route("/api/continuity", self.continuity, methods=["GET"]),
        ]

    # -- sessions --------------------------------------------------------------------------------

    async def sessions(self, request: Request) -> Response:
        """`GET /api/sessions`."""
        asked = asked_for(
            request, ("limit", "cursor", "q", "provider", "model", "tenant", "status")
        )
        limit = min(max(whole(asked, "limit", USUAL), 1), MOST)
        query, cursor = _query(asked), _cursor(asked)
        found, after = await self._lists.look(
            request.url.query, lambda: self._shelf.page(query, limit, cursor)
        )
        page = Sessions(
            sessions=found,
            next_cursor=_spelled(after) if after else None,
            now=self._clock.wall(),
        )
        return Json(page)

    async def session(self, request: Request) -> Response:
        """`GET /api/sessions/{id}`."""
        asked = asked_for(request, ("thoughts", "after", "limit"))
        thoughts = _thoughts(asked)
        limit = min(max(whole(asked, "limit", MOST), 1), MOST)
        summary, outline, running = await self._find(request.path_params["id"])
        lines = list(outline.lines.values())
        start = 0
        if "after" in asked:
            if asked["after"] not in outline.lines:
                raise Mistaken(
                    f"`after` is {asked['after'][:80]!r}, and the session has no such turn; "
                    "expected the `nextAfter` of the page before"
                )
            start = list(outline.lines).index(asked["after"]) + 1
        shown = lines[start : start + limit]
        more = start + limit < len(lines)
        turns = [
            turn_shape(
                turn,
                thoughts=thoughts,
                replayed=outline.replayed.get(turn.id, 0),
                most=RULINGS,
            )
            async for turn in gently(await self._reading.turns(outline, shown))
        ]
        if not more:
            turns += [
                turn_shape(turn, thoughts=thoughts, running=True, most=RULINGS) for turn in running
            ]
        if thoughts:
            self._shown(request, summary.session, [turn.id for turn in turns])
        heads, branches = _tree(outline, running)
        origin = outline.origin
        return Json(
            SessionPage(
                session=session_shape(summary, outline, running),
                turns=turns,
                heads=heads,
                branches=branches,
                replayed=outline.carried(shown[-LAST:]) if "after" in asked else {},
                forked_from=ForkShape(session=origin.session, turn=origin.turn) if origin else None,
                next_after=shown[-1].id if more else None,
                now=self._clock.wall(),
            )
        )

    async def delete(self, request: Request) -> Response:
        """`DELETE /api/sessions/{id}`: the session, and everything in it."""
        asked_for(request, ())
        session = request.path_params["id"]
        await self._find(session)
        deleted = await self._store.purge(session=session)
        self._lists.forget()
        if not deleted:
            raise Mistaken(
                f"session {session!r} was not deleted: another one is a fork of it, or its first "
                "turn still runs; delete the fork first, or wait",
                "session_in_use",
                409,
            )
        self._log.info("purged", peer=peer(request.scope), session=session, sessions=deleted)
        return Json(Deleted(deleted=deleted))

    async def turn(self, request: Request) -> Response:
        """`GET /api/sessions/{id}/turns/{turn}`."""
        thoughts = _thoughts(asked_for(request, ("thoughts",)))
        id = request.path_params["turn"]
        summary, outline, running = await self._find(request.path_params["id"])
        live = next((turn for turn in running if turn.id == id), None)
        line = outline.lines.get(id)
        found = [live] if live else await self._reading.turns(outline, [line] if line else [])
        if not found:
            raise _missing(f"session {summary.session!r} has no turn {id[:80]!r}")
        turn = found[0]
        wanted = [one.memory for one in ruled(turn.replay)[-DETAILED:] if one.memory]
        lines = [outline.lines[memory] for memory in wanted if memory in outline.lines]
        known = {one.id: one for one in await self._reading.turns(outline, lines)}
        if thoughts:
            self._shown(request, summary.session, [turn.id, *known])
        return Json(
            TurnPage(
                turn=turn_shape(
                    turn,
                    thoughts=thoughts,
                    replayed=outline.replayed.get(id, 0),
                    running=live is not None,
                ),
                request=differences.difference(turn, known, thoughts=thoughts),
                now=self._clock.wall(),
            )
        )

    async def _find(self, session: str) -> tuple[Summary, Outline, list[Turn]]:
        """A session, with its turns that run and are not written yet."""
        running = await self.hub.turns(session)
        summary = await self._reading.find(session)
        if summary is None and running:
            tenant, first = running[0]
            summary = Summary(
                session=session,
                tenant=tenant,
                created=first.started,
                touched=first.started,
                events=0,
            )
        if summary is None:
            raise _missing(f"there is no session {session[:80]!r}; it may have been deleted")
        outline = await self._shelf.outline(summary, [turn for _, turn in running])
        return summary, outline, [turn for _, turn in running if turn.id not in outline.lines]

    def _shown(self, request: Request, session: str, turns: list[str]) -> None:
        self._log.info(
            "thoughts_shown", peer=peer(request.scope), session=session, turns=sorted(set(turns))
        )

    # -- the feed, continuity --------------------------------------------------------------------

    async def feed(self, request: Request) -> Response:
        """`GET /api/feed`."""
        asked = asked_for(request, ("session", "after"))
        said = request.headers.get("last-event-id", "").strip()
        after = whole(asked, "after", -1) if "after" in asked else None
        if re.fullmatch(r"[0-9]{1,15}", said):  # a browser comes back: it knows better
            after = int(said)
        if after is not None and after < -1:
            raise Mistaken(f"`after` is {after}; expected the number of an event, or -1")
        if "session" not in asked and after is not None:
            after = max(after, 0)
        body = self.hub.follow(asked.get("session"), after)
        first = await anext(body)  # a store that is down is a 503, and not an empty stream

        return StreamingResponse(_following(first, body), headers=_STREAM)

    async def continuity(self, request: Request) -> Response:
        """`GET /api/continuity`."""
        asked = asked_for(request, ("hours", "provider", "model"))
        hours = whole(asked, "hours", 24)
        if not 1 <= hours <= HOURS:
            raise Mistaken(f"`hours` is {hours}; expected 1 to {HOURS}")
        told = await self._counting.look(hours, asked.get("provider"), asked.get("model"))
        return Json(told)


async def _following(
    first: bytes, rest: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _missing(message: str) -> Mistaken:
    return Mistaken(message, "not_found", 404)


def _tree(outline: Outline, running: list[Turn]) -> tuple[list[str], dict[str, list[str]]]:
    """Heads and branches, with the turns that run."""
    if not running:
        return outline.heads, outline.branches
    children = {parent: list(kids) for parent, kids in outline.children.items()}
    for turn in running:
        children.setdefault(turn.parent, []).append(turn.id)
    ids = [*outline.lines, *(turn.id for turn in running)]
    heads = [id for id in ids if id not in children]
    return heads, {id: kids for id, kids in children.items() if len(kids) > 1}


# -- parameters ----------------------------------------------------------------------------------


def _query(asked: dict[str, str]) -> Query:
    status, text = asked.get("status"), asked.get("q")
    if status is not None and status not in STATUSES:
        raise Mistaken(f"`status` is {status[:40]!r}; expected {', '.join(STATUSES)}")
    if text is not None and len(text) > LONGEST:
        raise Mistaken(f"`q` has {len(text)} characters; expected at most {LONGEST}")
    tenant = asked.get("tenant")
    return Query(
        tenant=tenant_named(tenant) if tenant is not None else None,
        provider=asked.get("provider"),
        model=asked.get("model"),
        status=status,
        text=text,
    )


def _thoughts(asked: dict[str, str]) -> bool:
    value = asked.get("thoughts", "0")
    if value not in ("0", "1"):
        raise Mistaken(f"`thoughts` is {value[:40]!r}; expected 0 or 1")
    return value == "1"


def _cursor(asked: dict[str, str]) -> Cursor | None:
    value = asked.get("cursor")
    if value is None:
        return None
    found = _CURSOR.fullmatch(value)
    if found is None:
        raise Mistaken(f"`cursor` is {value[:40]!r}; expected the `nextCursor` of the page before")
    (touched,) = struct.unpack(">d", bytes.fromhex(found[1]))
    session = bytes.fromhex(found[2]).decode("utf-8", "replace")
    return (0.0 if math.isnan(touched) else touched), session


def _spelled(after: Cursor) -> str:
    return f"{struct.pack('>d', after[0]).hex()}.{after[1].encode('utf-8', 'replace').hex()}"

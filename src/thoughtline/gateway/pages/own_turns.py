"""`/own/sessions/{id}/turns/…`: a client reads how long its own turns were thought about.

It shows the credential that it asked the model with. Session and turn are in the headers of the
answer (`x-thoughtline-session`, `x-thoughtline-turn`); a turn of another tenant is not found, and
neither is one whose id is only guessed. What was said and thought is not in it: the client has it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace
from starlette.requests import Request

from thoughtline.engine.endpoints import Directory
from thoughtline.gateway.auth import Auth, Principal
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.pages.page import (
    PageError,
    PageResponse,
    page,
    parse_query,
    required,
    segment,
    string,
)
from thoughtline.log.durations import (
    ThoughtSpan,
    is_shown,
    reasoning_durations,
    request_clocks,
    thought_spans,
    thought_state,
    total_seconds,
    total_text,
)
from thoughtline.log.events import Event
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.stores.base import INTERNAL_PREFIX, SessionQuery, Store

PAGE = 500
"""Events that are read at a time, the newest first."""
MAX_PAGES = 200
"""After this, a turn counts as not found."""
MAX_TURNS = 50
"""Turns of one message."""
_SESSION = segment("id", "The session's id: `x-thoughtline-session` of the answer.")
_ERRORS = {
    401: PageResponse("A client key is needed."),
    403: PageResponse("The request comes from a web page that is not trusted."),
    404: PageResponse("There is no such turn of this client's."),
}
_IDS = required(
    string("ids", f"The turns of the message, in order, with commas; at most {MAX_TURNS}."),
    "say which turns: `ids` takes `x-thoughtline-turn` of each answer, with commas",
)


class OwnThought(Struct, frozen=True, kw_only=True, rename="camel"):
    """One thought of a turn, and how long it took."""

    key: str  # in `reasoningDurations`: the item's id, else part-N
    item_id: str | None  # the provider's id of the item
    duration: int | None  # seconds: whole, rounded up, at least 1; null: unknown
    state: str  # complete, aborted, unknown; open while the turn runs
    label: str  # for people
    started_at: float | None  # the server's time of day
    sealed: bool  # encrypted or signed


class OwnUsage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens; `input` and `output` are the sums."""

    input: int | None
    output: int | None
    reasoning: int | None
    cached: int | None
    cache_write: int | None


class OwnTurn(Struct, frozen=True, kw_only=True, rename="camel"):
    """A turn as its client may see it."""

    session: str
    id: str
    parent: str | None
    started: float
    ended: float | None
    outcome: str | None  # null: it runs, or its process died
    model: str
    usage: OwnUsage | None
    thoughts: list[OwnThought]
    reasoning_durations: dict[str, int]  # seconds by key
    reasoning_total: int | None  # seconds; thoughts that overlap count once
    reasoning_clocks: dict[str, str]  # `request` for a thought that counts from the request
    label: str  # of all thoughts together, for people


class OwnMessage(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a front end shows as one message: it may take several turns."""

    session: str
    turns: list[str]
    thoughts: list[OwnThought]
    reasoning_durations: dict[str, int]  # seconds by key
    reasoning_total: int | None  # seconds; thoughts that overlap count once
    reasoning_clocks: dict[str, str]  # `request` for a thought that counts from the request
    label: str  # of all thoughts together, for people


class OwnTurnPages:
    """Serves clients their own turns."""

    def __init__(self, store: Store, auth: Auth, directory: Directory) -> None:
        self._store = store
        self._auth = auth
        self._directory = directory

    @page(
        "/own/sessions/{id}/turns/{turn}",
        response="The turn.",
        parameters=[
            _SESSION,
            segment("turn", "The turn's id: `x-thoughtline-turn` of the answer."),
        ],
        errors=_ERRORS,
    )
    async def turn(self, request: Request, _: dict[str, Any]) -> OwnTurn:
        """A client's own turn, with the durations of its thoughts, by the client's credential."""
        tenants = self._tenants(self._principal(request))
        path = request.path_params
        return _own_turn(await self._read(path, path["turn"], tenants))

    @page(
        "/own/sessions/{id}/turns",
        response="The durations of the message.",
        parameters=[_SESSION, _IDS],
        errors=_ERRORS,
    )
    async def message(self, request: Request, _: dict[str, Any]) -> OwnMessage:
        """The durations of a message that took several turns, by keys that count through it."""
        ids = parse_query(request, [_IDS])["ids"].split(",")
        if len(ids) > MAX_TURNS:
            raise PageError(f"`ids` takes at most {MAX_TURNS} turns; ask for fewer")
        tenants = self._tenants(self._principal(request))
        turns = [await self._read(request.path_params, id.strip(), tenants) for id in ids]
        return _own_message(turns)

    async def _read(self, path: Mapping[str, str], turn: str, tenants: set[str]) -> Turn:
        """A turn of one of these tenants."""
        id = path["id"]
        events = await self._events(id, turn, tenants)
        if not events:
            raise PageError(
                f"there is no turn {turn[:80]!r} of yours in session {id[:80]!r}; expected the ids "
                "of `x-thoughtline-session` and `x-thoughtline-turn`, and the credential that the "
                "model was asked with",
                "not_found",
                404,
            )
        alone = [replace(event, seq=seq) for seq, event in enumerate(events)]
        return Session(id).extend(alone).turn(turn)

    def _principal(self, request: Request) -> Principal:
        try:
            return self._auth.require_principal(request.scope["headers"], request.url.query)
        except GatewayError as refusal:
            raise PageError(refusal.message, refusal.code, refusal.status) from None

    def _tenants(self, principal: Principal) -> set[str]:
        """The client's names: one, or one at each upstream that knows it by its token's subject."""
        if principal.claims is None:
            return {principal.tenant}
        known = (self._auth.at_upstream(principal, upstream) for upstream in self._directory)
        return {principal.tenant, *(one.tenant for one in known)}

    async def _events(self, session: str, turn: str, tenants: set[str]) -> Sequence[Event]:
        """The events of a turn, where the session is one of these tenants'."""
        if session.startswith(INTERNAL_PREFIX):
            return ()
        listing = await self._store.search(SessionQuery(session=session), limit=1)
        if not listing.sessions or listing.sessions[0].tenant not in tenants:
            return ()
        end, found = listing.sessions[0].events, list[Event]()
        for _ in range(MAX_PAGES):
            start = max(0, end - PAGE)
            read = await self._store.read(session, after=start - 1, limit=end - start)
            begun = [e for e in read if e.id == turn and e.type == "turn_started"]
            found = begun + [e for e in read if e.parent == turn and _belongs(e)] + found
            if begun:
                return found
            if not start:
                break
            end = start
        return ()


def _belongs(event: Event) -> bool:
    """Whether an event is part of its parent, and not the turn after it."""
    return event.type != "turn_started"


def _own_message(turns: Sequence[Turn]) -> OwnMessage:
    thoughts: list[OwnThought] = []
    clocks: dict[str, str] = {}
    first = 0
    for turn in turns:
        spans = thought_spans(turn, first=first)
        thoughts += _own_thoughts(turn, spans)
        clocks |= request_clocks(spans)
        first += len(spans) + sum(is_shown(part) for part in turn.output)
    return OwnMessage(
        session=turns[0].session,
        turns=[turn.id for turn in turns],
        thoughts=thoughts,
        reasoning_durations=reasoning_durations(*turns),
        reasoning_total=total_seconds(*turns),
        reasoning_clocks=clocks,
        label=total_text(*turns),
    )


def _own_thoughts(turn: Turn, spans: Sequence[ThoughtSpan]) -> list[OwnThought]:
    sealed = {place for place, part in enumerate(turn.output) if getattr(part, "sealed", False)}
    return [
        OwnThought(
            key=span.key,
            item_id=span.item or None,
            duration=span.seconds,
            state=thought_state(span, running=turn.outcome is None),
            label=span.text,
            started_at=span.at,
            sealed=span.place in sealed,
        )
        for span in spans
    ]


def _own_turn(turn: Turn) -> OwnTurn:
    spans = thought_spans(turn)
    served = next((t.origin.model for t in turn.thoughts if t.origin is not None), "")
    return OwnTurn(
        session=turn.session,
        id=turn.id,
        parent=turn.parent or None,
        started=turn.started,
        ended=turn.ended or None,
        outcome=str(turn.outcome) if turn.outcome else None,
        model=served or (turn.target.model if turn.target else ""),
        usage=convert(turn.usage, OwnUsage | None, from_attributes=True),
        thoughts=_own_thoughts(turn, spans),
        reasoning_durations=reasoning_durations(turn),
        reasoning_total=total_seconds(turn),
        reasoning_clocks=request_clocks(spans),
        label=total_text(turn),
    )

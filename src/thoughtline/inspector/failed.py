"""Serves `/api/requests/failed`: the last requests that got no answer of a model, and why."""

from typing import Any

from msgspec import Struct
from starlette.requests import Request

from thoughtline.clock import Clock
from thoughtline.gateway.failed_requests import failed_requests
from thoughtline.gateway.pages.page import (
    ANONYMOUS,
    NOT_FOUND,
    PageError,
    page,
    row_limit,
    segment,
    string,
    tenant_named,
)
from thoughtline.log.events import Event, RequestFailed
from thoughtline.stores.base import Store


class FailedShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """One failed request."""

    id: str  # as `x-thoughtline-request` and the log line's `request` name it
    at: float
    status: int
    reason: str  # in the provider's own words, or in the gateway's
    code: str  # of the gateway's error; empty: the provider refused it
    method: str
    path: str
    upstream: str
    provider: str
    dialect: str
    model: str
    tenant: str
    session: str | None  # the conversation that it was part of, where that is known
    turn: str | None  # the turn that it went on from
    replay: dict[str, int]  # outputs by the words of the replay header
    thinking_off: bool
    corrected: bool  # it was sent once more, and refused again
    stream: bool
    seconds: float


class FailedPage(Struct, frozen=True, kw_only=True, rename="camel"):
    """Failed requests, the newest first."""

    requests: list[FailedShape]
    more: bool  # older ones are kept, too
    now: float


class FailedApi:
    """The routes of failed requests."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @page(
        "/api/requests/failed",
        parameters=[
            row_limit(),
            string("before", "Only those before the one with this id."),
            string("session", "Only of this session's conversation."),
            string("tenant", "Only of this tenant."),
        ],
        errors=NOT_FOUND,
    )
    async def failed(self, _: Request, query: dict[str, Any]) -> FailedPage:
        """The last requests that were refused, by a provider or by the gateway."""
        found = await failed_requests(self._store)
        ids = [event.id for event, _ in found]
        if query["before"] is not None:
            if query["before"] not in ids:
                raise _missing(query["before"])
            found = found[ids.index(query["before"]) + 1 :]
        tenant = None if query["tenant"] is None else tenant_named(query["tenant"])
        found = [
            (event, body)
            for event, body in found
            if query["session"] in {None, body.session} and tenant in {None, body.tenant}
        ]
        limit = query["limit"]
        return FailedPage(
            requests=[_shape(event, body) for event, body in found[:limit]],
            more=len(found) > limit,
            now=self._clock.wall(),
        )

    @page(
        "/api/requests/failed/{id}",
        parameters=[segment("id", "The id that the answer's header and the log line have.")],
        errors=NOT_FOUND,
    )
    async def one(self, request: Request, _: dict[str, Any]) -> FailedShape:
        """One failed request."""
        id = request.path_params["id"]
        for event, body in await failed_requests(self._store):
            if event.id == id:
                return _shape(event, body)
        raise _missing(id)


def _missing(id: str) -> PageError:
    return PageError(
        f"there is no failed request {id[:80]!r}; only the last ones are kept", "not_found", 404
    )


def _shape(event: Event, body: RequestFailed) -> FailedShape:
    target = body.target
    return FailedShape(
        id=event.id,
        at=event.at,
        status=body.status,
        reason=body.reason,
        code=body.code,
        method=body.method,
        path=body.path,
        upstream=body.upstream,
        provider=target.provider if target else "",
        dialect=target.dialect if target else "",
        model=(target.asked or target.model) if target else "",
        tenant=body.tenant or ANONYMOUS,
        session=body.session or None,
        turn=body.turn or None,
        replay=body.replay,
        thinking_off=body.thinking_off,
        corrected=body.corrected,
        stream=body.stream,
        seconds=body.seconds,
    )

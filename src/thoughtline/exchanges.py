"""One request through the rooms, without the wire: find, restore, patch; then capture.

The gateway, the in-process transport and the library all walk this way and differ only in how the
bytes travel. `begin` gives the body to send; `feed` takes what comes back, after the client has
it; `finish` writes the turn. When the provider refuses, `again` decides anew on other terms. A
store that is down never stops a request: what could not be looked up counts as not found (`gap`).
"""

from collections.abc import Iterable, Mapping, Sequence

from thoughtline.capture import Capture
from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects.base import Dialect, Reader, Request
from thoughtline.errors import StoreError
from thoughtline.events import Event, Happening
from thoughtline.guards import Target
from thoughtline.matching import Path, survey
from thoughtline.memories import Memory
from thoughtline.replay import NOTHING, Limits, Restoration, restore
from thoughtline.stores.base import Store

Found = Mapping[bytes, Sequence[Memory]]


class Exchange:
    """One request and its response."""

    def __init__(
        self,
        request: Request,
        *,
        dialect: Dialect,
        target: Target,
        path: Path,
        found: Found,
        store: Store,
        tenant: str,
        clock: Clock,
        stream: bool,
        limits: Limits = NOTHING,
        session: str = "",
        gap: str = "",
    ) -> None:
        self.request = request
        self.dialect = dialect
        self.target = target
        self.path = path
        self.found = found
        self.gap = gap  # why nothing could be looked up, if so
        self.tenant = tenant
        self.store = store
        self._clock = clock
        self._stream = stream
        self._limits = limits
        self._session = session
        self._capture: Capture | None = None
        self._finished = False
        self.again()

    def again(
        self,
        *,
        target: Target | None = None,
        found: Found | None = None,
        fields: Mapping[str, bytes | None] | None = None,
    ) -> bytes:
        """Decide (anew): on other terms, with other memories, with other members set."""
        self.target = target or self.target
        self.found = self.found if found is None else found
        self.restoration: Restoration = restore(self.path, self.found, self.target, self._limits)
        members = {**self.restoration.fields, **(fields or {})}
        self.body = self.dialect.patch(self.request, self.restoration.revisions, members)
        self._capture = None
        return self.body

    def sent(self) -> None:
        """The request leaves now: a fresh reader and a fresh record."""
        self._capture = Capture(
            path=self.path,
            restoration=self.restoration,
            origin=self.target.origin,
            tenant=self.tenant,
            clock=self._clock,
            session=self._session,
        )
        self._reader: Reader = self.dialect.reader(
            stream=self._stream,
            clock=self._clock,
            origin=self.target.origin,
            sent=self._clock.mono(),
        )

    @property
    def capture(self) -> Capture:
        """The record of this exchange."""
        if self._capture is None:
            self.sent()
        assert self._capture is not None  # noqa: S101 (made by `sent`)
        return self._capture

    @property
    def session(self) -> str:
        """The session this turn is written to."""
        return self.capture.session

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self.capture.turn

    @property
    def done(self) -> bool:
        """Whether the provider said that it is finished."""
        return self._capture is not None and self._reader.done

    def feed(self, data: bytes) -> list[Happening]:
        """Take in a piece of the response; what happened in it, for whoever watches."""
        capture = self.capture
        happenings = self._reader.feed(data)
        capture.take(happenings)
        return happenings

    async def finish(self, *, reason: str = "") -> list[Event]:
        """The response is over, or cut: write the turn, the first time this is said."""
        if self._finished:
            return []
        self._finished = True
        capture = self.capture
        capture.take(self._reader.close(reason=reason))
        return await self.store.append(capture.finish())


async def begin(
    request: Request,
    *,
    dialect: Dialect,
    target: Target,
    tenant: str,
    store: Store,
    clock: Clock | None = None,
    stream: bool | None = None,
    hints: Iterable[str] = (),
    limits: Limits = NOTHING,
    session: str = "",
) -> Exchange:
    """Look up what is known of a request's history, and decide what goes back."""
    prefixes: Sequence[str] = dialect.prefixes(request) if target.policy.prefix else ()
    path = survey(
        request.turns,
        tools=request.tools,
        thinking=request.thinking,
        hints=(*request.hints, *hints),
        prefixes=prefixes,
        previous=request.previous,
    )
    found: Found = {}
    gap = ""
    try:
        found = await store.find(tenant, path.names())
    except StoreError as error:
        gap = str(error)
    return Exchange(
        request,
        dialect=dialect,
        target=target,
        path=path,
        found=found,
        store=store,
        tenant=tenant,
        clock=clock or SystemClock(),
        stream=request.stream if stream is None else stream,
        limits=limits,
        session=session,
        gap=gap,
    )

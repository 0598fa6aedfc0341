"""One request through the rooms, without the wire: read, find, restore, patch; then capture.

The gateway, the in-process transport and the library all walk this way and differ only in how the
bytes travel. `begin` gives the body to send; `feed` takes what comes back, after the client has
it; `finish` writes the turn. A store that is down never stops a request: what could not be looked
up is treated as not found, and said so (`gap`).
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


class Exchange:
    """One request and its response."""

    def __init__(
        self,
        *,
        request: Request,
        body: bytes,
        path: Path,
        restoration: Restoration,
        capture: Capture,
        reader: Reader,
        store: Store,
        gap: str = "",
    ) -> None:
        self.request = request
        self.body = body  # what goes upstream
        self.path = path
        self.restoration = restoration
        self.gap = gap  # why nothing could be looked up, if so
        self._capture = capture
        self._reader = reader
        self._store = store

    @property
    def session(self) -> str:
        """The session this turn is written to."""
        return self._capture.session

    @property
    def turn(self) -> str:
        """The turn's id."""
        return self._capture.turn

    @property
    def done(self) -> bool:
        """Whether the provider said that it is finished."""
        return self._reader.done

    def feed(self, data: bytes) -> list[Happening]:
        """Take in a piece of the response; what happened in it, for whoever watches."""
        happenings = self._reader.feed(data)
        self._capture.take(happenings)
        return happenings

    async def finish(self, *, reason: str = "") -> list[Event]:
        """The response is over, or cut: write the turn."""
        self._capture.take(self._reader.close(reason=reason))
        return await self._store.append(self._capture.finish())


async def begin(
    body: bytes,
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
    """Prepare a request. Raises `Unreadable` for a body that is none: pass that on untouched."""
    clock = clock or SystemClock()
    request = dialect.read(body)
    prefixes: Sequence[str] = dialect.prefixes(request) if target.policy.prefix else ()
    path = survey(
        request.turns,
        tools=request.tools,
        thinking=request.thinking,
        hints=(*request.hints, *hints),
        prefixes=prefixes,
        previous=request.previous,
    )
    found: Mapping[bytes, Sequence[Memory]] = {}
    gap = ""
    try:
        found = await store.find(tenant, path.names())
    except StoreError as error:
        gap = str(error)
    restoration = restore(path, found, target, limits)
    return Exchange(
        request=request,
        body=dialect.patch(request, restoration.revisions, restoration.fields),
        path=path,
        restoration=restoration,
        capture=Capture(
            path=path,
            restoration=restoration,
            origin=target.origin,
            tenant=tenant,
            clock=clock,
            session=session,
        ),
        reader=dialect.reader(
            stream=request.stream if stream is None else stream,
            clock=clock,
            origin=target.origin,
            sent=clock.mono(),
        ),
        store=store,
        gap=gap,
    )

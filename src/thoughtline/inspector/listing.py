"""Sessions in a listing: what the store finds, and in front of it what runs and is not written."""

from collections.abc import Awaitable, Callable, Sequence

from thoughtline.inspector.outlines import Outline, titled
from thoughtline.inspector.reading import Reading, gently
from thoughtline.inspector.shapes import SessionShape
from thoughtline.inspector.views import session_shape
from thoughtline.stores.base import Cursor, Query, Summary
from thoughtline.turns import Turn

OWN = "thoughtline:"
"""How ids of sessions begin that the gateway keeps for itself."""
RUNNING = "running"

Running = Callable[[], Awaitable[list[tuple[str, Turn]]]]
"""What runs right now: tenants and turns."""


class Shelf:
    """Lists."""

    def __init__(self, reading: Reading, running: Running) -> None:
        self._reading = reading
        self._running = running

    async def page(
        self, which: Query, limit: int, after: Cursor | None
    ) -> tuple[list[SessionShape], Cursor | None]:
        """One page, and where the next one begins."""
        running: dict[str, list[tuple[str, Turn]]] = {}
        for tenant, turn in await self._running():
            running.setdefault(turn.session, []).append((tenant, turn))
        found = await self._reading.store.search(which, limit=limit, after=after)
        listed = [one for one in found.sessions if not one.session.startswith(OWN)]
        shapes: list[SessionShape] = []
        if after is None:
            shapes += await self._new(which, running, listed)
        async for summary in gently(listed):
            turns = [turn for _, turn in running.get(summary.session, ())]
            outline = await self.outline(summary, turns)
            shape = session_shape(summary, outline, turns)
            if which.status in {None, shape.status}:
                shapes.append(shape)
        return shapes, found.after

    async def _new(
        self,
        which: Query,
        running: dict[str, list[tuple[str, Turn]]],
        listed: Sequence[Summary],
    ) -> list[SessionShape]:
        """Sessions that run and do not stand on this page: the newest first.

        One that was last used long ago comes again in its turn, with the page that it stands on.
        """
        known = {summary.session for summary in listed}
        shapes: list[SessionShape] = []
        for session, turns in running.items():
            tenant, first = turns[0]
            if session in known or which.tenant not in {None, tenant}:
                continue
            summary = await self._reading.find(session) or Summary(
                session=session,
                tenant=tenant,
                created=first.started,
                touched=first.started,
                events=0,
            )
            extra = [turn for _, turn in turns]
            shape = session_shape(summary, await self.outline(summary, extra), extra)
            if _meant(which, shape):
                shapes.append(shape)
        return sorted(shapes, key=lambda shape: -shape.touched)

    async def outline(self, summary: Summary, running: Sequence[Turn]) -> Outline:
        """A session in outline; what its first turn says, if nothing is written yet."""
        if summary.events:
            return await self._reading.outline(summary)
        outline = Outline(summary.session)
        outline.title = titled(running[0].input) if running else ""
        return outline


def _meant(which: Query, shape: SessionShape) -> bool:
    text = which.text.casefold() if which.text is not None else ""
    return (
        which.status in {None, RUNNING}
        and (which.provider is None or which.provider in shape.providers)
        and (which.model is None or which.model in shape.models)
        and text in shape.title.casefold()
    )

"""One session as one process reads and writes it: folded, and appended to.

A turn starts only behind the last event that this process has seen; if somebody else wrote in the
meantime, that is a `Conflict`, and nothing was sent. What belongs to a turn that has started is
written in any case: turns are a tree, so two writers make two branches and lose nothing. A write
that was begun is finished and known about, even when its caller is cancelled.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from thoughtline.clock import Clock
from thoughtline.errors import Conflict, TurnNotFound
from thoughtline.log.events import Body, Draft, Event, draft
from thoughtline.log.index import IndexEntry
from thoughtline.log.sessions import Session
from thoughtline.log.turns import Turn
from thoughtline.stores.base import Batch, Store
from thoughtline.stores.rules import number_events


class SessionWriter:
    """A session's events, and the way to write more of them."""

    def __init__(self, store: Store, session: str, *, tenant: str, clock: Clock) -> None:
        self.session = Session(session)
        self.store = store
        self.tenant = tenant
        self.clock = clock
        self._elsewhere: dict[str, Session] = {}
        self._writing = asyncio.Lock()
        self._overtaken = False  # somebody else wrote, and nobody was told

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    async def refresh(self) -> list[Event]:
        """Take in what was written since; the sessions it was forked from, too."""
        self._overtaken = False
        events = await self.store.read(self.id, after=self.session.seq)
        self.session.extend(events)
        origin = self.session.origin
        while origin is not None:
            other = self._elsewhere.setdefault(origin.session, Session(origin.session))
            other.extend(await self.store.read(other.id, after=other.seq))
            origin = other.origin if other.origin != origin else None
        return events

    def draft(self, body: Body, turn: str) -> Draft:
        """An event of a turn."""
        return draft(body, id=self.clock.new_id(), parent=turn, at=self.clock.wall())

    async def write(
        self,
        drafts: Sequence[Draft],
        *,
        index: Sequence[IndexEntry] = (),
        alone: bool = False,
        tell: Callable[[Event], None] | None = None,
    ) -> None:
        """Append; with `alone` only if nobody else has written since (else `Conflict`).

        `tell` is told of each event once it is written.
        """
        async with self._writing:
            if alone and self._overtaken:
                raise Conflict(
                    f"another writer wrote to session {self.id!r} while a turn of this one ran; "
                    "both are there, as branches: `await chat.refresh()`, then go on"
                )
            batch = Batch(
                id=drafts[0].id if drafts else "",
                session=self.id,
                tenant=self.tenant,
                drafts=tuple(drafts),
                index=tuple(index),
                kept=True,  # a person made it by library or command line
                expect=self.session.seq if alone else None,
            )
            task = asyncio.ensure_future(self.store.append(batch))
            try:
                first = await asyncio.shield(task)
            except asyncio.CancelledError:
                while not task.done():
                    with suppress(asyncio.CancelledError):  # once is enough: it is raised below
                        await asyncio.wait({task})
                if not task.cancelled() and task.exception() is None:
                    await self._take(number_events(batch, task.result()), tell)
                raise
            except Conflict as error:
                raise Conflict(f"{error} (`await chat.refresh()` reads it)") from error
            await self._take(number_events(batch, first), tell)

    async def _take(self, events: Sequence[Event], tell: Callable[[Event], None] | None) -> None:
        if events and events[0].seq == self.session.seq + 1:
            self.session.extend(events)
        else:
            await self.refresh()
            self._overtaken = True
        if tell is not None:
            for event in events:
                tell(event)

    def has(self, turn: str) -> bool:
        """Whether a turn has started in this session."""
        try:
            return self.session.turn(turn).id == turn
        except TurnNotFound:
            return False

    def path(self, turn: str) -> list[Turn]:
        """The turns from the root to this one, through the sessions it was forked from."""
        return self.session.path(turn, self._elsewhere.__getitem__)

    @property
    def head(self) -> str:
        """Where the session stands: the turn that started last, or where it was forked from."""
        if turns := self.session.turns:
            return turns[-1].id
        return self.session.origin.turn if self.session.origin else ""

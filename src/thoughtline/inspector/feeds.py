"""The live feed: what is written and what runs, told to everybody who looks, by one task for all.

While at least one feed is open, one task asks a few times a second what was written since, and
looks at the running exchanges: how often depends on nobody's traffic, and with nobody looking it
does not run at all. What it finds is spelled once and handed to every feed. A feed whose client
does not keep up is ended: the client comes back and says what it saw last.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from thoughtline.clock import Clock
from thoughtline.durations import spans
from thoughtline.errors import StoreError
from thoughtline.events import Event
from thoughtline.inspector.listing import OWN
from thoughtline.inspector.live import Live
from thoughtline.inspector.neighbours import Running
from thoughtline.inspector.views import duration
from thoughtline.stores.base import Chapter, Store
from thoughtline.turns import Turn

EVERY = 0.25
"""Seconds between two looks."""
SILENCE = 15.0
"""Seconds after which an open feed says that it is there."""
ROOM = 1_000
"""Messages that wait for a slow client."""
BACK = 5_000
"""Events that are told again to somebody who comes back; after more, they had better look anew."""

_encode = msgspec.json.Encoder().encode


class Message:
    """One message, spelled when it is first needed."""

    __slots__ = ("_data", "id", "name", "seq", "session")

    def __init__(
        self, name: str, data: dict[str, object], *, session: str = "", seq: int = -1, id: str = ""
    ) -> None:
        self.name, self.session, self.seq, self.id = name, session, seq, id
        self._data = b"event: " + name.encode() + b"\ndata: " + _encode(data) + b"\n\n"

    def spelled(self, *, alone: bool) -> bytes:
        """As a server-sent event: in a session's own feed an event's id is its number there."""
        id = str(self.seq) if alone and self.seq >= 0 else "" if alone else self.id
        return f"id: {id}\n".encode() + self._data if id else self._data


class Feed:
    """One who looks: at one session, or at all."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.over = False
        self._waiting: list[Message] = []
        self._bell = asyncio.Event()

    def tell(self, message: Message) -> None:
        """Hand over, if that is wanted."""
        if self.session in (None, message.session) and not self.over:
            self._waiting.append(message)
            self._bell.set()
            if len(self._waiting) >= ROOM:
                self.end()

    def end(self) -> None:
        """Nothing more will come."""
        self.over = True
        self._bell.set()

    async def next(self, silence: float) -> list[Message] | None:
        """All that is to be told; nothing after a while, None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(silence):
                await self._bell.wait()
        said, self._waiting = self._waiting, []
        if self.over:
            return said or None
        self._bell.clear()
        return said


class Hub:
    """All who look, and the task that looks for them."""

    def __init__(self, store: Store, live: Live, clock: Clock, *, every: float = EVERY) -> None:
        self._store = store
        self._live = live
        self._clock = clock
        self._every = every
        self._feeds: set[Feed] = set()
        self._task: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._position = 0
        self._known: dict[tuple[str, str], _Seen] = {}
        self.closed = False
        self.version = 0
        """Grows with everything that is told."""

    @property
    def open(self) -> int:
        """How many look."""
        return len(self._feeds)

    def close(self) -> None:
        """Let everybody go."""
        self.closed = True
        for feed in self._feeds:
            feed.end()

    async def follow(
        self, session: str | None, after: int | None, *, silence: float = SILENCE
    ) -> AsyncGenerator[bytes, None]:
        """The body of a feed. `after`: the last event seen, by seq in a session, else by position.

        Raises `StoreError` before the first piece when the store does not answer.
        """
        feed = Feed(session)
        try:
            await self._join(feed)
            running = self._running(session)  # now: what comes after it waits in the feed
            seen = -1 if after is None else after
            yield self._message("hello", {}).spelled(alone=False)
            async for message in self._missed(feed, after):
                seen = max(seen, message.seq)
                yield message.spelled(alone=session is not None)
            for message in running:
                yield message.spelled(alone=session is not None)
            while (said := await feed.next(silence)) is not None:
                fresh = [m for m in said if session is None or m.seq < 0 or m.seq > seen]
                if not said:
                    yield b": still here\n\n"
                elif fresh:
                    yield b"".join(m.spelled(alone=session is not None) for m in fresh)
        finally:
            self._feeds.discard(feed)

    async def _join(self, feed: Feed) -> None:
        async with self._opening:
            if self._task is None or self._task.done():
                self._position = (await self._store.history(())).position
                await self._live.look()
                self._look_at_running()
                self._task = asyncio.ensure_future(self._run())
            self._feeds.add(feed)
            if self.closed:
                feed.end()

    # -- what somebody missed --------------------------------------------------------------------

    async def _missed(self, feed: Feed, after: int | None) -> AsyncIterator[Message]:
        if after is None:
            return
        if feed.session is not None:
            while page := await self._store.read(feed.session, after=after, limit=500):
                for event in page:
                    yield self._written(event)
                after = page[-1].seq
            return
        upto, told = self._position, 0
        while after < upto and told <= BACK:
            chapter = await self._store.history(None, after=after, limit=500)
            for message in self._chapter(chapter):
                yield message
            told += len(chapter.events)
            after = chapter.position
            if not chapter.more:
                return
        if after != upto:  # of another life, or too much
            yield self._message("reset", {}, id=str(upto))

    def _running(self, session: str | None) -> list[Message]:
        return [
            self._happened(seen, "turn_opened", "")
            for seen in self._known.values()
            if session in {None, seen.turn.session}
        ]

    # -- the task --------------------------------------------------------------------------------

    async def _run(self) -> None:
        while self._feeds and not self.closed:
            await asyncio.sleep(self._every)
            with contextlib.suppress(StoreError):  # it will be there again
                await self._look_at_log()
            await self._live.look()
            self._look_at_running()
        self._known.clear()

    async def turns(self, session: str | None = None) -> list[tuple[str, Turn]]:
        """What runs, for an answer: who is shown a turn is told of its end, however soon it comes.

        Who has no feed open yet is told nothing, and has to look again when it is.
        """
        await self._live.look()
        if self._feeds:
            self._look_at_running()
        return self._live.turns(session)

    def _tell(self, message: Message) -> None:
        self.version += 1
        for feed in list(self._feeds):
            feed.tell(message)
            if feed.over:  # its client may never read again, and then nobody would say that it left
                self._feeds.discard(feed)

    async def _look_at_log(self) -> None:
        more = True
        while more:
            chapter = await self._store.history(None, after=self._position, limit=500)
            for message in self._chapter(chapter):
                self._tell(message)
            self._position, more = chapter.position, chapter.more

    def _chapter(self, chapter: Chapter) -> list[Message]:
        """Its last message says where to go on; what the gateway notes for itself is left out."""
        events = [event for event in chapter.events if not event.session.startswith(OWN)]
        last = len(events) - 1
        return [
            self._written(event, str(chapter.position) if n == last else "")
            for n, event in enumerate(events)
        ]

    def _look_at_running(self) -> None:
        there: set[tuple[str, str]] = set()
        for running in self._live.running():
            key = (running.session, running.turn)
            there.add(key)
            seen = self._known.get(key)
            if seen is None:
                seen = self._known[key] = _Seen(running)
                self._tell(self._happened(seen, "turn_opened", ""))
            for change in seen.look(running):
                self._tell(self._happened(seen, *change))
        for key in self._known.keys() - there:
            self._tell(self._happened(self._known.pop(key), "turn_closed", ""))

    # -- messages --------------------------------------------------------------------------------

    def _message(self, name: str, data: dict[str, object], *, id: str = "") -> Message:
        return Message(name, {**data, "now": self._clock.wall()}, id=id)

    def _written(self, event: Event, id: str = "") -> Message:
        turn = event.id if event.type == "turn_started" else event.parent
        data: dict[str, object] = {
            "session": event.session,
            "seq": event.seq,
            "type": event.type,
            "turn": turn,
            "at": event.at,
        }
        return Message("event", data, session=event.session, seq=event.seq, id=id)

    def _happened(self, seen: "_Seen", kind: str, key: str) -> Message:
        turn = seen.turn
        thoughts = [
            {"key": span.key, **msgspec.to_builtins(duration(span, running=True))}
            for span in spans(turn)
        ]
        started = next((t["startedAt"] for t in thoughts if t["key"] == key), None)
        data: dict[str, object] = {
            "session": turn.session,
            "turn": turn.id,
            "kind": kind,
            "key": key or None,
            "startedAt": started,
            "thoughts": thoughts,
            "spoke": seen.spoke,
            "now": self._clock.wall(),
        }
        return Message("live", data, session=turn.session)


class _Seen:
    """A running turn as it was seen last."""

    def __init__(self, running: Running) -> None:
        self.turn: Turn = running.glimpse()
        self.pulse: tuple[bool, ...] = ()
        self.states: dict[str, bool] = {}  # key of a thought → whether it is open
        self.spoke = False

    def look(self, running: Running) -> list[tuple[str, str]]:
        """What changed: kinds, and the keys of thoughts."""
        pulse = running.pulse
        if pulse == self.pulse:
            return []
        self.pulse = pulse
        self.turn = running.glimpse()
        states = {span.key: span.end is None and not span.aborted for span in spans(self.turn)}
        changes: list[tuple[str, str]] = []
        for key, grows in states.items():
            before = self.states.get(key)
            if before is None:
                changes.append(("thought_opened", key))
            if before != grows and not grows:
                changes.append(("thought_closed", key))
            elif before is False and grows:
                changes.append(("thought_opened", key))
        if running.spoke and not self.spoke:
            self.spoke = True
            changes.append(("text", ""))
        self.states = states
        return changes

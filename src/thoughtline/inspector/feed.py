"""The live feed: what is written to the log and what runs, sent to every subscriber by one task.

While at least one subscriber is there, the task polls the log and the running turns a few times a
second: how often depends on nobody's traffic, and without subscribers it does not run. Each message
is encoded once for all. A subscriber that does not keep up is ended: its client comes back and says
which event it saw last.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import msgspec

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.inspector.running_turns import RunningTurn, RunningTurns, TurnVersion
from thoughtline.inspector.views import duration
from thoughtline.log.durations import thought_spans
from thoughtline.log.events import DeletionDone, Event
from thoughtline.log.turns import Turn
from thoughtline.stores.base import INTERNAL_PREFIX, EventPage, Store

POLL_INTERVAL = 0.25
"""Seconds between two polls."""
KEEPALIVE_INTERVAL = 15.0
"""Seconds of silence after which a keep-alive comment is sent."""
MAX_QUEUED = 1_000
"""Messages that wait for a slow client."""
MAX_MISSED = 5_000
"""Events that are sent again to a client that comes back; after more, it is told to start again."""

_encode = msgspec.json.Encoder().encode


class FeedMessage:
    """One server-sent event."""

    __slots__ = ("_data", "id", "name", "seq", "session")

    def __init__(
        self, name: str, data: dict[str, object], *, session: str = "", seq: int = -1, id: str = ""
    ) -> None:
        self.name, self.session, self.seq, self.id = name, session, seq, id
        self._data = b"event: " + name.encode() + b"\ndata: " + _encode(data) + b"\n\n"

    def encoded(self, *, one_session: bool) -> bytes:
        """The bytes to send. In the feed of one session an event's id is its seq there."""
        id = self.id
        if one_session:
            id = str(self.seq) if self.seq >= 0 else ""
        return f"id: {id}\n".encode() + self._data if id else self._data


class FeedSubscriber:
    """A queue of messages for one client, about one session or about all."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.ended = False
        self._queue: list[FeedMessage] = []
        self._wake = asyncio.Event()

    def put(self, message: FeedMessage) -> None:
        """Queue a message, if it may be about the wanted session; end when the queue is full."""
        about = not message.session or self.session in (None, message.session)
        if about and not self.ended:
            self._queue.append(message)
            self._wake.set()
            if len(self._queue) >= MAX_QUEUED:
                self.end()

    def end(self) -> None:
        """Send what is queued, and nothing more."""
        self.ended = True
        self._wake.set()

    async def next(self, keepalive: float) -> list[FeedMessage] | None:
        """Everything that is queued; an empty list after `keepalive` seconds, None at the end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(keepalive):
                await self._wake.wait()
        messages, self._queue = self._queue, []
        if self.ended:
            return messages or None
        self._wake.clear()
        return messages


class LiveFeed:
    """All subscribers, and the task that polls for them."""

    def __init__(
        self, store: Store, running: RunningTurns, clock: Clock, *, interval: float = POLL_INTERVAL
    ) -> None:
        self._store = store
        self._running = running
        self._clock = clock
        self._interval = interval
        self._subscribers: set[FeedSubscriber] = set()
        self._task: asyncio.Task[None] | None = None
        self._subscribing = asyncio.Lock()
        self._position = 0
        self._known: dict[tuple[str, str], _KnownTurn] = {}  # session, turn → as last seen
        self.closed = False
        self.version = 0
        """Grows with every message."""

    @property
    def subscribers(self) -> int:
        """How many subscribers there are."""
        return len(self._subscribers)

    def close(self) -> None:
        """End all subscribers."""
        self.closed = True
        for subscriber in self._subscribers:
            subscriber.end()

    async def follow(
        self, session: str | None, after: int | None, *, keepalive: float = KEEPALIVE_INTERVAL
    ) -> AsyncGenerator[bytes, None]:
        """The body of a feed. `after`: the last event seen, by seq in a session, else by position.

        Raises `StoreError` before the first piece when the store does not answer.
        """
        subscriber = FeedSubscriber(session)
        one_session = session is not None
        try:
            await self._subscribe(subscriber)
            running = self._opened(session)  # now: what comes later is queued
            seen = -1 if after is None else after
            position = str(self._position) if after is None else ""  # else it may have missed some
            yield self._message("hello", {}, id=position).encoded(one_session=one_session)
            async for message in self._missed(session, after):
                seen = max(seen, message.seq)
                yield message.encoded(one_session=one_session)
            for message in running:
                yield message.encoded(one_session=one_session)
            while (messages := await subscriber.next(keepalive)) is not None:
                fresh = [m for m in messages if not one_session or m.seq < 0 or m.seq > seen]
                if not messages:
                    yield b": still here\n\n"
                elif fresh:
                    yield b"".join(m.encoded(one_session=one_session) for m in fresh)
        finally:
            self._subscribers.discard(subscriber)

    async def _subscribe(self, subscriber: FeedSubscriber) -> None:
        async with self._subscribing:
            if self._task is None or self._task.done():
                self._position = (await self._store.history(())).position
                await self._running.refresh()
                self._poll_running()
                self._task = asyncio.ensure_future(self._poll())
            self._subscribers.add(subscriber)
            if self.closed:
                subscriber.end()

    # -- what a client missed --------------------------------------------------------------------

    async def _missed(self, session: str | None, after: int | None) -> AsyncIterator[FeedMessage]:
        if after is None:
            return
        if session is not None:
            while events := await self._store.read(session, after=after, limit=500):
                for event in events:
                    yield self._event_message(event)
                after = events[-1].seq
            return
        end, sent = self._position, 0
        while after < end and sent <= MAX_MISSED:
            page = await self._store.history(None, after=after, limit=500)
            for message in self._page_messages(page):
                yield message
            sent += len(page.events)
            after = page.position
            if not page.more:
                return
        if after != end:  # the position is of another log, or too much was missed
            yield self._message("reset", {}, id=str(end))

    def _opened(self, session: str | None) -> list[FeedMessage]:
        return [
            self._live_message(known, "turn_opened", "")
            for known in self._known.values()
            if session in {None, known.turn.session}
        ]

    # -- the task --------------------------------------------------------------------------------

    async def _poll(self) -> None:
        while self._subscribers and not self.closed:
            await asyncio.sleep(self._interval)
            with contextlib.suppress(StoreError):  # the next poll asks again
                await self._poll_log()
            await self._running.refresh()
            self._poll_running()
        self._known.clear()

    async def turns(self, session: str | None = None) -> list[tuple[str, Turn]]:
        """Tenants and turns that run, for an answer of the API.

        A client that has seen a turn here is sent its end, however soon that comes. A client whose
        feed is not open yet is sent nothing, and has to ask again when it is.
        """
        await self._running.refresh()
        if self._subscribers:
            self._poll_running()
        return self._running.turns(session)

    def _publish(self, message: FeedMessage) -> None:
        self.version += 1
        for subscriber in list(self._subscribers):
            subscriber.put(message)
            if subscriber.ended:  # its client may never read again, and so never be seen to leave
                self._subscribers.discard(subscriber)

    async def _poll_log(self) -> None:
        more = True
        while more:
            page = await self._store.history(None, after=self._position, limit=500)
            for message in self._page_messages(page):
                self._publish(message)
            self._position, more = page.position, page.more

    def _page_messages(self, page: EventPage) -> list[FeedMessage]:
        """Messages about these events; the last one carries the position to go on from."""
        events = [
            event
            for event in page.events
            if event.type == "deletion_done" or not event.session.startswith(INTERNAL_PREFIX)
        ]
        last = len(events) - 1
        return [
            self._event_message(event, str(page.position) if n == last else "")
            for n, event in enumerate(events)
        ]

    def _poll_running(self) -> None:
        present: set[tuple[str, str]] = set()
        for running in self._running.running():
            key = (running.session, running.turn)
            present.add(key)
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = _KnownTurn(running)
                self._publish(self._live_message(known, "turn_opened", ""))
            for change in known.update(running):
                self._publish(self._live_message(known, *change))
        for key in self._known.keys() - present:
            self._publish(self._live_message(self._known.pop(key), "turn_closed", ""))

    # -- messages --------------------------------------------------------------------------------

    def _message(self, name: str, data: dict[str, object], *, id: str = "") -> FeedMessage:
        return FeedMessage(name, {**data, "now": self._clock.wall()}, id=id)

    def _event_message(self, event: Event, id: str = "") -> FeedMessage:
        if event.type == "deletion_done":
            return self._deletion_message(event, id)
        turn = event.id if event.type == "turn_started" else event.parent
        data: dict[str, object] = {
            "session": event.session,
            "seq": event.seq,
            "type": event.type,
            "turn": turn,
            "at": event.at,
        }
        return FeedMessage("event", data, session=event.session, seq=event.seq, id=id)

    def _deletion_message(self, event: Event, id: str) -> FeedMessage:
        done = event.body()
        session, kind = (done.session, done.kind) if isinstance(done, DeletionDone) else ("", "")
        data: dict[str, object] = {"session": session or None, "kind": kind, "at": event.at}
        return FeedMessage("deleted", data, session=session, id=id)

    def _live_message(self, known: "_KnownTurn", kind: str, key: str) -> FeedMessage:
        turn = known.turn
        thoughts = [
            {"key": span.key, **msgspec.to_builtins(duration(span, running=True))}
            for span in thought_spans(turn)
        ]
        started = next((t["startedAt"] for t in thoughts if t["key"] == key), None)
        data: dict[str, object] = {
            "session": turn.session,
            "turn": turn.id,
            "kind": kind,
            "key": key or None,
            "startedAt": started,
            "thoughts": thoughts,
            "spoke": known.spoke,
            "now": self._clock.wall(),
        }
        return FeedMessage("live", data, session=turn.session)


class _KnownTurn:
    """A running turn as it was at the last poll."""

    def __init__(self, running: RunningTurn) -> None:
        self.turn: Turn = running.snapshot()
        self.version: TurnVersion = ()
        self.open: dict[str, bool] = {}  # key of a thought → whether it is open
        self.spoke = False

    def update(self, running: RunningTurn) -> list[tuple[str, str]]:
        """Take in the turn as it is now; what changed: kinds, and the keys of thoughts."""
        version = running.version
        if version == self.version:
            return []
        self.version = version
        self.turn = running.snapshot()
        now_open = {
            span.key: span.end is None and not span.aborted for span in thought_spans(self.turn)
        }
        changes: list[tuple[str, str]] = []
        for key, is_open in now_open.items():
            before = self.open.get(key)
            if before is None:
                changes.append(("thought_opened", key))
            if before != is_open and not is_open:
                changes.append(("thought_closed", key))
            elif before is False and is_open:
                changes.append(("thought_opened", key))
        if running.spoke and not self.spoke:
            self.spoke = True
            changes.append(("text", ""))
        self.open = now_open
        return changes

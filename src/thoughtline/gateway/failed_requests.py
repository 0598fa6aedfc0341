"""Keeps the last requests that got no answer of a model, so that a person can find out why.

A failed request is no turn: nothing was said. It is written as one `request_failed` event to an
internal session, never into its conversation, so that it is neither continued nor put back. Two
such sessions take turns, and the older one is deleted when the newer is full: a client that is
refused again and again fills nothing. The client never waits for any of this.
"""

import asyncio
import contextlib
from collections import deque
from typing import NamedTuple

import msgspec

from thoughtline.clock import Clock
from thoughtline.dialects import splice
from thoughtline.engine.exchange import Exchange
from thoughtline.errors import StoreError, ThoughtlineError, Unreadable
from thoughtline.gateway import bodies
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.settings import mask
from thoughtline.log.decisions import count_words
from thoughtline.log.events import Event, RequestFailed, draft
from thoughtline.stores.base import INTERNAL_PREFIX, Batch, SessionQuery, Store
from thoughtline.wires.base import Headers

SESSIONS = (f"{INTERNAL_PREFIX}failed:0", f"{INTERNAL_PREFIX}failed:1")
TENANT = ""
MAX_EVENTS = 1000
"""Failed requests in each of the two sessions."""
MAX_WRITING = 32
"""Writes under way; what fails while there are more of them is only logged."""
MAX_PATH = 500
"""Characters that are kept of a path."""
MAX_WORDS = 1000
"""Characters that are kept of a provider's words."""
MAX_UNWRITTEN = 200
"""Requests about which nothing is written, in memory: the last ones."""
MAX_BODY = 16 << 10
"""Bytes of a refusal in which its words are looked for."""


class UnwrittenRequest(NamedTuple):
    """A request about which nothing is written."""

    id: str
    at: float
    request: RequestFailed  # or one that passed through, if its status says so


class FailedRequests:
    """Writes failed requests, and holds the last ones that are not written in memory.

    Those are requests that passed through untouched, and those of clients that could not say who
    they are: nobody fills a disk without a key.
    """

    def __init__(self, store: Store, clock: Clock, *, keeps_words: bool = True) -> None:
        self._store = store
        self._clock = clock
        self._keeps_words = keeps_words  # a provider's words may quote what was said
        self._current: str | None = None  # the session that is written to, once that is known
        self._writes: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self.unwritten: deque[UnwrittenRequest] = deque(maxlen=MAX_UNWRITTEN)

    def new_id(self) -> str:
        """The id of the next failed request; empty where it will not be written.

        That is where too many are being written, and where the store is down: turns wait for it
        then, and nothing else should.
        """
        trouble: str = getattr(self._store, "trouble", "")
        if trouble or len(self._writes) >= MAX_WRITING:
            return ""
        return self._clock.new_id()

    def record(self, id: str, failed: RequestFailed) -> None:
        """Write a failed request in the background; without an id, hold it in memory."""
        provider = not failed.code
        reason = "" if provider and not self._keeps_words else mask(failed.reason)[:MAX_WORDS]
        kept = msgspec.structs.replace(failed, reason=reason, path=failed.path[:MAX_PATH])
        if not id:
            self.unwritten.append(UnwrittenRequest(self._clock.new_id(), self._clock.wall(), kept))
            return
        task = asyncio.get_running_loop().create_task(self._write(id, kept))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _write(self, id: str, failed: RequestFailed) -> None:
        made = draft(failed, id=id, parent="", at=self._clock.wall())
        with contextlib.suppress(StoreError):  # a store that is down is said elsewhere
            async with self._turn:
                self._current = self._current or await self._newest()
                batch = Batch(id=made.id, session=self._current, tenant=TENANT, drafts=(made,))
                if await self._store.append(batch) >= MAX_EVENTS - 1:
                    await self._switch()

    async def _newest(self) -> str:
        """The session that was begun last."""
        begun = [await self._created(session) for session in SESSIONS]
        return SESSIONS[1] if begun[1] > begun[0] else SESSIONS[0]

    async def _switch(self) -> None:
        """Write to the other session from now on, which begins again, unless somebody began it."""
        other = SESSIONS[1 - SESSIONS.index(self._current or SESSIONS[0])]
        if await self._newest() != other:
            await self._store.purge(session=other)
        self._current = other

    async def _created(self, session: str) -> float:
        found = await self._store.search(SessionQuery(session=session), limit=1)
        return found.sessions[0].created if found.sessions else 0.0

    async def settled(self) -> None:
        """Returns when nothing is being written."""
        if self._writes:
            await asyncio.wait(set(self._writes))


async def failed_requests(store: Store) -> list[tuple[Event, RequestFailed]]:
    """All failed requests that are kept, the newest first."""
    found: list[tuple[Event, RequestFailed]] = []
    for session in SESSIONS:
        for event in await store.read(session):
            with contextlib.suppress(Unreadable):
                if isinstance(body := event.body(), RequestFailed):
                    found.append((event, body))
    return sorted(found, key=lambda one: one[0].at, reverse=True)


class FailedLog:
    """Reads failed requests again only when there are others: a page asks once a second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._state: list[tuple[float, int]] = []
        self._found: list[tuple[Event, RequestFailed]] = []

    async def newest_first(self) -> list[tuple[Event, RequestFailed]]:
        """All failed requests that are kept."""
        pages = [await self._store.search(SessionQuery(session=name), limit=1) for name in SESSIONS]
        state = [(one.created, one.events) for page in pages for one in page.sessions]
        if state != self._state:
            self._found, self._state = await failed_requests(self._store), state
        return self._found


async def erase_failed_requests(store: Store) -> None:
    """Delete them all."""
    for session in SESSIONS:
        await store.purge(session=session)


def refused(refusal: GatewayError, method: str, path: str) -> RequestFailed:
    """A request that the gateway refused before it knew anything else about it."""
    return RequestFailed(
        status=refusal.status,
        reason=refusal.message,
        code=refusal.code,
        method=method,
        path=path,
    )


def of_exchange(failed: RequestFailed, exchange: Exchange | None) -> RequestFailed:
    """The failed request with what was decided about it, if that came so far."""
    if exchange is None:
        return failed
    decision, plan = exchange.decision, exchange.decision.replay_plan
    failed = msgspec.structs.replace(failed, target=decision.target.origin)
    if exchange.incoming.claimed:  # nobody has proved that it is part of a conversation
        return failed
    counts = count_words(plan.decisions)
    return msgspec.structs.replace(
        failed,
        session=plan.parent.session if plan.parent else "",
        turn=plan.parent.turn if plan.parent else "",
        replay={word.value: count for word, count in counts.items() if count},
        thinking_off=plan.thinking_off and exchange.sent,
        corrected=exchange.corrected,
        stream=exchange.incoming.request.stream,
    )


def answer_words(headers: Headers, beginning: bytes) -> str:
    """What a provider says in a refusal of which this is the beginning, as it came."""
    encoding = dict(headers).get("content-encoding", "")
    try:
        return refusal_words(bodies.decompress(beginning, encoding, 1 << 20) or b"")
    except bodies.BodyTooLarge:
        return ""


def refusal_words(body: bytes) -> str:
    """What a provider says in the body of its refusal: its message, or the text as it came."""
    text = body[:MAX_BODY].decode("utf-8", "replace").strip()
    try:
        document = splice.loads(body)
    except (ThoughtlineError, RecursionError):
        return text[:MAX_WORDS]
    while isinstance(document, list) and document:
        document = document[0]
    error = document.get("error", document) if isinstance(document, dict) else document
    words = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return (words if isinstance(words, str) and words else text)[:MAX_WORDS]

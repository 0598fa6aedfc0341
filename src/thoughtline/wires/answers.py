"""One response on its way: its events as they come, and what may be concluded from them.

Announcements are held back until there is something to show, so that a request can be sent again
unnoticed before that, and never after. The items that the server returned are collected from
their `output_item.done`, as it remembers them; they become a baseline only if the response
completes, every item of it was seen, and the caller says that it has kept it (`commit`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum

from msgspec import Struct

from thoughtline import splice
from thoughtline.errors import Unreadable, WireError
from thoughtline.wires.chains import kind
from thoughtline.wires.continuation import Plan, Reason
from thoughtline.wires.frames import Frame


class Sent(Struct, frozen=True, kw_only=True):
    """One request that went out: how, why so, and what it cost."""

    plan: Plan
    transport: str  # "websocket" or "http"
    size: int  # bytes of the frame or body, before any compression
    whole: int  # bytes of the same request as a full send
    generation: int = 0
    lane: str | None = None
    warm: bool = False  # a warm-up: no answer was asked for


class Tally:
    """What was sent over a wire so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.size = 0
        self.whole = 0
        self.reasons: dict[Reason, int] = {}

    def add(self, sent: Sent) -> None:
        """Count one request."""
        self.requests += 1
        self.size += sent.size
        self.whole += sent.whole
        self.reasons[sent.plan.reason] = self.reasons.get(sent.plan.reason, 0) + 1


class State(Enum):
    """How far a response has come."""

    OPEN = "open"
    COMPLETED = "completed"
    ENDED = "ended"  # in another way: failed, incomplete, refused
    BROKEN = "broken"  # the connection broke, or the stream stopped without an end


class Answer:
    """One response. Iterate over it for its events; then `commit`."""

    def __init__(
        self,
        attempts: tuple[Sent, ...],
        receive: Callable[[], Awaitable[Frame | None]],
        keep: Callable[["Answer", str | None], bool],
    ) -> None:
        self.attempts = attempts  # all that was sent for it; the last one is being answered
        self.state = State.OPEN
        self.status = 200  # or that of the refusal
        self.response = ""  # the provider's id of it
        self.items: list[bytes] = []
        self.refusal: Frame | None = None  # the error it ended with, before any output
        self.code = ""  # of the error it ended with, whenever
        self.incomplete = False  # it ended at a limit: what there is of it is whole
        self._receive = receive
        self._keep = keep
        self._held: list[Frame] = []
        self._index = -1
        self._sound = True  # every item was seen, in order

    @property
    def sent(self) -> Sent:
        """What is being answered, and why it was sent as it was."""
        return self.attempts[-1]

    @property
    def over(self) -> bool:
        """Whether the event that was given last is the end of it."""
        return self.state is not State.OPEN and not self._held

    async def open(self) -> None:
        """Wait until there is something to show, or nothing to come."""
        while self.state is State.OPEN:
            frame = await self._take()
            self._held.append(frame)
            if not frame.quiet:
                return

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events()

    async def _events(self) -> AsyncIterator[bytes]:
        """The events as they come; a break raises `WireError` after what was there."""
        while self._held:
            yield self._held.pop(0).data
        while self.state is State.OPEN:
            yield (await self._take()).data

    def commit(self, turn: str | None = None) -> bool:
        """The response is kept: the next request may go on from it.

        To be called after the last event, and before the next request; `turn` is the turn's id
        where it was not known before. Says whether there is something to go on from.
        """
        return self.state is State.COMPLETED and self._keep(self, turn)

    @property
    def sound(self) -> bool:
        """Whether what the server remembers is known exactly."""
        return self._sound and bool(self.response)

    async def _take(self) -> Frame:
        try:
            frame = await self._receive()
        except WireError:
            self.state = State.BROKEN
            raise
        if frame is None:
            self.state = State.BROKEN
            raise WireError("the answer stopped before its end")
        self._note(frame)
        return frame

    def _note(self, frame: Frame) -> None:
        if not frame.readable:
            self._sound = False
        elif frame.type == "response.output_item.done":
            self._item(frame)
        elif frame.type in ("response.completed", "response.done"):
            self._complete(frame)
        elif frame.type == "error":
            self.state, self.code = State.ENDED, frame.code
            if all(held.quiet for held in self._held):
                self.refusal, self.status = frame, frame.status
        elif frame.terminal:
            self.state = State.ENDED
            self.incomplete = frame.type == "response.incomplete"
        elif frame.type in ("response.created", "response.in_progress"):
            self.response = _id(frame.response) or self.response

    def _item(self, frame: Frame) -> None:
        index = frame.seen.output_index
        if index is not None and index <= self._index:
            self._sound = False  # out of order: who knows how the server remembers them
        elif index is not None:
            self._index = index
        self.items.append(frame.item)

    def _complete(self, frame: Frame) -> None:
        self.state = State.COMPLETED
        raw = frame.response
        id = _id(raw)
        if self.response and id != self.response:
            self._sound = False
        self.response = id
        try:
            members = splice.members(raw)
            spans = splice.elements(raw, members["output"]) if "output" in members else []
        except Unreadable:
            self._sound = False
            return
        output = [raw[span.value : span.end] for span in spans]
        if output and len(output) != len(self.items):
            self._sound = False
        elif output:
            self.items = [
                _sealed(item, last) for item, last in zip(self.items, output, strict=True)
            ]


def _id(response: bytes) -> str:
    try:
        value = splice.loads(response).get("id") if response else ""
    except (Unreadable, AttributeError):
        return ""
    return value if isinstance(value, str) else ""


def _sealed(item: bytes, last: bytes) -> bytes:
    """A thought whose seal came only with the last event, as that has it."""
    try:
        first, final = splice.loads(item), splice.loads(last)
    except Unreadable:
        return item
    if kind(first) != "reasoning" or first.get("encrypted_content") or not isinstance(final, dict):
        return item
    same = first.get("id") == final.get("id") and bool(final.get("encrypted_content"))
    return last if same else item

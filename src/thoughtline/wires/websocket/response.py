"""One response of a server: its events as they arrive, and whether it can be continued.

Announcements are held back until the first output, so that a request can be sent again unnoticed
before that, and never after. The items that the server returned are collected from their
`output_item.done` events; they become a baseline only if the response completes, every item of it
was seen, and the caller commits it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum

from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.responses.items import item_type
from thoughtline.errors import Unreadable, WireError
from thoughtline.wires.websocket.continuation import SendPlan
from thoughtline.wires.websocket.frames import ServerFrame


class SentRequest(Struct, frozen=True, kw_only=True):
    """One request that was sent: how, why so, and how many bytes it took."""

    plan: SendPlan
    transport: str  # "websocket" or "http"
    size: int  # bytes of the frame or body, before any compression
    full_size: int  # bytes of the same request as a full send
    generation: int = 0
    stream_id: str | None = None
    warm_up: bool = False  # no answer was asked for


class ResponseState(Enum):
    """How far a response has come."""

    OPEN = "open"
    COMPLETED = "completed"
    ENDED = "ended"  # otherwise than completed: failed, incomplete, refused
    BROKEN = "broken"  # the connection broke, or the stream stopped without an end


class WireResponse:
    """One response. Iterate over it for its events; then `commit`."""

    def __init__(
        self,
        sent: SentRequest,
        receive: Callable[[], Awaitable[ServerFrame | None]],
        on_commit: Callable[["WireResponse", str | None], bool],
    ) -> None:
        self.sent = sent  # the request that is being answered
        self.state = ResponseState.OPEN
        self.status = 200  # or that of the refusal
        self.response_id = ""  # the provider's
        self.items: list[bytes] = []
        self.refusal: ServerFrame | None = None  # the error that came instead of any output
        self.error_code = ""  # of the error it ended with, before or after output
        self.incomplete = False  # it ended at a limit: the items up to there are complete
        self._receive = receive
        self._on_commit = on_commit
        self._held: list[ServerFrame] = []
        self._last_index = -1
        self._exact = True  # every item was seen, in order

    @property
    def ended(self) -> bool:
        """Whether the event that was given last is the end of the response."""
        return self.state is not ResponseState.OPEN and not self._held

    @property
    def continuable(self) -> bool:
        """Whether it is known exactly what the server remembers."""
        return self._exact and bool(self.response_id)

    async def open(self) -> None:
        """Wait for the first output, or the end."""
        while self.state is ResponseState.OPEN:
            frame = await self._next()
            self._held.append(frame)
            if not frame.precedes_output:
                return

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events()

    async def _events(self) -> AsyncIterator[bytes]:
        """The events as they arrive; a break raises `WireError` after those that came before."""
        while self._held:
            yield self._held.pop(0).data
        while self.state is ResponseState.OPEN:
            yield (await self._next()).data

    def commit(self, turn: str | None = None) -> bool:
        """Allow the next request to continue this response; whether it can be continued.

        To be called after the last event, and before the next request; `turn` is the turn's id
        where it was not known before.
        """
        return self.state is ResponseState.COMPLETED and self._on_commit(self, turn)

    async def _next(self) -> ServerFrame:
        try:
            frame = await self._receive()
        except WireError:
            self.state = ResponseState.BROKEN
            raise
        if frame is None:
            self.state = ResponseState.BROKEN
            raise WireError("the answer stopped before its end")
        self._read(frame)
        return frame

    def _read(self, frame: ServerFrame) -> None:
        if not frame.readable:
            self._exact = False
        elif frame.type == "response.output_item.done":
            self._read_item(frame)
        elif frame.type in ("response.completed", "response.done"):
            self._complete(frame)
        elif frame.type == "error":
            self.state, self.error_code = ResponseState.ENDED, frame.code
            if all(held.precedes_output for held in self._held):
                self.refusal, self.status = frame, frame.status
        elif frame.terminal:
            self.state = ResponseState.ENDED
            self.incomplete = frame.type == "response.incomplete"
        elif frame.type in ("response.created", "response.in_progress"):
            self.response_id = _id(frame.response) or self.response_id

    def _read_item(self, frame: ServerFrame) -> None:
        index = frame.fields.output_index
        if index is not None and index <= self._last_index:
            self._exact = False  # out of order: the server's own order is unknown
        elif index is not None:
            self._last_index = index
        self.items.append(frame.item)

    def _complete(self, frame: ServerFrame) -> None:
        self.state = ResponseState.COMPLETED
        raw = frame.response
        id = _id(raw)
        if self.response_id and id != self.response_id:
            self._exact = False
        self.response_id = id
        try:
            members = splice.members(raw)
            spans = splice.elements(raw, members["output"]) if "output" in members else []
        except Unreadable:
            self._exact = False
            return
        output = [raw[span.value : span.end] for span in spans]
        if output and len(output) != len(self.items):
            self._exact = False
        elif output:
            self.items = [
                _sealed(item, final) for item, final in zip(self.items, output, strict=True)
            ]


def _id(response: bytes) -> str:
    try:
        value = splice.loads(response).get("id") if response else ""
    except (Unreadable, AttributeError):
        return ""
    return value if isinstance(value, str) else ""


def _sealed(item: bytes, final: bytes) -> bytes:
    """The final form of a reasoning item whose seal came only with the last event."""
    try:
        first, last = splice.loads(item), splice.loads(final)
    except Unreadable:
        return item
    if (
        item_type(first) != "reasoning"
        or first.get("encrypted_content")
        or not isinstance(last, dict)
    ):
        return item
    same = first.get("id") == last.get("id") and bool(last.get("encrypted_content"))
    return final if same else item

"""What a Responses server sends over a WebSocket, as far as a wire has to understand it.

A frame is one event as JSON; its `data` are the bytes as they came, and those are handed on. Named
here is only what routing, continuation and recovery look at. What cannot be read at all is a frame
too: it is handed on, and nothing may be concluded from the response it came in.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline import splice
from thoughtline.errors import Unreadable

TERMINAL = frozenset(
    {
        "response.completed",
        "response.done",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
        "error",
    }
)
QUIET = frozenset({"response.created", "response.in_progress", "response.queued"})
"""Events before any output: nothing is lost to those who did not see them."""
NOT_FOUND = "previous_response_not_found"
LIMIT = "websocket_connection_limit_reached"
FULL = "websocket_stream_limit_reached"
_LANES = frozenset({"invalid_stream_id", FULL})


class _Seen(Struct):
    type: str = ""
    stream_id: str | None = None
    output_index: int | None = None
    item: Raw = Raw()
    output_item: Raw = Raw()  # the same under another name
    response: Raw = Raw()
    status: Any = None
    error: Any = None
    code: Any = None  # of an error as a stream of server-sent events spells it
    param: Any = None


_decode = msgspec.json.Decoder(_Seen).decode
_RAW = ("item", "output_item", "response")


class Frame(Struct):
    """One event."""

    data: bytes
    seen: _Seen
    readable: bool = True

    @property
    def type(self) -> str:
        """Its type; nothing for what cannot be read."""
        return self.seen.type

    @property
    def lane(self) -> str | None:
        """The lane it belongs to; None is the default one."""
        return self.seen.stream_id

    @property
    def terminal(self) -> bool:
        """Whether the response is over."""
        return self.type in TERMINAL

    @property
    def quiet(self) -> bool:
        """Whether it says nothing of the answer yet: announcements, and a server's own notes."""
        return self.type in QUIET or not self.type.startswith(("response.", "error"))

    @property
    def item(self) -> bytes:
        """The item it brings, as it is spelled."""
        return bytes(self.seen.item) or bytes(self.seen.output_item)

    @property
    def response(self) -> bytes:
        """The response it brings."""
        return bytes(self.seen.response)

    @property
    def code(self) -> str:
        """An error's code; nothing where it has none."""
        return _string(self._error().get("code")) or _string(self.seen.code)

    @property
    def status(self) -> int:
        """An error's HTTP status; 500 where it does not say."""
        status = self.seen.status
        if status is None:
            status = self._error().get("status")
        return status if isinstance(status, int) and not isinstance(status, bool) else 500

    @property
    def laneless(self) -> bool:
        """Whether this refusal is about lanes: the server has none, or no more."""
        param = self._error().get("param") or self.seen.param
        return self.code in _LANES or param == "stream_id"

    def _error(self) -> dict[str, Any]:
        return self.seen.error if isinstance(self.seen.error, dict) else {}


def read(data: bytes) -> Frame:
    """A frame from its bytes; never an exception."""
    try:
        return Frame(data, _decode(data))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _patiently(data)


def _patiently(data: bytes) -> Frame:
    """Half an emoji, or types nobody expects: spans fit the original text, so that it is kept."""
    try:
        document, spans = splice.loads(data), splice.members(data)
    except Unreadable:
        return Frame(data, _Seen(), readable=False)
    lane, index = document.get("stream_id"), document.get("output_index")
    raws = {name: Raw(data[s.value : s.end]) for name in _RAW if (s := spans.get(name))}
    seen = _Seen(
        type=_string(document.get("type")),
        stream_id=lane if isinstance(lane, str) else None,
        output_index=index if isinstance(index, int) else None,
        status=document.get("status"),
        error=document.get("error"),
        code=document.get("code"),
        param=document.get("param"),
        **raws,
    )
    return Frame(data, seen)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""

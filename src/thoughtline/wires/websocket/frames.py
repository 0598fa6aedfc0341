"""Frames that a Responses server sends over a WebSocket, as far as a wire has to understand them.

A frame is one event as JSON; `data` are its bytes as they came, and those are handed on. Decoded
are only the members that routing, continuation and recovery need. A frame that cannot be read is
handed on as well, but its response cannot be continued.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from thoughtline.dialects import splice
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
ANNOUNCEMENTS = frozenset({"response.created", "response.in_progress", "response.queued"})
"""Events before any output: a client that does not see them misses nothing."""
RESPONSE_NOT_FOUND = "previous_response_not_found"
CONNECTION_LIMIT = "websocket_connection_limit_reached"
STREAM_LIMIT = "websocket_stream_limit_reached"
_STREAM_ERRORS = frozenset({"invalid_stream_id", STREAM_LIMIT})


class _Fields(Struct):
    """The members of a frame that are decoded."""

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


_decode = msgspec.json.Decoder(_Fields).decode
_RAW = ("item", "output_item", "response")


class ServerFrame(Struct):
    """One event of a server."""

    data: bytes
    fields: _Fields
    readable: bool = True

    @property
    def type(self) -> str:
        """The event's type; empty for a frame that cannot be read."""
        return self.fields.type

    @property
    def stream_id(self) -> str | None:
        """The stream that the event belongs to; None is the default one."""
        return self.fields.stream_id

    @property
    def terminal(self) -> bool:
        """Whether the response ends with this event."""
        return self.type in TERMINAL

    @property
    def precedes_output(self) -> bool:
        """Whether the event is no output yet: an announcement, or a note of the server's own."""
        return self.type in ANNOUNCEMENTS or not self.type.startswith(("response.", "error"))

    @property
    def item(self) -> bytes:
        """The JSON of the item that the event brings."""
        return bytes(self.fields.item) or bytes(self.fields.output_item)

    @property
    def response(self) -> bytes:
        """The JSON of the response that the event brings."""
        return bytes(self.fields.response)

    @property
    def code(self) -> str:
        """The code of an error; empty where there is none."""
        return _string(self._error().get("code")) or _string(self.fields.code)

    @property
    def status(self) -> int:
        """The HTTP status of an error; 500 where the server does not give one."""
        status = self.fields.status
        if status is None:
            status = self._error().get("status")
        return status if isinstance(status, int) and not isinstance(status, bool) else 500

    @property
    def refuses_stream(self) -> bool:
        """Whether the server refuses the `stream_id`: it knows no streams, or has no more."""
        param = self._error().get("param") or self.fields.param
        return self.code in _STREAM_ERRORS or param == "stream_id"

    def _error(self) -> dict[str, Any]:
        return self.fields.error if isinstance(self.fields.error, dict) else {}


def read(data: bytes) -> ServerFrame:
    """Decode a frame; one that cannot be read is marked as such, without an exception."""
    try:
        return ServerFrame(data, _decode(data))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _read_leniently(data)


def _read_leniently(data: bytes) -> ServerFrame:
    """Decode a frame with half a surrogate pair or unexpected types; raw slices stay exact."""
    try:
        document, spans = splice.loads(data), splice.members(data)
    except Unreadable:
        return ServerFrame(data, _Fields(), readable=False)
    stream_id, index = document.get("stream_id"), document.get("output_index")
    raws = {name: Raw(data[s.value : s.end]) for name in _RAW if (s := spans.get(name))}
    fields = _Fields(
        type=_string(document.get("type")),
        stream_id=stream_id if isinstance(stream_id, str) else None,
        output_index=index if isinstance(index, int) else None,
        status=document.get("status"),
        error=document.get("error"),
        code=document.get("code"),
        param=document.get("param"),
        **raws,
    )
    return ServerFrame(data, fields)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""

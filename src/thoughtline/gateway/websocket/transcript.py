"""What a client on a WebSocket does not repeat: the conversation up to its latest response.

A client sends `previous_response_id` and what is new. A stream holds the items behind that id, to
the byte, and writes the full request from them, as it would have been posted: then it can be read,
restored and sent like any other. Where a client goes on from a response that its provider stores
and that was not seen here, the transcript hangs from that id (`root`). Pure; `stream` holds them.
"""

from collections.abc import Sequence

from msgspec import Raw, Struct

from thoughtline.dialects import splice
from thoughtline.errors import Unreadable
from thoughtline.wires.websocket import requests

_UNSENT = requests.REWRITTEN | {"previous_response_id", "background"}


class Create(Struct, frozen=True, kw_only=True):
    """A `response.create` frame, taken apart."""

    members: dict[str, bytes]  # all but `input`, as they are spelled
    items: tuple[bytes, ...]
    previous: str = ""
    generate: bool = True
    stored: bool = True  # the client lets its provider store the response


class Transcript(Struct, frozen=True, kw_only=True):
    """A conversation up to a response, which is its last."""

    response: str
    items: tuple[bytes, ...]
    root: str = ""  # id of the response that it continues; empty: a new conversation

    def grown(self, response: str, items: Sequence[bytes]) -> "Transcript":
        """With these items after the others."""
        return Transcript(response=response, items=(*self.items, *items), root=self.root)


def read(frame: bytes) -> tuple[str, str | None, Create]:
    """A client's frame: its type, its stream, and what it asks for. Raises `Unreadable`."""
    members, items = requests.split_body(frame)
    made = Create(
        members=members,
        items=tuple(items),
        previous=_text(members.get("previous_response_id")),
        generate=members.get("generate") != b"false",
        stored=members.get("store") != b"false",
    )
    stream = members.get("stream_id", b"null")
    if stream != b"null" and not stream.startswith(b'"'):
        raise Unreadable("expected a string under `stream_id`")
    return _text(members.get("type")), None if stream == b"null" else _text(stream), made


def continued(create: Create, held: Transcript | None) -> Transcript:
    """What a request goes on from and says, before there is an answer."""
    if held is not None:
        return held.grown("", create.items)
    return Transcript(response="", items=create.items, root=create.previous)


def posted(create: Create, whole: Transcript) -> bytes:
    """The full request, as it would have been posted."""
    kept = {name: raw for name, raw in create.members.items() if name not in _UNSENT}
    if create.members.get("background") == b"true":
        kept["background"] = b"true"  # for the provider to refuse
    if whole.root:
        kept["previous_response_id"] = splice.dumps(whole.root)
    kept["stream"] = b"true"
    kept["input"] = b"[" + b",".join(whole.items) + b"]"
    pieces = (splice.dumps(name) + b":" + raw for name, raw in kept.items())
    return b"{" + b",".join(pieces) + b"}"


def unsteered(create: Create) -> bytes:
    """The answer to a `response.steer` frame: its input comes back, to be said afterwards."""
    said = "Steering is not possible through this gateway; say it in the next response.create."
    error = {"type": "invalid_request_error", "code": "steering_not_supported", "message": said}
    given = b"[" + b",".join(create.items) + b"]"
    steer = {"previous_response_id": create.previous, "input": Raw(given)}
    return splice.dumps({"type": "response.steer.failed", "error": error, "steer": steer})


def tagged(event: bytes, stream: str | None) -> bytes:
    """An event for a client's stream, whatever stream it came from."""
    if stream is None and b'"stream_id"' not in event:
        return event
    try:
        spans = splice.members(event)
    except Unreadable:
        return event
    own = None if stream is None else splice.dumps(stream)
    span = splice.Span(0, 0, len(event.rstrip()))
    return splice.apply(event, splice.revise(span, spans, {"stream_id": own}))


def empty(id: str, model: str, at: float) -> list[dict[str, object]]:
    """The events of a response that says nothing."""
    response: dict[str, object] = {
        "id": id,
        "object": "response",
        "created_at": int(at),
        "model": model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": [],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
    }
    begun = {**response, "status": "in_progress"}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.completed", "response": {**response, "status": "completed"}},
    ]


def _text(raw: bytes | None) -> str:
    value = splice.loads(raw) if raw else None
    return value if isinstance(value, str) else ""

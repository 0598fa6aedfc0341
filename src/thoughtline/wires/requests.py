"""A Responses request taken apart: its members and its input items, each as it is spelled.

`read` makes one from a body and keeps what it can of the request before, so that only new items
are hashed; a caller that has the new items at hand says so with `grow` and the history is not
looked at at all. `frame` writes it for a WebSocket: whole, or from one item on after a response.
Nothing is spelled anew: an item goes out in the bytes in which it came in.
"""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

from thoughtline import splice
from thoughtline.errors import Unreadable
from thoughtline.wires.chains import Chain, kind, spelled

UNSENT = frozenset({"type", "input", "stream", "stream_id", "generate"})
"""Members that a frame has of its own, or not at all."""
_APART = UNSENT | {"previous_response_id", "client_metadata", "stream_options"}
"""Not compared: the input is compared otherwise; the last two are notes about one delivery, are
sent anew with each frame and say nothing to the model."""
_ELSEWHERE = ("previous_response_id", "conversation")
_NOTHING = (b"null", b'""')


class Request(Struct, frozen=True, kw_only=True):
    """One request to create a response, in full."""

    members: dict[str, bytes]  # all but `input`, as they are spelled
    fingerprints: dict[str, bytes]  # of those that are compared
    items: tuple[bytes, ...]
    chain: Chain

    @property
    def stateful(self) -> bool:
        """Whether it goes on from something that its server stores."""
        return any(self.members.get(name, b"null") not in _NOTHING for name in _ELSEWHERE)

    def grow(self, items: Sequence[bytes]) -> "Request":
        """The next request: these items after all others; costs only these."""
        return Request(
            members=self.members,
            fingerprints=self.fingerprints,
            items=(*self.items, *items),
            chain=self.chain.extend(items),
        )

    def compacted(self, index: int) -> bool:
        """Whether a summary of the history stands at this item or later."""
        return any(_kind(item).startswith("compaction") for item in self.items[index:])


def read(body: bytes, after: Request | None = None) -> Request:
    """A request from its body; items that it shares with the one before are not hashed again.

    Raises `Unreadable` for what is no request.
    """
    members, items = split(body)
    chain, shared = Chain(), 0
    fingerprints: dict[str, bytes] = {}
    if after is not None:
        limit = min(len(items), len(after.items))
        while shared < limit and items[shared] == after.items[shared]:
            shared += 1
        chain = after.chain.prefix(shared)
    for name, raw in members.items():
        if name not in _APART:
            same = after is not None and after.members.get(name) == raw
            known = after.fingerprints.get(name) if same and after is not None else None
            fingerprints[name] = known or blake2b(spelled(raw), digest_size=16).digest()
    return Request(
        members=members,
        fingerprints=fingerprints,
        items=tuple(items),
        chain=chain.extend(items[shared:]),
    )


def split(body: bytes) -> tuple[dict[str, bytes], list[bytes]]:
    """The members of a body but `input`, and the items of that, as they are spelled."""
    spans = splice.members(body)
    members = {name: body[span.value : span.end] for name, span in spans.items() if name != "input"}
    return members, _items(body, spans)


def _items(body: bytes, spans: dict[str, splice.Span]) -> list[bytes]:
    span = spans.get("input")
    if span is None or body[span.value : span.end] == b"null":
        return []
    if body[span.value : span.value + 1] == b"[":
        return [body[one.value : one.end] for one in splice.elements(body, span)]
    if body[span.value : span.value + 1] != b'"':
        raise Unreadable("expected a string or a list of items under `input`")
    return [b'{"role":"user","content":' + body[span.value : span.end] + b"}"]


def _kind(item: bytes) -> str:
    try:
        return kind(splice.loads(item))
    except Unreadable:
        return ""


def frame(
    request: Request,
    *,
    since: int = 0,
    previous: str = "",
    lane: str | None = None,
    generate: bool = True,
) -> bytes:
    """The `response.create` frame: the items from `since` on, after the response `previous`."""
    pieces = [b'{"type":"response.create"']
    for name, raw in request.members.items():
        if name not in UNSENT and not (previous and name == "previous_response_id"):
            pieces.append(splice.dumps(name) + b":" + raw)
    if previous:
        pieces.append(_after(previous))
    if lane is not None:
        pieces.append(b'"stream_id":' + splice.dumps(lane))
    if not generate:
        pieces.append(b'"generate":false')
    pieces.append(b'"input":[' + b",".join(request.items[since:]) + b"]")
    return b",".join(pieces) + b"}"


def posted(request: Request, body: bytes) -> bytes:
    """The body for HTTP: as it is, if it asks for a stream; else the same, asking for one."""
    if request.members.get("stream") == b"true":
        return body
    members = {name: raw for name, raw in request.members.items() if name not in UNSENT}
    pieces = [splice.dumps(name) + b":" + raw for name, raw in members.items()]
    pieces += [b'"stream":true', b'"input":[' + b",".join(request.items) + b"]"]
    return b"{" + b",".join(pieces) + b"}"


def whole_size(request: Request, framed: int, *, since: int, previous: str) -> int:
    """How long the frame of a continuation would have been as a full send."""
    if not previous:
        return framed
    commas = since if since < len(request.items) else since - 1
    held = sum(map(len, request.items[:since])) + max(0, commas)
    return framed - len(_after(previous)) - 1 + held


def _after(previous: str) -> bytes:
    return b'"previous_response_id":' + splice.dumps(previous)

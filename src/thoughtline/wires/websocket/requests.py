"""A Responses request, split into its members and its input items, each in its exact JSON text.

`read` makes one from a body and reuses what it can of the request before it, so that only new
items are hashed. `create_frame` writes it for a WebSocket: in full, or from one item on after a
response. No item is ever re-serialised: it goes out in the bytes in which it came in.

`RollingHash` has one digest per item, over all items up to it. Two lists of items begin alike if
their digests at that count are equal: one comparison, however long the lists are. Items are hashed
as the model sees them: a call or a message with the id that its server gave it equals one without.
In doubt an item is hashed as it stands, so that equal items may count as different, but never the
other way round.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.dialects import splice
from thoughtline.dialects.responses.items import item_type
from thoughtline.errors import Unreadable

REWRITTEN = frozenset({"type", "input", "stream", "stream_id", "generate"})
"""Members that a frame writes itself, or leaves out."""
_NOT_COMPARED = REWRITTEN | {"previous_response_id", "client_metadata", "stream_options"}
"""The input is compared by its hash; the last two are about one delivery, are sent again with each
frame and are not shown to the model."""
_STORED_STATE = ("previous_response_id", "conversation")
_NOTHING = (b"null", b'""')
_SIZE = 16
_ROOT = bytes(_SIZE)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_EMPTY = ("annotations", "logprobs")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode


class RollingHash:
    """The digests of a list of items; a list and its prefixes share them.

    A hash is a value: extending it leaves the shorter one as it was, and costs only the new items.
    """

    __slots__ = ("_digests", "count")

    def __init__(self, digests: list[bytes] | None = None, count: int = 0) -> None:
        self._digests = [] if digests is None else digests
        self.count = count

    @property
    def digest(self) -> bytes:
        """The digest of all items."""
        return self.at(self.count)

    def at(self, count: int) -> bytes:
        """The digest of the first `count` items; empty where there are not as many."""
        if not 0 <= count <= self.count:
            return b""
        return self._digests[count - 1] if count else _ROOT

    def prefix(self, count: int) -> "RollingHash":
        """The hash of the first `count` items."""
        return RollingHash(self._digests, max(0, min(count, self.count)))

    def extend(self, items: Iterable[bytes]) -> "RollingHash":
        """The hash of the list with these items (JSON texts) added; costs only these."""
        digests = self._digests
        if len(digests) > self.count:  # a longer list shares them, and continues differently
            digests = digests[: self.count]
        last = self.digest
        for item in items:
            last = blake2b(comparable_item(item), digest_size=_SIZE, key=last).digest()
            digests.append(last)
        return RollingHash(digests, len(digests))

    def is_prefix_of(self, other: "RollingHash") -> bool:
        """Whether the other list begins with all items of this one."""
        return self.digest == other.at(self.count)

    def first_difference(self, other: "RollingHash") -> int:
        """The index of the first item in which two lists differ, found by bisection."""
        low, high = 0, min(self.count, other.count)
        while low < high:
            middle = (low + high + 1) // 2
            if self.at(middle) == other.at(middle):
                low = middle
            else:
                high = middle - 1
        return low


def comparable_item(item: bytes) -> bytes:
    """An item in the one form in which items are compared."""
    return comparable_json(item, _without_labels)


def comparable_json(text: bytes, form: Callable[[Any], Any] = lambda value: value) -> bytes:
    """A JSON value, changed by `form`, with sorted keys; different values stay different."""
    try:
        return _encode(form(_decode(text)))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # half a surrogate pair, a huge number, great depth
    try:
        return json.dumps(form(json.loads(text)), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return b"raw:" + text


def _without_labels(item: Any) -> Any:
    """A call or a message without the ids and statuses that its server added to it."""
    what = item_type(item)
    if what in _CALLS:
        return _unlabelled(item)
    if what != "message" or item.get("type") not in (None, "message"):
        return item
    if item.get("role") == "assistant":
        return {**_unlabelled(item), "type": "message", "content": _plain(item.get("content"))}
    return {**item, "type": "message"}


def _unlabelled(item: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in item.items()
        if key != "id" and value is not None and not (key == "status" and value == "completed")
    }


def _plain(content: Any) -> Any:
    """A single run of text as a string; any other content as it stands."""
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return content
    part = {key: value for key, value in content[0].items() if key not in _EMPTY or value}
    if part.keys() == {"type", "text"} and part["type"] == "output_text":
        return part["text"]
    return content


# -- requests ------------------------------------------------------------------------------------


class ResponsesRequest(Struct, frozen=True, kw_only=True):
    """One request to create a response, in full."""

    members: dict[str, bytes]  # all but `input`: their JSON texts
    fingerprints: dict[str, bytes]  # of the members that are compared
    items: tuple[bytes, ...]
    rolling_hash: RollingHash  # over the items

    @property
    def stateful(self) -> bool:
        """Whether the request continues something that its server stores."""
        return any(self.members.get(name, b"null") not in _NOTHING for name in _STORED_STATE)

    def compacted(self, index: int) -> bool:
        """Whether a summary of the history stands at this item or later."""
        return any(_kind(item).startswith("compaction") for item in self.items[index:])


def read(body: bytes, after: ResponsesRequest | None = None) -> ResponsesRequest:
    """The request in a body; items that it shares with the one before are not hashed again.

    Raises `Unreadable` for a body that is no such request.
    """
    members, items = split_body(body)
    rolling_hash, shared = RollingHash(), 0
    fingerprints: dict[str, bytes] = {}
    if after is not None:
        limit = min(len(items), len(after.items))
        while shared < limit and items[shared] == after.items[shared]:
            shared += 1
        rolling_hash = after.rolling_hash.prefix(shared)
    for name, raw in members.items():
        if name not in _NOT_COMPARED:
            same = after is not None and after.members.get(name) == raw
            known = after.fingerprints.get(name) if same and after is not None else None
            fingerprints[name] = known or blake2b(comparable_json(raw), digest_size=_SIZE).digest()
    return ResponsesRequest(
        members=members,
        fingerprints=fingerprints,
        items=tuple(items),
        rolling_hash=rolling_hash.extend(items[shared:]),
    )


def split_body(body: bytes) -> tuple[dict[str, bytes], list[bytes]]:
    """The members of a body without `input`, and the items of `input`, as JSON texts."""
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
        return item_type(splice.loads(item))
    except Unreadable:
        return ""


def create_frame(
    request: ResponsesRequest,
    *,
    since: int = 0,
    previous: str = "",
    stream_id: str | None = None,
    generate: bool = True,
) -> bytes:
    """The `response.create` frame: the items from `since` on, after the response `previous`."""
    pieces = [b'{"type":"response.create"']
    for name, raw in request.members.items():
        if name not in REWRITTEN and not (previous and name == "previous_response_id"):
            pieces.append(splice.dumps(name) + b":" + raw)
    if previous:
        pieces.append(_previous(previous))
    if stream_id is not None:
        pieces.append(b'"stream_id":' + splice.dumps(stream_id))
    if not generate:
        pieces.append(b'"generate":false')
    pieces.append(b'"input":[' + b",".join(request.items[since:]) + b"]")
    return b",".join(pieces) + b"}"


def full_frame_size(
    request: ResponsesRequest, frame_size: int, *, since: int, previous: str
) -> int:
    """How many bytes the frame of a continuation would have as a full send."""
    if not previous:
        return frame_size
    commas = since if since < len(request.items) else since - 1
    left_out = sum(map(len, request.items[:since])) + max(0, commas)
    return frame_size - len(_previous(previous)) - 1 + left_out


def _previous(previous: str) -> bytes:
    return b'"previous_response_id":' + splice.dumps(previous)


def http_body(request: ResponsesRequest, body: bytes) -> bytes:
    """The body for HTTP: unchanged if it asks for a stream; else the same, asking for one."""
    if request.members.get("stream") == b"true":
        return body
    members = {name: raw for name, raw in request.members.items() if name not in REWRITTEN}
    pieces = [splice.dumps(name) + b":" + raw for name, raw in members.items()]
    pieces += [b'"stream":true', b'"input":[' + b",".join(request.items) + b"]"]
    return b"{" + b",".join(pieces) + b"}"

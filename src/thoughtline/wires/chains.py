"""The rolling hash over a conversation's wire items: one digest per item, over all before it.

Two lists of items begin alike if their digests at that count are equal, which is one comparison
however long they are. Items are hashed in the form in which the model sees them: a call or a
message with the id that its server gave it says the same as one without. Whatever is in doubt is
hashed as it stands: then two things may differ that are the same, never the other way round.
A chain is a value: extending it leaves the shorter one as it was, and costs only the new items.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import msgspec

_SIZE = 16
_ROOT = bytes(_SIZE)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_EMPTY = ("annotations", "logprobs")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode


class Chain:
    """The digests of a list of items, shared between a list and its beginnings."""

    __slots__ = ("_digests", "count")

    def __init__(self, digests: list[bytes] | None = None, count: int = 0) -> None:
        self._digests = [] if digests is None else digests
        self.count = count

    @property
    def digest(self) -> bytes:
        """The digest of all items."""
        return self.at(self.count)

    def at(self, count: int) -> bytes:
        """The digest of the first `count` items; nothing where there are not as many."""
        if not 0 <= count <= self.count:
            return b""
        return self._digests[count - 1] if count else _ROOT

    def prefix(self, count: int) -> "Chain":
        """The chain of the first `count` items."""
        return Chain(self._digests, max(0, min(count, self.count)))

    def extend(self, items: Iterable[bytes]) -> "Chain":
        """The chain with these items (JSON texts) after the others; costs only these."""
        digests = self._digests
        if len(digests) > self.count:  # a longer chain shares them: it goes another way from here
            digests = digests[: self.count]
        last = self.digest
        for item in items:
            last = blake2b(canonical(item), digest_size=_SIZE, key=last).digest()
            digests.append(last)
        return Chain(digests, len(digests))

    def starts(self, other: "Chain") -> bool:
        """Whether the other one begins with all of this."""
        return self.digest == other.at(self.count)

    def parting(self, other: "Chain") -> int:
        """The index of the first item in which two chains differ; found by bisection."""
        low, high = 0, min(self.count, other.count)
        while low < high:
            middle = (low + high + 1) // 2
            if self.at(middle) == other.at(middle):
                low = middle
            else:
                high = middle - 1
        return low


def canonical(item: bytes) -> bytes:
    """An item in the one spelling in which it is compared."""
    return spelled(item, _plain)


def spelled(text: bytes, form: Callable[[Any], Any] = lambda value: value) -> bytes:
    """A JSON value in one spelling; what the strict decoder refuses loses no difference either."""
    try:
        return _encode(form(_decode(text)))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # half an emoji, a huge number, great depth
    try:
        return json.dumps(form(json.loads(text)), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return b"raw:" + text


def kind(item: Any) -> str:
    """The type of a decoded item; a role stands for a message."""
    if not isinstance(item, dict):
        return ""
    named = item.get("type")
    if isinstance(named, str):
        return named
    return "message" if named is None and "role" in item else ""


def _plain(item: Any) -> Any:
    """A call or a message without what its server wrote on it for the record."""
    what = kind(item)
    if what in _CALLS:
        return _unlabelled(item)
    if what == "message" and item.get("role") == "assistant":
        return {**_unlabelled(item), "type": "message", "content": _words(item.get("content"))}
    return {**item, "type": "message"} if what == "message" else item


def _unlabelled(item: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in item.items()
        if key != "id" and value is not None and not (key == "status" and value == "completed")
    }


def _words(content: Any) -> Any:
    """A single run of text as a string; anything richer as it stands."""
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return content
    part = {key: value for key, value in content[0].items() if key not in _EMPTY or value}
    if part.keys() == {"type", "text"} and part["type"] == "output_text":
        return part["text"]
    return content

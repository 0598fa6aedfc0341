"""Digests of everything before each output of a Messages body.

Newer signatures are valid only while the system prompt, the tools and every earlier message stay
as they were. Not part of that are earlier thinking blocks, `cache_control`, deferred tools, the
formatting of the JSON, and whether a lone text is written as a string or as a block.
"""

from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from thoughtline.dialects import splice
from thoughtline.dialects.base import Prefixes, Request
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json

MAX_KEPT = 16
MAX_KEPT_SIZE = 256 << 10
"""How many system prompts with their tools are kept, and how large each may be, in bytes."""
_members = splice.some_members(("messages",), slices=("system", "tools"))
_NULL = msgspec.Raw(b"null")


class PrefixState(NamedTuple):
    """What the digests of later turns are made from."""

    head: str  # digest of the system prompt and the tools
    state: Any  # of the hash, behind an output


def prefixes(request: Request, after: PrefixState | None = None) -> Prefixes | None:
    """Return for every turn the digest of everything before its output, in one pass.

    `after` is the state behind the messages that stand before those of the request; None where
    it was made with another system prompt, or other tools.
    """
    try:
        return _prefixes(request, after)
    except RecursionError:
        raise Unreadable("nested too deeply to be read") from None


def _prefixes(request: Request, after: PrefixState | None) -> Prefixes | None:
    has = _members(request.body)
    begun = _head(bytes(has.get("system", _NULL)), bytes(has.get("tools", _NULL)))
    head = begun.digest
    if after is not None and after.head != head:
        return None
    state = (begun if after is None else after).state.copy()
    outputs = set(request.anchors)
    before: dict[int, str] = {}
    behind: dict[int, PrefixState] = {}
    for index, message in enumerate(has["messages"]):
        if index in outputs:
            before[index] = state.hexdigest()
        _take(state, canonical_json(_message(message)))
        if index in outputs:
            behind[index] = PrefixState(head, state.copy())
    before[-1], behind[-1] = state.hexdigest(), PrefixState(head, state)
    return Prefixes(
        tuple([before[anchor] for anchor in request.anchors]),
        tuple([behind[anchor] for anchor in request.anchors]),
    )


class _Head(NamedTuple):
    """What stands before the messages of a request, as it was spelled, and its digest."""

    system: bytes
    tools: bytes
    digest: str
    state: Any  # of the hash behind it


_heads: tuple[_Head, ...] = ()


def _head(system: bytes, tools: bytes) -> _Head:
    """Return the digest of a system prompt and tools.

    Tools are large, and a client sends the same ones with every request: the last few are kept.
    """
    global _heads  # noqa: PLW0603 (one value, replaced as a whole)
    for known in _heads:
        if known.tools == tools and known.system == system:
            return known
    state = blake2b(digest_size=keys.KEY_SIZE)
    _take(state, canonical_json([_blocks(_loaded(system) or []), _declared(tools)]))
    made = _Head(system, tools, state.hexdigest(), state)
    if len(system) + len(tools) <= MAX_KEPT_SIZE:
        _heads = (made, *_heads[: MAX_KEPT - 1])
    return made


def _declared(tools: bytes) -> list[str]:
    """Return the tools that a model has from the beginning, in an order that does not count."""
    declared = _loaded(tools)
    return sorted(
        canonical_json(_without_marker(tool))
        for tool in (declared if isinstance(declared, list) else [])
        if not (isinstance(tool, dict) and tool.get("defer_loading") is True)
    )


def _loaded(text: bytes) -> Any:
    return splice.loads_slice(msgspec.Raw(text))


def _take(state: Any, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    state.update(b"%d:" % len(data))
    state.update(data)


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    return _without_marker(message) | {"content": [] if content is None else _blocks(content)}


def _blocks(content: Any) -> Any:
    """Return a content without thoughts and cache markers, as a list where that is possible."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    return [
        _block(block)
        for block in content
        if not (isinstance(block, dict) and block.get("type") in THINKING)
    ]


def _block(block: Any) -> Any:
    """Return a block without cache markers; those inside a tool's input are left alone."""
    plain = _without_marker(block)
    if isinstance(plain, dict) and plain.get("type") == "tool_result" and "content" in plain:
        return plain | {"content": _blocks(plain["content"])}
    return plain


def _without_marker(value: Any) -> Any:
    if not isinstance(value, dict) or "cache_control" not in value:
        return value
    return {key: inner for key, inner in value.items() if key != "cache_control"}

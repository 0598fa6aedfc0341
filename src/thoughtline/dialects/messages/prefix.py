"""Digests of everything before each output of a Messages body.

Newer signatures are valid only while the system prompt, the tools and every earlier message stay
as they were. Not part of that are earlier thinking blocks, `cache_control`, deferred tools, the
formatting of the JSON, and whether a lone text is written as a string or as a block.
"""

from hashlib import blake2b
from typing import Any, NamedTuple

from thoughtline.dialects import splice
from thoughtline.dialects.base import Prefixes, Request
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.errors import Unreadable
from thoughtline.log import keys


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
    document = splice.loads(request.body)
    tools = document.get("tools")
    declared = [
        keys.canonical_json(_without_marker(tool))
        for tool in (tools if isinstance(tools, list) else [])
        if not (isinstance(tool, dict) and tool.get("defer_loading") is True)
    ]
    state = blake2b(digest_size=keys.KEY_SIZE)
    _take(state, keys.canonical_json([_blocks(document.get("system") or []), sorted(declared)]))
    head = state.hexdigest()
    if after is not None:
        if after.head != head:
            return None
        state = after.state.copy()
    outputs = set(request.anchors)
    before: dict[int, str] = {}
    behind: dict[int, PrefixState] = {}
    for index, message in enumerate(document["messages"]):
        if index in outputs:
            before[index] = state.hexdigest()
        _take(state, keys.canonical_json(_message(message)))
        if index in outputs:
            behind[index] = PrefixState(head, state.copy())
    before[-1], behind[-1] = state.hexdigest(), PrefixState(head, state)
    return Prefixes(
        tuple([before[anchor] for anchor in request.anchors]),
        tuple([behind[anchor] for anchor in request.anchors]),
    )


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

"""Digests of everything before each output of a Messages body.

Newer signatures are valid only while the system prompt, the tools and every earlier message stay
as they were. Not part of that are earlier thinking blocks, `cache_control`, deferred tools, the
formatting of the JSON, and whether a lone text is written as a string or as a block.
"""

from hashlib import blake2b
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.messages.patch import THINKING
from thoughtline.errors import Unreadable
from thoughtline.log import keys


def prefixes(request: Request) -> list[str]:
    """Return for every turn the digest of everything before its output, in one pass."""
    try:
        return _prefixes(request)
    except RecursionError:
        raise Unreadable("nested too deeply to be read") from None


def _prefixes(request: Request) -> list[str]:
    document = splice.loads(request.body)
    tools = document.get("tools")
    declared = [
        keys.canonical_json(_without_marker(tool))
        for tool in (tools if isinstance(tools, list) else [])
        if not (isinstance(tool, dict) and tool.get("defer_loading") is True)
    ]
    state = blake2b(digest_size=keys.KEY_SIZE)
    _take(state, keys.canonical_json([_blocks(document.get("system") or []), sorted(declared)]))
    outputs = set(request.anchors)
    before: dict[int, str] = {}
    for index, message in enumerate(document["messages"]):
        if index in outputs:
            before[index] = state.copy().hexdigest()
        _take(state, keys.canonical_json(_message(message)))
    before[-1] = state.hexdigest()
    return [before[anchor] for anchor in request.anchors]


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

"""Odd shapes of the Messages API: pure functions over blocks, or over events and whole bodies.

`BLOCKS` add what a server does by itself: its own tools and their results, citations. `EVENTS`
leave blocks as they are. What changes what a client sees comes only where a test names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from thoughtline.testing.sims.oddities import Oddity
from thoughtline.testing.sims.values import Say, Think, Use

Block = dict[str, Any]
Frames = list[Block]


class Extra(NamedTuple):
    """A block that no script asked for."""

    block: Block


Plan = list[Any]
"""Pieces, and extra blocks between them."""


def _after_thoughts(plan: Plan, *blocks: Block) -> Plan:
    """Put blocks behind the first thoughts."""
    at = next((n for n, one in enumerate(plan) if isinstance(one, Say | Use | Extra)), len(plan))
    return [*plan[:at], *map(Extra, blocks), *plan[at:]]


def _id(dice: Random, prefix: str = "srvtoolu_") -> str:
    return f"{prefix}01{dice.getrandbits(88):022x}"


_DIRECT = {"type": "direct"}


def _served(dice: Random, name: str, given: Block, kind: str, content: object) -> list[Block]:
    """A call of a server's tool, and its result."""
    key = _id(dice)
    use = {"type": "server_tool_use", "id": key, "name": name, "input": given, "caller": _DIRECT}
    return [use, {"type": kind, "tool_use_id": key, "content": content, "caller": _DIRECT}]


def web_search(plan: Plan, dice: Random) -> Plan:
    """A search, with its results."""
    found = {
        "type": "web_search_result",
        "title": "Weather",
        "url": "https://example.com/weather",
        "encrypted_content": f"Eo8{dice.getrandbits(240):060x}",
        "page_age": None,
    }
    given = {"query": "weather"}
    made = _served(dice, "web_search", given, "web_search_tool_result", [found])
    return _after_thoughts(plan, *made)


def failed_search(plan: Plan, dice: Random) -> Plan:
    """A search that did not work: its result is an object and no list."""
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    given = {"query": "weather"}
    made = _served(dice, "web_search", given, "web_search_tool_result", error)
    return _after_thoughts(plan, *made)


def code_execution(plan: Plan, dice: Random) -> Plan:
    """A command in the provider's sandbox."""
    result = {
        "type": "bash_code_execution_result",
        "stdout": "2\n",
        "stderr": "",
        "return_code": 0,
        "content": [],
    }
    kind, given = "bash_code_execution_tool_result", {"command": "expr 1 + 1"}
    return _after_thoughts(plan, *_served(dice, "bash_code_execution", given, kind, result))


def tool_search(plan: Plan, dice: Random) -> Plan:
    """A search among tools that are loaded later."""
    result = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "read_file"}],
    }
    name, given = "tool_search_tool_regex", {"pattern": "read"}
    made = _served(dice, name, given, "tool_search_tool_result", result)
    return _after_thoughts(plan, *made)


def mcp(plan: Plan, dice: Random) -> Plan:
    """A tool of an MCP server that the provider itself has called."""
    key = _id(dice, "mcptoolu_")
    use = {"type": "mcp_tool_use", "id": key, "name": "look", "input": {}, "server_name": "notes"}
    text = [{"type": "text", "text": "Nothing new."}]
    result = {"type": "mcp_tool_result", "tool_use_id": key, "is_error": False, "content": text}
    return _after_thoughts(plan, use, result)


def citations(plan: Plan, dice: Random) -> Plan:
    """A text says where it comes from."""
    source = {
        "type": "web_search_result_location",
        "cited_text": "It is mild.",
        "url": "https://example.com/weather",
        "title": "Weather",
        "encrypted_index": f"Eo1{dice.getrandbits(120):030x}",
    }
    return [
        Extra({"type": "text", "text": one.text, "citations": [source]})
        if isinstance(one, Say)
        else one
        for one in plan
    ]


def _declares(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    """The request declares a tool of the server's."""

    def asked(body: Mapping[str, Any]) -> bool:
        tools = body.get("tools") or ()
        return any(str(tool.get("type", "")).startswith(kind) for tool in tools)

    return asked


BLOCKS: Mapping[str, Oddity] = {
    "web_search": Oddity(web_search, _declares("web_search")),
    "failed_search": Oddity(failed_search, lambda _body: False),
    "code_execution": Oddity(code_execution, _declares("code_execution")),
    "tool_search": Oddity(tool_search, _declares("tool_search")),
    "mcp": Oddity(mcp, lambda body: bool(body.get("mcp_servers"))),
    "citations": Oddity(citations, _declares("web_search")),
    "no_thought": Oddity(lambda plan, _: [one for one in plan if not isinstance(one, Think)]),
    "compaction": Oddity(
        lambda plan, _: [Extra({"type": "compaction", "content": "So far: a file."}), *plan]
    ),
    "fallback": Oddity(
        lambda plan, _: [
            Extra({"type": "fallback", "from": {"model": "one"}, "to": {"model": "other"}}),
            *plan,
        ]
    ),
}
"""By name, in the order in which they are applied; the last three only where they are named."""


# -- events and bodies -----------------------------------------------------------------------------


def _heads(frames: Frames, change: Callable[[Block], Block]) -> Frames:
    """Change the message, whole or as it begins."""

    def head(frame: Block) -> Block:
        if frame["type"] == "message_start":
            return {**frame, "message": change(frame["message"])}
        return change(frame) if frame["type"] == "message" else frame

    return [head(frame) for frame in frames]


def _contents(frames: Frames, change: Callable[[Block], Block]) -> Frames:
    """Change each block, whole or as it begins."""

    def within(frame: Block) -> Block:
        if frame["type"] == "content_block_start":
            return {**frame, "content_block": change(frame["content_block"])}
        if frame["type"] == "message":
            return {**frame, "content": [change(one) for one in frame["content"]]}
        return frame

    return [within(frame) for frame in frames]


def message_members(frames: Frames, _dice: Random) -> Frames:
    """What newer versions say of a message, most of it null."""
    more = {"container": None, "context_management": None, "stop_details": None}
    counted = {
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "inference_geo": "not_available",
    }
    return _heads(frames, lambda one: {**one, **more, "usage": {**one.get("usage", {}), **counted}})


def block_members(frames: Frames, _dice: Random) -> Frames:
    """Texts say that they cite nothing, calls who has called."""
    more: Mapping[str, Block] = {"text": {"citations": None}, "tool_use": {"caller": _DIRECT}}
    return _contents(frames, lambda block: {**more.get(block["type"], {}), **block})


def pings(frames: Frames, dice: Random) -> Frames:
    """Pings come at any time, also within a block."""
    if len(frames) == 1:
        return frames
    first, *rest = frames
    ping = [{"type": "ping"}]
    return [
        first,
        *(one for frame in rest for one in (*(ping if dice.random() < 0.2 else ()), frame)),
    ]


def late_usage(frames: Frames, _dice: Random) -> Frames:
    """The prompt is counted again at the end, and edits of the context are named."""

    def delta(frame: Block) -> Block:
        if frame["type"] != "message_delta":
            return frame
        counted = {"input_tokens": 10, "cache_read_input_tokens": 0, "server_tool_use": None}
        edits: Block = {"context_management": {"applied_edits": []}}
        return {**frame, "usage": {**counted, **frame["usage"]}, **edits}

    return [delta(frame) for frame in frames]


def pause_turn(frames: Frames, _dice: Random) -> Frames:
    """A long turn pauses: the client is to send it back as it is."""
    paused = {"stop_reason": "pause_turn"}

    def stopped(frame: Block) -> Block:
        if frame["type"] == "message_delta":
            return {**frame, "delta": {**frame["delta"], **paused}}
        return {**frame, **paused} if frame["type"] == "message" else frame

    return [stopped(frame) for frame in frames]


def error_midstream(frames: Frames, _dice: Random) -> Frames:
    """The server fails after half of the answer."""
    if len(frames) == 1:
        return frames
    error = {"type": "overloaded_error", "message": "Overloaded"}
    return [*frames[: len(frames) // 2], {"type": "error", "error": error}]


EVENTS: Mapping[str, Oddity] = {
    "message_members": Oddity(message_members),
    "block_members": Oddity(block_members),
    "pings": Oddity(pings),
    "late_usage": Oddity(late_usage),
    "pause_turn": Oddity(pause_turn),
    "error_midstream": Oddity(error_midstream),
}
"""By name, in the order in which they are applied; the last two only where they are named."""

_CLAUDE: Sequence[str] = (
    *("web_search", "code_execution", "tool_search", "mcp", "citations"),
    *("message_members", "block_members", "pings", "late_usage"),
)
EMITS: Mapping[str, tuple[str, ...]] = {
    "claude": tuple(_CLAUDE),
    "claude-bound": tuple(_CLAUDE),
    "deepseek-anthropic": ("pings", "message_members"),
    "glm-anthropic": ("pings", "message_members"),
}
"""What each provider's answers have."""

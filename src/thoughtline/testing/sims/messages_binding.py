"""What a signature of the Messages API is bound to, and the forms in which that is compared.

A signature seals `Claims`. Older models check what the thought says and whose it is. Newer ones
also check everything before it: `Prefix` follows a conversation and gives, at any place in it, one
digest of the system prompt, one of the tools and one of the messages, without thinking blocks,
cache markers and whatever else JSON lets people write in two ways
(platform.claude.com/docs/en/build-with-claude/preserved-thinking, "What counts as an edit").
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from thoughtline.testing.sims.messages_input import THOUGHTS, Block, Message, blocks_of
from thoughtline.testing.sims.spelling import plain


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What is sealed in a signature, or in the data of a redacted block."""

    kind: str
    name: str
    """Names the block: the exchange and its number in it."""
    index: int
    count: int
    """How many thinking blocks its message has."""
    calls: int
    """How many calls stand before it in its message."""
    text: str
    """A digest of what is shown of the thought."""
    family: str
    account: str
    system: str = ""
    tools: str = ""
    messages: str = ""
    before: str = ""
    """The name of the thinking block before it, in the whole conversation."""


class Prefix:
    """Everything before a place in a conversation."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.system = digest([clean(block) for block in blocks_of(body.get("system"))])
        self._tools = [tool for tool in body.get("tools") or () if isinstance(tool, dict)]
        self._messages = hashlib.sha256()
        self._named: set[str] = set()

    def open(self, role: str) -> None:
        """Go on to a new message."""
        self._messages.update(f"\n{role}:".encode())

    def add(self, block: Block) -> None:
        """Go past one block."""
        if block["type"] in THOUGHTS:
            return
        self._named |= _names(block)
        self._messages.update(plain(clean(block)).encode() + b",")

    def follow(self, message: Message) -> None:
        """Go past one whole message."""
        self.open(message.role)
        for block in message.blocks:
            self.add(block)

    @property
    def tools(self) -> str:
        """The tools, in any order; those to be loaded later count once they are named."""
        bound = [
            clean(tool)
            for tool in self._tools
            if tool.get("defer_loading") is not True or tool.get("name") in self._named
        ]
        return digest(sorted(plain(tool) for tool in bound))

    @property
    def messages(self) -> str:
        """The messages so far."""
        return self._messages.copy().hexdigest()[:32]


_DIRECT = ("caller", {"type": "direct"})
"""As good as no caller at all."""


def digest(value: object) -> str:
    """A short name for a JSON value."""
    return hashlib.sha256(plain(value).encode()).hexdigest()[:32]


def clean(value: Any) -> Any:
    """Leave out what is not part of the prefix: markers, and what says nothing."""
    if isinstance(value, list):
        return [clean(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: clean(one)
        for key, one in value.items()
        # SDKs write the fields they know as null; null says nothing.
        if key != "cache_control" and one is not None and (key, one) != _DIRECT
    }
    if kept.get("type") == "tool_result":
        kept["content"] = [clean(block) for block in blocks_of(kept.get("content"))]
        if kept.get("is_error") is False:
            del kept["is_error"]
    return kept


def _names(block: Block) -> set[str]:
    """The tools that a block names."""
    if block["type"] == "tool_use":
        return {str(block["name"])}
    inner = block.get("content") if block["type"] == "tool_result" else [block]
    found = inner if isinstance(inner, list) else []
    return {
        str(one.get("tool_name"))
        for one in found
        if isinstance(one, dict) and one.get("type") == "tool_reference"
    }

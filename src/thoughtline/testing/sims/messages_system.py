"""Where a Messages request may hold a `system` message, and what stands in it.

Newer Claude models take instructions in the middle of a conversation, at certain places; a message
that only sets the effort from there on has no content and may stand anywhere. Older ones know no
such role. DeepSeek says nothing about it, and takes what comes.
"""

from __future__ import annotations

from collections.abc import Sequence

from thoughtline.testing.sims.messages_input import Call, Message
from thoughtline.testing.sims.messages_rows import (
    EFFORT,
    SYSTEM_BLOCKS,
    SYSTEM_EMPTY,
    SYSTEM_FIRST,
    SYSTEM_FOLLOW,
    SYSTEM_PRECEDE,
    SYSTEM_UNKNOWN,
    Row,
)
from thoughtline.testing.sims.problems import Problem

_BLOCKS = ("text", "tool_addition", "tool_removal")


def check_system(call: Call, row: Row, betas: str) -> None:
    """Check the system messages of a request.

    Raises:
        Problem: one of them is not of this model, or not in its place.
    """
    if not row.anthropic:
        return
    messages = call.messages
    given = call.body["messages"]
    may_set_effort = any(beta.strip() in EFFORT for beta in betas.split(","))
    for at, message in enumerate(messages):
        if "output_config" in given[at] and not (message.role == "system" and may_set_effort):
            raise Problem(400, f"messages.{at}.output_config: Extra inputs are not permitted")
        if message.role != "system":
            continue
        if row.binding != "prefix":
            raise Problem(400, SYSTEM_UNKNOWN)
        if message.blocks or "output_config" not in given[at]:
            _content(message, at)
            _place(messages, at)


def _content(message: Message, at: int) -> None:
    if not message.blocks:
        raise Problem(400, SYSTEM_EMPTY.format(at=at))
    if any(block["type"] not in _BLOCKS for block in message.blocks):
        raise Problem(400, SYSTEM_BLOCKS.format(at=at))


def _place(messages: Sequence[Message], at: int) -> None:
    """After a user, and before an assistant or at the end; those in a row are one."""
    before = [one.role for one in messages[:at] if one.role != "system"]
    after = [one.role for one in messages[at + 1 :] if one.role != "system"]
    if not before:
        raise Problem(400, SYSTEM_FIRST.format(at=at))
    if before[-1] != "user":
        raise Problem(400, SYSTEM_FOLLOW.format(at=at))
    if after and after[0] != "assistant":
        raise Problem(400, SYSTEM_PRECEDE.format(at=at))

"""Which turns the thoughts belong to that a provider kept from the model.

It names them by an item's id, or by a path in the request as it went out (`messages.3.content.0`).
"""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.engine.decision import RequestDecision
from thoughtline.errors import Unreadable
from thoughtline.log.events import Unread
from thoughtline.log.index import IndexEntry
from thoughtline.log.parts import Thought

_PATH = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_SEALS = ("signature", "data")


def located(unread: Sequence[Unread], decision: RequestDecision) -> tuple[Unread, ...]:
    """What was not read, with the turns that are known of it."""
    messages = _messages(decision) if any(_PATH.match(one.at) for one in unread) else []
    entries = [entry for filed in decision.found.values() for entry in filed]
    return tuple(replace(one, turn=_owner(one, entries, messages)) for one in unread)


def _owner(unread: Unread, entries: Sequence[IndexEntry], messages: Sequence[object]) -> str:
    seal = _seal_at(unread.at, messages)
    for entry, thought in _thoughts(entries):
        if (seal in thought.raw) if seal else (thought.id == unread.at and unread.at):
            return entry.turn
    return ""


def _thoughts(entries: Sequence[IndexEntry]) -> Iterator[tuple[IndexEntry, Thought]]:
    return ((entry, thought) for entry in entries for thought in entry.thoughts)


def _messages(decision: RequestDecision) -> list[object]:
    try:
        history = splice.top_level_list(decision.body, decision.dialect.history_member)
    except Unreadable:
        return []
    return [message for _, message in history]


def _seal_at(path: str, messages: Sequence[object]) -> str:
    """The seal of the block at a path; empty where there is none."""
    found = _PATH.match(path)
    if found is None or int(found[1]) >= len(messages):
        return ""
    message = messages[int(found[1])]
    blocks = message.get("content") if isinstance(message, dict) else None
    index = int(found[2])
    if not isinstance(blocks, list) or index >= len(blocks) or not isinstance(blocks[index], dict):
        return ""
    seals = (blocks[index].get(name) for name in _SEALS)
    return next((seal for seal in seals if isinstance(seal, str) and seal), "")

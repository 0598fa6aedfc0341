"""A request, message by message: what the client sent, and what went upstream in its place.

The bytes are not kept. What was put in and left out is told by the rulings of the turn, and what
those thoughts were by the log. Pure: values in, shapes out.
"""

from collections.abc import Mapping, Sequence

from thoughtline.inspector.outlines import titled
from thoughtline.inspector.rulings import Ruled, ruled, shown
from thoughtline.inspector.shapes import Change, MessageShape, RequestShape
from thoughtline.parts import Call, Part, Result, Text, Thought
from thoughtline.turns import Turn

CHANGING = frozenset({"restored", "replaced", "placeholder", "dropped"})
NOT_HERE = Change(carrier="", bytes=None, text=None)
"""A thought that only the client had, or that stands in another session's log."""


def difference(turn: Turn, known: Mapping[str, Turn], *, thoughts: bool) -> RequestShape:
    """The request of a turn; `known` are remembered turns by id."""
    messages = [
        _answer(one, known.get(one.memory), thoughts=thoughts) for one in ruled(turn.replay)
    ]
    position = messages[-1].position + 1 if messages else 0
    if turn.input:
        messages.append(
            MessageShape(
                position=position,
                role="tool" if any(isinstance(p, Result) for p in turn.input) else "user",
                turn=turn.id,
                preview=preview(turn.input),
                changed=False,
                added=[],
                removed=[],
                ruling=None,
            )
        )
    return RequestShape(messages=messages)


def preview(parts: Sequence[Part]) -> str:
    """The first words of what was said, or what was called or answered."""
    if words := titled(parts):
        return words
    calls = [part.name for part in parts if isinstance(part, Call)]
    if calls:
        return f"calls {', '.join(calls)}"
    return titled(Text(text=part.content) for part in parts if isinstance(part, Result))


def _answer(one: Ruled, memory: Turn | None, *, thoughts: bool) -> MessageShape:
    added: list[Change] = []
    removed: list[Change] = []
    if one.action in ("restored", "replaced"):
        added = _changes(_usable(memory), one.thoughts, thoughts=thoughts)
    if one.action == "placeholder":
        added = [Change(carrier="placeholder", bytes=None, text=None)]
    if one.action == "replaced":
        removed = [NOT_HERE] * max(one.left, 1)
    elif one.action == "dropped":
        removed = _changes(memory.thoughts if memory else (), one.left, thoughts=thoughts)
    return MessageShape(
        position=one.turn,
        role="assistant",
        turn=one.memory or None,
        preview=preview(memory.output) if memory else "",
        changed=one.action in CHANGING,
        added=added,
        removed=removed,
        ruling=shown(one),
    )


def _usable(memory: Turn | None) -> list[Thought]:
    if memory is None:
        return []
    return [t for n, t in enumerate(memory.thoughts) if n not in memory.quarantined]


def _changes(known: Sequence[Thought], count: int, *, thoughts: bool) -> list[Change]:
    """So many thoughts: these, where they are as many, and else nobody knows which."""
    if len(known) != count:
        return [NOT_HERE] * count
    return [
        Change(
            carrier=thought.carrier.value,
            bytes=len(thought.raw.encode("utf-8", "replace")),
            text=thought.text if thoughts else None,
        )
        for thought in known
    ]

"""Joins calls that a client told in messages of their own to the one output that they were.

The results that stood between them come behind it, as a provider wants them: in the one message
that follows where they are parts of a message, else one after the other.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thoughtline.dialects import splice
from thoughtline.dialects.splice import Edit, Span
from thoughtline.errors import Unreadable

if TYPE_CHECKING:
    from thoughtline.dialects.base import Dialect, Request


def with_joined_outputs(
    dialect: "Dialect", request: "Request", groups: Sequence[range]
) -> bytes | None:
    """The body with the outputs of each group as one message; None where they cannot be one."""
    body = request.body
    elements = splice.layout(body, dialect.history_member).elements
    try:
        edits = [_joined(dialect, body, elements, _places(request, group)) for group in groups]
    except Unreadable:
        return None
    return splice.apply(body, edits)


def _places(request: "Request", group: range) -> list[int]:
    """The positions of the messages that the outputs of a group stand in."""
    anchors = [request.anchors[turn] for turn in group]
    return [at for one in anchors for at in (one if isinstance(one, tuple) else (one,))]


def _joined(
    dialect: "Dialect", body: bytes, elements: Sequence[Span], places: Sequence[int]
) -> Edit:
    """The edit that makes one message of these, with what stands between them behind it."""
    first, last = places[0], places[-1]
    outputs = [elements[at] for at in places]
    between = [elements[at] for at in range(first, last) if at not in places]
    if dialect.calls_member != dialect.content_member:
        _check_silent(body, outputs[1:], dialect.content_member)
        given = [body[span.start : span.end] for span in between]
    else:
        last += last + 1 < len(elements)
        between += [elements[last]] if last > places[-1] else []
        given = [_as_one(body, between, dialect.content_member)]
    made = [_as_one(body, outputs, dialect.calls_member), *given]
    return elements[first].start, elements[last].end, b",".join(made)


def _as_one(body: bytes, messages: Sequence[Span], member: str) -> bytes:
    """The first message with the elements that all of them have in this member."""
    raws: list[bytes] = []
    for message in messages:
        place = splice.members(body, message).get(member)
        if place is None:
            raise Unreadable(f"a message has no `{member}`")
        raws += [body[span.start : span.end] for span in splice.elements(body, place)]
    start, end = messages[0].start, messages[0].end
    place = splice.members(body, messages[0])[member]
    return body[start : place.value] + b"[" + b",".join(raws) + b"]" + body[place.end : end]


def _check_silent(body: bytes, messages: Sequence[Span], member: str) -> None:
    """Raise `Unreadable` where one of them says something beside its calls."""
    for message in messages:
        place = splice.members(body, message).get(member)
        if place is not None and splice.loads(body[place.value : place.end]):
            raise Unreadable("a message with more calls says something, too")

"""How long a model thought: "Thought for 23 seconds", from what is stored with each thought.

A thought is timed from when its item opened to when it closed, on one monotonic clock. Parts of
one item are one thought, and its key is relative to its message: the item's id, else `part-N`, so
that no id of a message matters. What is unknown stays unknown: never zero, and never made up.
Providers that hold a thought back and deliver it at once are timed from the request, and the span
says so. Every number that people see, on any front, comes from here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from thoughtline.parts import RIDING, Carrier, Part, Thought, Timing
from thoughtline.turns import Turn

_SECOND = 1_000_000_000
MOMENT = _SECOND // 10
"""A thought that opened and closed within this was not thought in it, but delivered."""
WAIT = _SECOND
"""And if the request had been waiting for at least this long, that is when it was thought."""

_SIBLINGS = frozenset(
    {
        Carrier.REASONING_CONTENT,
        Carrier.REASONING,
        Carrier.REASONING_DETAILS,
        Carrier.REASONING_TEXT,
        Carrier.REASONING_OPAQUE,
        Carrier.THINK,
    }
)
"""Carriers that say the same thought of one chat message, each in its own way."""


class Span(Struct, frozen=True, kw_only=True):
    """When one thought took place."""

    key: str  # the item's id, else part-N
    start: int | None = None  # nanoseconds of a monotonic clock
    end: int | None = None
    aborted: bool = False  # the stream ended before the thought did
    requested: bool = False  # it was delivered at once, so it counts from the request
    at: float | None = None  # wall clock when it opened, for a timer
    place: int = 0  # of its first part in the turn's output
    summary: str = ""  # what can be read of it

    @property
    def seconds(self) -> int | None:
        """Whole seconds, rounded up, at least 1; None is unknown."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return whole(self.end - self.start)

    @property
    def text(self) -> str:
        """For people."""
        said = words(self.seconds, aborted=self.aborted)
        return f"{said} (since the request)" if self.requested else said


def whole(nanoseconds: int) -> int:
    """Whole seconds, rounded up, at least 1."""
    return max(1, -(-nanoseconds // _SECOND))


THINKING = "Thinking"
"""What is said of a thought that is open: how long, its timer says."""


def words(seconds: int | None, *, aborted: bool = False) -> str:
    """`Thought for 23 seconds`, for every front; without a number where none is known."""
    said = "Stopped thinking" if aborted else "Thought"
    if seconds is None:
        return said
    minutes, rest = divmod(seconds, 60)
    length = f"{minutes}m {rest}s" if minutes else f"{rest} second{'s' if rest != 1 else ''}"
    return f"{said} {'after' if aborted else 'for'} {length}"


def state(span: Span, *, running: bool = False) -> str:
    """`open`, `complete`, `aborted` or `unknown`; only in a turn that runs a thought is open."""
    if span.aborted:
        return "aborted"
    if running and span.start is not None and span.end is None:
        return "open"
    return "unknown" if span.seconds is None else "complete"


def spans(*turns: Turn, first: int = 0) -> list[Span]:
    """The thoughts of a message, in order; a message may be made in several turns.

    Numbers, from `first` on, go to thoughts with text before others: those are the ones that a
    reader of the live stream sees, and counts.
    """
    found: list[Span] = []
    for turn in turns:
        units = units_of(turn.output)
        order = sorted(units, key=lambda place: not _summary(units[place]))
        numbers = {place: first + len(found) + n for n, place in enumerate(order)}
        found += [_span(unit, place, numbers[place]) for place, unit in units.items()]
    return found


def closed(timing: Timing, *, key: str, first: bool) -> Span:
    """A thought the moment it is complete; `first`: nothing was said before it in its turn."""
    thought = Thought(carrier=Carrier.ITEM, raw="", id=key, timing=timing)
    return _span([thought], 0 if first else 1, 0)


def reasoning_durations(*turns: Turn) -> dict[str, int]:
    """Seconds by message-relative key; a thought whose time is unknown is left out."""
    return {span.key: n for span in spans(*turns) if (n := span.seconds) is not None}


def total(*turns: Turn) -> int | None:
    """Seconds that a message was thought about; what overlaps counts once. None is unknown."""
    lengths = [
        length
        for turn in turns  # one after the other, perhaps by different clocks
        if (length := _union((s.start, s.end) for s in spans(turn) if s.seconds)) is not None
    ]
    return whole(sum(lengths)) if lengths else None


def described(found: Iterable[Span]) -> dict[str, Any]:
    """Spans as JSON for front ends, each member by message-relative key; empty ones left out."""
    known = list(found)
    members: dict[str, dict[str, Any]] = {
        "reasoningDurations": {s.key: n for s in known if (n := s.seconds) is not None},
        "reasoningStartedAt": {s.key: round(s.at * 1000) for s in known if s.at is not None},
        "reasoningStates": {s.key: "aborted" if s.aborted else "done" for s in known},
        "reasoningClocks": {s.key: "request" for s in known if s.requested},
    }
    return {name: member for name, member in members.items() if member}


def units_of(parts: Sequence[Part]) -> dict[int, list[Thought]]:
    """What is one thought, by the place where it began."""
    units: dict[int, list[Thought]] = {}
    items: dict[str, list[Thought]] = {}
    message: list[Thought] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Thought) or part.carrier in RIDING:
            continue
        sibling = part.carrier in _SIBLINGS and not part.id
        if part.id and part.id in items:
            items[part.id].append(part)
        elif sibling and message and part.carrier not in {made.carrier for made in message}:
            message.append(part)
        else:
            units[place] = [part]
            if part.id:
                items[part.id] = units[place]
            if sibling:
                message = units[place]
    return units


def _summary(unit: Sequence[Thought]) -> str:
    """What can be read of a thought; siblings repeat one another, parts of an item do not."""
    texts = [thought.text for thought in unit if thought.text]
    return "\n\n".join(texts if unit[0].id else texts[:1])


def _span(unit: Sequence[Thought], place: int, number: int) -> Span:
    timings = [thought.timing for thought in unit if thought.timing is not None]
    starts = [t.opened for t in timings if t.opened is not None]
    ends = [end for t in timings if t.opened is not None and (end := _end(t)) is not None]
    sent = min((t.sent for t in timings if t.sent is not None), default=None)
    start, end = min(starts, default=None), max(ends, default=None)
    if any(t.opened is not None and t.closed is None and not t.aborted for t in timings):
        end = None  # a part of it is open, so all of it is
    requested = not place and _delivered(sent, start, end)
    return Span(
        key=unit[0].id or f"part-{number}",
        start=sent if requested else start,
        end=end,
        aborted=any(t.aborted for t in timings),
        requested=requested,
        at=min((t.at for t in timings if t.at is not None), default=None),
        place=place,
        summary=_summary(unit),
    )


def _delivered(sent: int | None, start: int | None, end: int | None) -> bool:
    """Whether all of it came at once, long after the request."""
    if sent is None or start is None or end is None:
        return False
    return 0 <= end - start <= MOMENT and start - sent >= WAIT


def _end(timing: Timing) -> int | None:
    """An aborted thought was seen until its last delta."""
    return timing.last if timing.aborted and timing.closed is None else timing.closed


def _union(intervals: Iterable[tuple[int | None, int | None]]) -> int | None:
    known = sorted((a, b) for a, b in intervals if a is not None and b is not None)
    if not known:
        return None
    length, reached = 0, known[0][0]
    for start, end in known:
        length += max(0, end - max(start, reached))
        reached = max(reached, end)
    return length

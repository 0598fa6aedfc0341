"""How long a model thought: "Thought for 23 seconds", from the timing stored with each thought.

A thought lasts from when its item opened to when it closed, on one monotonic clock. Parts of one
item are one thought, and its key is relative to its message: the item's id, else `part-N`, where N
is its place among what a message shows (thoughts, texts, calls). Unknown stays unknown: never zero
and never invented. A thought that its provider held back and delivered at once, or with all of an
answer that was not streamed, is timed from the request, and its span says so. Every duration that
people see, in any front end, log line, trace or metric, comes from here.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.log.parts import RIDING, Call, Carrier, Part, Text, Thought, Timing
from thoughtline.log.turns import Turn

_SECOND = 1_000_000_000
DELIVERED_WITHIN = _SECOND // 10
"""A thought that opened and closed within this time was delivered at once."""
WAITED_AT_LEAST = _SECOND
"""If the request had waited at least this long by then, the thought is timed from the request."""

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
"""Carriers that repeat one thought of a chat message, each under a key of its own."""


class ThoughtSpan(Struct, frozen=True, kw_only=True):
    """The time of one thought."""

    key: str  # the item's id, else part-N
    start: int | None = None  # nanoseconds of a monotonic clock
    end: int | None = None
    aborted: bool = False  # the stream ended before the thought did
    requested: bool = False  # it was delivered in one piece, so it counts from the request
    at: float | None = None  # wall clock when it opened, for a timer
    item: str = ""  # the provider's id of the item; empty: it has none
    place: int = 0  # index of its first part in the turn's output
    summary: str = ""  # its readable text

    @property
    def seconds(self) -> int | None:
        """Whole seconds, rounded up, at least 1; None is unknown."""
        if self.start is None or self.end is None or self.end < self.start:
            return None
        return whole_seconds(self.end - self.start)

    @property
    def text(self) -> str:
        """The duration in words, for people."""
        text = duration_text(self.seconds, aborted=self.aborted)
        return text + SINCE_REQUEST if self.requested else text


SINCE_REQUEST = " (since the request)"
"""Behind the words of a duration that counts from the request."""


def whole_seconds(nanoseconds: int) -> int:
    """Round nanoseconds up to whole seconds, at least 1."""
    return max(1, -(-nanoseconds // _SECOND))


THINKING = "Thinking"
"""The label of a thought that is open; its duration is a running timer."""


def duration_text(seconds: int | None, *, aborted: bool = False) -> str:
    """Return `Thought for 23 seconds`, for every front end; without a number if it is unknown."""
    verb = "Stopped thinking" if aborted else "Thought"
    if seconds is None:
        return verb
    minutes, rest = divmod(seconds, 60)
    length = f"{minutes}m {rest}s" if minutes else f"{rest} second{'s' if rest != 1 else ''}"
    return f"{verb} {'after' if aborted else 'for'} {length}"


def thought_state(span: ThoughtSpan, *, running: bool = False) -> str:
    """Return `open`, `complete`, `aborted` or `unknown`; `open` only while its turn is running."""
    if span.aborted:
        return "aborted"
    if running and span.start is not None and span.end is None:
        return "open"
    return "unknown" if span.seconds is None else "complete"


def thought_spans(*turns: Turn, first: int = 0) -> list[ThoughtSpan]:
    """Return the thoughts of a message, in order; a message may take several turns.

    `first`: how many parts of the message come before.
    """
    found: list[ThoughtSpan] = []
    for turn in turns:
        units = group_thoughts(turn.output)
        for place, part in enumerate(turn.output):
            if place in units:
                found.append(_span(units[place], place, first))
            elif not is_shown(part):
                continue
            first += 1
    return found


def is_shown(part: Part) -> bool:
    """Whether a part of an output, other than a thought, is a part of the message that is shown."""
    return isinstance(part, Call) or (isinstance(part, Text) and bool(part.text))


def closed_span(timing: Timing, *, key: str, first: bool, item: str = "") -> ThoughtSpan:
    """Return the span of a thought that has just closed; `first`: it begins the output."""
    thought = Thought(carrier=Carrier.ITEM, raw="", id=item, timing=timing)
    return replace(_span([thought], 0 if first else 1, 0), key=key)


def reasoning_durations(*turns: Turn) -> dict[str, int]:
    """Return whole seconds by message-relative key; thoughts of unknown duration are left out."""
    return {span.key: n for span in thought_spans(*turns) if (n := span.seconds) is not None}


def total_seconds(*turns: Turn) -> int | None:
    """Return the seconds of all thoughts of a message; what overlaps counts once. None: unknown."""
    lengths = [
        length
        for turn in turns  # each on a clock of its own
        if (length := _union((s.start, s.end) for s in thought_spans(turn) if s.seconds))
        is not None
    ]
    return whole_seconds(sum(lengths)) if lengths else None


def total_text(*turns: Turn) -> str:
    """Return the duration of all thoughts of a message in words; empty where it has none."""
    spans = [span for turn in turns for span in thought_spans(turn)]
    if not spans:
        return ""
    text = duration_text(total_seconds(*turns), aborted=spans[-1].aborted)
    return text + SINCE_REQUEST if any(span.requested for span in spans) else text


class OutputTiming(Struct, frozen=True):
    """How many thoughts an output has, and their exact durations, for metrics and log lines."""

    thoughts: int
    seconds: tuple[float, ...]  # of the complete thoughts whose duration is known
    total: float | None  # of those; what overlaps counts once


_UNTIMED = OutputTiming(thoughts=0, seconds=(), total=None)
_ONE_UNTIMED = OutputTiming(thoughts=1, seconds=(), total=None)


def output_timing(parts: Sequence[Part]) -> OutputTiming:
    """Measure the thoughts of an output."""
    thoughts = [part for part in parts if type(part) is Thought]
    if not thoughts:
        return _UNTIMED
    if len(thoughts) == 1 and thoughts[0].carrier not in RIDING:  # mostly
        timing = thoughts[0].timing
        if timing is None or timing.opened is None:  # that of an answer that came in one piece
            return _ONE_UNTIMED
        units = {0 if parts[0] is thoughts[0] else 1: thoughts}
    else:
        units = group_thoughts(parts)
    known: list[tuple[int, int]] = []
    for place, unit in units.items():
        start, end, aborted, _ = _interval(unit, place)
        if not aborted and start is not None and end is not None and start <= end:
            known.append((start, end))
    if not known:
        return OutputTiming(thoughts=len(units), seconds=(), total=None)
    length = _union(known)
    return OutputTiming(
        thoughts=len(units),
        seconds=tuple([(end - start) / _SECOND for start, end in known]),
        total=None if length is None else length / _SECOND,
    )


def part_metadata(span: ThoughtSpan) -> dict[str, Any]:
    """Return what a thought's part carries about it (`providerMetadata.thoughtline`)."""
    own: dict[str, Any] = {"key": span.key}
    if span.item:
        own["itemId"] = span.item
    if span.seconds is not None:
        own["duration"] = span.seconds
    return own


def durations_json(found: Iterable[ThoughtSpan]) -> dict[str, Any]:
    """Return spans as JSON for front ends, by message-relative key; empty members are left out."""
    known = list(found)
    members: dict[str, dict[str, Any]] = {
        "reasoningDurations": {s.key: n for s in known if (n := s.seconds) is not None},
        "reasoningStartedAt": {s.key: round(s.at * 1000) for s in known if s.at is not None},
        "reasoningStates": {s.key: "aborted" if s.aborted else "done" for s in known},
        "reasoningClocks": request_clocks(known),
    }
    return {name: member for name, member in members.items() if member}


def request_clocks(found: Iterable[ThoughtSpan]) -> dict[str, str]:
    """Return `request` by the keys of thoughts that count from the request."""
    return {span.key: "request" for span in found if span.requested}


def group_thoughts(parts: Sequence[Part]) -> dict[int, list[Thought]]:
    """Group the parts that are one thought, by the index of the first part."""
    units: dict[int, list[Thought]] = {}
    items: dict[str, list[Thought]] = {}
    message: list[Thought] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Thought) or part.carrier in RIDING:
            continue
        sibling = part.carrier in _SIBLINGS and not part.id
        if part.id and part.id in items:
            items[part.id].append(part)
        elif sibling and message and part.carrier not in {other.carrier for other in message}:
            message.append(part)
        else:
            units[place] = [part]
            if part.id:
                items[part.id] = units[place]
            if sibling:
                message = units[place]
    return units


def _summary(unit: Sequence[Thought]) -> str:
    """Return the readable text of a thought; siblings repeat it, parts of an item add to it."""
    texts = [thought.text for thought in unit if thought.text]
    return "\n\n".join(texts if unit[0].id else texts[:1])


def _span(unit: Sequence[Thought], place: int, number: int) -> ThoughtSpan:
    start, end, aborted, requested = _interval(unit, place)
    timing = unit[0].timing
    if not place and start is None and timing is not None and timing.closed is not None:
        start, end = timing.sent, timing.closed  # its answer was not streamed
        requested = start is not None
    opened = [t.timing.at for t in unit if t.timing is not None and t.timing.at is not None]
    return ThoughtSpan(
        key=unit[0].id or f"part-{number}",
        item=unit[0].id,
        start=start,
        end=end,
        aborted=aborted,
        requested=requested,
        at=min(opened, default=None),
        place=place,
        summary=_summary(unit),
    )


def _interval(unit: Sequence[Thought], place: int) -> tuple[int | None, int | None, bool, bool]:
    """Return start and end of a thought, and whether it was aborted or is timed from `sent`."""
    start = end = sent = None
    is_open = aborted = False
    for thought in unit:
        timing = thought.timing
        if timing is None:
            continue
        aborted = aborted or timing.aborted
        if timing.sent is not None and (sent is None or timing.sent < sent):
            sent = timing.sent
        if timing.opened is None:
            continue
        if start is None or timing.opened < start:
            start = timing.opened
        is_open = is_open or (timing.closed is None and not timing.aborted)
        last = _end(timing)
        if last is not None and (end is None or last > end):
            end = last
    if is_open:
        end = None  # one part is still open, so the thought is
    requested = not place and _delivered(sent, start, end)
    return sent if requested else start, end, aborted, requested


def _delivered(sent: int | None, start: int | None, end: int | None) -> bool:
    """Whether the thought came at once, long after the request."""
    if sent is None or start is None or end is None:
        return False
    return 0 <= end - start <= DELIVERED_WITHIN and start - sent >= WAITED_AT_LEAST


def _end(timing: Timing) -> int | None:
    """Return when a thought ended; an aborted one lasted until its last delta."""
    return timing.last if timing.aborted and timing.closed is None else timing.closed


def _union(intervals: Iterable[tuple[int | None, int | None]]) -> int | None:
    known = sorted([(a, b) for a, b in intervals if a is not None and b is not None])
    if not known:
        return None
    length, reached = 0, known[0][0]
    for start, end in known:
        length += max(0, end - max(start, reached))
        reached = max(reached, end)
    return length

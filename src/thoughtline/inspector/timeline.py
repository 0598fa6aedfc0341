"""Where the time of a turn went: waiting for the first token, thinking, answering.

Only what was measured is told: a turn without a thought has no more than its beginning and its end,
and a thought that its provider delivered at once is taken from the request on.
"""

from msgspec import Struct

from thoughtline.log.durations import thought_spans
from thoughtline.log.turns import Turn

_SECOND = 1_000_000_000


class Segment(Struct, frozen=True, kw_only=True, rename="camel"):
    """A stretch of a turn, in seconds since the request."""

    kind: str  # waiting, thinking or answering
    start: float
    end: float


def timeline(turn: Turn) -> list[Segment]:
    """The stretches of a turn that is over, in order; none where no thought was timed."""
    sent = min(
        (t.timing.sent for t in turn.thoughts if t.timing and t.timing.sent is not None),
        default=None,
    )
    if sent is None or not turn.ended:
        return []
    spans = sorted(
        (max(0.0, (span.start - sent) / _SECOND), max(0.0, (span.end - sent) / _SECOND))
        for span in thought_spans(turn)
        if span.start is not None and span.end is not None and span.end >= span.start
    )
    if not spans:
        return []
    found = [Segment(kind="waiting", start=0.0, end=spans[0][0])] if spans[0][0] > 0 else []
    reached = spans[0][0]
    for start, end in spans:
        if start > reached:
            found.append(Segment(kind="answering", start=reached, end=start))
        if end > reached:
            found.append(Segment(kind="thinking", start=max(start, reached), end=end))
        reached = max(reached, end)
    total = turn.ended - turn.started
    if total > reached:
        found.append(Segment(kind="answering", start=reached, end=total))
    return found


def first_token(turn: Turn) -> float | None:
    """Seconds until the first token, where that was one of a thought; None is unknown."""
    first = turn.thoughts[0].timing if turn.thoughts else None
    if first is None or first.sent is None or first.opened is None:
        return None
    return max(0.0, (first.opened - first.sent) / _SECOND)

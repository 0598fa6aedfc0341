"""Where the time of a turn went: waiting for the first token, thinking, answering.

Only what was measured is told: an answer that came in one piece has a beginning and an end, and a
thought that its provider delivered at once is taken from the request on.
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
    """The stretches of a turn that is over, in order; none where nothing was timed."""
    if not turn.ended:
        return []
    total, spans = turn.ended - turn.started, _thinking(turn)
    first = first_token(turn)
    reached = min(spans[0][0], first if first is not None else spans[0][0]) if spans else first
    if reached is None:
        return []
    found = [Segment(kind="waiting", start=0.0, end=reached)] if reached > 0 else []
    for start, end in spans:
        if start > reached:
            found.append(Segment(kind="answering", start=reached, end=start))
        if end > reached:
            found.append(Segment(kind="thinking", start=max(start, reached), end=end))
        reached = max(reached, end)
    if total > reached:
        found.append(Segment(kind="answering", start=reached, end=total))
    return found


def _thinking(turn: Turn) -> list[tuple[float, float]]:
    """Beginning and end of each thought that was timed, in seconds since the request."""
    sent = min(
        (t.timing.sent for t in turn.thoughts if t.timing and t.timing.sent is not None),
        default=None,
    )
    if sent is None:
        return []
    return sorted(
        (max(0.0, (span.start - sent) / _SECOND), max(0.0, (span.end - sent) / _SECOND))
        for span in thought_spans(turn)
        if span.start is not None
        and span.end is not None
        and span.end >= span.start
        and (span.at is not None or not span.requested)  # it came with the whole answer
    )


def first_token(turn: Turn) -> float | None:
    """Seconds until the first token; None is unknown, as for an answer that came at once.

    Logs of before do not say it; there it is known where the first token was one of a thought.
    """
    if turn.first_output is not None:
        return turn.first_output
    first = turn.thoughts[0].timing if turn.thoughts else None
    if first is None or first.sent is None or first.opened is None:
        return None
    return max(0.0, (first.opened - first.sent) / _SECOND)

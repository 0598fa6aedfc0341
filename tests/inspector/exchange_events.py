"""One exchange as the events that a log holds of it, for sessions that nobody had to live through."""

from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    PermissionDecision,
    Reasoning,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
    UserMessage,
    draft,
)
from thoughtline.log.parts import Call, Decision, Result, Text, Thought, Timing

SECOND = 1_000_000_000


def timed(opened, seconds, *, sent, at, cut=False):
    """The times of a thought that opened then, and took so long; `seconds` None: nobody knows."""
    last = None if seconds is None else opened + round(seconds * SECOND)
    closed = None if cut else last
    return Timing(
        sent=sent, opened=opened, first=opened, last=last, closed=closed, at=at, aborted=cut
    )


def drafted(id, heard, said, *, target, at, end, parent="", decisions=(), **more):
    """A turn's drafts, in order; strings are words. Without an `outcome` it has not ended."""
    off = more.pop("thinking_off", False)
    first = TurnStarted(target=target, replay=tuple(decisions), thinking_off=off)
    bodies = [_heard(_part(one)) for one in heard] + [_spoken(_part(one)) for one in said]
    if more.get("outcome"):
        bodies.append(TurnEnded(**{**more, "outcome": Outcome(more["outcome"])}))
    return (
        draft(first, id=id, parent=parent, at=at),
        *(draft(body, id=f"{id}.{n}", parent=id, at=end) for n, body in enumerate(bodies)),
    )


def _part(one):
    return Text(text=one) if isinstance(one, str) else one


def _heard(part):
    if isinstance(part, Result):
        return ToolResult(result=part)
    if isinstance(part, Decision):
        return PermissionDecision(decision=part)
    return UserMessage(parts=(part,))


def _spoken(part):
    if isinstance(part, Thought):
        return Reasoning(thought=part)
    return ToolCall(call=part) if isinstance(part, Call) else AssistantMessage(parts=(part,))

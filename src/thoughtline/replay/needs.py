"""What a target wants of the outputs of a history, and where the running tool loop begins."""

from collections.abc import Sequence

from thoughtline.log.parts import Blob, Result, Text
from thoughtline.log.quirks import Need, Scope
from thoughtline.log.turns import Turn
from thoughtline.providers.policy import Policy
from thoughtline.replay.match import RequestPath

NEVER = (Need.FORBIDDEN, Need.NONE)
"""Needs of targets that take no thought."""
_ALL = Scope.ALL
_IGNORED = Need.IGNORED


def needs(path: RequestPath, policy: Policy) -> tuple[Need, Need]:
    """Return what a target wants of the outputs in its scope, and of those beyond."""
    if policy.need in NEVER:
        return policy.need, policy.need
    thinking = path.thinking if path.thinking is not None else policy.thinks
    if not thinking:
        return _IGNORED, _IGNORED
    if policy.with_tools and not path.tools:
        return policy.beyond, policy.beyond
    return policy.need, policy.need if policy.scope is _ALL else policy.beyond


def loop_start(turns: Sequence[Turn]) -> int:
    """Return the position of the turn that begins with the last user message."""
    return last_question(turns, 1) or 0


def last_question(turns: Sequence[Turn], first: int) -> int | None:
    """Return the position of the last turn that begins with a user message, from the first on."""
    for index in range(len(turns) - 1, first - 1, -1):
        kinds = {type(part) for part in turns[index].input}
        if Result not in kinds and not kinds.isdisjoint((Text, Blob)):
            return index
    return None

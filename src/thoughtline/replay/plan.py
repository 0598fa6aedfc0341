"""What is decided about the thoughts of a request, as values: limits, settled turns, the plan."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects.base import Revision
from thoughtline.log.decisions import (
    NO_KINDS,
    NO_MARK,
    PREFIX_CHANGED,
    THINKING_OFF,
    Action,
    KindCounts,
    MatchLevel,
    ReplayDecision,
    RollingMark,
    count_kinds,
)
from thoughtline.log.index import IndexEntry
from thoughtline.replay.match import Matches

_WITHOUT = (Action.DROPPED, Action.ABSENT, Action.PLACEHOLDER)
_FULL = MatchLevel.FULL


class ReplayLimits(Struct, frozen=True, kw_only=True):
    """Settings that limit how many old thoughts go back, where the target does not demand them."""

    last: int | None = None  # only those of the last so many outputs
    loop_only: bool = False  # only those of the running tool loop


NO_LIMITS = ReplayLimits()


class SettledTurns(Struct, frozen=True, gc=False, kw_only=True):
    """The first turns of a history, about which an earlier request to this target decided."""

    turns: int = 0  # how many
    decisions: tuple[ReplayDecision, ...] = ()
    mark: RollingMark = NO_MARK  # of the decisions
    kinds: KindCounts = NO_KINDS  # how many decisions there are of each
    loop: int = 0  # where the tool loop begins that runs at their end
    skipped: Mapping[str, str] = {}  # what requests to this target went out without, as they say
    newly_skipped: Mapping[str, str] = {}  # and what was decided to go out without beside that


NOTHING_SETTLED = SettledTurns()


class ReplayPlan(Struct, frozen=True, gc=False, kw_only=True):
    """What is decided about the thoughts of one request, and the revisions that carry it out."""

    decisions: tuple[ReplayDecision, ...]
    revisions: tuple[Revision, ...] = ()
    fields: dict[str, bytes] = {}  # top-level members to set: thinking off, as the last resort
    skipped: dict[str, str] = {}  # newly left out: full key → reason; stored with the turn
    skipped_before: dict[str, str] = {}  # what earlier requests to this target went out without
    parent: IndexEntry | None = None  # the last turn of the path that was found
    matches: Matches = Matches((), False)  # per turn of the path, without those that are settled
    gap: int = -1  # the last output before which nothing may be put back, where that counts
    loop: int | None = None  # where the running tool loop begins, where that counts
    first_mark: RollingMark = NO_MARK  # of the decisions that were settled before
    counted: KindCounts | None = None  # how many decisions there are of each kind, if it is known

    def kinds(self) -> KindCounts:
        """Return how many decisions there are of each kind."""
        return count_kinds(self.decisions) if self.counted is None else self.counted

    def count(self, action: Action) -> int:
        """Return how many outputs have this decision."""
        return len([decision for decision in self.decisions if decision.action is action])

    @property
    def certain(self) -> bool:
        """Whether the last output was recognised with all that is before it."""
        return not self.decisions or self.decisions[-1].level is _FULL

    @property
    def leaves_out(self) -> bool:
        """Whether a turn that was found goes out without its thoughts."""
        for decision in self.decisions:  # noqa: SIM110 (a generator costs twice as much)
            if decision.entry and decision.action in _WITHOUT:
                return True
        return False

    @property
    def prefix_changed(self) -> int | None:
        """Return the first output before which the client changed what a signature covers."""
        for position, decision in enumerate(self.decisions):
            if decision.reason == PREFIX_CHANGED:
                return position
        return None

    @property
    def thinking_off(self) -> bool:
        """Whether thinking is switched off for this request, as the last resort."""
        return bool(self.fields)


def without_thoughts(plan: ReplayPlan, bare: ReplayPlan) -> ReplayPlan:
    """Return a plan whose thoughts all stay behind, as in the bare plan, and say why."""
    decisions = [
        replace(made, action=Action.DROPPED, reason=THINKING_OFF, thoughts=0, left=made.thoughts)
        if made.thoughts
        else made
        for made in plan.decisions
    ]
    return replace(
        plan,
        decisions=tuple(decisions),
        revisions=bare.revisions,
        first_mark=NO_MARK,
        counted=None,
    )

"""The plan of a request: what its decisions say together."""

from thoughtline.log.decisions import (
    THINKING_OFF,
    Action,
    MatchLevel,
    ReplayDecision,
    count_kinds,
)
from thoughtline.replay.plan import ReplayPlan, without_thoughts

BACK = ReplayDecision(turn=0, action=Action.RESTORED, level=MatchLevel.FULL, entry="t0", thoughts=2)
UNKNOWN = ReplayDecision(turn=1, action=Action.ABSENT, reason="unknown")
DROPPED = ReplayDecision(turn=1, action=Action.DROPPED, level=MatchLevel.LOCAL, entry="t1", left=1)


def test_a_plan_is_certain_where_the_last_output_is():
    assert ReplayPlan(decisions=()).certain
    assert ReplayPlan(decisions=(UNKNOWN, BACK)).certain
    assert not ReplayPlan(decisions=(BACK, UNKNOWN)).certain
    assert not ReplayPlan(decisions=(BACK, DROPPED)).certain


def test_only_a_turn_that_was_found_can_be_left_out():
    assert ReplayPlan(decisions=(BACK, DROPPED)).leaves_out
    assert not ReplayPlan(decisions=(BACK, UNKNOWN)).leaves_out


def test_outputs_are_counted_by_what_is_done():
    plan = ReplayPlan(decisions=(BACK, UNKNOWN, BACK))
    assert [plan.count(action) for action in (Action.RESTORED, Action.ABSENT)] == [2, 1]
    assert plan.count(Action.DROPPED) == 0


def test_fields_switch_thinking_off():
    assert not ReplayPlan(decisions=()).thinking_off
    assert ReplayPlan(decisions=(), fields={"thinking": b"null"}).thinking_off


def test_with_thinking_off_thoughts_stay_behind_and_say_why():
    bare = ReplayPlan(decisions=(), revisions=())
    first, second = without_thoughts(ReplayPlan(decisions=(BACK, UNKNOWN)), bare).decisions
    assert (first.action, first.reason) == (Action.DROPPED, THINKING_OFF)
    assert (first.thoughts, first.left) == (0, 2)
    assert second is UNKNOWN


def test_decisions_that_are_made_anew_are_counted_anew():
    plan = ReplayPlan(decisions=(BACK, UNKNOWN), counted=count_kinds((BACK, UNKNOWN)))
    assert plan.kinds() == ReplayPlan(decisions=plan.decisions).kinds()
    off = without_thoughts(plan, ReplayPlan(decisions=()))
    assert off.kinds() == count_kinds(off.decisions) != plan.kinds()

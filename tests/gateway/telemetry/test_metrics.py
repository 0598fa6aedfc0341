"""Metrics: what is counted, by which labels."""

from support.telemetry import RULINGS
from thoughtline.gateway.telemetry import (
    CacheCounts,
    Metrics,
)
from thoughtline.log.decisions import example
from thoughtline.replay.plan import ReplayPlan


def test_counts():
    assert CacheCounts().rate == "0.0%"
    replay_plan = ReplayPlan(decisions=RULINGS)
    counts = CacheCounts()
    for kind, count in replay_plan.kinds().items():
        counts.add(example(kind), count)
    assert counts == CacheCounts(hits=5, misses=3, replays=3)
    assert counts.misses == sum(one.unmatched for one in RULINGS)
    assert counts.rate == "37.5%"


def test_metrics_do_not_share_a_registry():
    one, two = Metrics(), Metrics()
    one.requests["a", "chat", "200", "completed"] += 1
    assert b"a" in one.page()[0]
    assert b'upstream="a"' not in two.page()[0]

import pytest

from thoughtline.dialects.recorder import Recorder, Stopwatch
from thoughtline.events import Outcome, TurnEnded, Usage
from thoughtline.parts import Origin, Timing
from thoughtline.testing import FrozenClock


def recorder(**origin):
    clock = FrozenClock(wall=50.0, mono=0)
    return Recorder(clock=clock, origin=Origin(**origin), sent=0), clock


def test_a_thought_is_timed_on_one_clock():
    made, clock = recorder()
    watch = made.watch()
    for _ in range(2):
        clock.advance(1)
        watch.touch(made.tick())
    assert made.timing(watch) == Timing(
        sent=0, opened=0, first=10**9, last=2 * 10**9, closed=2 * 10**9, at=50.0
    )
    assert made.timing(watch, aborted=True).closed is None


def test_the_first_nanosecond_is_a_time_like_any_other():
    made, clock = recorder()
    watch = Stopwatch(0, 50.0)
    watch.closed = 0
    clock.advance(5)
    made.tick()
    assert made.timing(watch).closed == 0


def test_a_thought_that_goes_on_is_not_closed():
    watch = Stopwatch(0, 0.0)
    watch.touch(1)
    watch.closed = 2
    watch.touch(3)
    assert (watch.first, watch.last, watch.closed) == (1, 3, None)


@pytest.mark.parametrize(
    ("origin", "served", "model", "asked"),
    [
        ({"model": "m"}, "", "m", ""),
        ({"model": "m"}, "m", "m", ""),
        ({"model": "m"}, "m-2026", "m-2026", "m"),
        ({"model": "m", "asked": "alias"}, "m-2026", "m-2026", "alias"),
    ],
)
def test_where_a_thought_was_made(origin, served, model, asked):
    made, _ = recorder(**origin)
    made.model = served
    assert (made.made().model, made.made().asked) == (model, asked)


@pytest.mark.parametrize(
    ("done", "outcome", "expected"),
    [
        (True, None, Outcome.COMPLETED),
        (False, None, Outcome.ABORTED),
        (True, Outcome.CAPPED, Outcome.CAPPED),
        (False, Outcome.FAILED, Outcome.FAILED),
    ],
)
def test_the_end_is_told_once(done, outcome, expected):
    made, _ = recorder()
    made.done, made.outcome, made.usage, made.response = done, outcome, Usage(input=1), "r"
    assert made.ending("gone") == [
        TurnEnded(outcome=expected, reason="gone", usage=Usage(input=1), response="r")
    ]
    assert made.ending("again") == []

import pytest

from thoughtline.dialects.reader import BaseReader, Stopwatch
from thoughtline.log.events import Outcome, TurnEnded
from thoughtline.log.parts import Origin, Timing
from thoughtline.log.usage import Usage
from thoughtline.testing import FrozenClock


def base_reader(**origin):
    clock = FrozenClock(wall=50.0, mono=0)
    return BaseReader(clock=clock, origin=Origin(**origin), sent=0), clock


def test_a_thought_is_timed_on_one_clock():
    reader, clock = base_reader()
    watch = reader.open_watch()
    for _ in range(2):
        clock.advance(1)
        watch.touch(reader.tick())
    assert reader.timing(watch) == Timing(
        sent=0, opened=0, first=10**9, last=2 * 10**9, closed=2 * 10**9, at=50.0
    )
    assert reader.timing(watch, aborted=True).closed is None


def test_the_first_nanosecond_is_a_time_like_any_other():
    reader, clock = base_reader()
    watch = Stopwatch(0, 50.0)
    watch.closed = 0
    clock.advance(5)
    reader.tick()
    assert reader.timing(watch).closed == 0


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
    reader, _ = base_reader(**origin)
    reader.model = served
    assert (reader.served_origin().model, reader.served_origin().asked) == (model, asked)


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
    reader, _ = base_reader()
    reader.done, reader.outcome, reader.usage, reader.response = done, outcome, Usage(input=1), "r"
    assert reader.turn_end("gone") == [
        TurnEnded(outcome=expected, reason="gone", usage=Usage(input=1), response="r")
    ]
    assert reader.turn_end("again") == []

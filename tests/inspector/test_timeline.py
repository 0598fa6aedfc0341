"""Where the time of a turn went."""

from msgspec.structs import replace

from inspector.exchange_events import SECOND, timed
from thoughtline.inspector.timeline import first_token, timeline
from thoughtline.log.parts import Carrier, Text, Thought, Timing
from thoughtline.log.turns import Turn


def thought(start, seconds):
    timing = timed(start * SECOND, seconds, sent=0, at=0.0)
    return Thought(carrier=Carrier.BLOCK, raw="x", text="x", timing=timing)


def turn(*output, ended=20.0):
    return Turn(id="t", started=0.5, ended=ended, output=output)


def shown(found):
    return [(one.kind, one.start, one.end) for one in found]


def test_waiting_thinking_answering_and_thinking_again():
    found = timeline(turn(thought(2, 3), Text(text="So."), thought(7, 4), Text(text="Done.")))
    assert shown(found) == [
        ("waiting", 0.0, 2.0),
        ("thinking", 2.0, 5.0),
        ("answering", 5.0, 7.0),
        ("thinking", 7.0, 11.0),
        ("answering", 11.0, 19.5),
    ]


def test_thoughts_that_overlap_are_one_stretch_each_to_its_end():
    found = timeline(turn(thought(0, 5), thought(2, 5), ended=7.0))
    assert shown(found) == [("thinking", 0.0, 5.0), ("thinking", 5.0, 7.0)]


def test_an_answer_without_a_thought_has_a_first_token():
    found = timeline(replace(turn(Text(text="Done.")), first_output=0.4))
    assert shown(found) == [("waiting", 0.0, 0.4), ("answering", 0.4, 19.5)]
    early = replace(turn(Text(text="So."), thought(7, 4)), first_output=2.0)
    assert [one.kind for one in timeline(early)] == ["waiting", "answering", "thinking", "answering"]  # fmt: skip


def test_what_was_not_measured_is_not_told():
    untimed = Thought(carrier=Carrier.BLOCK, raw="x", timing=Timing(sent=1))
    for made in (turn(Text(text="x")), turn(untimed), turn(thought(1, 1), ended=0.0)):
        assert timeline(made) == []
    assert first_token(turn(untimed)) is None
    assert first_token(turn(thought(2, 3))) == 2.0

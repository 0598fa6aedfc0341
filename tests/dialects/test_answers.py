"""What of an answer is shown, and why it ended."""

import json

from thoughtline.dialects.answers import shown_parts, stop_reason
from thoughtline.log.events import Outcome, StopReason, TurnEnded
from thoughtline.log.parts import Call, Carrier, Text, Thought


def thought(carrier, text):
    return Thought(carrier=carrier, raw=json.dumps(text), text=text)


def test_a_thought_under_several_keys_is_shown_once():
    parts = [
        thought(Carrier.REASONING_DETAILS, ""),
        thought(Carrier.REASONING_CONTENT, "Hm."),
        thought(Carrier.REASONING, "Hm."),
        Text(text="Yes."),
        thought(Carrier.SIGNATURE, "seal"),
        Call(name="run", arguments="{}"),
    ]
    assert [type(part) for part in shown_parts(parts)] == [Thought, Text, Call]


def test_a_call_is_always_the_reason_to_stop():
    ended = TurnEnded(outcome=Outcome.COMPLETED, stop=StopReason.END)
    assert stop_reason(ended, called=True) is StopReason.CALLS
    assert stop_reason(ended, called=False) is StopReason.END
    calls = TurnEnded(outcome=Outcome.COMPLETED, stop=StopReason.CALLS)
    assert stop_reason(calls, called=False) is StopReason.END
    capped = TurnEnded(outcome=Outcome.CAPPED)
    assert stop_reason(capped, called=True) is StopReason.LENGTH


def test_a_filter_is_the_reason_to_stop_whatever_was_called():
    ended = TurnEnded(outcome=Outcome.COMPLETED, stop=StopReason.FILTER)
    assert stop_reason(ended, called=True) is StopReason.FILTER

"""Why a model stopped, in one vocabulary for all dialects."""

import json

import pytest

from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.log.events import StopReason, TurnEnded
from thoughtline.log.parts import Origin


def chat(reason):
    message = {"role": "assistant", "content": "Hi."}
    return {"choices": [{"message": message, "finish_reason": reason}]}


def messages(reason, text=None):
    content = [{"type": "text", "text": "Hi."}]
    return {"content": content, "stop_reason": reason, "stop_sequence": text}


def gemini(reason):
    content = {"role": "model", "parts": [{"text": "Hi."}]}
    return {"candidates": [{"content": content, "finishReason": reason}]}


def responses(reason):
    text = {"type": "output_text", "text": "Hi."}
    item = {"type": "message", "role": "assistant", "content": [text]}
    status = "completed" if reason == "completed" else "incomplete"
    return {"status": status, "output": [item], "incomplete_details": {"reason": reason}}


@pytest.mark.parametrize(
    ("dialect", "body", "stop"),
    [
        ("chat", chat("stop"), StopReason.END),
        ("chat", chat("tool_calls"), StopReason.CALLS),
        ("chat", chat("length"), StopReason.LENGTH),
        ("chat", chat("content_filter"), StopReason.FILTER),
        ("messages", messages("end_turn"), StopReason.END),
        ("messages", messages("tool_use"), StopReason.CALLS),
        ("messages", messages("refusal"), StopReason.FILTER),
        ("messages", messages("model_context_window_exceeded"), StopReason.WINDOW),
        ("messages", messages("pause_turn"), StopReason.OTHER),
        ("gemini", gemini("STOP"), StopReason.END),
        ("gemini", gemini("MAX_TOKENS"), StopReason.LENGTH),
        ("gemini", gemini("SAFETY"), StopReason.FILTER),
        ("gemini", gemini("MALFORMED_FUNCTION_CALL"), StopReason.OTHER),
        ("responses", responses("completed"), StopReason.END),
        ("responses", responses("max_output_tokens"), StopReason.LENGTH),
        ("responses", responses("content_filter"), StopReason.FILTER),
    ],
)
def test_every_providers_word_has_one_meaning(dialect, body, stop):
    assert ended(dialect, body).stop is stop


def test_the_text_that_stopped_it_is_kept():
    found = ended("messages", messages("stop_sequence", "END"))
    assert (found.stop, found.stop_text) == (StopReason.STOP_TEXT, "END")


def ended(dialect, body):
    reader = DIALECTS[dialect].reader(stream=False, clock=SystemClock(), origin=Origin(), sent=0)
    events = [*reader.feed(json.dumps(body).encode()), *reader.close()]
    assert isinstance(events[-1], TurnEnded)
    return events[-1]

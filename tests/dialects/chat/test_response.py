"""Whole bodies, decoded strictly and leniently: both must see the same."""

import pytest

from thoughtline.dialects.chat.chunks import REFUSED, decode
from thoughtline.dialects.chat.response import ChatBodyReader
from thoughtline.dialects.limits import MAX_ANSWER_PARTS, TooComplex
from thoughtline.log.events import Reasoning
from thoughtline.log.parts import Origin
from thoughtline.testing import FrozenClock

PLAIN = [
    b'{"error": {"message": "no"}, "choices": []}',
    b'{"id": "r", "choices": []}',
    b'{"usage": {"prompt_tokens": 1}, "choices": []}',
    b'{"choices": [{"finish_reason": "stop", "message": null}]}',
    b'{"id":"r","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}',
    b'{"choices": [{"message": {"reasoning_content": "a\\u00e9 \\/ b", "content": null}}]}',
    b'{"choices": [{"message": {"reasoning_content": null, "reasoning": "r"}}, {"message": {}}]}',
    b'{"choices": [{"message": {"re\\u0061soning": "r"}}]}',
    b'{"choices": [{"message": {"reasoning_details": [ {"b": 1.0, "a": 2} ]}}]}',
    b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]}',
    b'{"citations": ["https://a.example"], "choices": [{"message": {"content": "hi"}}]}',
]


def told(body):
    reader = ChatBodyReader(clock=FrozenClock(), origin=Origin(), sent=0)
    return [*reader.feed(body), *reader.close()]


@pytest.mark.parametrize("body", PLAIN)
def test_strictly_and_leniently_a_body_says_the_same(body):
    odd = body.removesuffix(b"]}") + (b"5]}" if body.endswith(b"[]}") else b", 5]}")
    with pytest.raises(REFUSED):
        decode(odd)
    decode(body)
    assert told(odd) == told(body)


@pytest.mark.parametrize(
    "message",
    [
        b'{"reasoning": "r \\ud83d"}',
        b'{"reasoning" : "r" , "odd": "\\ud83d"}',
        b'{"content": [{"type": "thinking"}]}',
        b'{"tool_calls": [{"function": {"name": "f"}, "extra_content": {"a": 1.0}}]}',
        b'{"reasoning_details": [ {"b": 1.0} ], "content": [{"type": "text", "text": "a"}]}',
    ],
)
def test_a_thought_keeps_its_bytes(message):
    events = told(b'{"choices": [{"message": %b}]}' % message)
    (thought,) = [event.thought for event in events if isinstance(event, Reasoning)]
    assert thought.raw.encode() in message


@pytest.mark.parametrize("name", [b"content", b"tool_calls"])
def test_the_shortest_body_with_too_many_parts_is_refused(name: bytes) -> None:
    for count in (MAX_ANSWER_PARTS, MAX_ANSWER_PARTS + 1):
        reader = ChatBodyReader(clock=FrozenClock(), origin=Origin(), sent=0)
        parts = b",".join([b"0"] * count)
        reader.feed(b'{"choices":[{"message":{"' + name + b'":[' + parts + b"]}}]}")
        if count <= MAX_ANSWER_PARTS:
            assert reader.close()
            continue
        with pytest.raises(TooComplex):
            reader.close()

"""Whole bodies, decoded strictly and leniently: both must see the same."""

import pytest

from thoughtline.clock import SystemClock
from thoughtline.dialects.chat.response import REFUSED, ChatBodyReader, decode, lenient
from thoughtline.dialects.limits import MAX_ANSWER_PARTS, TooComplex
from thoughtline.log.parts import Carrier, Origin

PLAIN = [
    b"{}",
    b'{"error": {"message": "no"}}',
    b'{"id": "r", "choices": []}',
    b'{"choices": null, "usage": {"prompt_tokens": 1}}',
    b'{"choices": [{"finish_reason": "stop", "message": null}]}',
    b'{"id":"r","model":"m","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}',
    b'{"choices": [{"message": {"reasoning_content": "a\\u00e9 \\/ b", "content": null}}]}',
    b'{"choices": [{"message": {"reasoning_content": null, "reasoning": "r"}}, {"message": {}}]}',
    b'{"choices": [{"message": {"re\\u0061soning": "r"}}]}',
    b'{"choices": [{"message": {"reasoning_details": [ {"b": 1.0, "a": 2} ]}}]}',
    b'{"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]}',
]


@pytest.mark.parametrize("body", PLAIN)
def test_strictly_and_leniently_a_body_says_the_same(body: bytes) -> None:
    assert decode(body) == lenient(body)


ODD = {
    b'{"choices": [{"message": {"reasoning": "r \\ud83d"}}]}': (Carrier.REASONING, 0),
    b'{"choices": [{"message": {"reasoning": "r"}}, 5]}': (Carrier.REASONING, 0),
    b'{"choices": [{"message": {"content": [{"type": "thinking"}]}}]}': (Carrier.CHUNK, 0),
    b'{"choices": [{"message": {"tool_calls": [{"extra_content": {"a": 1.0}}]}}]}': (
        Carrier.EXTRA_CONTENT,
        0,
    ),
}


@pytest.mark.parametrize(("body", "place"), ODD.items())
def test_what_the_strict_way_refuses_the_other_one_keeps_to_the_byte(
    body: bytes, place: tuple[Carrier, int]
) -> None:
    with pytest.raises(REFUSED):
        decode(body)
    assert lenient(body).raws[place].encode() in body


@pytest.mark.parametrize("name", [b"content", b"tool_calls"])
def test_the_shortest_body_with_too_many_parts_is_refused(name: bytes) -> None:
    for count in (MAX_ANSWER_PARTS, MAX_ANSWER_PARTS + 1):
        reader = ChatBodyReader(clock=SystemClock(), origin=Origin(), sent=0)
        parts = b",".join([b"0"] * count)
        reader.feed(b'{"choices":[{"message":{"' + name + b'":[' + parts + b"]}}]}")
        if count <= MAX_ANSWER_PARTS:
            assert reader.close()
            continue
        with pytest.raises(TooComplex):
            reader.close()

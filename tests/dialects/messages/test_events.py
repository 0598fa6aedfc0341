"""Events of a Messages stream, and the blocks that they add up to."""

import json

import pytest

from thoughtline.dialects.messages.events import REFUSED, PendingBlock, decode, lenient, only_text


def delta(**members):
    return json.dumps({"type": "content_block_delta", "index": 0, "delta": members}).encode()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (delta(type="text_delta", text="a"), "a"),
        (delta(type="thinking_delta", thinking="b"), "b"),
        (delta(type="input_json_delta", partial_json="{"), "{"),
        (delta(type="signature_delta", signature="s"), None),
        (delta(text="a", thinking="b"), None),
        (delta(text=1), None),
        (b'{"type":"ping"}', None),
        (b"{", None),
    ],
)
def test_an_event_that_says_only_a_text(data, text):
    assert only_text(data) == text


def test_what_the_strict_decoder_refuses_may_still_be_read():
    data = b'{"type":"content_block_start","index":0,"delta":[],"content_block":{"odd":"\\ud83d"}}'
    with pytest.raises(REFUSED):
        decode(data)
    event = lenient(data)
    assert (event.type, event.delta) == ("content_block_start", None)
    assert bytes(event.content_block) == b'{"odd":"\\ud83d"}'
    assert lenient(b"[]") is None


def test_a_block_is_filled_in_and_keeps_its_other_bytes():
    raw = b'{"type":"thinking", "odd":1.0, "thinking":"a"}'
    block = PendingBlock(raw, json.loads(raw))
    assert block.filled() == raw.decode()
    block.pieces += ["b", "c"]
    block.signature += ["s"]
    assert block.filled() == '{"type":"thinking", "odd":1.0, "thinking":"abc","signature":"s"}'

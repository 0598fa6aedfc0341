"""A signature in another alphabet of base64 is the same bytes: an exact echo."""

import json

import pytest

from support.gateway import TurnClient, gateway_with
from thoughtline.dialects.thoughts import make_thought, same_thought
from thoughtline.log.parts import Carrier, Text

STANDARD = "Eq+/AbEi/w=="
URL_SAFE = "Eq-_AbEi_w"


def respelled(value):
    """Signatures as URL-safe base64, without padding."""
    if isinstance(value, list):
        return [respelled(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: one.replace("+", "-").replace("/", "_").rstrip("=")
        if key == "thoughtSignature"
        else respelled(one)
        for key, one in value.items()
    }


async def test_gemini_gets_it_as_the_client_sent_it():
    gateway = gateway_with("gemini", "gemini")
    client = TurnClient(gateway, "gemini", gateway.wire.sim.models()[0])
    await client.say(Text(text="hello"))
    sent, written = [], client.body

    def body():
        own = json.loads(written())
        sent.append((own, json.dumps(respelled(own)).encode()))
        return sent[-1][1]

    client.body = body
    for _ in range(4):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
        head = answer.header("x-thoughtline-replay")
        assert head.startswith("restored=0; missed=0; placeholder=0; dropped=0; corrected=0; ")
        assert "exact=0" not in head
        assert gateway.wire.sent[-1].body == sent[-1][1]  # to the byte
    assert any(own != json.loads(other) for own, other in sent)


@pytest.mark.parametrize(
    ("carrier", "wrapped"),
    [
        (Carrier.SIGNATURE, lambda s: s),
        (Carrier.PART, lambda s: {"text": "", "thoughtSignature": s}),
        (Carrier.PART, lambda s: {"thought_signature": s, "text": "x"}),
        (Carrier.EXTRA_CONTENT, lambda s: {"google": {"thought_signature": s}}),
    ],
)
def test_equal_bytes_are_equal(carrier, wrapped):
    one, other = wrapped(STANDARD), wrapped(URL_SAFE)
    assert same_thought(carrier, json.dumps(one), json.dumps(other))
    assert not same_thought(carrier, json.dumps(one), json.dumps(wrapped("Eq+/AbEi/A==")))
    assert make_thought(carrier, one).seals == make_thought(carrier, other).seals


def test_other_carriers_are_compared_as_they_are():
    one, other = json.dumps("a-b_c"), json.dumps("a+b/c")
    assert not same_thought(Carrier.REASONING_CONTENT, one, other)
    block = {"type": "thinking", "thinking": "x", "signature": STANDARD}
    respelt = {**block, "signature": URL_SAFE}
    assert not same_thought(Carrier.BLOCK, json.dumps(block), json.dumps(respelt))
    words = {"thought": True, "text": "a-b"}
    assert not same_thought(Carrier.PART, json.dumps(words), json.dumps({**words, "text": "a+b"}))

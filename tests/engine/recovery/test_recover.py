"""One controlled retry: when there is one, and that there is no second."""

import gzip
import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.recovery import (
    ASKED,
    FINE,
    REFUSED,
    SAID,
    STRANGER,
    V4,
    post,
)

UNRELATED = [
    Answer(400, b'{"error" : {"message": "Invalid max_tokens"}}', {"x-request-id": "r", "a": "b"}),
    Answer(401, {"error": "no"}),
    Answer(404, b"not found", {"content-type": "text/plain"}),
    Answer(413, b""),
    Answer(429, {"error": {"message": V4}}, {"retry-after": "7"}),
]


@pytest.mark.parametrize("refusal", UNRELATED, ids=lambda a: str(a.status))
async def test_what_is_about_something_else_passes_as_it_came(refusal):
    wire = ScriptedWire(refusal)
    gateway = InProcessGateway(wire, "deepseek")
    answer = await post(gateway)
    assert (answer.status, answer.body) == (refusal.status, refusal.body)
    assert set(refusal.headers) <= set(answer.headers)
    assert len(wire.sent) == 1


async def test_a_correction_that_changes_nothing_is_no_reason_to_ask_again():
    wire = ScriptedWire(REFUSED)
    gateway = InProcessGateway(wire, "deepseek")
    answer = await post(gateway, [ASKED])
    assert (answer.status, answer.body) == (400, REFUSED.body)
    assert (len(wire.sent), gateway.notes.records[0]) == (1, ("recovered", "restore_all", False))


async def test_there_is_no_third_try():
    wire = ScriptedWire(REFUSED)
    gateway = InProcessGateway(wire)
    answer = await post(gateway)
    assert (answer.status, answer.body, len(wire.sent)) == (400, REFUSED.body, 2)
    assert wire.sent[0].body != wire.sent[1].body
    assert await gateway.facts("turn_started") == []


async def test_a_packed_refusal_is_understood_and_passed_on_packed():
    packed = Answer(400, gzip.compress(REFUSED.body), {"content-encoding": "gzip"})
    wire = ScriptedWire(packed, FINE)
    assert (await post(InProcessGateway(wire))).status == 200
    wire = ScriptedWire(packed)
    assert (await post(InProcessGateway(wire), [ASKED])).body == packed.body


async def test_the_second_answer_is_the_one_that_is_kept():
    wire = ScriptedWire(REFUSED, FINE)
    gateway = InProcessGateway(wire)
    answer = await post(gateway)
    assert answer.json == SAID
    [ended] = await gateway.facts("turn_ended")
    assert ended.outcome == "completed"


async def test_strict_mode_makes_nothing_up_on_the_second_try_either():
    wire = ScriptedWire(REFUSED, FINE)
    gateway = InProcessGateway(wire, strict=True)
    answer = await post(gateway)
    assert (answer.status, answer.body, len(wire.sent)) == (400, REFUSED.body, 1)


async def test_replay_switched_off_is_not_corrected():
    wire = ScriptedWire(REFUSED, FINE)
    answer = await post(InProcessGateway(wire), headers={"x-thoughtline-replay": "off"})
    assert (answer.status, len(wire.sent)) == (400, 1)


async def test_a_body_that_is_not_for_us_to_edit_passes():
    twice = (
        b'{"model":"m","tools":[1],"messages":[],"messages":' + json.dumps(STRANGER).encode() + b"}"
    )
    wire = ScriptedWire(REFUSED, FINE)
    answer = await InProcessGateway(wire).post("/v1/chat/completions", twice)
    assert (answer.status, len(wire.sent), wire.sent[0].body) == (400, 1, twice)


_SIGNED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "text", "text": "Well."},
    ],
    "stop_reason": "end_turn",
}
_BAD_SIGNATURE = {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}


@pytest.mark.parametrize("again", [_BAD_SIGNATURE, {"message": "Invalid max_tokens"}])
async def test_a_corrected_request_that_is_refused_again_is_reported_like_any_other(again):
    """Its answer says what went out; only a first refusal passes as it came."""
    first = Answer(400, {"error": _BAD_SIGNATURE})
    wire = ScriptedWire(Answer(body=_SIGNED), first, Answer(400, {"error": again}))
    gateway = InProcessGateway(wire, "anthropic")
    messages = [{"role": "user", "content": "Hi"}]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    body = {"model": "claude-sonnet-4-5", "thinking": thinking, "messages": messages}
    await gateway.post("/v1/messages", body)
    said = [{"type": "text", "text": "Well."}]
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "And?"}]
    answer = await gateway.post("/v1/messages", body)
    assert (answer.status, answer.json, len(wire.sent)) == (400, {"error": again}, 3)
    said = answer.header("x-thoughtline-replay")
    assert said.startswith("restored=0; missed=0; placeholder=0; dropped=1; ")
    assert gateway.notes.records[1:] == [("recovered", "strip_signed", True), (400, "")]

"""One controlled retry: parameters that an endpoint does not take."""

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    gateway_with,
    recovered,
    statuses,
)
from support.recovery import ASKED, CALL, TOLD, post


async def test_a_schema_that_knows_no_such_key_gets_none():
    gateway = gateway_with("mistral")
    call = {**CALL, "id": "abcdefghi"}
    echoed = [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "hm"},
        {**TOLD, "tool_call_id": "abcdefghi"},
    ]
    assert (await post(gateway, echoed, "magistral-medium-latest")).status == 200
    assert statuses(gateway) == [422, 200]
    assert "reasoning_content" not in gateway.wire.bodies[1]["messages"][1]


async def test_nine_characters():
    gateway = gateway_with("mistral")
    both = {"role": "assistant", "content": "", "tool_calls": [CALL, {**CALL, "id": "call_2"}]}
    results = [TOLD, {**TOLD, "tool_call_id": "call_2"}]
    model = "magistral-medium-latest"
    for _ in range(2):
        assert (await post(gateway, [ASKED, both, *results], model)).status == 200
    assert statuses(gateway) == [400, 200, 200]
    sent = gateway.wire.bodies[1]["messages"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert [m["tool_call_id"] for m in sent[2:]] == ids
    assert len(set(ids)) == 2
    assert gateway.wire.bodies[1] == gateway.wire.bodies[2]  # the same ids every time
    untouched = gateway.wire.sent[1].body.replace(ids[0].encode(), b"call_1")
    assert untouched.replace(ids[1].encode(), b"call_2") == gateway.wire.sent[0].body


async def test_drop_field():
    wire = ScriptedWire(
        Answer(400, {"detail": "Unsupported parameter: max_output_tokens"}),
        Answer(200, {"output": []}),
    )
    gateway = InProcessGateway(wire)
    body = {"model": "gpt-5.6", "input": "hi", "max_output_tokens": 5, "store": False}
    for _ in range(2):
        await gateway.post("/v1/responses", body)
    assert ["max_output_tokens" in b for b in wire.bodies] == [True, False, False]


GPT = "gpt-5.6"


DONE = Answer(200, {"id": "resp_9", "status": "completed", "output": []})


async def test_an_unsupported_parameter():
    gateway = gateway_with("codex", "codex")
    body = {"model": GPT, "input": "hi", "stream": True, "max_output_tokens": 99}
    for _ in range(2):
        assert (await gateway.post("/v1/responses", body)).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["drop_field"])


async def test_what_only_we_asked_for_is_not_asked_for_again():
    text = "Encrypted content is not supported with this model."
    error = {"error": {"message": text, "type": "invalid_request_error", "param": "include"}}
    wire = ScriptedWire(Answer(400, error), DONE)
    gateway = InProcessGateway(wire, "openai")
    for _ in range(2):
        await gateway.post("/v1/responses", {"model": "gpt-4o", "input": "hi"})
    assert ["include" in body for body in wire.bodies] == [True, False, False]
    wire = ScriptedWire(Answer(400, error), DONE)
    own = {"model": "gpt-4o", "input": "hi", "include": ["reasoning.encrypted_content"]}
    assert (await InProcessGateway(wire, "openai").post("/v1/responses", own)).status == 400
    assert len(wire.sent) == 1

"""One controlled retry: plain thoughts and parameters, with strict providers and their own words."""

import pytest

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    TurnClient,
    audit,
    gateway_with,
    statuses,
)
from support.recovery import ASKED, CALLED, FINE, REFUSED, TOLD, V4, post
from thoughtline.log.parts import Carrier
from thoughtline.log.quirks import Quirk


async def quirks(gateway):
    return [body.quirk for body in await gateway.facts("endpoint_learned")]


# -- demanded ------------------------------------------------------------------------------------


async def test_what_was_found_goes_back_where_it_is_demanded_after_all():
    """The row said that there is no place for thoughts."""
    gateway = gateway_with("deepseek", policy="openai")
    client = await TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False).run(6)
    assert statuses(gateway) == [200, 400, 200, 200, 200, 200, 200]
    assert audit(gateway).startswith("exact=5; altered=0; missing=0")
    assert gateway.notes.records.count(("recovered", "restore_all", True)) == 1
    [quirk] = await quirks(gateway)
    assert (quirk.need, quirk.scope) == ("required", "all")
    assert len(client.turns) == 6


async def test_where_it_is_lost_the_shortest_value_stands_in():
    gateway = gateway_with("deepseek")
    answer = await post(gateway)
    assert (answer.status, statuses(gateway)) == (200, [400, 200])
    assert gateway.wire.bodies[1]["messages"][1] == {**CALLED, "reasoning_content": " "}
    said = answer.header("x-thoughtline-replay")
    assert said.startswith("restored=0; missed=1; placeholder=1; dropped=0; ")
    assert (await post(gateway)).status == 200
    assert statuses(gateway) == [400, 200, 200]  # right at once


@pytest.mark.parametrize("name", ["deepseek", "deepseek-v3.2", "mimo"])
async def test_restore_all_in_every_wording(name):
    gateway = gateway_with(name)
    model = gateway.wire.sim.models()[0]
    assert (await post(gateway, model=model)).status == 200
    assert statuses(gateway) == [400, 200]
    assert gateway.notes.records[0] == ("recovered", "restore_all", True)


@pytest.mark.parametrize("name", ["kimi", "kimi-k3"])
async def test_restore_calls(name):
    gateway = gateway_with(name)
    plain = [ASKED, {"role": "assistant", "content": "Hello."}, ASKED, CALLED, TOLD]
    assert (await post(gateway, plain, gateway.wire.sim.models()[0])).status == 200
    assert statuses(gateway) == [400, 200]
    sent = gateway.wire.bodies[1]["messages"]
    assert "reasoning_content" not in sent[1]
    assert sent[3]["reasoning_content"] == ""
    assert [quirk.scope for quirk in await quirks(gateway)] == ["calls"]


async def test_restore_all_in_messages():
    gateway = gateway_with("deepseek-anthropic")
    past = await TurnClient(gateway, "messages", "deepseek-v4-flash", keep=False).run(
        1, direct=True
    )
    assert (await past.say(*past.next())).status == 200
    assert statuses(gateway) == [400, 200]
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    assert gateway.wire.bodies[-1]["messages"][1]["content"][0] == empty


async def test_restore_all_in_responses():
    """The thought is known, but stands only before the first of parallel calls."""
    call = {"type": "function_call", "name": "run", "arguments": "{}"}
    thought = {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }
    said = [thought, {**call, "call_id": "a"}, {**call, "call_id": "b"}]
    answered = Answer(200, {"id": "resp_1", "status": "completed", "output": said})
    refused = Answer(400, {"error": {"message": V4.replace("content", "text")}})
    wire = ScriptedWire(answered, refused, answered)
    gateway = InProcessGateway(wire)
    client = await TurnClient(gateway, "responses", "m", keep=False).run(1)
    assert (await client.say(*client.next())).status == 200
    kinds = [[item.get("type") for item in body["input"]] for body in wire.bodies]
    assert kinds[1][1:4] == ["reasoning", "function_call", "function_call"]
    assert kinds[2][1:5] == ["reasoning", "function_call"] * 2
    assert [quirk.every_call for quirk in await quirks(gateway)] == [True]


async def test_thinking_off_in_responses_where_they_are_not_known():
    gateway = gateway_with("deepseek-responses")
    past = await TurnClient(gateway, "responses", "deepseek-v4-pro", keep=False).run(1, direct=True)
    assert (await past.say(*past.next())).status == 200
    assert statuses(gateway) == [400, 200]
    assert gateway.wire.bodies[-1]["reasoning"] == {"effort": "none"}


async def test_the_other_value_where_the_value_itself_is_refused():
    wire = ScriptedWire(REFUSED, FINE)
    gateway = InProcessGateway(wire, "deepseek")
    await post(gateway)
    assert [b["messages"][1].get("reasoning_content") for b in wire.bodies] == [" ", ""]
    [quirk] = await quirks(gateway)
    assert quirk.lost == '""'
    await post(gateway)
    assert wire.bodies[-1]["messages"][1]["reasoning_content"] == ""


async def test_thinking_off_where_neither_value_is_taken():
    wire = ScriptedWire(REFUSED)
    gateway = InProcessGateway(wire, "deepseek")
    answers = [await post(gateway) for _ in range(3)]
    assert [a.status for a in answers] == [400, 400, 400]
    values = [
        (b["messages"][1].get("reasoning_content"), b.get("thinking", {}).get("type"))
        for b in wire.bodies
    ]
    # one retry a request, and the next request tries the next thing
    assert values[:4] == [(" ", None), ("", None), (" ", None), (None, "disabled")]
    assert len(values) == 5  # then there is nothing left to try
    assert await quirks(gateway) == []


async def test_a_refused_value_is_another_ones_right_value():
    """A row that is wrong about this endpoint: its empty value is refused, a space is not."""
    gateway = gateway_with("deepseek", policy="kimi")
    plain = [ASKED, {"role": "assistant", "content": "Hello."}, ASKED]
    assert [(await post(gateway, plain)).status for _ in range(3)] == [400, 200, 200]
    assert statuses(gateway) == [400, 400, 400, 200, 200]


# -- under another key, or forbidden -------------------------------------------------------------


@pytest.mark.parametrize("name", ["groq", "cerebras"])
async def test_rename(name):
    gateway = gateway_with(name)
    echoed = [ASKED, {**CALLED, "reasoning_content": "hm"}, TOLD]
    model = gateway.wire.sim.models()[0]
    assert [(await post(gateway, echoed, model)).status for _ in range(2)] == [200, 200]
    assert statuses(gateway) == [400, 200, 200]
    for body in gateway.wire.bodies[1:]:
        assert body["messages"][1] == {**CALLED, "reasoning": "hm"}
    assert [quirk.reads for quirk in await quirks(gateway)] == [(Carrier.REASONING,)]


async def test_rename_to_nothing_where_that_key_is_unknown_too():
    text = "'messages.1' : property 'reasoning' is unsupported"
    wire = ScriptedWire(Answer(400, {"error": {"message": text}}), FINE)
    gateway = InProcessGateway(wire, "groq")
    await post(gateway, [ASKED, {**CALLED, "reasoning": "hm"}, TOLD])
    assert wire.bodies[1]["messages"][1] == CALLED
    assert [quirk.need for quirk in await quirks(gateway)] == ["forbidden"]


async def test_a_key_with_nothing_in_it_costs_no_thought():
    """What a client says with `null` is refused there, and what the model thought is not."""
    gateway = gateway_with("mistral", "mistral")
    model = gateway.wire.sim.models()[0]
    history = [ASKED]
    for _ in range(4):
        reply = await post(gateway, history, model)
        assert reply.status == 200, reply.body
        message = reply.json["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        results = [{**TOLD, "tool_call_id": call["id"]} for call in calls]
        history = [*history, {**message, "reasoning_content": None}, *(results or [ASKED])]
    assert statuses(gateway) == [200, 422, 200, 200, 200]
    assert "missing=0" in audit(gateway)
    assert await quirks(gateway) == [Quirk(strip_null_reasoning=True)]


async def test_drop_reasoning_for_good():
    gateway = gateway_with("deepseek-r1")
    echoed = [ASKED, {"role": "assistant", "content": "Hello.", "reasoning_content": "hm"}, ASKED]
    model = "deepseek-reasoner"
    assert [(await post(gateway, echoed, model)).status for _ in range(2)] == [200, 200]
    assert statuses(gateway) == [400, 200, 200]


async def test_drop_reasoning_in_nova_s_words():
    text = (
        "User messages cannot contain reasoning content. "
        "Please remove the reasoning content and try again."
    )
    wire = ScriptedWire(Answer(400, {"message": text}), Answer(200, {"type": "message"}))
    gateway = InProcessGateway(wire)
    block = {"type": "thinking", "thinking": "hm", "signature": ""}
    said = {"role": "assistant", "content": [block, {"type": "text", "text": "Hello."}]}
    body = {"model": "nova", "max_tokens": 9, "messages": [ASKED, said, ASKED]}
    await gateway.post("/v1/messages", body)
    assert wire.bodies[1]["messages"][1]["content"] == [{"type": "text", "text": "Hello."}]


# -- a whole conversation that began without us --------------------------------------------------


@pytest.mark.parametrize("name", ["deepseek", "kimi", "mimo", "groq"])
async def test_a_conversation_that_began_elsewhere_goes_on_here(name):
    gateway = gateway_with(name)
    client = TurnClient(gateway, "chat", gateway.wire.sim.models()[0])
    await client.run(3, direct=True)
    client.keep = False
    await client.run(5)
    assert [status for status in statuses(gateway) if status != 200] in ([], [400])
    assert audit(gateway).startswith("exact=4")

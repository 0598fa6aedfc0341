"""Calls that were made at once are one output, wherever their own outputs stand."""

import json

from support.gateway import Answer, InProcessGateway, ScriptedWire, gateway_with
from thoughtline.dialects import DIALECTS
from thoughtline.engine.parted_calls import regrouped
from thoughtline.testing import simulator

FUNCTIONS = [{"type": "function", "name": "run", "parameters": {"type": "object"}}]


def call(id):
    return {"type": "function_call", "call_id": id, "name": "run", "arguments": "{}"}


def output(id):
    return {"type": "function_call_output", "call_id": id, "output": id}


def read(*items):
    body = json.dumps({"model": "m", "input": [{"role": "user", "content": "Hi."}, *items]})
    return DIALECTS["responses"].read(body.encode())


def parted(*ids):
    return [item for id in ids for item in (call(id), output(id))]


def test_the_turns_read_as_if_the_outputs_stood_behind_all_calls():
    ids = "a", "b", "c", "d"
    made = regrouped(read(*parted(*ids), call("e"), output("e")), [range(1), range(1, 4)])
    whole = read(*parted("a"), *map(call, ids[1:]), *map(output, ids[1:]), call("e"), output("e"))
    assert made.turns == whole.turns
    assert made.anchors == ((1,), (3, 5, 7), (9,), ())


async def test_calls_one_after_another_stay_apart():
    gateway = gateway_with("openai", "openai")
    asked = {"model": simulator("openai").models()[0], "store": False, "tools": FUNCTIONS}
    history = [{"role": "user", "content": "Hi."}, *parted("a", "b", "c")]
    answer = await gateway.post("/v1/responses", {**asked, "input": history})
    assert "missed=3" in answer.header("x-thoughtline-replay")


# -- messages of their own -------------------------------------------------------------------------


TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
ASKED = {"model": "deepseek-v4-pro", "tools": TOOLS}


def tool_call(id):
    return {"id": id, "type": "function", "function": {"name": "run", "arguments": "{}"}}


def answered(**more):
    message = {"role": "assistant", "tool_calls": [tool_call("id-a1"), tool_call("id-b2")], **more}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Answer(200, {"id": "r", "object": "chat.completion", "choices": [choice]})


async def sent_back(answer, *, policy="deepseek", **second):
    """What goes upstream of two calls in messages of their own, and what the client sent."""
    gateway = InProcessGateway(ScriptedWire(answer), policy)
    asked = {"role": "user", "content": "Hi."}
    await gateway.post("/v1/chat/completions", {**ASKED, "messages": [asked]})
    history = [asked]
    for id, more in (("id-a1", {}), ("id-b2", second)):
        history += [
            {"role": "assistant", "content": None, "tool_calls": [tool_call(id)], **more},
            {"role": "tool", "tool_call_id": id, "content": id},
        ]
    await gateway.post("/v1/chat/completions", {**ASKED, "messages": history})
    return gateway.wire.bodies[-1]["messages"], history


async def test_they_are_one_message_again_where_a_thought_goes_with_it():
    sent, history = await sent_back(answered(reasoning_content="Both."))
    whole = {**history[1], "tool_calls": [tool_call("id-a1"), tool_call("id-b2")]}
    assert sent == [history[0], {**whole, "reasoning_content": "Both."}, history[2], history[4]]


async def test_or_where_a_thought_that_never_was_would_be_made_up():
    sent, history = await sent_back(answered())
    whole = {**history[1], "tool_calls": [tool_call("id-a1"), tool_call("id-b2")]}
    assert sent == [history[0], whole, history[2], history[4]]


async def test_else_they_stay_as_the_client_wrote_them():
    sent, history = await sent_back(answered(), policy="glm")
    assert sent == history


async def test_what_says_something_beside_its_call_is_a_message_of_its_own():
    sent, history = await sent_back(answered(reasoning_content="Both."), content="And this.")
    assert [one["role"] for one in sent] == [one["role"] for one in history]
    assert [one.get("tool_calls") for one in sent] == [one.get("tool_calls") for one in history]

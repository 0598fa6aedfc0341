"""Calls that were made at once are one output, wherever their own outputs stand."""

import json

from support.gateway import gateway_with
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

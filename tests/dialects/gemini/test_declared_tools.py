"""Tools of other dialects, declared to a strict provider: it refuses keywords it does not know."""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import ToolSpec
from thoughtline.testing import Request, simulator

PLAIN = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string", "enum": ["x"]}}},
    "required": ["a"],
}
OTHERS = {
    "a keyword of ours": {"$schema": "https://json-schema.org/draft/2020-12/schema", **PLAIN},
    "closed": {**PLAIN, "additionalProperties": False},
    "inside a property": {"type": "object", "properties": {"a": {"const": 1}}},
    "inside items": {"type": "array", "items": {"exclusiveMinimum": 0}},
    "inside a choice": {"anyOf": [{"type": "string"}, {"oneOf": []}]},
    "two types": {"type": ["string", "null"]},
    "a property that may be anything": {"type": "object", "properties": {"a": True}},
}


def asked(tools):
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "tools": tools}
    request = Request(
        method="POST",
        path="/v1beta/models/gemini-3-pro-preview:generateContent",
        headers={"x-goog-api-key": "key"},
        body=json.dumps(body).encode(),
    )
    return simulator("gemini").answer(request)


@pytest.mark.parametrize("schema", [PLAIN, *OTHERS.values()], ids=["plain", *OTHERS])
def test_a_strict_provider_takes_every_tool(schema):
    tool = ToolSpec(name="run", parameters={"type": "object", "properties": {"it": schema}})
    written = json.loads(DIALECTS["gemini"].write((), model="", tools=[tool]))
    reply = asked(written["tools"])
    assert reply.status == 200, reply.body


def test_the_provider_refuses_other_keywords():
    reply = asked([{"functionDeclarations": [{"name": "run", "parameters": {"$schema": "x"}}]}])
    assert reply.status == 400
    where = "tools[0].function_declarations[0].parameters"
    message = json.loads(reply.body)["error"]["message"]
    assert f"Unknown name \"$schema\" at '{where}': Cannot find field." in message

"""A thinking block without a signature does not go back to a provider that checks signatures."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire

ASKED = {
    "model": "claude-opus-4-1",
    "max_tokens": 2048,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [{"role": "user", "content": "hi"}],
}
BLOCKS = {
    "empty": {"type": "thinking", "thinking": "Hm.", "signature": ""},
    "none": {"type": "thinking", "thinking": "Hm."},
    "signed": {"type": "thinking", "thinking": "Hm.", "signature": "EqABc2lnbmVk"},
    "redacted": {"type": "redacted_thinking", "data": "EmwKAhgB"},
}


def said(block):
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-1",
        "content": [block, {"type": "text", "text": "Hello."}],
        "stop_reason": "end_turn",
    }


@pytest.mark.parametrize("echoed", [True, False])
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("policy", ["anthropic", "kimi"])
async def test_only_signed_blocks_go_back(name, echoed, policy):
    answer = said(BLOCKS[name])
    gateway = InProcessGateway(ScriptedWire(Answer(200, answer)), policy)
    assert (await gateway.post("/v1/messages", ASKED)).status == 200
    content = answer["content"] if echoed else answer["content"][1:]
    messages = [
        *ASKED["messages"],
        {"role": "assistant", "content": content},
        {"role": "user", "content": "go on"},
    ]
    reply = await gateway.post("/v1/messages", {**ASKED, "messages": messages})
    sent = json.loads(gateway.wire.sent[-1].body)["messages"][1]["content"]
    signed = name in ("signed", "redacted") or policy != "anthropic"
    assert [one["type"] for one in sent] == [BLOCKS[name]["type"], "text"][not signed :]
    assert ("dropped=1" in reply.header("x-thoughtline-replay")) is not signed

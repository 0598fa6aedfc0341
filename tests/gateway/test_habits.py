"""Clients with habits: whatever they make of a history, thoughts stand where they stood.

Of the Messages and the Responses API; those of Chat Completions are in `test_conversations`.
"""

import json
from itertools import count

import pytest

from support.gateway import audit, gateway_with, statuses
from thoughtline.testing import simulator

TOOLS = [
    {"name": name, "description": "d", "input_schema": {"type": "object", "properties": {}}}
    for name in ("read_file", "run", "search")
]
THINKING = {
    "claude": {"type": "enabled", "budget_tokens": 2000},
    "claude-bound": {"type": "adaptive"},
}
FILLER = {"type": "text", "text": "[System: Empty message content sanitised to satisfy protocol]"}
THOUGHTS = ("thinking", "redacted_thinking")


def stripped(blocks):
    return [block for block in blocks if block["type"] not in THOUGHTS]


def filled(blocks):
    """LiteLLM: words before a call that had none."""
    at = next((n for n, block in enumerate(blocks) if block["type"] == "tool_use"), None)
    said = any(block["type"] == "text" for block in blocks)
    return blocks if at is None or said else [*blocks[:at], FILLER, *blocks[at:]]


def stripped_and_filled(blocks):
    return filled(stripped(blocks))


def trimmed(blocks):
    """qwen-code: the text of a thought trimmed, its signature kept, sealed blocks dropped."""
    return [
        {**block, "thinking": block["thinking"].strip()} if block["type"] == "thinking" else block
        for block in blocks
        if block["type"] != "redacted_thinking"
    ]


def unsealed(blocks):
    """kimi-code: a sealed block as an empty thought with the seal for a signature."""
    return [
        {"type": "thinking", "thinking": "", "signature": block["data"]}
        if block["type"] == "redacted_thinking"
        else block
        for block in blocks
    ]


def blanked(blocks):
    """Claude Code 2.1.15x: the text is gone, its signature is not."""
    return [{**b, "thinking": ""} if b["type"] == "thinking" else b for b in blocks]


def unsigned(blocks):
    """Those whose own model of a message has no place for a signature."""
    return [{k: v for k, v in block.items() if k != "signature"} for block in blocks]


HABITS = [stripped, filled, stripped_and_filled, trimmed, unsealed, blanked, unsigned]


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("name", ["claude", "claude-bound", "deepseek-anthropic"])
async def test_nothing_is_refused_and_nothing_is_lost(name, habit):
    gateway = gateway_with(name, "deepseek" if name.startswith("deepseek") else "anthropic")
    asked = {"model": simulator(name).models()[0], "max_tokens": 4000, "tools": TOOLS}
    asked |= {"thinking": THINKING[name]} if name in THINKING else {}
    history = [{"role": "user", "content": "Question 0"}]
    for n in range(8):
        reply = await gateway.post("/v1/messages", {**asked, "messages": history})
        assert reply.status == 200, reply.body
        blocks = json.loads(reply.body)["content"]
        used = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in used]
        history = [
            *history,
            {"role": "assistant", "content": habit(blocks)},
            {"role": "user", "content": results or f"Question {n + 1}"},
        ]
    assert statuses(gateway) == [200] * 8
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)


# -- Responses -----------------------------------------------------------------------------------

FUNCTIONS = [
    {"type": "function", "name": tool["name"], "parameters": tool["input_schema"]} for tool in TOOLS
]


def types(items):
    return [item.get("type") for item in items]


def without_thoughts(items):
    return [item for item in items if item.get("type") != "reasoning"]


def without_words_beside_calls(items):
    """agno: the message that accompanied function calls is gone, its thought is not."""
    if "function_call" not in types(items):
        return items
    return [item for item in items if item["type"] != "message"]


def calls_first(items):
    """Continue: the call before the words that led to it, and no thought."""
    return sorted(without_thoughts(items), key=lambda item: item["type"] != "function_call")


def words_first(items):
    """A word before calls that had none."""
    filler = {"role": "assistant", "content": "Calling a tool."}
    called = "function_call" in types(items) and "message" not in types(items)
    return [filler, *without_thoughts(items)] if called else without_thoughts(items)


def named_only(items):
    """The AI SDK by default."""
    kinds = ("reasoning", "message")
    return [
        {"type": "item_reference", "id": item["id"]} if item["type"] in kinds else item
        for item in items
    ]


@pytest.mark.parametrize(
    "habit", [without_thoughts, without_words_beside_calls, calls_first, words_first, named_only]
)
@pytest.mark.parametrize("name", ["openai", "azure", "xai"])
async def test_no_item_misses_its_pair(name, habit):
    gateway = gateway_with(name, name)
    asked = {"model": simulator(name).models()[0], "store": False, "tools": FUNCTIONS}
    history = [{"role": "user", "content": "Question 0"}]
    for n in range(8):
        reply = await gateway.post("/v1/responses", {**asked, "input": history})
        assert reply.status == 200, reply.body
        items = json.loads(reply.body)["output"]
        called = [item["call_id"] for item in items if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in called]
        asks = [{"role": "user", "content": f"Question {n + 1}"}]
        history = [*history, *habit(items), *(results or asks)]
    assert statuses(gateway) == [200] * 8
    told = "altered=0; missing=0"
    if habit not in (without_words_beside_calls, calls_first):  # what it led to is gone, or moved
        told += "; misplaced=0"
    assert told in audit(gateway)


OWN = {"message": "msg", "function_call": "fc"}


def numbered(items, ids):
    """Continue: ids of its own making for messages and calls."""
    return [
        {**item, "id": f"{OWN[item['type']]}_{next(ids):04}"} if item["type"] in OWN else item
        for item in items
    ]


@pytest.mark.parametrize("thoughts", ["left out", "kept"])
@pytest.mark.parametrize("name", ["openai", "azure", "xai"])
async def test_ids_of_the_clients_own_making_cost_no_thought(name, thoughts):
    gateway = gateway_with(name, name)
    asked = {"model": simulator(name).models()[0], "store": False, "tools": FUNCTIONS}
    history = [{"role": "user", "content": "Question 0"}]
    ids = count()
    for n in range(8):
        reply = await gateway.post("/v1/responses", {**asked, "input": history})
        assert reply.status == 200, reply.body
        items = json.loads(reply.body)["output"]
        called = [item["call_id"] for item in items if item["type"] == "function_call"]
        results = [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in called]
        asks = [{"role": "user", "content": f"Question {n + 1}"}]
        echo = items if thoughts == "kept" else without_thoughts(items)
        history = [*history, *numbered(echo, ids), *(results or asks)]
    if thoughts == "left out":
        assert statuses(gateway) == [200] * 8
    assert "altered=0; missing=0; misplaced=0" in audit(gateway)


def parted(items, results):
    """Agents that write each output right behind its call."""
    told = {result["call_id"]: result for result in results}
    return [
        one for item in items for one in (item, told.get(item.get("call_id"))) if one is not None
    ]


@pytest.mark.parametrize("thoughts", ["left out", "kept"])
@pytest.mark.parametrize("name", ["openai", "azure", "xai", "deepseek-responses"])
async def test_calls_that_were_made_at_once_are_known_each_with_its_output(name, thoughts):
    gateway = gateway_with(name, name.removesuffix("-responses"))
    asked = {"model": simulator(name).models()[0], "store": False, "tools": FUNCTIONS}
    history = [{"role": "user", "content": "Question 0"}]
    at_once = 0
    for n in range(16):
        reply = await gateway.post("/v1/responses", {**asked, "input": history})
        assert reply.status == 200, reply.body
        assert "missed=0" in reply.header("x-thoughtline-replay")
        items = json.loads(reply.body)["output"]
        called = [item["call_id"] for item in items if item["type"] == "function_call"]
        at_once += len(called) > 1
        results = [{"type": "function_call_output", "call_id": id, "output": id} for id in called]
        asks = [{"role": "user", "content": f"Question {n + 1}"}]
        echo = items if thoughts == "kept" else without_thoughts(items)
        history = [*history, *parted(echo, results), *([] if results else asks)]
    assert at_once > 1
    assert statuses(gateway) == [200] * 16
    assert "altered=0; missing=0; misplaced=0" in audit(gateway)

"""Refusals in the words of providers: one corrected request each, remembered where it is a fact."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, recovered

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
FINE = {
    CHAT: {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Fine."}}]},
    RESPONSES: {"id": "resp_9", "status": "completed", "output": []},
    MESSAGES: {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Fine."}], "stop_reason": "end_turn"},
}  # fmt: skip
HI = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def thinks(text):
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


def chat(**more):
    return CHAT, {"model": "m", "messages": [HI], **more}


def responses(*items, **more):
    return RESPONSES, {"model": "gpt-6-sol", "input": [HI, *items], "store": False, **more}


def messages(*history, **more):
    turns = [HI, *history] if history else [HI]
    return MESSAGES, {"model": "claude-opus-5", "max_tokens": 9, "messages": turns, **more}


def says(*blocks):
    return {"role": "assistant", "content": list(blocks)}


EFFORT = {"reasoning_effort": "xhigh"}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
UPDATE = {"type": "configuration_update", "reasoning": {"effort": "low"}}
SEARCH = {"type": "web_search"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
FALLBACK = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}
WARM = {"temperature": 1, "top_p": 1, "top_k": 5}
BOUND = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}

REMEDIES = [
    # what is said, the request, the strategy, what is changed in it, whether it is remembered
    ("reasoning_effort must be one of ['low', 'high']", chat(**EFFORT), "nearest_value", {"reasoning_effort": "high"}, True),
    ("unknown effort. valid levels: low, max", chat(**EFFORT), "nearest_value", {"reasoning_effort": "max"}, True),
    ("thinking cannot be off, please use low, high, or max", chat(thinking={"type": "disabled"}), "nearest_value", {"thinking": None}, True),
    ("max_tokens should be in [1, 131072]", chat(max_tokens=200_000), "nearest_value", {"max_tokens": 131072}, True),
    ("Invalid value: 'minimal'. Supported values are: 'low', 'high'.", responses(reasoning={"effort": "minimal"}), "nearest_value", {"reasoning": {"effort": "low"}}, True),
    ("Unknown parameter: 'reasoning_effort'.", chat(**EFFORT), "move_effort", {"reasoning_effort": None, "reasoning": {"effort": "xhigh"}}, True),
    ("Unknown parameter: 'reasoning'.", chat(reasoning={"effort": "low"}), "move_effort", {"reasoning": None, "reasoning_effort": "low"}, True),
    ("Reasoning prompt mode is not enabled for this model", chat(prompt_mode="reasoning"), "drop_field", {"prompt_mode": None}, True),
    ("reasoning_effort is not supported for this model", chat(**EFFORT), "drop_field", {"reasoning_effort": None}, True),
    ("The background parameter is not supported.", responses(background=True), "drop_field", {"background": None}, True),
    ("web search is not supported for this request", responses(tools=[SEARCH, TOOL]), "drop_web_search", {"tools": [TOOL]}, False),
    ('item type "compaction" is not supported', responses(COMPACTION), "drop_compaction", {"input": [HI]}, False),
    ("'configuration_update' item type is not supported", responses(UPDATE), "drop_configuration", {"input": [HI]}, False),
    ("temperature: Extra inputs are not permitted", messages(**WARM), "drop_sampling", dict.fromkeys(WARM), False),
    ("top_k: Extra inputs are not permitted", messages(top_k=5), "drop_sampling", {"top_k": None}, False),
    ("`temperature` is deprecated for this model.", messages(**WARM), "drop_sampling", dict.fromkeys(WARM), True),
    (
        "messages.1.content.1: Input tag 'fallback' found using 'type' does not match any of the expected tags",
        messages(says(thinks("old"), {"type": "text", "text": "a"}, FALLBACK, thinks("new"), {"type": "text", "text": "b"}), HI),
        "drop_fallbacks",
        {"messages": [HI, says({"type": "text", "text": "a"}, thinks("new"), {"type": "text", "text": "b"}), HI]},
        False,
    ),
    (
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        messages(says(thinks("only")), HI),
        "drop_bare_thoughts",
        {"messages": [HI, HI]},
        False,
    ),
]  # fmt: skip
QUOTED = {
    "`temperature` is deprecated for this model.": "temperature is deprecated for this model."
}


@pytest.mark.parametrize(("words", "asked", "strategy", "changed", "remembered"), REMEDIES)
async def test_a_refusal_has_its_remedy(words, asked, strategy, changed, remembered):
    path, body = asked
    refused = Answer(400, {"error": {"message": QUOTED.get(words, words)}})
    fine = Answer(200, FINE[path])
    wire = ScriptedWire(refused, fine)
    gateway = InProcessGateway(wire)
    answer = await gateway.post(path, body)
    assert answer.status == 200
    assert recovered(gateway) == [strategy]
    first, second = wire.bodies
    wanted = {**first, **{k: v for k, v in changed.items() if v is not None}}
    wanted = {k: v for k, v in wanted.items() if changed.get(k, "") is not None}
    assert second == wanted
    await gateway.post(path, body)
    learned = await gateway.facts("endpoint_learned")
    assert bool(learned) is remembered
    if remembered:
        assert wire.bodies[2] == wanted
        assert len(wire.sent) == 3


async def test_what_was_put_in_the_place_of_another_value_is_said():
    wire = ScriptedWire(
        Answer(400, {"error": {"message": "effort xhigh unknown, valid levels: low, high"}}),
        Answer(200, FINE[CHAT]),
    )
    gateway = InProcessGateway(wire)
    for _ in range(2):
        answer = await gateway.post(*chat(**EFFORT))
        assert answer.header("x-thoughtline-replay").endswith(
            "; adjusted=reasoning_effort:xhigh>high"
        )
    answer = await gateway.post(*chat(reasoning_effort="low"))
    assert "adjusted" not in answer.header("x-thoughtline-replay")


async def test_a_list_without_an_order_is_passed_on():
    refusal = {"error": {"message": "tool_choice must be one of auto, none"}}
    wire = ScriptedWire(Answer(400, refusal))
    gateway = InProcessGateway(wire)
    answer = await gateway.post(*chat(tool_choice="any"))
    assert (answer.status, answer.json) == (400, refusal)
    assert len(wire.sent) == 1


async def test_the_beta_is_named_that_a_request_makes_use_of():
    words = "thinking.adaptive.block_binding: Extra inputs are not permitted"
    wire = ScriptedWire(Answer(400, {"error": {"message": words}}), Answer(200, FINE[MESSAGES]))
    gateway = InProcessGateway(wire)
    answer = await gateway.post(*messages(thinking=BOUND))
    assert answer.status == 200
    sent = dict(wire.sent[1].headers)
    assert sent["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
    assert json.loads(wire.sent[1].body)["thinking"] == BOUND


async def test_a_value_that_is_refused_is_not_taken_for_a_parameter_that_is():
    words = "reasoning_effort xhigh is not supported for this model; supported values: low, high"
    wire = ScriptedWire(Answer(400, {"error": {"message": words}}), Answer(200, FINE[CHAT]))
    gateway = InProcessGateway(wire)
    await gateway.post(*chat(**EFFORT))
    assert wire.bodies[1]["reasoning_effort"] == "high"

"""One controlled retry: signed thinking blocks of the Messages API."""

import json

import pytest
from msgspec.structs import replace

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    TurnClient,
    audit,
    gateway_with,
    recovered,
    statuses,
)
from thoughtline.cli.conversation import stripped
from thoughtline.dialects.messages.rewrites import flatten_tool_loop
from thoughtline.dialects.thoughts import make_thought
from thoughtline.log.parts import Carrier, Text, Thought
from thoughtline.testing import simulator

SONNET, OPUS = "claude-sonnet-4-5", "claude-opus-5-5"
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
DONE = Answer(200, {"type": "message", "content": [{"type": "text", "text": "ok"}]})
CONTROLS = "thinking-binding-controls-2026-08-01"


def header(request, name):
    return dict(request.headers).get(name)


def thoughts(body):
    return [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] in ("thinking", "redacted_thinking")
    ]


def claude(name="claude", policy="anthropic", **more):
    gateway = gateway_with(name, policy)
    model = SONNET if name == "claude" else OPUS
    fields = THINKING if name == "claude" else {"thinking": {"type": "adaptive"}}
    return gateway, TurnClient(gateway, "messages", model, **{"fields": fields, **more})


def altered(turn, change):
    """The turn with every thinking block changed."""
    output = [
        make_thought(Carrier.BLOCK, change(json.loads(part.raw)))
        if isinstance(part, Thought)
        else part
        for part in turn.output
    ]
    return replace(turn, output=tuple(output))


# -- expected, and not there ---------------------------------------------------------------------


async def test_thinking_off_where_the_loop_cannot_be_restored():
    """An endpoint that nobody knows, and a loop that began without us."""
    gateway, client = claude(policy="generic")
    await client.run(2, direct=True)
    client.keep = False
    for _ in range(2):
        assert (await client.say(*client.next())).status == 200
        client.turns.pop()
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["restore_or_off"])
    assert [b["thinking"]["type"] for b in gateway.wire.bodies] == [
        "enabled",
        "disabled",
        "disabled",
    ]


async def test_thinking_off_goes_without_asking_to_clear_it():
    """Claude Code always asks for it; without thinking that is refused (claude-code#11971)."""
    edits = [
        {"type": "clear_thinking_20251015", "keep": "all"},
        {"type": "clear_tool_uses_20250919"},
    ]
    for policy in ("generic", "anthropic"):
        for asked, left in ((edits, edits[1:]), (edits[:1], None)):
            gateway, client = claude(policy=policy)
            client.fields = {**THINKING, "context_management": {"edits": asked}}
            await client.run(2, direct=True)
            client.keep = False
            assert (await client.say(*client.next())).status == 200
            last = gateway.wire.bodies[-1]
            assert last["thinking"] == {"type": "disabled"}
            assert last.get("context_management", {}).get("edits") == left


async def test_no_block_in_the_last_message_with_thinking_off():
    """The loop is half known: switched off, the known half stays behind as well."""
    gateway, client = claude()
    await client.run(1, direct=True)
    client.turns[0] = stripped(client.turns[0])
    assert (await client.say(*client.next())).status == 200
    gateway.wire.sent.clear()
    answer = await client.say(*client.next())
    assert (answer.status, statuses(gateway)) == (200, [200, 200])
    assert gateway.wire.bodies[-1]["thinking"] == {"type": "disabled"}
    assert thoughts(gateway.wire.bodies[-1]) == []


EXPECTED = (
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    " When `thinking` is enabled, a final `assistant` message must start with a thinking block."
)


async def test_a_loop_told_as_text_where_thinking_cannot_be_switched_off():
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": EXPECTED}}
    wire = ScriptedWire(Answer(400, error), DONE)
    gateway = InProcessGateway(wire, "anthropic")
    use = {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "it ran"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]},
        {"role": "user", "content": [result]},
    ]
    body = {"model": "claude-fable-5", "max_tokens": 9, "messages": messages}
    assert (await gateway.post("/v1/messages", body)).status == 200
    sent = wire.bodies[1]["messages"]
    assert sent[0] == messages[0]
    assert [block["text"] for block in sent[1]["content"]] == [
        "Let me see.",
        "<tool_call name='run'>{\"a\":1}</tool_call>",
        "<tool_result>it ran</tool_result>",
    ]
    strict = InProcessGateway(ScriptedWire(Answer(400, error), DONE), "anthropic", strict=True)
    assert (await strict.post("/v1/messages", body)).status == 400


def test_only_a_running_loop_is_told_as_text():
    picture = {"type": "image", "source": {"type": "base64", "data": "x"}}
    use = {"type": "tool_use", "id": "t1", "name": "run", "input": {}}
    old = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": [{"type": "text", "text": "next"}]},
    ]
    body = json.dumps({"messages": old}).encode()
    assert flatten_tool_loop(body) is body
    seen = [{"type": "tool_result", "tool_use_id": "t1", "content": ["see", picture]}]
    running = [
        *old,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, use]},
        {"role": "user", "content": [*seen, {"type": "text", "text": "", "cache_control": {}}]},
    ]
    made = json.loads(flatten_tool_loop(json.dumps({"messages": running}).encode()))["messages"]
    assert made[:5] == old
    assert [block["type"] for block in made[5]["content"]] == ["text", "text", "image"]


# -- bound to another conversation ---------------------------------------------------------------


async def test_blocks_that_are_bound_elsewhere_are_dropped_by_the_provider_for_ever():
    gateway, client = claude("claude-bound", policy="generic")
    client.headers = {"anthropic-beta": "context-1m, interleaved-thinking"}
    await client.run(2)
    client.turns[0] = replace(client.turns[0], input=(Text(text="Edited"),))
    await client.run(4)
    assert recovered(gateway) == ["drop_block"]
    assert statuses(gateway) == [200, 200, 400, 200, 200, 200, 200]
    for request, body in zip(gateway.wire.sent[3:], gateway.wire.bodies[3:], strict=True):
        assert header(request, "anthropic-beta") == f"context-1m, interleaved-thinking,{CONTROLS}"
        binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        assert body["thinking"] == {"type": "adaptive", **binding}
    assert thoughts(gateway.wire.bodies[3]) == thoughts(gateway.wire.bodies[2])  # none taken away
    other = TurnClient(gateway, "messages", OPUS, fields=client.fields)
    await other.say(Text(text="Another conversation"))
    assert header(gateway.wire.sent[-1], "anthropic-beta") is None


async def test_drop_block_survives_a_restart():
    gateway, client = claude("claude-bound", policy="generic", fields={})
    await client.run(2)
    client.turns[0] = replace(client.turns[0], input=(Text(text="Edited"),))
    await client.run(1)
    again = InProcessGateway(gateway.wire, "generic", store=gateway.store)
    client.gateway = again
    await client.run(1)
    assert recovered(again) == []
    assert header(gateway.wire.sent[-1], "anthropic-beta") == CONTROLS
    assert gateway.wire.bodies[-1]["thinking"]["type"] == "adaptive"


BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a"
    " different conversation. Remove the block, or set `thinking.block_binding."
    'prefix_mismatch_behavior` to "drop_block".'
)


async def test_blocks_are_stripped_where_dropping_cannot_be_asked_for():
    gateway, client = claude("claude-bound", policy="generic")
    await client.run(2)
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": BOUND}}
    wire = ScriptedWire(Answer(400, error), DONE)
    client.gateway = InProcessGateway(wire, "generic", store=gateway.store)
    client.fields = {"thinking": {"type": "between_tools"}}
    await client.say(*client.next())
    assert (len(thoughts(wire.bodies[0])) > 0, thoughts(wire.bodies[1])) == (True, [])
    assert header(wire.sent[1], "anthropic-beta") is None


# -- signatures that are not valid ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude", "claude-bound"])
async def test_signatures_that_are_not_valid_any_more_are_stripped_for_good(name):
    gateway, client = claude(name)
    client.keep = False
    await client.run(3)
    while client.turns[-1].calls:  # so that nothing is demanded
        await client.run(1)
    before = len(gateway.wire.sent)
    gateway.wire.sim = simulator(name, seed=1)
    await client.run(3)
    assert recovered(gateway) == ["strip_signed"]
    assert statuses(gateway)[before:] == [400, 200, 200, 200]
    refusals = await gateway.facts("quarantined")
    assert {r.reason for r in refusals} == {"strip_signed"}
    assert audit(gateway).endswith("altered=0; missing=0; misplaced=0; foreign=0")


async def test_what_stands_before_the_named_block_stays():
    gateway, client = claude()
    await client.run(6)
    raws = [
        thoughts({"messages": [{"content": [json.loads(p.raw) for p in t.thoughts]}]})
        for t in client.turns
    ]
    text = "messages.5.content.0: Invalid `signature` in `thinking` block"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    wire = ScriptedWire(Answer(400, error), DONE)
    client.gateway = InProcessGateway(wire, "anthropic", store=gateway.store)
    client.keep = False
    for _ in range(2):
        await client.say(*client.next())
        client.turns.pop()
    kept = [block for turn in raws[:2] for block in turn]
    assert thoughts(wire.bodies[0]) == [block for turn in raws for block in turn]
    assert thoughts(wire.bodies[1]) == thoughts(wire.bodies[2]) == kept


async def test_signatures_in_the_running_loop_are_stripped_and_thinking_is_off():
    gateway, client = claude()
    client.keep = False
    await client.run(1)
    gateway.wire.sim = simulator("claude", seed=1)
    assert (await client.say(*client.next())).status == 200
    assert statuses(gateway) == [200, 400, 200]
    assert gateway.wire.bodies[-1]["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize("name", ["claude", "claude-bound"])
async def test_a_client_s_own_spoilt_signatures_are_remembered(name):
    gateway, client = claude(name)
    await client.run(3, direct=True)
    while client.turns[-1].calls:
        await client.run(1, direct=True)
    bad = {"signature": "bm90IGEgc2lnbmF0dXJl"}
    client.turns = [
        altered(
            turn,
            lambda block: {**block, **bad} if "signature" in block else {**block, "data": "eA=="},
        )
        for turn in client.turns
    ]
    await client.run(2)
    assert recovered(gateway) == ["strip_signed"]
    assert statuses(gateway) == [400, 200, 200]


async def test_unsigned_blocks_are_stripped_and_signed_ones_stay():
    _, client = claude()
    await client.run(6)
    text = "messages.1.content.0.thinking.signature: Field required"
    wire = ScriptedWire(Answer(400, {"message": text}), DONE)
    client.gateway = InProcessGateway(wire, "bedrock")
    block = {"type": "thinking", "thinking": "hm"}
    client.turns[0] = altered(client.turns[0], lambda _: block)
    await client.say(*client.next())
    before, after = map(thoughts, wire.bodies)
    assert block in before
    assert after == [one for one in before if one != block]


# -- modified ------------------------------------------------------------------------------------


async def test_what_a_client_brings_of_turns_that_are_not_in_the_log_is_dropped_and_missed():
    _, client = claude()
    await client.run(3, direct=True)
    client.turns[:] = [
        altered(turn, lambda block: block | {"signature": ""}) for turn in client.turns
    ]
    answer = await client.say(*client.next())
    assert answer.status == 200
    assert "missed=3; placeholder=0; dropped=3; " in answer.header("x-thoughtline-replay")


async def test_modified_blocks_of_the_running_loop_go_and_thinking_is_off():
    gateway, client = claude()
    await client.run(1, direct=True)
    client.turns[0] = altered(
        client.turns[0], lambda b: {**b, "thinking": "edited"} if "thinking" in b else b
    )
    await client.run(2)
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["restore_exact"])
    assert thoughts(gateway.wire.bodies[1]) == []
    assert gateway.wire.bodies[1]["thinking"] == {"type": "disabled"}


async def test_modified_blocks_are_restored_where_thinking_was_not_seen():
    """A model that thinks although the request does not say so: the row did not know."""
    gateway, client = claude()
    await client.run(1)
    exact = thoughts(
        {"messages": [{"content": [json.loads(p.raw) for p in client.turns[0].thoughts]}]}
    )
    text = (
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant"
        " message cannot be modified. These blocks must remain as they were in the original response."
    )
    wire = ScriptedWire(Answer(400, {"error": {"message": text}}), DONE)
    client.gateway = InProcessGateway(wire, "anthropic", store=gateway.store)
    client.fields = {}
    client.turns[0] = altered(
        client.turns[0], lambda b: {**b, "thinking": "edited"} if "thinking" in b else b
    )
    assert (await client.say(*client.next())).status == 200
    assert thoughts(wire.bodies[0]) != exact
    assert thoughts(wire.bodies[1]) == exact
    assert await gateway.facts("quarantined") == []


async def test_a_modified_loop_is_told_as_text_where_nobody_knows_the_model():
    gateway, client = claude(policy="generic")
    await client.run(1, direct=True)
    client.turns[0] = altered(
        client.turns[0], lambda b: {**b, "thinking": "edited"} if "thinking" in b else b
    )
    assert (await client.say(*client.next())).status == 200
    assert statuses(gateway) == [400, 200]
    assert [message["role"] for message in gateway.wire.bodies[1]["messages"]] == ["user", "user"]


# -- switched off, and still there ---------------------------------------------------------------


async def test_blocks_in_the_last_message_go_where_the_client_switched_thinking_off():
    gateway, client = claude()
    await client.run(1, direct=True)
    client.fields = {"thinking": {"type": "disabled"}}
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200], ["drop_reasoning"])
    assert await gateway.facts("endpoint_learned") == []


# -- behind a router -----------------------------------------------------------------------------


async def test_signed_details_behind_a_router_are_stripped():
    gateway = gateway_with("openrouter", "openrouter")
    client = await TurnClient(gateway, "chat", "anthropic/claude-sonnet-4.5", keep=False).run(3)
    gateway.wire.sim = simulator("openrouter", seed=1)
    await client.run(3)
    assert recovered(gateway) == ["strip_signed"]
    assert statuses(gateway) == [200, 200, 200, 400, 200, 200, 200]


async def test_a_seal_behind_copilot_is_dropped():
    gateway = gateway_with("copilot", "copilot")
    client = await TurnClient(gateway, "chat", gateway.wire.sim.models()[0], keep=False).run(3)
    gateway.wire.sim = simulator("copilot", seed=1)
    await client.run(3)
    assert recovered(gateway) == ["drop_sealed"]
    assert statuses(gateway) == [200, 200, 200, 400, 200, 200, 200]

"""Known is not lost: a turn that the model made without a thought goes out as it is.

Nothing stands in for its thought and thinking stays on, unless the provider has refused that: then
one corrected request goes out, and those after it are right.
"""

import json

import pytest

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    TurnClient,
    gateway_with,
    recovered,
    statuses,
)
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.testing import PROVIDERS, simulator
from thoughtline.testing.sims.script import say, think, use

TOOLS = [{"functionDeclarations": [{"name": "run"}]}]
GEMINI = "/v1beta/models/gemini-3-pro-preview"
OFF = {"thinking": {"type": "disabled"}}
ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
ADAPTIVE = {"thinking": {"type": "adaptive"}, "max_tokens": 4096}


def now_and_then(turn, sim):
    """A model that thinks only of its third and fifth move."""
    thought = (think(sim),) if turn % 6 in (2, 4) else ()
    moves = [
        (use(sim, "read_file"), use(sim, "search", 1)),
        (say(sim, "I look."), use(sim, "run")),
        (use(sim, "run"),),
        (say(sim, "Done."),),
        (use(sim, "search"),),
        (say(sim, "That is all."),),
    ]
    return (*thought, *moves[turn % 6])


MODELS = [
    (name, model)
    for name in sorted(set(PROVIDERS) - {"codex"})  # whose own server is as OpenAI's
    for model in simulator(name).models()
]


@pytest.mark.parametrize("keep", [True, False], ids=["keeps", "strips"])
@pytest.mark.parametrize(("name", "model"), MODELS)
async def test_nothing_is_made_up_where_nothing_was_lost(name, model, keep):
    gateway = gateway_with(name, POLICIES.get(name, name), script=now_and_then)
    fields = ADAPTIVE if "4-6" in model or "4-7" in model else FIELDS.get(name)
    client = TurnClient(gateway, gateway.wire.sim.dialect, model, keep=keep, fields=fields)
    for _ in range(9):
        answer = await client.say(*client.next())
        assert answer.status == 200, answer.body
        replay = answer.header("x-thoughtline-replay")
        assert "missed=0; placeholder=0" in replay
        assert "thinking=off" not in replay
    assert set(statuses(gateway)) == {200}


# -- what the provider has refused ---------------------------------------------------------------


async def toggled(name, model, off, on, *, dialect, **more):
    """A tool loop that begins with thinking off, and goes on with it on."""
    gateway = gateway_with(name, POLICIES.get(name, name), **more)
    client = TurnClient(gateway, dialect, model, keep=False, fields=off)
    await client.run(1)
    client.fields = on
    answer = await client.say(*client.next())
    assert answer.status == 200, answer.body
    return gateway, client, answer


async def test_a_chat_provider_that_takes_no_call_without_a_thought_gets_a_placeholder():
    gateway, client, answer = await toggled("kimi", "kimi-k2.6", OFF, {}, dialect="chat")
    assert (statuses(gateway), recovered(gateway)) == ([200, 400, 200], ["restore_calls"])
    assert gateway.wire.bodies[2]["messages"][1]["reasoning_content"] == ""
    assert "placeholder=1" in answer.header("x-thoughtline-replay")
    await client.run(2)
    other = TurnClient(gateway, "chat", client.model, keep=False, fields=OFF)
    await other.run(1)
    other.fields = {}
    await other.run(2)
    assert statuses(gateway) == [200, 400, *[200] * 6]  # and never again at this model


async def test_deepseek_takes_what_it_made_without_a_thought():
    gateway, client, _ = await toggled("deepseek", "deepseek-v4-pro", OFF, {}, dialect="chat")
    await client.run(3)
    assert set(statuses(gateway)) == {200}
    assert "reasoning_content" not in gateway.wire.bodies[-1]["messages"][1]


async def test_a_loop_that_began_without_thinking_ends_without_it_where_claude_refuses():
    gateway, client, answer = await toggled(
        "claude", "claude-sonnet-4-5", {"max_tokens": 4096}, ON, dialect="messages"
    )
    assert (statuses(gateway), recovered(gateway)) == ([200, 400, 200], ["restore_or_off"])
    assert gateway.wire.bodies[1]["thinking"] == ON["thinking"]
    assert gateway.wire.bodies[2]["thinking"] == {"type": "disabled"}
    assert answer.header("x-thoughtline-replay").endswith("thinking=off")
    await client.say(*client.next())
    assert statuses(gateway) == [200, 400, 200, 200]
    other = TurnClient(gateway, "messages", client.model, keep=False, fields=ON)
    await other.run(2)
    assert gateway.wire.bodies[-1]["thinking"] == ON["thinking"]  # of another conversation


@pytest.mark.parametrize(
    ("name", "dialect", "off"),
    [
        ("deepseek-responses", "responses", {"reasoning": {"effort": "none"}}),
        ("deepseek-anthropic", "messages", {**OFF, "max_tokens": 4096}),
        ("mimo", "chat", OFF),
    ],
)
async def test_every_other_refusal_is_corrected_once_too(name, dialect, off):
    on = {"max_tokens": 4096} if dialect == "messages" else {}
    model = simulator(name).models()[0]
    gateway, client, _ = await toggled(name, model, off, on, dialect=dialect)
    assert statuses(gateway) == [200, 400, 200]
    await client.run(1)
    assert statuses(gateway) == [200, 400, 200, 200]


# -- Gemini: how an answer ends, and what is in it -----------------------------------------------


CALL = {"functionCall": {"name": "run", "args": {"a": 1}}, "thoughtSignature": "c2lnbmVk"}
UNSIGNED = {"functionCall": CALL["functionCall"]}
RESULT = {"functionResponse": {"name": "run", "response": {"result": "ok"}}}
ASKED = {"role": "user", "parts": [{"text": "go"}]}


def gemini_answer(*parts, finish="STOP"):
    candidate = {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish}
    return Answer(body={"candidates": [candidate], "modelVersion": "gemini-3-pro-preview"})


async def gemini_says(gateway, *contents):
    body = {"contents": list(contents), "tools": TOOLS}
    raw = json.dumps(body, indent=1).encode()
    return raw, await gateway.post(f"{GEMINI}:generateContent", raw)


FINISHES = ("UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL", "MAX_TOKENS", "SAFETY", "OTHER")


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("said", [[], [{"text": "I run it."}]], ids=["call", "words-and-call"])
async def test_a_signed_call_goes_back_however_the_answer_ended(finish, said):
    parts = [*said, CALL]
    gateway = InProcessGateway(ScriptedWire(gemini_answer(*parts, finish=finish)), "gemini")
    await gemini_says(gateway, ASKED)
    told = {"role": "user", "parts": [RESULT]}
    raw, answer = await gemini_says(gateway, ASKED, {"role": "model", "parts": parts}, told)
    assert gateway.wire.sent[-1].body == raw
    assert "exact=1" in answer.header("x-thoughtline-replay")
    bare = {"role": "model", "parts": [*said, UNSIGNED]}
    _, answer = await gemini_says(gateway, ASKED, bare, told)
    assert gateway.wire.bodies[-1]["contents"][1]["parts"] == parts
    assert "restored=1" in answer.header("x-thoughtline-replay")


async def test_a_call_that_was_never_signed_gets_a_placeholder_only_after_a_refusal():
    missing = "Function call is missing a thought_signature in functionCall parts."
    refusal = Answer(400, {"error": {"code": 400, "message": missing}})
    wire = ScriptedWire(gemini_answer(UNSIGNED), refusal, gemini_answer({"text": "Done."}))
    gateway = InProcessGateway(wire, "gemini")
    await gemini_says(gateway, ASKED)
    history = (ASKED, {"role": "model", "parts": [UNSIGNED]}, {"role": "user", "parts": [RESULT]})
    raw, answer = await gemini_says(gateway, *history)
    assert answer.status == 200
    assert wire.sent[1].body == raw
    signed = wire.bodies[2]["contents"][1]["parts"][0]
    assert signed == {**UNSIGNED, "thoughtSignature": "skip_thought_signature_validator"}

"""One controlled retry: plain thoughts and parameters, with strict providers and their own words."""

import gzip
import json

import pytest
from msgspec.structs import replace

from rooms import Answer, Client, Rooms, ScriptedWire, SimWire, audit, statuses, with_sim
from thoughtline.errors import Unavailable
from thoughtline.gateway.learned import SESSION
from thoughtline.gateway.treatments import TREATMENTS
from thoughtline.policies.remedies import Remedy
from thoughtline.stores.hot import HotStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
ASKED = {"role": "user", "content": "hi"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
STRANGER = [ASKED, CALLED, TOLD]
"""A history that nobody remembers."""

SAID = {
    "id": "x",
    "object": "chat.completion",
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Fine."}}
    ],
}
V4 = "The `reasoning_content` in the thinking mode must be passed back to the API."
REFUSED = Answer(400, {"error": {"message": V4, "type": "invalid_request_error"}})
FINE = Answer(200, SAID)


def chat(messages=STRANGER, model="deepseek-v4-pro", **more):
    return {"model": model, "messages": messages, "tools": TOOLS, **more}


async def post(rooms, messages=STRANGER, model="deepseek-v4-pro", headers=None, **more):
    return await rooms.post("/v1/chat/completions", chat(messages, model, **more), headers)


async def lessons(rooms):
    return [body.lesson for body in await rooms.facts("endpoint_learned")]


# -- demanded ------------------------------------------------------------------------------------


async def test_what_was_found_goes_back_where_it_is_demanded_after_all():
    """The row said that there is no place for thoughts."""
    rooms = with_sim("deepseek", policy="openai")
    client = await Client(rooms, "chat", "deepseek-v4-pro", keep=False).run(6)
    assert statuses(rooms) == [200, 400, 200, 200, 200, 200, 200]
    assert audit(rooms).startswith("exact=5; altered=0; missing=0")
    assert rooms.notes.walks.count(("healed", "restore_all", True)) == 1
    [lesson] = await lessons(rooms)
    assert (lesson["need"], lesson["scope"]) == ("required", "all")
    assert len(client.turns) == 6


async def test_where_it_is_lost_the_shortest_value_stands_in():
    rooms = with_sim("deepseek")
    answer = await post(rooms)
    assert (answer.status, statuses(rooms)) == (200, [400, 200])
    assert rooms.wire.bodies[1]["messages"][1] == {**CALLED, "reasoning_content": " "}
    assert answer.header("x-thoughtline-replay") == "restored=0; missed=1; placeholder=1; dropped=0"
    assert (await post(rooms)).status == 200
    assert statuses(rooms) == [400, 200, 200]  # right at once


@pytest.mark.parametrize("name", ["deepseek", "deepseek-v3.2", "mimo"])
async def test_restore_all_in_every_wording(name):
    rooms = with_sim(name)
    model = rooms.wire.sim.models()[0]
    assert (await post(rooms, model=model)).status == 200
    assert statuses(rooms) == [400, 200]
    assert rooms.notes.walks[0] == ("healed", "restore_all", True)


@pytest.mark.parametrize("name", ["kimi", "kimi-k3"])
async def test_restore_calls(name):
    rooms = with_sim(name)
    plain = [ASKED, {"role": "assistant", "content": "Hello."}, ASKED, CALLED, TOLD]
    assert (await post(rooms, plain, rooms.wire.sim.models()[0])).status == 200
    assert statuses(rooms) == [400, 200]
    sent = rooms.wire.bodies[1]["messages"]
    assert "reasoning_content" not in sent[1]
    assert sent[3]["reasoning_content"] == ""
    assert [lesson["scope"] for lesson in await lessons(rooms)] == ["calls"]


async def test_restore_all_in_messages():
    rooms = with_sim("deepseek-anthropic")
    past = await Client(rooms, "messages", "deepseek-v4-flash", keep=False).run(1, direct=True)
    assert (await past.say(*past.next())).status == 200
    assert statuses(rooms) == [400, 200]
    empty = {"type": "thinking", "thinking": "", "signature": ""}
    assert rooms.wire.bodies[-1]["messages"][1]["content"][0] == empty


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
    rooms = Rooms(wire)
    client = await Client(rooms, "responses", "m", keep=False).run(1)
    assert (await client.say(*client.next())).status == 200
    kinds = [[item.get("type") for item in body["input"]] for body in wire.bodies]
    assert kinds[1][1:4] == ["reasoning", "function_call", "function_call"]
    assert kinds[2][1:5] == ["reasoning", "function_call"] * 2
    assert [lesson["every_call"] for lesson in await lessons(rooms)] == [True]


async def test_thinking_off_in_responses_where_they_are_not_known():
    rooms = with_sim("deepseek-responses")
    past = await Client(rooms, "responses", "deepseek-v4-pro", keep=False).run(1, direct=True)
    assert (await past.say(*past.next())).status == 200
    assert statuses(rooms) == [400, 200]
    assert rooms.wire.bodies[-1]["reasoning"] == {"effort": "none"}


async def test_the_other_value_where_the_value_itself_is_refused():
    wire = ScriptedWire(REFUSED, FINE)
    rooms = Rooms(wire, "deepseek")
    await post(rooms)
    assert [b["messages"][1].get("reasoning_content") for b in wire.bodies] == [" ", ""]
    [lesson] = await lessons(rooms)
    assert lesson["lost"] == '""'
    await post(rooms)
    assert wire.bodies[-1]["messages"][1]["reasoning_content"] == ""


async def test_thinking_off_where_neither_value_is_taken():
    wire = ScriptedWire(REFUSED)
    rooms = Rooms(wire, "deepseek")
    answers = [await post(rooms) for _ in range(3)]
    assert [a.status for a in answers] == [400, 400, 400]
    values = [
        (b["messages"][1].get("reasoning_content"), b.get("thinking", {}).get("type"))
        for b in wire.bodies
    ]
    # one retry a request, and the next request tries the next thing
    assert values[:4] == [(" ", None), ("", None), (" ", None), (None, "disabled")]
    assert len(values) == 5  # then there is nothing left to try
    assert await lessons(rooms) == []


async def test_a_refused_value_is_another_ones_right_value():
    """A row that is wrong about this endpoint: its empty value is refused, a space is not."""
    rooms = with_sim("deepseek", policy="kimi")
    plain = [ASKED, {"role": "assistant", "content": "Hello."}, ASKED]
    assert [(await post(rooms, plain)).status for _ in range(3)] == [400, 200, 200]
    assert statuses(rooms) == [400, 400, 400, 200, 200]


# -- under another key, or forbidden -------------------------------------------------------------


@pytest.mark.parametrize("name", ["groq", "cerebras"])
async def test_rename(name):
    rooms = with_sim(name)
    echoed = [ASKED, {**CALLED, "reasoning_content": "hm"}, TOLD]
    model = rooms.wire.sim.models()[0]
    assert [(await post(rooms, echoed, model)).status for _ in range(2)] == [200, 200]
    assert statuses(rooms) == [400, 200, 200]
    for body in rooms.wire.bodies[1:]:
        assert body["messages"][1] == {**CALLED, "reasoning": "hm"}
    assert [lesson["reads"] for lesson in await lessons(rooms)] == [["reasoning"]]


async def test_rename_to_nothing_where_that_key_is_unknown_too():
    text = "'messages.1' : property 'reasoning' is unsupported"
    wire = ScriptedWire(Answer(400, {"error": {"message": text}}), FINE)
    rooms = Rooms(wire, "groq")
    await post(rooms, [ASKED, {**CALLED, "reasoning": "hm"}, TOLD])
    assert wire.bodies[1]["messages"][1] == CALLED
    assert [lesson["need"] for lesson in await lessons(rooms)] == ["forbidden"]


async def test_a_schema_that_knows_no_such_key_gets_none():
    rooms = with_sim("mistral")
    call = {**CALL, "id": "abcdefghi"}
    echoed = [
        ASKED,
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "hm"},
        {**TOLD, "tool_call_id": "abcdefghi"},
    ]
    assert (await post(rooms, echoed, "magistral-medium-latest")).status == 200
    assert statuses(rooms) == [422, 200]
    assert "reasoning_content" not in rooms.wire.bodies[1]["messages"][1]


async def test_a_key_with_nothing_in_it_costs_no_thought():
    """What a client says with `null` is refused there, and what the model thought is not."""
    rooms = with_sim("mistral", "mistral")
    model = rooms.wire.sim.models()[0]
    history = [ASKED]
    for _ in range(4):
        reply = await post(rooms, history, model)
        assert reply.status == 200, reply.body
        message = reply.json["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        results = [{**TOLD, "tool_call_id": call["id"]} for call in calls]
        history = [*history, {**message, "reasoning_content": None}, *(results or [ASKED])]
    assert statuses(rooms) == [200, 422, 200, 200, 200]
    assert "missing=0" in audit(rooms)
    assert await lessons(rooms) == [{"bare": True}]


async def test_drop_reasoning_for_good():
    rooms = with_sim("deepseek-r1")
    echoed = [ASKED, {"role": "assistant", "content": "Hello.", "reasoning_content": "hm"}, ASKED]
    model = "deepseek-reasoner"
    assert [(await post(rooms, echoed, model)).status for _ in range(2)] == [200, 200]
    assert statuses(rooms) == [400, 200, 200]


async def test_drop_reasoning_in_nova_s_words():
    text = (
        "User messages cannot contain reasoning content. "
        "Please remove the reasoning content and try again."
    )
    wire = ScriptedWire(Answer(400, {"message": text}), Answer(200, {"type": "message"}))
    rooms = Rooms(wire)
    block = {"type": "thinking", "thinking": "hm", "signature": ""}
    said = {"role": "assistant", "content": [block, {"type": "text", "text": "Hello."}]}
    body = {"model": "nova", "max_tokens": 9, "messages": [ASKED, said, ASKED]}
    await rooms.post("/v1/messages", body)
    assert wire.bodies[1]["messages"][1]["content"] == [{"type": "text", "text": "Hello."}]


# -- parameters and ids --------------------------------------------------------------------------


async def test_nine_characters():
    rooms = with_sim("mistral")
    both = {"role": "assistant", "content": "", "tool_calls": [CALL, {**CALL, "id": "call_2"}]}
    results = [TOLD, {**TOLD, "tool_call_id": "call_2"}]
    model = "magistral-medium-latest"
    for _ in range(2):
        assert (await post(rooms, [ASKED, both, *results], model)).status == 200
    assert statuses(rooms) == [400, 200, 200]
    sent = rooms.wire.bodies[1]["messages"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert [m["tool_call_id"] for m in sent[2:]] == ids
    assert len(set(ids)) == 2
    assert rooms.wire.bodies[1] == rooms.wire.bodies[2]  # the same ids every time
    untouched = rooms.wire.sent[1].body.replace(ids[0].encode(), b"call_1")
    assert untouched.replace(ids[1].encode(), b"call_2") == rooms.wire.sent[0].body


async def test_drop_field():
    wire = ScriptedWire(
        Answer(400, {"detail": "Unsupported parameter: max_output_tokens"}),
        Answer(200, {"output": []}),
    )
    rooms = Rooms(wire)
    body = {"model": "gpt-5.6", "input": "hi", "max_output_tokens": 5, "store": False}
    for _ in range(2):
        await rooms.post("/v1/responses", body)
    assert ["max_output_tokens" in b for b in wire.bodies] == [True, False, False]


# -- only on the evidence ------------------------------------------------------------------------

UNRELATED = [
    Answer(400, b'{"error" : {"message": "Invalid max_tokens"}}', {"x-request-id": "r", "a": "b"}),
    Answer(401, {"error": "no"}),
    Answer(404, b"not found", {"content-type": "text/plain"}),
    Answer(413, b""),
    Answer(429, {"error": {"message": V4}}, {"retry-after": "7"}),
]


@pytest.mark.parametrize("refusal", UNRELATED, ids=lambda a: str(a.status))
async def test_what_is_about_something_else_passes_as_it_came(refusal):
    wire = ScriptedWire(refusal)
    rooms = Rooms(wire, "deepseek")
    answer = await post(rooms)
    assert (answer.status, answer.body) == (refusal.status, refusal.body)
    assert set(refusal.headers) <= set(answer.headers)
    assert len(wire.sent) == 1


async def test_a_remedy_that_changes_nothing_is_no_reason_to_ask_again():
    wire = ScriptedWire(REFUSED)
    rooms = Rooms(wire, "deepseek")
    answer = await post(rooms, [ASKED])
    assert (answer.status, answer.body) == (400, REFUSED.body)
    assert (len(wire.sent), rooms.notes.walks[0]) == (1, ("healed", "restore_all", False))


async def test_there_is_no_third_try():
    wire = ScriptedWire(REFUSED)
    rooms = Rooms(wire)
    answer = await post(rooms)
    assert (answer.status, answer.body, len(wire.sent)) == (400, REFUSED.body, 2)
    assert wire.sent[0].body != wire.sent[1].body
    assert await rooms.facts("turn_started") == []


async def test_a_packed_refusal_is_understood_and_passed_on_packed():
    packed = Answer(400, gzip.compress(REFUSED.body), {"content-encoding": "gzip"})
    wire = ScriptedWire(packed, FINE)
    assert (await post(Rooms(wire))).status == 200
    wire = ScriptedWire(packed)
    assert (await post(Rooms(wire), [ASKED])).body == packed.body


async def test_the_second_answer_is_the_one_that_is_kept():
    wire = ScriptedWire(REFUSED, FINE)
    rooms = Rooms(wire)
    answer = await post(rooms)
    assert answer.json == SAID
    [ended] = await rooms.facts("turn_ended")
    assert ended.outcome == "completed"


async def test_strict_mode_makes_nothing_up_on_the_second_try_either():
    wire = ScriptedWire(REFUSED, FINE)
    rooms = Rooms(wire, strict=True)
    answer = await post(rooms)
    assert (answer.status, answer.body, len(wire.sent)) == (400, REFUSED.body, 1)


async def test_replay_switched_off_is_not_healed():
    wire = ScriptedWire(REFUSED, FINE)
    answer = await post(Rooms(wire), headers={"x-thoughtline-replay": "off"})
    assert (answer.status, len(wire.sent)) == (400, 1)


async def test_a_body_that_is_not_for_us_to_edit_passes():
    twice = (
        b'{"model":"m","tools":[1],"messages":[],"messages":' + json.dumps(STRANGER).encode() + b"}"
    )
    wire = ScriptedWire(REFUSED, FINE)
    answer = await Rooms(wire).post("/v1/chat/completions", twice)
    assert (answer.status, len(wire.sent), wire.sent[0].body) == (400, 1, twice)


def test_every_remedy_has_a_treatment():
    assert set(TREATMENTS) == set(Remedy)


# -- what is learned -----------------------------------------------------------------------------


async def test_a_lesson_survives_the_process_and_holds_for_its_endpoint_and_model_only():
    store = MemoryStore()
    sim = simulator("deepseek")
    first = Rooms(SimWire(sim), store=store)
    await post(first)
    again = Rooms(SimWire(sim), store=store)
    await post(again)
    assert statuses(again) == [200]
    await post(again, model="deepseek-v4-flash")
    assert statuses(again) == [200, 400, 200]
    elsewhere = Rooms(SimWire(sim), store=store, url="http://other")
    await post(elsewhere)
    assert statuses(elsewhere) == [400, 200]
    assert [e.type for e in await store.read(SESSION)] == ["endpoint_learned"] * 3


async def test_another_process_reads_on_when_it_meets_a_refusal():
    store, sim = MemoryStore(), simulator("deepseek")
    one, other = (Rooms(SimWire(sim), store=store) for _ in range(2))
    await post(other, [ASKED])  # has read what was learned so far: nothing
    await post(one)
    await post(one, model="deepseek-v4-flash")
    await post(other, model="deepseek-v4-flash")  # refused, and reads on
    await post(other)
    assert statuses(other) == [200, 400, 200, 200]


async def test_a_lesson_that_cannot_be_read_is_no_lesson():
    rooms = with_sim("deepseek")
    await post(rooms)
    [event] = await rooms.store.read(SESSION)
    broken = replace(event, data=event.data.replace('"required"', '"whatever"'))
    rooms.store._shelves[SESSION].events[:] = [broken]
    fresh = Rooms(rooms.wire, store=rooms.store)
    assert (await post(fresh)).status == 200


class Down(MemoryStore):
    """A store that cannot be written."""

    async def append(self, batch):
        raise Unavailable("full")


async def test_a_store_that_is_down_stops_no_healing():
    rooms = Rooms(SimWire(simulator("deepseek")), store=Down())
    assert [(await post(rooms)).status for _ in range(2)] == [200, 200]
    assert statuses(rooms) == [400, 200, 200]


async def test_behind_memory_too():
    rooms = with_sim("deepseek", store=HotStore(MemoryStore()))
    assert [(await post(rooms)).status for _ in range(2)] == [200, 200]
    assert statuses(rooms) == [400, 200, 200]


# -- a whole conversation that began without us --------------------------------------------------


@pytest.mark.parametrize("name", ["deepseek", "kimi", "mimo", "groq"])
async def test_a_conversation_that_began_elsewhere_goes_on_here(name):
    rooms = with_sim(name)
    client = Client(rooms, "chat", rooms.wire.sim.models()[0])
    await client.run(3, direct=True)
    client.keep = False
    await client.run(5)
    assert [status for status in statuses(rooms) if status != 200] in ([], [400])
    assert audit(rooms).startswith("exact=4")

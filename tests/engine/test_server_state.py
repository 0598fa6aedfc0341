"""Conversations that the server keeps: written out from the log, or left to it."""

import itertools
import json

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
from support.recovery import DONE, GPT, RESPONSES
from thoughtline.engine.normalise import normalise
from thoughtline.engine.server_state import expanded
from thoughtline.errors import Unavailable
from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import find_policy
from thoughtline.stores.memory import MemoryStore


async def chained(gateway, exchanges, model=GPT, **fields):
    """A client that sends only what is new, and names the response before."""
    client = TurnClient(gateway, "responses", model, fields=fields)
    said = [Text(text="hi")]
    for _ in range(exchanges):
        client.turns = []
        answer = await client.say(*said)
        assert answer.status == 200, answer.body
        client.fields = {**fields, "previous_response_id": answer.json["id"]}
        said = client.next()
    return client


@pytest.mark.parametrize("name", ["openai", "azure", "xai", "deepseek-responses"])
async def test_a_previous_response_is_written_out_from_the_log(name):
    """The client counts on the server, which was told to store nothing."""
    policy = "deepseek" if name == "deepseek-responses" else name
    gateway = gateway_with(name, policy)
    fields = {"store": None, "include": None}
    await chained(gateway, 8, gateway.wire.sim.models()[0], **fields)
    assert statuses(gateway) == [200] * 8
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)
    assert not any("previous_response_id" in body for body in gateway.wire.bodies)
    started = await gateway.events("turn_started")
    assert (len({e.session for e in started}), len(started)) == (1, 8)
    assert [e.parent for e in started] == ["", *(e.id for e in started[:-1])]


async def test_a_chain_is_a_prefix_of_the_next_one():
    gateway = gateway_with("openai", "openai")
    await chained(gateway, 10, store=None, include=None)
    inputs = [body["input"] for body in gateway.wire.bodies]
    for before, after in itertools.pairwise(inputs[1:]):
        assert after[: len(before)] == before


async def test_a_server_that_is_asked_to_remember_is_let_to():
    gateway = gateway_with("openai", "openai")
    await chained(gateway, 4, store=True)
    assert [len(body["input"]) for body in gateway.wire.bodies][:2] == [1, 2]
    assert ["previous_response_id" in body for body in gateway.wire.bodies] == [False, *[True] * 3]
    started = await gateway.events("turn_started")
    assert len({e.session for e in started}) == 1
    assert [e.parent for e in started] == ["", *(e.id for e in started[:-1])]


async def test_who_chained_and_then_tells_everything_is_recognised():
    """Turns made in a chain are filed under the whole history before them."""
    gateway = gateway_with("openai", "openai")
    client = TurnClient(gateway, "responses", GPT, fields={"store": True}, keep=False)
    kept = []
    said = [Text(text="hi")]
    for _ in range(4):
        client.turns = []
        answer = await client.say(*said)
        client.fields = {"store": True, "previous_response_id": answer.json["id"]}
        kept += client.turns
        said = client.next()
    client.fields, client.turns = {"store": False}, kept
    assert (await client.say(*said)).status == 200
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)


async def test_references_are_resolved():
    """As the AI SDK sends a history when it was not told to store nothing."""
    gateway = gateway_with("openai", "openai")
    client = TurnClient(gateway, "responses", GPT)
    input = [{"role": "user", "content": "hi"}]
    for _ in range(6):
        body = {"model": GPT, "input": input, "tools": json.loads(client.body())["tools"]}
        answer = await gateway.post("/v1/responses", body)
        assert answer.status == 200, answer.body
        output = answer.json["output"]
        calls = [item["call_id"] for item in output if item["type"] == "function_call"]
        input += [{"type": "item_reference", "id": item["id"]} for item in output]
        input += [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in calls]
        input += [] if calls else [{"role": "user", "content": "and then?"}]
    assert "item_reference" not in gateway.wire.sent[-1].body.decode()
    assert {body["store"] for body in gateway.wire.bodies} == {False}
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)


async def test_what_is_not_in_the_log_is_the_server_s_business():
    wire = ScriptedWire(DONE)
    gateway = InProcessGateway(wire, "openai")
    reference = {"type": "item_reference", "id": "msg_1"}
    body = {"model": GPT, "input": [reference, {"role": "user", "content": "hi"}]}
    await gateway.post("/v1/responses", {**body, "previous_response_id": "resp_1"})
    sent = wire.bodies[0]
    assert sent["input"] == body["input"]
    assert (sent["previous_response_id"], "store" in sent) == ("resp_1", False)


async def test_another_tenant_s_response_is_not_known():
    gateway = gateway_with("openai", "openai")
    client = TurnClient(gateway, "responses", GPT, fields={"store": None, "include": None})
    answer = await client.say(Text(text="a secret"))
    body = {"model": GPT, "input": "and?", "previous_response_id": answer.json["id"]}
    other = await gateway.post("/v1/responses", body, {"authorization": "Bearer another"})
    assert other.status == 400
    assert b"a secret" not in gateway.wire.sent[-1].body


async def test_two_chains_that_look_alike_keep_their_own_thoughts():
    """Byte for byte the same words: only the name says which conversation it is."""
    gateway = gateway_with("openai", "openai", serials=False)
    fields = {"store": None, "include": None}
    clients = [TurnClient(gateway, "responses", GPT, fields=fields) for _ in range(2)]
    made = [[], []]
    said = [[Text(text="hi")]] * 2
    for number in [0, 1] * 4:
        client = clients[number]
        client.turns = []
        answer = await client.say(*said[number])
        sent = [item["id"] for item in gateway.wire.bodies[-1]["input"] if "summary" in item]
        assert sent == made[number]
        made[number] += [item["id"] for item in answer.json["output"] if "summary" in item]
        client.fields = {**fields, "previous_response_id": answer.json["id"]}
        said[number] = client.next()


PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,eA=="}


SEEN = {"role": "user", "content": [{"type": "input_text", "text": "see"}, PICTURE]}


@pytest.mark.parametrize(
    "first",
    [[SEEN], [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]],
    ids=["a picture", "a system message"],
)
async def test_what_the_log_does_not_hold_is_the_server_s_business(first):
    """It is let to store that, and every response after it."""
    gateway = gateway_with("openai", "openai")
    answer = await gateway.post("/v1/responses", {"model": GPT, "input": first})
    for _ in range(3):
        body = {"model": GPT, "input": "and?", "previous_response_id": answer.json["id"]}
        answer = await gateway.post("/v1/responses", body)
        assert answer.status == 200
        assert gateway.wire.bodies[-1]["previous_response_id"] == body["previous_response_id"]
    assert not any("store" in body for body in gateway.wire.bodies)
    gateway.wire.sim.stored.clear()
    body["previous_response_id"] = answer.json["id"]
    assert (
        await gateway.post("/v1/responses", body)
    ).status == 400  # half a history would be worse


async def test_a_log_of_thoughts_only_cannot_write_out_what_was_said():
    wire = ScriptedWire(DONE)
    await InProcessGateway(wire, "openai", records_all=False).post(
        "/v1/responses", {"model": GPT, "input": "hi"}
    )
    assert "store" not in wire.bodies[0]
    await InProcessGateway(wire, "codex", records_all=False).post(
        "/v1/responses", {"model": GPT, "input": "hi"}
    )
    assert wire.bodies[1]["store"] is False


async def test_a_chain_whose_history_was_edited_is_not_the_one_in_the_log():
    """The server was told another story than the session's."""
    gateway = gateway_with("openai", "openai")
    client = await TurnClient(gateway, "responses", GPT, fields={"store": True}, keep=False).run(3)
    client.turns[0] = Turn(input=(Text(text="Edited"),), output=client.turns[0].output)
    answer = await client.say(*client.next())
    gateway.wire.sim.stored.clear()
    fields = {"store": True, "previous_response_id": answer.json["id"]}
    chained = TurnClient(gateway, "responses", GPT, fields=fields)
    assert (await chained.say(*client.next())).status == 400


class Deaf(MemoryStore):
    async def find(self, tenant, names):
        raise Unavailable("gone")


async def test_a_store_that_is_down_stops_nothing():
    made = await normalise(
        RESPONSES.read(b'{"input":"hi","previous_response_id":"resp_1"}'),
        dialect=RESPONSES,
        policy=find_policy("openai", "responses", GPT),
        tenant="t",
        store=Deaf(),
    )
    assert made.request.previous_response == "resp_1"


@pytest.mark.parametrize(
    ("own", "items"),
    [
        ('"go on"', [{"role": "user", "content": "go on"}]),
        ('[ {"role":"user","content":"a"} ]', [{"role": "user", "content": "a"}]),
        ("[]", []),
        ("null", []),
        (None, []),
    ],
)
def test_the_client_s_own_items_come_last(own, items):
    middle = f'"input":{own},' if own else ""
    raw = f'{{"model":"m",{middle}"previous_response_id":"resp_1","x":1.10}}'.encode()
    request = RESPONSES.read(raw)
    turn = Turn(input=(Text(text="hi"),), output=(Text(text="Hello."),))
    made = expanded(request, RESPONSES, [turn])
    document = json.loads(made.body)
    assert document["input"][2:] == items
    assert (document["input"][0]["content"], "previous_response_id" in document) == ("hi", False)
    assert b'"x":1.10' in made.body
    assert made.turns[0].output == (Text(text="Hello."),)


def counted(text):
    """An answer of a server that numbers its responses and items anew for everybody."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"sealed {text}"}
    said = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": said}
    return Answer(200, {"id": "resp_1", "status": "completed", "output": [item, message]})


REFERENCES = [
    {"input": "and now?", "previous_response_id": "resp_1"},
    {"input": [{"type": "item_reference", "id": "msg_1"}]},
    {"input": [{"type": "item_reference", "id": "rs_1"}, {"role": "assistant", "content": "?"}]},
]


@pytest.mark.parametrize("named", REFERENCES, ids=["response", "message", "thought"])
async def test_an_id_that_two_responses_have_names_neither(named):
    """Some servers draw them from few numbers, or count."""
    wire = ScriptedWire(counted("for Alice"), counted("for Bob"), DONE)
    gateway = InProcessGateway(wire, "openai")
    for name in ("Alice", "Bob"):
        body = {"model": GPT, "input": f"I am {name}", "store": False}
        await gateway.post("/v1/responses", body)
    await gateway.post("/v1/responses", {"model": GPT, "store": False, **named})
    sent = wire.sent[-1].body
    assert b"Alice" not in sent and b"Bob" not in sent

"""What a request gets before its thoughts are looked up: state, seals, and what it only names."""

import itertools
import json

import pytest

from rooms import Answer, Client, Rooms, ScriptedWire, audit, statuses, with_sim
from thoughtline.dialects import DIALECTS
from thoughtline.errors import Unavailable, Unreadable
from thoughtline.gateway.learned import Lesson
from thoughtline.gateway.members import wishes as read_wishes
from thoughtline.gateway.preparing import expanded, members, prepare
from thoughtline.parts import Text
from thoughtline.policies import lookup
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Say, Think
from thoughtline.turns import Turn

GPT = "gpt-5.6"
RESPONSES = DIALECTS["responses"]
DONE = Answer(200, {"id": "resp_9", "status": "completed", "output": []})
SEALED = b'["reasoning.encrypted_content"]'
STATELESS = {"store": b"false", "include": SEALED}


def wishes(policy, lesson=None, **body):
    request = RESPONSES.read(json.dumps({"model": GPT, "input": "hi", **body}).encode())
    row = lookup(policy, "responses", GPT)
    return members(request, row, lesson or Lesson(), read_wishes(request.body))


# -- state and seals -----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["openai", "azure", "xai", "codex"])
def test_nothing_is_stored_and_seals_are_asked_for(policy):
    assert wishes(policy) == STATELESS
    assert wishes(policy, store=None, include=None) == STATELESS
    assert wishes(policy, store=False) == {"include": SEALED}
    assert wishes(policy, store=False, include=["reasoning.encrypted_content"]) == {}


def test_a_client_s_other_wishes_stay():
    made = wishes("openai", include=["message.output_text.logprobs"])
    assert json.loads(made["include"]) == [
        "message.output_text.logprobs",
        "reasoning.encrypted_content",
    ]
    assert "include" not in wishes("openai", include="nonsense")


@pytest.mark.parametrize(
    "wish",
    [
        {"store": True},
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
        {"background": True},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
    ],
    ids=lambda wish: next(iter(wish)),
)
def test_a_client_that_counts_on_the_server_is_left_alone(wish):
    for policy in ("openai", "azure", "xai"):
        assert wishes(policy, **wish) == {"include": SEALED}
    assert wishes("codex", **wish) == STATELESS  # it stores for nobody


@pytest.mark.parametrize("policy", ["deepseek", "copilot", "generic"])
def test_others_are_asked_for_nothing(policy):
    assert wishes(policy) == {}


def test_what_an_endpoint_taught():
    assert wishes("generic", Lesson(unstored=True), store=True) == STATELESS
    assert wishes("openai", Lesson(unsealed=True)) == {"store": b"false"}
    context = {"reasoning": b'{"effort": 1,"context":"all_turns"}'}
    assert wishes("generic", Lesson(all_turns=True), reasoning={"effort": 1}) == context
    assert wishes("generic", Lesson(all_turns=True), reasoning={"context": "auto"}) == {}
    assert wishes("generic", Lesson(all_turns=True), reasoning="?")["reasoning"]


@pytest.mark.parametrize(("dialect", "input"), [("responses", "input"), ("chat", "messages")])
async def test_what_an_endpoint_does_not_take_is_left_out(dialect, input):
    for more, gone in (({"user": "me"}, {"user": None}), ({}, {})):
        made = await prepare(
            DIALECTS[dialect].read(json.dumps({input: [], **more}).encode()),
            dialect=DIALECTS[dialect],
            policy=lookup("generic", dialect, GPT),
            tenant="t",
            store=MemoryStore(),
            lesson=Lesson(drops=("user",)),
        )
        assert made.terms.fields == gone


def test_odd_bodies_are_read_with_patience():
    """Half an emoji, items that are none: what is asked for is understood all the same."""
    half = b'{"store":true,"x":"\\ud83d","input":[1,{"role":"developer"},{"role":["\\ud83d"]}]}'
    said = read_wishes(half)
    assert (said.store, said.asides) == (True, True)
    with pytest.raises(Unreadable):
        read_wishes(b"[]")


async def test_a_request_that_needs_nothing_leaves_as_it_came():
    """As Codex sends it."""
    raw = (
        b'{ "model":"gpt-5.6", "input":[{"role":"user", "content":"hi"}],"store" : false,'
        b' "include":[ "reasoning.encrypted_content" ] }'
    )
    for policy in ("openai", "codex", "azure", "xai", "generic"):
        wire = ScriptedWire(DONE)
        await Rooms(wire, policy).post("/v1/responses", raw)
        assert wire.sent[0].body == raw


async def test_only_what_is_missing_is_added():
    wire = ScriptedWire(DONE)
    await Rooms(wire, "openai").post("/v1/responses", b'{"input":"hi", "model":"gpt-5.6"}')
    added = b',"store":false,"include":["reasoning.encrypted_content"]}'
    assert wire.sent[0].body == b'{"input":"hi", "model":"gpt-5.6"' + added


async def test_a_body_with_a_key_twice_is_nobody_s_to_change():
    raw = b'{"input":"hi","model":"gpt-5.6","store":true,"store":false}'
    wire = ScriptedWire(DONE)
    await Rooms(wire, "openai").post("/v1/responses", raw)
    assert wire.sent[0].body == raw


# -- what the client only names ------------------------------------------------------------------


async def chained(rooms, exchanges, model=GPT, **fields):
    """A client that sends only what is new, and names the response before."""
    client = Client(rooms, "responses", model, fields=fields)
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
    rooms = with_sim(name, policy)
    fields = {"store": None, "include": None}
    await chained(rooms, 8, rooms.wire.sim.models()[0], **fields)
    assert statuses(rooms) == [200] * 8
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(rooms)
    assert not any("previous_response_id" in body for body in rooms.wire.bodies)
    started = await rooms.events("turn_started")
    assert (len({e.session for e in started}), len(started)) == (1, 8)
    assert [e.parent for e in started] == ["", *(e.id for e in started[:-1])]


async def test_a_chain_is_a_prefix_of_the_next_one():
    rooms = with_sim("openai", "openai")
    await chained(rooms, 10, store=None, include=None)
    inputs = [body["input"] for body in rooms.wire.bodies]
    for before, after in itertools.pairwise(inputs[1:]):
        assert after[: len(before)] == before


async def test_a_server_that_is_asked_to_remember_is_let_to():
    rooms = with_sim("openai", "openai")
    await chained(rooms, 4, store=True)
    assert [len(body["input"]) for body in rooms.wire.bodies][:2] == [1, 2]
    assert ["previous_response_id" in body for body in rooms.wire.bodies] == [False, *[True] * 3]
    started = await rooms.events("turn_started")
    assert len({e.session for e in started}) == 1
    assert [e.parent for e in started] == ["", *(e.id for e in started[:-1])]


async def test_who_chained_and_then_tells_everything_is_recognised():
    """Turns made in a chain are filed under the whole history before them."""
    rooms = with_sim("openai", "openai")
    client = Client(rooms, "responses", GPT, fields={"store": True}, keep=False)
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
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(rooms)


async def test_references_are_resolved():
    """As the AI SDK sends a history when it was not told to store nothing."""
    rooms = with_sim("openai", "openai")
    client = Client(rooms, "responses", GPT)
    input = [{"role": "user", "content": "hi"}]
    for _ in range(6):
        body = {"model": GPT, "input": input, "tools": json.loads(client.body())["tools"]}
        answer = await rooms.post("/v1/responses", body)
        assert answer.status == 200, answer.body
        output = answer.json["output"]
        calls = [item["call_id"] for item in output if item["type"] == "function_call"]
        input += [{"type": "item_reference", "id": item["id"]} for item in output]
        input += [{"type": "function_call_output", "call_id": id, "output": "ok"} for id in calls]
        input += [] if calls else [{"role": "user", "content": "and then?"}]
    assert "item_reference" not in rooms.wire.sent[-1].body.decode()
    assert {body["store"] for body in rooms.wire.bodies} == {False}
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(rooms)


async def test_what_is_not_in_the_log_is_the_server_s_business():
    wire = ScriptedWire(DONE)
    rooms = Rooms(wire, "openai")
    reference = {"type": "item_reference", "id": "msg_1"}
    body = {"model": GPT, "input": [reference, {"role": "user", "content": "hi"}]}
    await rooms.post("/v1/responses", {**body, "previous_response_id": "resp_1"})
    sent = wire.bodies[0]
    assert sent["input"] == body["input"]
    assert (sent["previous_response_id"], "store" in sent) == ("resp_1", False)


async def test_another_tenant_s_response_is_not_known():
    rooms = with_sim("openai", "openai")
    client = Client(rooms, "responses", GPT, fields={"store": None, "include": None})
    answer = await client.say(Text(text="a secret"))
    body = {"model": GPT, "input": "and?", "previous_response_id": answer.json["id"]}
    other = await rooms.post("/v1/responses", body, {"authorization": "Bearer another"})
    assert other.status == 400
    assert b"a secret" not in rooms.wire.sent[-1].body


async def test_two_chains_that_look_alike_keep_their_own_thoughts():
    """Byte for byte the same words: only the name says which conversation it is."""
    rooms = with_sim("openai", "openai", serials=False)
    fields = {"store": None, "include": None}
    clients = [Client(rooms, "responses", GPT, fields=fields) for _ in range(2)]
    made = [[], []]
    said = [[Text(text="hi")]] * 2
    for number in [0, 1] * 4:
        client = clients[number]
        client.turns = []
        answer = await client.say(*said[number])
        sent = [item["id"] for item in rooms.wire.bodies[-1]["input"] if "summary" in item]
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
    rooms = with_sim("openai", "openai")
    answer = await rooms.post("/v1/responses", {"model": GPT, "input": first})
    for _ in range(3):
        body = {"model": GPT, "input": "and?", "previous_response_id": answer.json["id"]}
        answer = await rooms.post("/v1/responses", body)
        assert answer.status == 200
        assert rooms.wire.bodies[-1]["previous_response_id"] == body["previous_response_id"]
    assert not any("store" in body for body in rooms.wire.bodies)
    rooms.wire.sim.stored.clear()
    body["previous_response_id"] = answer.json["id"]
    assert (await rooms.post("/v1/responses", body)).status == 400  # half a history would be worse


async def test_a_log_of_thoughts_only_cannot_write_out_what_was_said():
    wire = ScriptedWire(DONE)
    await Rooms(wire, "openai", whole=False).post("/v1/responses", {"model": GPT, "input": "hi"})
    assert "store" not in wire.bodies[0]
    await Rooms(wire, "codex", whole=False).post("/v1/responses", {"model": GPT, "input": "hi"})
    assert wire.bodies[1]["store"] is False


async def test_a_chain_whose_history_was_edited_is_not_the_one_in_the_log():
    """The server was told another story than the session's."""
    rooms = with_sim("openai", "openai")
    client = await Client(rooms, "responses", GPT, fields={"store": True}, keep=False).run(3)
    client.turns[0] = Turn(input=(Text(text="Edited"),), output=client.turns[0].output)
    answer = await client.say(*client.next())
    rooms.wire.sim.stored.clear()
    fields = {"store": True, "previous_response_id": answer.json["id"]}
    chained = Client(rooms, "responses", GPT, fields=fields)
    assert (await chained.say(*client.next())).status == 400


class Deaf(MemoryStore):
    async def find(self, tenant, names):
        raise Unavailable("gone")


async def test_a_store_that_is_down_stops_nothing():
    made = await prepare(
        RESPONSES.read(b'{"input":"hi","previous_response_id":"resp_1"}'),
        dialect=RESPONSES,
        policy=lookup("openai", "responses", GPT),
        tenant="t",
        store=Deaf(),
    )
    assert made.request.previous == "resp_1"


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


async def test_a_plain_answer_whose_thought_is_lost_is_not_refused_by_deepseek_responses():
    """With tools declared, every answer needs its thought, and not only those that call."""
    plain = (Think("Easy."), Say("Done."))
    rooms = with_sim("deepseek-responses", "deepseek", script=lambda turn, sim: plain)
    client = Client(rooms, "responses", "deepseek-v4-pro", keep=False)
    await client.run(1, direct=True)  # nobody here has seen it
    assert (await client.say(*client.next())).status == 200
    assert [reply.status for reply in rooms.wire.replies] == [200]
    assert rooms.wire.bodies[-1]["reasoning"] == {"effort": "none"}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA-1"}
MESSAGE = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "content": [{"type": "output_text", "text": "Done."}],
}


@pytest.mark.parametrize("last", [{"type": "compaction", "encrypted_content": "gAAA-0"}, MESSAGE])
async def test_a_history_that_ends_in_an_output_item_is_found_again(last):
    """What comes back is echoed right behind it: as one output."""
    said = {"id": "resp_1", "status": "completed", "output": [REASONING, MESSAGE | {"id": "m"}]}
    wire = ScriptedWire(Answer(200, said))
    rooms = Rooms(wire, "openai")
    heard = [{"role": "user", "content": "hi"}, last]
    await rooms.post("/v1/responses", {"model": GPT, "input": heard})
    echoed = [*heard, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "on"}]
    answer = await rooms.post("/v1/responses", {"model": GPT, "input": echoed})
    assert "restored=1; missed=0" in answer.header("x-thoughtline-replay")
    assert wire.bodies[-1]["input"][2] == REASONING
    facts = await rooms.facts("user_message")
    assert [fact.parts[0].text for fact in facts] == ["hi", "on"]


async def test_what_was_heard_is_logged_once_also_when_an_answer_is_gone_on_from():
    said = {"id": "resp_1", "status": "completed", "output": [REASONING, MESSAGE]}
    rooms = Rooms(ScriptedWire(Answer(200, said)), "openai")
    heard = [{"role": "user", "content": "hi"}]
    await rooms.post("/v1/responses", {"model": GPT, "input": heard})
    await rooms.post("/v1/responses", {"model": GPT, "input": [*heard, MESSAGE]})
    assert len(await rooms.facts("user_message")) == 1
    assert len(await rooms.facts("turn_ended")) == 2

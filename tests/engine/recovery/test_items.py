"""One controlled retry: sealed items of the Responses API, and what is paired with them."""

import json

import pytest
from msgspec.structs import replace

from support.gateway import (
    Answer,
    InProcessGateway,
    ScriptedWire,
    SimWire,
    TurnClient,
    audit,
    gateway_with,
    recovered,
    statuses,
)
from thoughtline.errors import Unavailable
from thoughtline.gateway import asgi
from thoughtline.log.parts import Text
from thoughtline.log.turns import Turn
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.testing import simulator

GPT = "gpt-5.6"
DONE = Answer(200, {"id": "resp_9", "status": "completed", "output": []})


def kinds(body):
    return [item.get("type", "message") for item in body["input"]]


def named(turn):
    """The output as a client echoes it that keeps ids: items as they came."""
    return [json.loads(part.raw) for part in turn.output if part.raw]


class Echo(TurnClient):
    """A client that sends back items as they came, ids and all; `alter` has the last word."""

    def __init__(self, *args, alter=None, **more):
        super().__init__(*args, **more)
        self.alter = alter or (lambda items: items)

    def body(self):
        items = []
        for turn in self.turns:
            written = json.loads(self.dialect.write([Turn(input=turn.input)], model="m"))
            items += written["input"] + named(turn)
        document = json.loads(super().body())
        return json.dumps({**document, "input": self.alter(items), **self.fields}).encode()


def thoughtless(items):
    return [item for item in items if item.get("type") != "reasoning"]


# -- pairs ---------------------------------------------------------------------------------------


async def test_ids_go_where_the_thought_they_ask_for_is_not_known():
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT).run(3, direct=True)
    client.alter = thoughtless
    await client.run(3)
    assert recovered(gateway) == ["pair_or_anonymise"]  # the conversation remembers
    assert statuses(gateway) == [400, 200, 200, 200]
    assert all("id" not in item for item in gateway.wire.bodies[1]["input"][:6])
    assert audit(gateway) == "exact=3; altered=0; missing=4; misplaced=0; foreign=0"


async def test_outputs_that_are_not_in_the_log_are_missed_also_where_their_ids_were_refused():
    """The client brought no thought of theirs, so none was dropped."""
    client = Echo(gateway_with("openai", "openai"), "responses", GPT, alter=thoughtless)
    client.alter, alter = (lambda items: items), client.alter
    await client.run(3, direct=True)
    client.alter = alter
    for missed in (3, 3):
        answer = await client.say(*client.next())
        told = answer.header("x-thoughtline-replay")
        assert f"missed={missed}; placeholder=0; dropped=0; " in told, told


async def test_the_thought_goes_back_where_only_an_id_says_which():
    """The client has rewritten its whole history; the ids it keeps are the provider's."""
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT).run(1)

    def rewritten(items):
        made = thoughtless(items)
        for item in made:
            if item.get("type") == "function_call":
                item["arguments"] = '{"rewritten":true}'
        return [{"role": "user", "content": "Another beginning"}, *made[1:]]

    client.alter = rewritten
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([200, 400, 200], ["pair_or_anonymise"])
    sent = gateway.wire.bodies[-1]["input"]
    assert sent[1] == named(client.turns[0])[0]
    assert sent[2]["id"].startswith("fc_")


async def test_a_dangling_item_is_dropped_and_never_sent_again():
    """The client lost what came after a thought."""
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT).run(1, direct=True)
    [first] = [item for item in named(client.turns[0]) if item["type"] == "reasoning"][:1]

    def dangling(items):
        return [items[0], first, {"role": "user", "content": "again"}]

    client.alter = dangling
    for _ in range(2):
        assert (await client.say(Text(text="again"))).status == 200
        client.turns.pop()
    assert recovered(gateway)[0] == "drop_item"
    assert "reasoning" not in kinds(gateway.wire.bodies[1])


async def test_a_dangling_item_of_the_log_is_quarantined():
    gateway = gateway_with("openai", "generic")
    client = await Echo(gateway, "responses", GPT, fields={"store": False}).run(1)
    items = named(client.turns[0])
    [thought] = [item for item in items if item["type"] == "reasoning"][:1]
    text = f"Item '{thought['id']}' of type 'reasoning' was provided without its required following item."
    wire = ScriptedWire(Answer(400, {"error": {"message": text, "param": "input"}}), DONE)
    scripted = InProcessGateway(wire, "generic", store=gateway.store)
    client.gateway = scripted
    await client.say(*client.next())
    client.turns.pop()
    await client.say(*client.next())
    sent = [[i.get("id") for i in body["input"]] for body in wire.bodies]
    assert [thought["id"] in ids for ids in sent] == [True, False, False]
    assert all("id" not in i for i in wire.bodies[1]["input"] if i.get("type") == "function_call")
    [refusal] = await scripted.facts("quarantined")
    assert (refusal.thoughts, refusal.reason) == ((0,), "drop_item")


# -- not stored ----------------------------------------------------------------------------------


def no_encrypted_reasoning(items):
    for item in items:
        if item.get("type") == "reasoning":
            item.pop("encrypted_content", None)
    return items


async def test_an_item_without_its_seal_is_dropped_where_nobody_stored_it():
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT, fields={"store": False}).run(2, direct=True)
    client.alter = no_encrypted_reasoning
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200], ["send_sealed"])
    assert "reasoning" not in kinds(gateway.wire.bodies[1])


async def test_an_item_without_its_seal_gets_it_from_the_log():
    """Its words were rewritten, so only the refusal's own id says which one it is."""
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT).run(1)
    client.alter = no_encrypted_reasoning
    assert (await client.say(*client.next())).status == 200
    assert statuses(gateway) == [200, 200]  # found at once, by its id
    assert audit(gateway).startswith("exact=1")


NOT_FOUND = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again"
    " with `store` set to true, or remove this item from your input."
)


async def test_azure_without_ids_and_with_them_after_all():
    """Pinned for the host, whatever the model; and taken back where an id is required."""
    gateway = gateway_with("azure", "azure")
    client = await Echo(gateway, "responses", GPT).run(1)
    thought = named(client.turns[0])[0]
    refused = Answer(400, {"error": {"message": NOT_FOUND.format(id=thought["id"])}})
    needed = {"code": "invalid_payload", "message": "The provided data does not match the schema"}
    wire = ScriptedWire(refused, DONE, DONE, Answer(400, {"error": needed}), DONE)
    scripted = InProcessGateway(wire, "azure", store=gateway.store)
    client.gateway = scripted
    for model in (GPT, "gpt-6", GPT):
        client.model = model
        await client.say(*client.next())
        client.turns.pop()
    with_ids = [any("id" in item for item in body["input"]) for body in wire.bodies]
    assert with_ids == [True, False, False, False, True]
    assert all("encrypted_content" in json.dumps(body["input"]) for body in wire.bodies[:2])
    quirks = await scripted.facts("endpoint_learned")
    assert [(body.model, body.quirk.strip_item_ids) for body in quirks] == [
        ("*", True),
        ("*", False),
    ]


# -- twice ---------------------------------------------------------------------------------------


async def test_an_item_that_stands_twice_stands_once():
    gateway = gateway_with("openai", "openai")
    client = await Echo(gateway, "responses", GPT).run(1, direct=True)
    client.alter = lambda items: [*items[:2], items[1], *items[2:]]
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200], ["deduplicate"])


@pytest.mark.parametrize("whole", [True, False])
async def test_what_the_server_remembers_is_not_told_again(whole):
    gateway = gateway_with("openai", "openai")
    client = Echo(gateway, "responses", GPT, fields={"store": True})
    first = await client.say(Text(text="hi"))
    client.fields["previous_response_id"] = first.json["id"]
    client.alter = lambda items: items if whole else items[1:]
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([200, 400, 200], ["deduplicate"])
    assert ("previous_response_id" in gateway.wire.bodies[-1]) is not whole
    assert audit(gateway).startswith("exact=1; altered=0; missing=0")


# -- seals that cannot be opened -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "xai", "azure"])
@pytest.mark.parametrize("hot", [False, True])
async def test_seals_that_cannot_be_opened_any_more_are_dropped_for_good(name, hot):
    """The server has new keys: everything it sealed before is lost."""
    store = CachedStore(MemoryStore()) if hot else MemoryStore()
    gateway = gateway_with(name, name, store=store)
    client = await TurnClient(gateway, "responses", gateway.wire.sim.models()[0], keep=False).run(3)
    gateway.wire.sim = simulator(name, seed=1)
    await client.run(4)
    assert recovered(gateway) == ["drop_sealed"]
    assert statuses(gateway) == [200, 200, 200, 400, 200, 200, 200, 200]
    assert "reasoning" not in kinds(gateway.wire.bodies[4])
    assert audit(gateway) == "exact=4; altered=0; missing=0; misplaced=0; foreign=0"
    refusals = await gateway.facts("quarantined")
    assert {r.reason for r in refusals} == {"drop_sealed"}
    assert len({r.turn for r in refusals}) == 3


async def test_quarantine_quirks_and_chains_survive_the_process(tmp_path):
    """A file on disk, closed and opened again between any two exchanges."""
    sim = simulator("openai")
    wire = SimWire(sim)
    client = TurnClient(None, "responses", GPT, keep=False, fields={"max_output_tokens": 99})
    sim.row = replace(sim.row, unsupported=("max_output_tokens",))
    for number in range(8):
        store = SqliteStore(tmp_path / "log.db")
        client.gateway = InProcessGateway(wire, "openai", store=store)
        if number == 4:
            wire.sim = simulator("openai", seed=1)
        await client.run(1)
        await store.close()
    assert statuses(client.gateway) == [400, *[200] * 4, 400, *[200] * 4]  # a quirk, a quarantine
    assert audit(client.gateway).endswith("altered=0; missing=0; misplaced=0; foreign=0")


async def test_only_the_one_that_is_named():
    gateway = gateway_with("codex", "codex")
    client = Echo(gateway, "responses", GPT, fields={"stream": True})
    client.dialect = Streaming(client.dialect)
    await client.run(3)
    ids = [
        item["id"] for turn in client.turns for item in named(turn) if item["type"] == "reasoning"
    ]
    text = f"The encrypted content for item {ids[1]} could not be verified."
    error = {"message": text, "code": "invalid_encrypted_content"}
    wire = ScriptedWire(Answer(400, {"error": error}), DONE)
    scripted = InProcessGateway(wire, "codex", store=gateway.store)
    client.gateway = scripted
    await client.say(*client.next())
    sent = [[i["id"] for i in b["input"] if i.get("type") == "reasoning"] for b in wire.bodies]
    assert sent == [ids, [id for id in ids if id != ids[1]]]
    [refusal] = await scripted.facts("quarantined")
    assert len(refusal.thoughts) == 1


class Streaming:
    """A dialect that reads streams where a test asks for a whole body."""

    def __init__(self, dialect):
        self._dialect = dialect

    def __getattr__(self, name):
        return getattr(self._dialect, name)

    def reader(self, *, stream, **more):
        return self._dialect.reader(stream=True, **more)


async def test_what_the_client_brought_from_elsewhere_is_remembered_as_refused():
    gateway = gateway_with("openai", "openai")
    foreign = gateway_with("openai", "openai", seed=7)
    client = await Echo(foreign, "responses", GPT).run(2, direct=True)
    client.gateway = gateway
    await client.run(3)
    assert recovered(gateway) == ["drop_sealed"]
    assert statuses(gateway) == [400, 200, 200, 200]
    assert audit(gateway).startswith("exact=2; altered=0; missing=0; misplaced=0; foreign=0")


async def test_a_compaction_blob_may_be_a_missing_summary():
    gateway = gateway_with("xai")
    client = await Echo(gateway, "responses", "grok-4.5").run(1, direct=True)

    def bare(items):
        for item in items:
            item.pop("summary", None)
        return items

    client.alter = bare
    client.fields = {"store": False, "include": ["reasoning.encrypted_content"]}
    assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200], ["drop_sealed"])
    assert gateway.wire.bodies[1]["input"][1]["summary"] == []


async def test_a_compaction_that_cannot_be_opened_is_dropped():
    blob = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAxxxxABCD"}
    text = "The encrypted content gAAA...ABCD could not be verified."
    error = {"error": {"message": text, "code": "invalid_encrypted_content"}}
    wire = ScriptedWire(Answer(400, error), DONE)
    gateway = InProcessGateway(wire, "openai")
    body = {"model": GPT, "input": [blob, {"role": "user", "content": "hi"}]}
    await gateway.post("/v1/responses", body)
    assert [kinds(b) for b in wire.bodies] == [["compaction", "message"], ["message"]]


async def test_a_missing_summary_is_put_there():
    gateway = gateway_with("openai")
    client = await Echo(gateway, "responses", GPT).run(1, direct=True)

    def bare(items):
        for item in items:
            item.pop("summary", None)
        return items

    client.alter = bare
    for _ in range(2):
        assert (await client.say(*client.next())).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["summarise"])


# -- memory of the server ------------------------------------------------------------------------


async def test_what_the_server_forgot_is_told_in_full():
    gateway = gateway_with("openai", "openai")
    client = TurnClient(gateway, "responses", GPT, fields={"store": True})
    only = []
    for number in range(6):
        client.turns = []
        answer = await client.say(*(only or [Text(text="hi")]))
        assert answer.status == 200
        client.fields["previous_response_id"] = answer.json["id"]
        only = client.next()
        if number == 3:
            gateway.wire.sim.stored.clear()
    assert statuses(gateway) == [200, 200, 200, 200, 400, 200, 200]
    assert recovered(gateway) == ["replay_in_full"]
    assert "previous_response_id" not in gateway.wire.bodies[5]
    assert audit(gateway) == "exact=7; altered=0; missing=0; misplaced=0; foreign=0"
    sessions = {event.session for event in await gateway.events("turn_started")}
    assert len(sessions) == 1


async def test_what_nobody_remembers_is_passed_on():
    gateway = gateway_with("openai", "openai")
    fields = {"store": True, "previous_response_id": "resp_unknown"}
    client = TurnClient(gateway, "responses", GPT, fields=fields)
    answer = await client.say(Text(text="hi"))
    assert (answer.status, statuses(gateway)) == (400, [400])
    assert answer.json["error"]["code"] == "previous_response_not_found"


# -- the backend that stores nothing -------------------------------------------------------------

LITE = {"x-openai-internal-codex-responses-lite": "true"}


async def test_all_turns():
    gateway = gateway_with("codex", "codex")
    body = {"model": GPT, "input": "hi", "stream": True, "reasoning": {"effort": "low"}}
    for _ in range(2):
        assert (await gateway.post("/v1/responses", body, LITE)).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["set_all_turns"])
    assert gateway.wire.bodies[-1]["reasoning"] == {"effort": "low", "context": "all_turns"}
    assert (
        await gateway.post("/v1/responses", {**body, "reasoning": {"context": "auto"}})
    ).status == 200
    assert gateway.wire.bodies[-1]["reasoning"] == {"context": "auto"}  # the client's own word


async def test_store_false():
    gateway = gateway_with("codex")  # as an endpoint that nobody knows
    body = {"model": GPT, "input": "hi", "stream": True, "store": True}
    for _ in range(2):
        assert (await gateway.post("/v1/responses", body)).status == 200
    assert (statuses(gateway), recovered(gateway)) == ([400, 200, 200], ["set_store_false"])
    assert gateway.wire.bodies[-1]["store"] is False


async def test_store_false_in_the_middle_of_a_chain():
    """An account that may not store any more: what it was asked to remember is told instead."""
    gateway = gateway_with("openai", "openai")
    client = TurnClient(gateway, "responses", GPT, fields={"store": True})
    answer = await client.say(Text(text="hi"))
    said = client.next()
    refused = Answer(400, {"detail": "Store must be set to false"})
    wire = ScriptedWire(refused, DONE)
    client.gateway = InProcessGateway(wire, "openai", store=gateway.store)
    client.fields["previous_response_id"] = answer.json["id"]
    for _ in range(2):
        client.turns = []
        await client.say(*said)
    assert [(b["store"], "previous_response_id" in b) for b in wire.bodies] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    assert kinds(wire.bodies[1])[:3] == ["message", "reasoning", "function_call"]
    assert wire.bodies[1] == wire.bodies[2]


class Failing(MemoryStore):
    """A store that can be read, and not written any more."""

    full = False

    async def append(self, batch):
        if self.full:
            raise Unavailable("full")
        return await super().append(batch)


async def test_a_quarantine_that_cannot_be_written_is_said_and_stops_nothing():
    gateway = gateway_with("openai", "openai", store=Failing())
    client = await TurnClient(gateway, "responses", GPT, keep=False).run(2)
    gateway.wire.sim = simulator("openai", seed=1)
    gateway.store.full = True
    assert (await client.say(*client.next())).status == 200
    assert statuses(gateway) == [200, 200, 400, 200]
    assert "full" in gateway.notes.losses[0]


async def test_reconnecting_is_not_a_matter_of_the_request():
    error = {"error": {"code": "websocket_connection_limit_reached", "message": "x"}}
    wire = ScriptedWire(Answer(400, error))
    answer = await InProcessGateway(wire, "openai").post(
        "/v1/responses", {"model": GPT, "input": "hi"}
    )
    assert (answer.status, answer.json, len(wire.sent)) == (400, error, 1)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_inside_of_an_answer_is_heeded_by_the_next_request(
    stream, tmp_path, monkeypatch
):
    """The client has its status and cannot be answered anew; but the thought is known now."""
    monkeypatch.setattr(asgi, "WATCH_AFTER", 0)  # also if it took a while
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA-1"}
    words = {"type": "message", "role": "assistant", "id": "m", "content": "Done."}
    why = "The encrypted content gAAA-1 could not be verified."
    fine = {"id": "resp_1", "status": "completed", "output": [thought, words]}
    error = {"code": "invalid_encrypted_content", "message": why}
    failed = {"id": "resp_2", "status": "failed", "output": [], "error": error}
    answer = Answer(200, failed)
    if stream:
        event = json.dumps({"type": "response.failed", "response": failed})
        sse = {"content-type": "text/event-stream"}
        answer = Answer(200, f"event: response.failed\ndata: {event}\n\n".encode(), sse)
    wire = ScriptedWire(Answer(200, fine), answer, Answer(200, fine))
    gateway = InProcessGateway(wire, "openai", store=SqliteStore(tmp_path / "log.db"))
    heard = [{"role": "user", "content": "hi"}]
    echoed = [*heard, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "on"}]
    asked = {"model": "gpt-5.6", "input": echoed}
    await gateway.post("/v1/responses", {"model": "gpt-5.6", "input": heard})
    refused = await gateway.post("/v1/responses", asked | {"stream": stream})
    assert (refused.status, refused.body) == (200, answer.body)
    assert len(wire.sent) == 2  # it came to the client as it was, and was not asked again
    await gateway.post("/v1/responses", asked)
    kinds = [[item.get("type", item.get("role")) for item in b["input"]] for b in wire.bodies]
    assert "reasoning" in kinds[1] and "reasoning" not in kinds[2]
    assert [fact.reason for fact in await gateway.facts("quarantined")] == ["drop_sealed"]
    await gateway.store.close()


TOOL = [{"type": "function", "name": "run", "parameters": {"type": "object"}}]


@pytest.mark.parametrize("kinds", [("reasoning",), ("message", "function_call"), ()])
async def test_items_that_the_server_forgot_are_written_out(kinds):
    """A client names items by their ids; the provider stored them, and lost them since."""
    gateway = gateway_with("openai", "openai")
    history, said = (
        [{"role": "user", "content": "hi"}],
        {"model": GPT, "store": True, "tools": TOOL},
    )
    whole = list(history)
    for _ in range(3):
        answer = await gateway.post("/v1/responses", {**said, "input": history})
        assert answer.status == 200, answer.body
        for item in answer.json["output"]:
            named = not kinds or item["type"] in kinds
            history.append({"type": "item_reference", "id": item["id"]} if named else item)
            whole.append(item)
        calls = [item for item in answer.json["output"] if item["type"] == "function_call"]
        more = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
            for call in calls
        ] or [{"role": "user", "content": "go on"}]
        history += more
        whole += more
    gateway.wire.sim = simulator("openai")  # it has forgotten
    answer = await gateway.post("/v1/responses", {**said, "input": history})
    assert answer.status == 200, answer.body
    sent = json.loads(gateway.wire.sent[-1].body)["input"]
    assert not [item for item in sent if item.get("type") == "item_reference"]
    assert [item.get("id") for item in sent] == [item.get("id") for item in whole]


async def test_items_that_nobody_knows_are_refused_in_the_providers_words():
    gateway = gateway_with("openai", "openai")
    asked = [{"role": "user", "content": "hi"}, {"type": "item_reference", "id": "msg_0123"}]
    body = {"model": GPT, "store": True, "input": [*asked, {"role": "user", "content": "on"}]}
    answer = await gateway.post("/v1/responses", body)
    assert (answer.status, "not found" in answer.body.decode()) == (404, True)
    assert len(gateway.wire.sent) == 1


@pytest.mark.parametrize("name", ["openai", "azure"])
async def test_an_item_with_the_id_of_another_thought_keeps_its_own_words(name):
    gateway, other = gateway_with(name, name), "Something else entirely."
    asked = {"model": simulator(name).models()[0], "store": False}
    asked |= {"include": ["reasoning.encrypted_content"]}
    first = await gateway.post("/v1/responses", {**asked, "input": "A question."})
    items = json.loads(first.body)["output"]
    (thought,) = [item for item in items if item["type"] == "reasoning"]
    spoken = {"type": "message", "role": "assistant", "content": "Never said there."}
    named = {"type": "reasoning", "id": thought["id"]}
    named |= {"summary": [{"type": "summary_text", "text": other}]}
    history = [{"role": "user", "content": "Another."}, named, spoken]
    history.append({"role": "user", "content": "Go on."})
    await gateway.post("/v1/responses", {**asked, "input": history})
    sent = [one.body for one in gateway.wire.sent[1:]]
    assert not any(thought["encrypted_content"].encode() in body for body in sent)

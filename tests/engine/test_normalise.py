"""What a request gets before its thoughts are looked up: state, seals, and what it only names."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, TurnClient, gateway_with
from support.recovery import DONE, GPT, RESPONSES
from thoughtline.dialects import DIALECTS
from thoughtline.engine.normalise import normalise, quirk_fields, state_fields
from thoughtline.errors import Unreadable
from thoughtline.log.quirks import Quirk
from thoughtline.providers.contracts import find_policy
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Say, Think

SEALED = b'["reasoning.encrypted_content"]'
STATELESS = {"store": b"false", "include": SEALED}


def wishes(policy, quirk=None, **body):
    request = RESPONSES.read(json.dumps({"model": GPT, "input": "hi", **body}).encode())
    row = find_policy(policy, "responses", GPT)
    quirk = quirk or Quirk()
    state = state_fields(request, row, quirk, RESPONSES.state_params(request.body))
    return state | quirk_fields(request, RESPONSES, quirk)


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
    assert wishes("generic", Quirk(no_store=True), store=True) == STATELESS
    assert wishes("openai", Quirk(no_encrypted_reasoning=True)) == {"store": b"false"}
    context = {"reasoning": b'{"effort": 1,"context":"all_turns"}'}
    assert wishes("generic", Quirk(all_turns=True), reasoning={"effort": 1}) == context
    assert wishes("generic", Quirk(all_turns=True), reasoning={"context": "auto"}) == {}
    assert wishes("generic", Quirk(all_turns=True), reasoning="?")["reasoning"]


@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini"])
async def test_a_param_of_responses_goes_to_no_other_api(dialect):
    """A refusal that asks for it may come from anywhere; it is not done for ever after."""
    raw = {"messages": [{"role": "user", "content": "Hi"}], "contents": [], "model": "m"}
    codec = DIALECTS[dialect]
    request = codec.read(json.dumps(raw).encode())
    row = find_policy("generic", dialect, "m")
    more = {"tenant": "t", "store": MemoryStore(), "quirk": Quirk(all_turns=True)}
    made = await normalise(request, dialect=codec, policy=row, **more)
    assert made.overrides.fields == {}


@pytest.mark.parametrize(("dialect", "input"), [("responses", "input"), ("chat", "messages")])
async def test_what_an_endpoint_does_not_take_is_left_out(dialect, input):
    for more, gone in (({"user": "me"}, {"user": None}), ({}, {})):
        made = await normalise(
            DIALECTS[dialect].read(json.dumps({input: [], **more}).encode()),
            dialect=DIALECTS[dialect],
            policy=find_policy("generic", dialect, GPT),
            tenant="t",
            store=MemoryStore(),
            quirk=Quirk(drops=("user",)),
        )
        assert made.overrides.fields == gone


def test_odd_bodies_are_read_with_patience():
    """Half an emoji, items that are none: what is asked for is understood all the same."""
    half = b'{"store":true,"x":"\\ud83d","input":[1,{"role":"developer"},{"role":["\\ud83d"]}]}'
    said = RESPONSES.state_params(half)
    assert (said.store, said.system_items) == (True, True)
    with pytest.raises(Unreadable):
        RESPONSES.state_params(b"[]")


async def test_a_request_that_needs_nothing_leaves_as_it_came():
    """As Codex sends it."""
    raw = (
        b'{ "model":"gpt-5.6", "input":[{"role":"user", "content":"hi"}],"store" : false,'
        b' "include":[ "reasoning.encrypted_content" ] }'
    )
    for policy in ("openai", "codex", "azure", "xai", "generic"):
        wire = ScriptedWire(DONE)
        await InProcessGateway(wire, policy).post("/v1/responses", raw)
        assert wire.sent[0].body == raw


async def test_only_what_is_missing_is_added():
    wire = ScriptedWire(DONE)
    await InProcessGateway(wire, "openai").post(
        "/v1/responses", b'{"input":"hi", "model":"gpt-5.6"}'
    )
    added = b',"store":false,"include":["reasoning.encrypted_content"]}'
    assert wire.sent[0].body == b'{"input":"hi", "model":"gpt-5.6"' + added


async def test_a_body_with_a_key_twice_is_nobody_s_to_change():
    raw = b'{"input":"hi","model":"gpt-5.6","store":true,"store":false}'
    wire = ScriptedWire(DONE)
    await InProcessGateway(wire, "openai").post("/v1/responses", raw)
    assert wire.sent[0].body == raw


# -- what the client only names ------------------------------------------------------------------


async def test_a_plain_answer_whose_thought_is_lost_is_not_refused_by_deepseek_responses():
    """With tools declared, every answer needs its thought, and not only those that call."""
    plain = (Think("Easy."), Say("Done."))
    gateway = gateway_with("deepseek-responses", "deepseek", script=lambda turn, sim: plain)
    client = TurnClient(gateway, "responses", "deepseek-v4-pro", keep=False)
    await client.run(1, direct=True)  # nobody here has seen it
    assert (await client.say(*client.next())).status == 200
    assert [reply.status for reply in gateway.wire.replies] == [200]
    assert gateway.wire.bodies[-1]["reasoning"] == {"effort": "none"}


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
    gateway = InProcessGateway(wire, "openai")
    heard = [{"role": "user", "content": "hi"}, last]
    await gateway.post("/v1/responses", {"model": GPT, "input": heard})
    echoed = [*heard, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "on"}]
    answer = await gateway.post("/v1/responses", {"model": GPT, "input": echoed})
    assert "restored=1; missed=0" in answer.header("x-thoughtline-replay")
    assert wire.bodies[-1]["input"][2] == REASONING
    facts = await gateway.facts("user_message")
    assert [fact.parts[0].text for fact in facts] == ["hi", "on"]


async def test_what_was_heard_is_logged_once_also_when_an_answer_is_gone_on_from():
    said = {"id": "resp_1", "status": "completed", "output": [REASONING, MESSAGE]}
    gateway = InProcessGateway(ScriptedWire(Answer(200, said)), "openai")
    heard = [{"role": "user", "content": "hi"}]
    await gateway.post("/v1/responses", {"model": GPT, "input": heard})
    await gateway.post("/v1/responses", {"model": GPT, "input": [*heard, MESSAGE]})
    assert len(await gateway.facts("user_message")) == 1
    assert len(await gateway.facts("turn_ended")) == 2

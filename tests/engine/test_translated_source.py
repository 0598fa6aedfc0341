"""Clients of one dialect on strict providers of another: every thought goes back, to the byte."""

import asyncio
import re
from itertools import pairwise

import pytest

from support.clients import load
from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.translating_gateway import PAIRS, PROVIDERS, TranslatingGateway
from thoughtline.engine.check_index import check_index
from thoughtline.stores.memory import MemoryStore

TURNS = 8
HABITS = ("keep", "strip", "respell")
"""What clients do to their history: keep all, only what is visible, spell that anew."""


def talked(gateway, dialect, **options):
    gateway.last_client = gateway.client(dialect, **options)
    reply = gateway.last_client.run(TURNS)
    assert reply.status == 200, reply.body
    assert len(gateway.records) == TURNS
    return reply


def assert_every_thought_came_back(gateway):
    audit = gateway.records[-1].audit
    assert audit.clean, str(audit)
    assert audit.exact > 0
    assert [reply.status for reply in gateway.wire.replies] == [200] * TURNS


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("dialect", "provider"), PAIRS)
def test_a_tool_loop_brings_every_thought_back(dialect, provider, stream):
    gateway = TranslatingGateway(provider)
    talked(gateway, dialect, stream=stream, echo="strip")
    assert_every_thought_came_back(gateway)


@pytest.mark.parametrize("echo", HABITS)
@pytest.mark.parametrize(("dialect", "provider"), PAIRS)
def test_what_clients_do_to_their_history_does_not_matter(dialect, provider, echo):
    gateway = TranslatingGateway(provider)
    talked(gateway, dialect, stream=True, echo=echo)
    assert_every_thought_came_back(gateway)


def unmarked(value):
    """Without cache breakpoints, which move with the end and are no part of a prefix."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: unmarked(one) for name, one in value.items() if name != "cache_control"}


@pytest.mark.parametrize(("dialect", "provider"), PAIRS)
def test_the_providers_prefix_only_grows(dialect, provider):
    gateway = TranslatingGateway(provider)
    talked(gateway, dialect, echo="strip")
    history = {"chat": "messages", "responses": "input", "messages": "messages"}
    member = history.get(PROVIDERS[provider][0], "contents")
    bodies = [unmarked(body[member]) for body in gateway.wire.bodies]
    for before, after in pairwise(bodies):
        assert after[: len(before)] == before


@pytest.mark.parametrize("provider", ["kimi-k3", "gemini", "claude", "openai"])
def test_a_restart_between_turns_loses_nothing(provider):
    store = MemoryStore()
    dialect = "messages" if PROVIDERS[provider][0] != "messages" else "responses"
    gateway = TranslatingGateway(provider, store=store)
    talker = gateway.client(dialect, echo="strip")
    for _ in range(TURNS):
        assert talker.turn().status == 200
        gateway.restart()
    assert_every_thought_came_back(gateway)


@pytest.mark.parametrize(("dialect", "provider"), [p for p in PAIRS if p[1] in ("kimi-k3", "glm")])
def test_ids_that_repeat_upstream_are_unique_for_the_client(dialect, provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client(dialect, echo="keep")
    talker.talk(TURNS)
    seen = gateway.client_call_ids
    assert len(seen) == len(set(seen)) > 3


@pytest.mark.parametrize("dialect", ["responses", "messages", "gemini"])
def test_two_conversations_that_look_alike_keep_their_own_thoughts(dialect):
    gateway = TranslatingGateway("deepseek")
    one, two = (gateway.client(dialect, opening=f"Talk {n}.", echo="strip") for n in (1, 2))
    for _ in range(6):
        assert one.turn().status == 200
        assert two.turn().status == 200
    assert all(record.audit.clean for record in gateway.records)


def test_a_handle_never_goes_upstream():
    gateway = TranslatingGateway("openai")
    talked(gateway, "messages", echo="keep", stream=True)
    assert not any(b"e1RMA" in request.body for request in gateway.wire.sent)


@pytest.mark.parametrize("provider", ["deepseek", "claude", "gemini", "openai"])
def test_another_tenants_handle_names_nothing(provider):
    gateway = TranslatingGateway(provider)
    dialect = "messages" if PROVIDERS[provider][0] != "messages" else "responses"
    mine = gateway.client(dialect, echo="keep")
    mine.talk(3)
    theirs = gateway.client(dialect, echo="keep", key="key-two")
    theirs.history = list(mine.history)
    theirs.turn()
    assert gateway.records[-1].audit.foreign == 0
    assert gateway.records[-1].audit.exact == 0


@pytest.mark.parametrize("known", [True, False], ids=["known", "forgotten"])
@pytest.mark.parametrize(
    ("dialect", "first", "then"),
    [("messages", "deepseek", "claude"), ("responses", "kimi-k3", "openai")],
)
def test_a_conversation_moves_to_a_provider_that_speaks_the_clients_own_dialect(
    dialect, first, then, known
):
    store = MemoryStore()
    one = TranslatingGateway(first, store=store)
    talker = one.client(dialect, echo="keep", stream=True)
    talker.talk(4)
    two = TranslatingGateway(then, store=store if known else None)
    on = two.client(dialect, echo="keep", stream=True)
    on.history = list(talker.history)
    assert on.run(4).status == 200
    assert [reply.status for reply in two.wire.replies] == [200] * 4
    assert not any(b"e1RMA" in request.body for request in two.wire.sent)


@pytest.mark.parametrize(("dialect", "provider"), PAIRS)
def test_the_index_can_be_made_again_from_the_log(dialect, provider):
    gateway = TranslatingGateway(provider)
    talked(gateway, dialect, echo="strip")
    report = asyncio.run(check_index(gateway.store))
    assert report.clean, report


PATCH = {"type": "custom", "name": "apply_patch", "format": {"type": "text"}}
FILES = {
    "type": "namespace",
    "name": "files",
    "tools": [{"type": "function", "name": "ls", "parameters": {"type": "object"}}],
}


@pytest.mark.parametrize("provider", ["deepseek", "kimi-k3", "claude", "gemini"])
def test_tools_of_every_kind_come_back_and_are_found_again(provider):
    """The simulators call whatever is declared: free text and namespaces among it."""
    gateway = TranslatingGateway(provider)
    talker = gateway.client("responses", echo="strip", tools=False)
    talker.body = {**talker.body, "tools": [PATCH, FILES]}
    kinds = set()
    for _ in range(TURNS):
        assert talker.turn().status == 200
        kinds |= {load(entry).get("type") for entry in talker.history}
    assert_every_thought_came_back(gateway)
    assert {"custom_tool_call", "function_call"} & kinds
    assert asyncio.run(check_index(gateway.store)).clean


CALLS = [
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "+ x"},
    {
        "type": "function_call",
        "call_id": "c2",
        "name": "ls",
        "namespace": "files",
        "arguments": "{}",
    },
]


@pytest.mark.parametrize("provider", ["deepseek", "claude", "gemini"])
def test_tools_of_every_kind_move_to_a_provider_that_has_functions_only(provider):
    """The log has the calls as their own provider made them: of kinds that this one lacks."""
    store = MemoryStore()
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": CALLS}
    at_home = InProcessGateway(ScriptedWire(Answer(body=response)), "openai", store=store)
    user = {"type": "message", "role": "user", "content": "Hi."}
    body = {"model": "gpt-5.6", "tools": [PATCH, FILES], "input": [user]}
    asyncio.run(at_home.post("/v1/responses", body))
    gateway = TranslatingGateway(provider, store=store)
    results = [
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "fine"},
        {"type": "function_call_output", "call_id": "c2", "output": "fine"},
    ]
    moved = {**body, "model": gateway.model, "input": [user, *CALLS, *results]}
    answer = asyncio.run(gateway.post("/v1/responses", moved))
    assert answer.status == 200
    sent = gateway.wire.sent[0].body.decode().replace("\\", "")
    assert '{"input":"+ x"}' in sent
    assert sent.count('"files__ls"') >= 2  # declared, and called


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", ["deepseek", "kimi-k3", "claude", "gemini"])
def test_a_client_may_name_the_response_that_it_goes_on_from(provider, stream):
    """The provider remembers nothing, and the log does."""
    gateway = TranslatingGateway(provider)
    talker = gateway.client("responses", stream=stream)
    for _ in range(TURNS):
        reply = talker.turn()
        assert reply.status == 200, reply.body
        (last,) = re.findall(rb'"id":"(resp_[0-9a-f]+)"', reply.body)[-1:]
        said = talker.history[-1:]
        calls = [e for e in map(load, talker.history) if e.get("type") == "function_call"]
        while load(said[0]).get("type", "").endswith("_output") and len(said) < len(calls):
            before = talker.history[-len(said) - 1]
            if not load(before).get("type", "").endswith("_output"):
                break
            said.insert(0, before)
        talker.history = list(said)
        talker.body = {**talker.body, "previous_response_id": last.decode()}
    assert_every_thought_came_back(gateway)


@pytest.mark.parametrize("provider", ["deepseek", "kimi-k3", "claude", "gemini"])
def test_a_client_may_name_single_items(provider):
    """The AI SDK does, where it takes its server for one that remembers."""
    gateway = TranslatingGateway(provider)

    def named(entries):
        own = ("msg_", "fc_", "rs_")
        return [
            {"type": "item_reference", "id": entry["id"]}
            if str(entry.get("id", "")).startswith(own)
            else entry
            for entry in entries
        ]

    talked(gateway, "responses", echo=named)
    assert_every_thought_came_back(gateway)
    other = gateway.client("responses", echo=named, key="key-two")
    other.history = [*gateway.last_client.history]
    assert other.send().status == 400

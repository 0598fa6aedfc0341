"""What a conversation keeps when its client, its provider or its neighbours do something odd."""

import json
import socket
from pathlib import Path

import pytest

from thoughtline.cli.serve import _listen
from thoughtline.dialects import DIALECTS
from thoughtline.exchanges import Terms, begin
from thoughtline.gateway.access import Door
from thoughtline.guards import Target
from thoughtline.parts import Origin
from thoughtline.policies import lookup
from thoughtline.settings import load
from thoughtline.stores.memory import MemoryStore

CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "call_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    ],
}
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
SUMMARY = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA-a-summary"}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-a-thought"}


def message(text, **more):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def target(policy, dialect, model):
    origin = Origin(
        dialect=dialect,
        provider=policy,
        endpoint=f"https://{policy}",
        account="a",
        model=model,
        asked=model,
    )
    return Target(policy=lookup(policy, dialect, model), origin=origin)


async def asked(store, dialect, where, body, hints=()):
    raw = json.dumps(body).encode()
    codec = DIALECTS[dialect]
    return await begin(
        codec.read(raw),
        dialect=codec,
        target=where,
        tenant="t",
        store=store,
        stream=False,
        hints=hints,
    )


async def answered(store, dialect, where, body, answer, hints=()):
    exchange = await asked(store, dialect, where, body, hints)
    exchange.feed(json.dumps(answer).encode())
    await exchange.finish()
    return exchange


@pytest.mark.parametrize(
    ("hints", "known"), [((), False), (("a-session",), True), (("my-app",), True)]
)
async def test_a_cache_key_that_conversations_share_is_no_proof(hints, known):
    """Many conversations of one application go under one `prompt_cache_key`; a session is one's own."""
    store, where = MemoryStore(), target("deepseek", "chat", "deepseek-v4-pro")
    common = {"model": "deepseek-v4-pro", "prompt_cache_key": "my-app", "tools": TOOLS}
    one = {**common, "messages": [{"role": "user", "content": "one"}]}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    reply = {"choices": [{**choice, "message": {**CALL, "reasoning_content": "thought of one"}}]}
    await answered(store, "chat", where, one, reply, hints)
    history = [
        {"role": "user", "content": "another"},
        CALL,
        {"role": "tool", "tool_call_id": "call_0", "content": "b.txt"},
    ]
    exchange = await asked(store, "chat", where, {**common, "messages": history}, hints)
    assert (b"thought of one" in exchange.body) is known


@pytest.fixture
async def compacted():
    store, where = MemoryStore(), target("openai", "responses", "gpt-5.6")
    body = {"model": "gpt-5.6", "input": [{"role": "user", "content": "go"}]}
    output = [SUMMARY, SEALED, message("done", id="msg_1")]
    reply = {"id": "resp_1", "model": "gpt-5.6", "status": "completed", "output": output}
    await answered(store, "responses", where, body, reply)
    return store


@pytest.mark.parametrize(
    ("policy", "model", "goes"),
    [
        ("openai", "gpt-5.6", True),
        ("azure", "gpt-5.6", False),
        ("xai", "grok-4.5", False),
        ("deepseek", "deepseek-v4-flash", False),
        ("generic", "m", False),
    ],
)
@pytest.mark.parametrize(
    "history",
    [
        [SUMMARY],
        [{**SUMMARY, "id": None}, message("done")],
        [{"role": "user", "content": "go"}, SUMMARY, SEALED, message("done", id="msg_1")],
    ],
)
async def test_a_sealed_summary_stays_with_its_provider(compacted, history, policy, model, goes):
    body = {"model": model, "input": [*history, {"role": "user", "content": "go on"}]}
    exchange = await asked(compacted, "responses", target(policy, "responses", model), body)
    assert (b"gAAAA-a-summary" in exchange.body) is goes
    assert json.loads(exchange.body)["input"][-1] == body["input"][-1]
    if not goes:
        assert b"gAAAA" not in exchange.body


@pytest.mark.parametrize(
    ("policy", "model", "kept"), [("openai", "gpt-5.6", True), ("xai", "grok-4.5", False)]
)
async def test_the_phase_of_a_message_comes_back(policy, model, kept):
    store, home = MemoryStore(), target("openai", "responses", "gpt-5.6")
    said = [{"role": "user", "content": "go"}]
    output = [
        message("first I look", id="msg_1", phase="commentary"),
        message("done", id="msg_2", phase="final_answer"),
    ]
    reply = {"id": "resp_1", "model": "gpt-5.6", "status": "completed", "output": output}
    await answered(store, "responses", home, {"model": "gpt-5.6", "input": said}, reply)

    there, after = target(policy, "responses", model), {"role": "user", "content": "go on"}
    bare = [message("first I look"), message("done")]
    exchange = await asked(
        store, "responses", there, {"model": model, "input": [*said, *bare, after]}
    )
    sent = json.loads(exchange.body)["input"]
    wanted = ["commentary", "final_answer"] if kept else [None, None]
    assert [item.get("phase") for item in sent[1:3]] == wanted
    exact = {"model": model, "input": [*said, *output, after]}
    if kept:  # nothing lost, nothing touched
        exchange = await asked(store, "responses", there, exact)
        assert exchange.body == json.dumps(exact).encode()


async def test_an_exchange_says_nothing_of_its_talk_when_it_is_printed():
    where = target("deepseek", "chat", "deepseek-v4-pro")
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "a secret"}]}
    exchange = await asked(MemoryStore(), "chat", where, body)
    exchange.sent()
    for shown in (repr(exchange), str(exchange), repr(exchange.finish), repr(exchange.capture)):
        assert "secret" not in shown


async def test_a_bookmark_leads_back_to_what_was_decided():
    where = target("deepseek", "chat", "deepseek-v4-pro")
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hello."}]}
    exchange = await asked(MemoryStore(), "chat", where, body)
    before, back = exchange.body, exchange.bookmark()
    exchange.again(terms=Terms(fields={"thinking": b"null"}))
    assert exchange.body != before
    back()
    assert exchange.body is before
    assert exchange.terms == Terms()


def test_whoever_shows_two_credentials_is_known_by_both():
    """Two people behind one proxy's token are two tenants."""
    door, token = Door(b"secret" * 8), (b"authorization", b"Bearer proxy")
    one, two = (door.admit([token, (b"x-api-key", key)], "") for key in (b"one", b"two"))
    twice = door.admit([(b"authorization", b"Bearer one"), (b"x-api-key", b"one")], "")
    assert one.tenant != two.tenant
    assert twice == door.admit([(b"x-api-key", b"one")], "")


def test_an_announced_port_takes_connections():
    settings = load({"port": 0}, {}, Path("/nowhere"))
    with _listen(settings) as listener:
        socket.create_connection(listener.getsockname(), timeout=5).close()

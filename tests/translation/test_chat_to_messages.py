"""Clients of Chat Completions, and of the Responses API, on Claude.

A client that strips thoughts, on a provider that signs them, stands in `test_every_pair.py` and in
`engine/test_translated_source.py`.
"""

import json
from itertools import pairwise

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, scripted_gateway
from support.translating_gateway import TranslatingGateway

HELLO = Answer(
    body={
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "Hi."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
)
RUN = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}


def claude(model="claude-sonnet-4-5"):
    gateway = scripted_gateway(HELLO, speaks="messages", policy="anthropic")
    gateway.model = model
    return gateway


def post(gateway, *messages, **more):
    said = list(messages) or [{"role": "user", "content": "Go."}]
    body = {"model": gateway.model, "messages": said, **more}
    return ask(gateway, "/v1/chat/completions", body)


def marks(body):
    """The places of the cache breakpoints in a body, by name."""
    found = []
    for name in ("system", "tools"):
        found += [(name, at) for at, one in enumerate(body.get(name, [])) if "cache_control" in one]
    for at, message in enumerate(body["messages"]):
        for block in message["content"]:
            if isinstance(block, dict) and "cache_control" in block:
                found.append(("messages", at - len(body["messages"])))
    return found


@pytest.mark.parametrize("dialect", ["chat", "responses", "gemini"])
def test_three_cache_breakpoints_at_the_same_places_in_every_turn(dialect):
    gateway = TranslatingGateway("claude")
    system = {
        "chat": {},
        "responses": {"instructions": "Be kind."},
        "gemini": {"systemInstruction": {"parts": [{"text": "Be kind."}]}},
    }[dialect]
    gateway.client(dialect, echo="strip", **system).talk(6)
    wanted = [("system", 0)] if system else []
    wanted += [("tools", 2), ("messages", -1)]
    assert [marks(body) for body in gateway.wire.bodies] == [wanted] * 6
    used = [json.loads(reply.body)["usage"] for reply in gateway.wire.replies]
    assert all(usage["cache_read_input_tokens"] > 0 for usage in used[1:])
    for before, after in pairwise(gateway.wire.bodies):
        assert (before.get("system"), before["tools"]) == (after.get("system"), after["tools"])


def test_a_limit_is_set_where_the_client_sets_none():
    gateway = claude()
    assert post(gateway).status == 200
    assert gateway.wire.bodies[0]["max_tokens"] > 1000


def test_messages_of_a_user_in_a_row_are_one():
    gateway = TranslatingGateway("claude")
    said = [{"role": "user", "content": text} for text in ("One.", "Two.", "Three.")]
    assert post(gateway, *said).status == 200
    (message,) = gateway.wire.bodies[0]["messages"]
    assert [block["text"] for block in message["content"]] == ["One.", "Two.", "Three."]


def test_a_forced_tool_takes_the_place_of_manual_thinking_and_that_is_said():
    gateway = TranslatingGateway("claude")
    choice = {"type": "function", "function": {"name": "run"}}
    answer = post(gateway, tools=[RUN], tool_choice=choice, reasoning_effort="high")
    assert answer.status == 200, answer.body
    sent = gateway.wire.bodies[0]
    assert sent["tool_choice"] == {"type": "tool", "name": "run"}
    assert "thinking" not in sent
    assert answer.header("x-thoughtline-translated") == "chat>messages; left=effort=high"


def test_no_choice_survives():
    gateway = TranslatingGateway("claude")
    assert post(gateway, tools=[RUN], tool_choice="none").status == 200
    assert gateway.wire.bodies[0]["tool_choice"] == {"type": "none"}


def test_a_thought_that_the_client_echoes_is_never_sent_unsigned():
    gateway = TranslatingGateway("claude")
    said = (
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello.", "reasoning_content": "I greet."},
        {"role": "user", "content": "Go."},
    )
    assert post(gateway, *said, reasoning_effort="high").status == 200
    assert b"I greet." not in gateway.wire.sent[0].body


ALTERNATIVES = {
    "anyOf": [
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    ]
}


def test_alternatives_at_the_root_of_a_schema_are_merged():
    gateway = TranslatingGateway("claude")
    body = {
        "model": gateway.model,
        "input": "Go.",
        "tools": [{"type": "function", "name": "open", "parameters": ALTERNATIVES}],
    }
    answer = ask(gateway, "/v1/responses", body)
    assert answer.status == 200, answer.body
    schema = gateway.wire.bodies[0]["tools"][0]["input_schema"]
    assert schema["type"] == "object"
    assert schema["properties"].keys() == {"path", "url"}
    assert "anyOf" not in schema
    assert "required" not in schema


@pytest.mark.parametrize(
    ("provider", "roles"),
    [("claude", ["user", "assistant", "user"]), ("claude-bound", ["user", "assistant", "user"])],
)
def test_instructions_lead_and_stay_where_they_came(provider, roles):
    gateway = TranslatingGateway(provider)

    def message(role, text):
        return {"type": "message", "role": role, "content": text}

    given = [
        message("developer", "Be kind."),
        message("user", "Hi."),
        message("assistant", "Hello."),
        message("developer", "Be brief."),
        message("user", "Go."),
    ]
    body = {"model": gateway.model, "instructions": "You help.", "input": given}
    answer = ask(gateway, "/v1/responses", body)
    assert answer.status == 200, answer.body
    sent = gateway.wire.bodies[0]
    assert [block["text"] for block in sent["system"]] == ["You help.\n\nBe kind."]
    assert [one["role"] for one in sent["messages"]] == roles
    texts = [block["text"] for block in sent["messages"][-1]["content"]]
    assert texts == ["Be brief.", "Go."]


def test_an_instruction_behind_everything_is_one_where_the_model_takes_it():
    gateway = TranslatingGateway("claude-bound")
    given = [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "message", "role": "developer", "content": "Be brief."},
    ]
    answer = ask(gateway, "/v1/responses", {"model": gateway.model, "input": given})
    assert answer.status == 200, answer.body
    roles = [message["role"] for message in gateway.wire.bodies[0]["messages"]]
    assert roles == ["user", "system"]


@pytest.mark.parametrize("dialect", ["chat", "responses", "gemini"])
def test_signatures_that_are_bound_to_the_prefix_hold_for_twenty_turns(dialect):
    gateway = TranslatingGateway("claude-bound")
    gateway.client(dialect, echo="strip", stream=True).talk(20)
    audits = [record.audit for record in gateway.records]
    assert all(audit.clean for audit in audits), [str(audit) for audit in audits]
    assert [reply.status for reply in gateway.wire.replies] == [200] * 20


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ],
    ids=["sound", "file by id"],
)
def test_what_claude_cannot_be_shown_is_refused(part):
    gateway = claude()
    answer = post(gateway, {"role": "user", "content": [part]})
    assert answer.status == 400
    assert answer.json["error"]["code"] == "untranslatable"
    assert gateway.wire.sent == []


def test_several_answers_at_once_are_refused():
    gateway = claude()
    answer = post(gateway, n=2)
    assert answer.status == 400
    assert "n=2" in answer.json["error"]["message"]

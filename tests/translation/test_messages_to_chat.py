"""Clients of the Messages API, Claude Code first of all, on providers of Chat Completions.

Cases that stand elsewhere: one signature for each thought and blocks that never overlap in
`dialects/messages/test_answer.py`; "prompt is too long" and arguments of a whole answer that cannot
be read in `gateway/test_translated_http.py` and `test_translated_relay.py`; names of side models
and `[1m]` in `engine/test_model_names.py`.
"""

import json

import pytest

from support.scripted_upstream import (
    ask,
    chat_call,
    chat_message,
    chat_stream,
    events,
    scripted_gateway,
)
from support.translating_gateway import TranslatingGateway

BASH = {
    "name": "Bash",
    "description": "Run it.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
    "cache_control": {"type": "ephemeral"},
    "eager_input_streaming": True,
}
CLAUDE_CODE = {
    "model": "deepseek-v4-pro",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cch=abc12;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be brief."},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder/>"}]},
        {"role": "user", "content": "Go."},
        {"role": "system", "content": "Tools changed."},
    ],
    "tools": [BASH, {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": "user_1_account__session_2"},
}


def post(gateway, body, **headers):
    return ask(gateway, "/v1/messages", body, headers)


def body(*messages, **more):
    said = messages or ({"role": "user", "content": "Go."},)
    return {"model": "m", "max_tokens": 100, "messages": list(said), "tools": [BASH], **more}


def test_a_request_as_claude_code_sends_it_is_taken_by_a_strict_provider():
    gateway = TranslatingGateway("deepseek")
    answer = post(gateway, CLAUDE_CODE, **{"anthropic-beta": "interleaved-thinking-2025-05-14"})
    assert answer.status == 200, answer.body
    sent = gateway.wire.bodies[0]
    assert sent["messages"][0] == {
        "role": "system",
        "content": "You are Claude Code.\n\nBe brief.",
    }
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "system"]
    assert sent["tools"][0]["function"] == {
        "name": "Bash",
        "description": "Run it.",
        "parameters": BASH["input_schema"],
    }
    assert sent.keys() == {
        *("model", "messages", "tools", "stream", "stream_options", "max_tokens", "thinking"),
    }
    said = answer.header("x-thoughtline-translated")
    assert said == "messages>chat; left=web_search_20250305"
    assert "anthropic-beta" not in dict(gateway.wire.sent[0].headers)


@pytest.mark.parametrize(
    ("choice", "fields"),
    [
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
        (
            {"type": "tool", "name": "Bash"},
            {"tool_choice": {"type": "function", "function": {"name": "Bash"}}},
        ),
    ],
    ids=lambda value: value.get("type", ""),
)
def test_choices_of_tools_survive(choice, fields):
    gateway = scripted_gateway(chat_message())
    assert post(gateway, body(tool_choice=choice)).status == 200
    sent = gateway.wire.bodies[0]
    names = ("tool_choice", "parallel_tool_calls")
    assert {name: sent[name] for name in names if name in sent} == fields


def test_without_tools_nothing_is_said_of_their_choice():
    gateway = scripted_gateway(chat_message())
    post(gateway, body(tools=[], tool_choice={"type": "none"}))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & gateway.wire.bodies[0].keys()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_empty_completion_is_one_empty_block(stream):
    answer = chat_stream({"role": "assistant"}) if stream else chat_message("")
    gateway = scripted_gateway(answer)
    told = post(gateway, body(stream=stream))
    assert told.status == 200
    if not stream:
        assert told.json["content"] == [{"type": "text", "text": ""}]
        assert told.json["stop_reason"] == "end_turn"
        return
    kinds = [event["type"] for event in events(told)]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 1
    assert kinds.count("message_delta") == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_call_is_the_reason_to_stop_whatever_the_provider_says(stream):
    call = chat_call("c1", "Bash", "{}")
    answer = chat_message(None, tool_calls=[call], finish="stop")
    if stream:
        answer = chat_stream({"tool_calls": [{"index": 0, **call}]}, finish="stop")
    told = post(scripted_gateway(answer), body(stream=stream))
    made = events(told) if stream else []
    delta = next((e["delta"] for e in made if e["type"] == "message_delta"), None)
    assert (delta or told.json)["stop_reason"] == "tool_use"


def test_calls_are_no_reason_where_there_is_none():
    told = post(scripted_gateway(chat_message("Hi.", finish="tool_calls")), body())
    assert told.json["stop_reason"] == "end_turn"


def test_a_redacted_block_in_the_history_stays_here():
    gateway = scripted_gateway(chat_message())
    blocks = [
        {"type": "redacted_thinking", "data": "EuYBCkQYAiJAsecret"},
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQBCgIYAhIM1gbcDa9G"},
        {"type": "text", "text": "Hello."},
    ]
    said = (
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "Go."},
    )
    assert post(gateway, body(*said)).status == 200
    assert gateway.wire.bodies[0]["messages"][1] == {"role": "assistant", "content": "Hello."}


def test_arguments_that_cannot_be_read_are_told_as_they_are_in_a_stream():
    call = chat_call("c1", "Bash", '{"command": rm -rf')
    gateway = scripted_gateway(
        chat_stream({"tool_calls": [{"index": 0, **call}]}, finish="tool_calls")
    )
    made = events(post(gateway, body(stream=True)))
    pieces = [
        event["delta"]["partial_json"]
        for event in made
        if event.get("delta", {}).get("type") == "input_json_delta"
    ]
    assert "".join(pieces) == '{"command": rm -rf'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("said", "input"), [("null", {}), ("{}{}", {}), ('{"a":1}{"a":1}', {"a": 1})]
)
def test_arguments_that_are_null_or_said_twice_are_an_object(said, input, stream):
    call = chat_call("c1", "Bash", said)
    answer = chat_message(None, tool_calls=[call], finish="tool_calls")
    if stream:
        answer = chat_stream({"tool_calls": [{"index": 0, **call}]}, finish="tool_calls")
    told = post(scripted_gateway(answer), body(stream=stream))
    assert told.status == 200
    if not stream:
        assert told.json["content"][0]["input"] == input
        return
    deltas = [event["delta"] for event in events(told) if event["type"] == "content_block_delta"]
    assert json.loads("".join(delta["partial_json"] for delta in deltas) or "{}") == input


def test_an_error_of_a_tool_goes_up_as_its_content():
    gateway = scripted_gateway(
        chat_message(None, tool_calls=[chat_call("c1", "Bash", "{}")]), chat_message("Done.")
    )
    (use,) = post(gateway, body()).json["content"]
    result = {"type": "tool_result", "tool_use_id": use["id"], "is_error": True, "content": "No."}
    said = (
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, {"type": "text", "text": "Again."}]},
    )
    assert post(gateway, body(*said)).status == 200
    assert gateway.wire.bodies[1]["messages"][2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "No."},
        {"role": "user", "content": "Again."},
    ]


def test_a_thought_that_is_empty_goes_back_and_one_that_was_not_there_does_not():
    answers = [
        chat_message("One.", reasoning_content=""),
        chat_message("Two."),
        chat_message("Three."),
    ]
    gateway = scripted_gateway(*answers)
    history = [{"role": "user", "content": "Go."}]
    for _ in answers:
        told = post(gateway, body(*history))
        history.append({"role": "assistant", "content": told.json["content"]})
        history.append({"role": "user", "content": "More."})
    first, second = [m for m in gateway.wire.bodies[2]["messages"] if m["role"] == "assistant"]
    assert first["reasoning_content"] == ""
    assert "reasoning_content" not in second


def test_output_that_only_the_log_knows_goes_back_as_it_was():
    message = {
        "content": "",
        "reasoning_content": "Hm.",
        "tool_calls": [chat_call("x:0", "Bash", "{ }")],
    }
    gateway = scripted_gateway(chat_message(**message), chat_message("Done."))
    told = post(gateway, body(model="deepseek-v4-pro"))
    uses = [block for block in told.json["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": uses[0]["id"], "content": "ok"}
    said = (
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [result]},
    )
    post(gateway, body(*said, model="deepseek-v4-pro"))
    sent = gateway.wire.bodies[1]["messages"][1]
    assert sent["tool_calls"] == message["tool_calls"]
    assert sent["reasoning_content"] == "Hm."
    assert json.dumps(sent).count("x:0") == 1

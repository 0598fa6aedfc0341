"""Clients of the Responses API, Codex first of all, on providers of Chat Completions.

Cases that stand elsewhere: names of tools (length, collisions) in `dialects/test_tool_names.py`; a
history that is too long in `gateway/test_translated_http.py`; keep-alives in
`dialects/responses/test_answer.py`; ids and names in separate chunks, and fragments of parallel
calls that mix, in `dialects/test_answers.py`.
"""

import json

import pytest

from support.clients import TOOL_NAMES
from support.scripted_upstream import (
    ask,
    chat_call,
    chat_message,
    chat_stream,
    events,
    scripted_gateway,
)
from support.translating_gateway import TranslatingGateway
from thoughtline.testing import Say, Think, Use

LARK = 'start: "*** Begin Patch" LF'
APPLY_PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": LARK},
}
SHELL = {
    "type": "function",
    "name": "shell",
    "description": "Run it.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}},
            "timeout_ms": {"type": "number"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}
MCP = {
    "type": "namespace",
    "name": "mcp__files__",
    "description": "Files.",
    "tools": [{"type": "function", "name": "read", "description": "", "parameters": {}}],
}
CODEX = {
    "model": "deepseek-v4-pro",
    "instructions": "You are Codex.",
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "<permissions>none</permissions>"}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context/>"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
    ],
    "tools": [SHELL, {"type": "web_search", "external_web_access": False}, MCP],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-thread",
    "text": {"verbosity": "low"},
    "client_metadata": {"x-codex-installation-id": "1"},
}


def post(gateway, body, **headers):
    return ask(gateway, "/v1/responses", body, headers)


def user(text):
    return {"type": "message", "role": "user", "content": text}


def items_of(answer, *, stream=False):
    """The output items that the client is told."""
    assert answer.status == 200, answer.body
    return events(answer)[-1]["response"]["output"] if stream else answer.json["output"]


def test_a_request_as_codex_sends_it_is_taken_by_a_strict_provider():
    gateway = TranslatingGateway("deepseek")
    answer = post(gateway, CODEX)
    assert answer.status == 200, answer.body
    assert events(answer)[-1]["type"] == "response.completed"
    body = gateway.wire.bodies[0]
    head, *said = body["messages"]
    assert head == {
        "role": "system",
        "content": "You are Codex.\n\n<permissions>none</permissions>",
    }
    assert said == [{"role": "user", "content": "<environment_context/>\n\nGo."}]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["shell", "mcp__files__read"]
    assert body.keys() <= {
        *("model", "messages", "tools", "stream", "stream_options", "tool_choice"),
        *("parallel_tool_calls", "thinking", "reasoning_effort"),
    }
    left = answer.header("x-thoughtline-translated")
    assert left == "responses>chat; left=web_search,verbosity"


def test_tools_of_responses_lite_are_declared_among_the_items():
    gateway = scripted_gateway(chat_message())
    more = {"type": "additional_tools", "role": "developer", "tools": [SHELL, APPLY_PATCH]}
    system = {"type": "message", "role": "developer", "content": "Be brief."}
    answer = post(gateway, {"model": "m", "input": [more, system, user("Go.")], "stream": False})
    assert answer.status == 200
    body = gateway.wire.bodies[0]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["shell", "apply_patch"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


PATCH = '*** Begin Patch\n*** Add File: "a".txt\n+\\n \U0001f600\n*** End Patch'
WRAPPED = json.dumps({"input": PATCH})


def test_free_text_comes_back_as_free_text_and_goes_up_as_it_was():
    call = chat_call("call_1", "apply_patch", WRAPPED)
    gateway = scripted_gateway(chat_message(None, tool_calls=[call]), chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [APPLY_PATCH]}
    items = items_of(post(gateway, body))
    (told,) = items
    assert (told["type"], told["name"], told["input"]) == ("custom_tool_call", "apply_patch", PATCH)
    declared = gateway.wire.bodies[0]["tools"][0]["function"]
    assert LARK in declared["description"]
    done = {"type": "custom_tool_call_output", "call_id": told["call_id"], "output": "ok"}
    answer = post(gateway, {**body, "input": [user("Go."), *items, done]})
    assert answer.status == 200
    messages = gateway.wire.bodies[1]["messages"]
    assert messages[1]["tool_calls"] == [call]
    assert messages[2] == {"role": "tool", "tool_call_id": "call_1", "content": "ok"}


def test_free_text_is_the_same_at_every_split():
    told = set()
    for at in range(len(WRAPPED) + 1):
        pieces = [WRAPPED[:at], WRAPPED[at:]]
        first = {"index": 0, **chat_call("call_1", "apply_patch", pieces[0])}
        second = {"index": 0, "function": {"arguments": pieces[1]}}
        gateway = scripted_gateway(
            chat_stream({"tool_calls": [first]}, {"tool_calls": [second]}, finish="tool_calls")
        )
        body = {"model": "m", "input": [user("Go.")], "tools": [APPLY_PATCH], "stream": True}
        made = events(post(gateway, body))
        deltas = [e["delta"] for e in made if e["type"] == "response.custom_tool_call_input.delta"]
        (item,) = made[-1]["response"]["output"]
        told.add(("".join(deltas), item["input"]))
    assert told == {(PATCH, PATCH)}


def test_a_namespace_is_split_again_and_its_history_keeps_the_name():
    call = chat_call("call_1", "mcp__files__read", '{"path":"a"}')
    gateway = scripted_gateway(chat_message(None, tool_calls=[call]), chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [MCP]}
    (told,) = items_of(post(gateway, body))
    assert (told["namespace"], told["name"]) == ("mcp__files__", "read")
    unknown = {**told, "call_id": "call_x"}  # a history that the log does not know
    done = {"type": "function_call_output", "call_id": "call_x", "output": "ok"}
    post(gateway, {**body, "input": [user("Another."), unknown, done]})
    messages = gateway.wire.bodies[1]["messages"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "mcp__files__read"


def test_a_search_for_tools_declares_what_it_found():
    search = {"type": "tool_search", "execution": "client", "description": "Find tools."}
    call = chat_call("call_1", "tool_search", '{"query":"files"}')
    gateway = scripted_gateway(chat_message(None, tool_calls=[call]), chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [search]}
    (told,) = items = items_of(post(gateway, body))
    assert (told["type"], told["execution"]) == ("tool_search_call", "client")
    assert told["arguments"] == {"query": "files"}
    found = {
        "type": "tool_search_output",
        "call_id": told["call_id"],
        "execution": "client",
        "status": "completed",
        "tools": [MCP],
    }
    answer = post(gateway, {**body, "input": [user("Go."), *items, found]})
    assert answer.status == 200
    second = gateway.wire.bodies[1]
    names = [tool["function"]["name"] for tool in second["tools"]]
    assert names == ["tool_search", "mcp__files__read"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]
    assert second["messages"][1]["tool_calls"] == [call]


def test_a_message_behind_its_calls_stands_with_them_in_one_message():
    gateway = scripted_gateway(chat_message())
    call = {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{}"}
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "I look."}],
    }
    done = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    post(gateway, {"model": "m", "tools": [SHELL], "input": [user("Go."), call, said, done]})
    assistant = gateway.wire.bodies[0]["messages"][1]
    assert assistant["content"] == "I look."
    assert [one["id"] for one in assistant["tool_calls"]] == ["call_1"]
    assert [m["role"] for m in gateway.wire.bodies[0]["messages"]] == ["user", "assistant", "tool"]


def test_what_stands_between_call_and_result_waits_for_the_result():
    gateway = scripted_gateway(chat_message())
    call = {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{}"}
    done = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    between = {"type": "message", "role": "developer", "content": "Mind the gap."}
    given = [user("Go."), call, between, user("Hm."), done]
    post(gateway, {"model": "m", "tools": [SHELL], "input": given})
    roles = [message["role"] for message in gateway.wire.bodies[0]["messages"]]
    assert roles == ["user", "assistant", "tool", "system", "user"]


def test_a_response_is_continued_by_its_id():
    gateway = TranslatingGateway("deepseek")
    body = {"model": "deepseek-v4-pro", "input": "Go.", "tools": [SHELL], "store": True}
    first = post(gateway, body)
    calls = [item for item in first.json["output"] if item["type"] == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        for call in calls
    ]
    again = {**body, "input": results, "previous_response_id": first.json["id"]}
    answer = post(gateway, again)
    assert answer.status == 200, answer.body
    assert gateway.records[-1].audit.exact == 1
    roles = [message["role"] for message in gateway.wire.bodies[1]["messages"]]
    assert roles[:2] == ["user", "assistant"]


def test_an_item_is_named_by_its_id():
    gateway = TranslatingGateway("deepseek")
    body = {"model": "deepseek-v4-pro", "input": [user("Go.")], "tools": [SHELL]}
    items = items_of(post(gateway, body))
    named = [{"type": "item_reference", "id": items[0]["id"]}]
    calls = [item for item in items if item["type"] == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
        for call in calls
    ]
    answer = post(gateway, {**body, "input": [user("Go."), *named, *items[1:], *results]})
    assert answer.status == 200, answer.body
    audit = gateway.records[-1].audit
    assert audit.clean, str(audit)
    assert audit.exact == 1


def test_a_late_instruction_keeps_its_place_where_only_the_first_may_be_one():
    gateway = TranslatingGateway("minimax")
    late = {"type": "message", "role": "developer", "content": "From now on, be brief."}
    said = {"type": "message", "role": "assistant", "content": "Hello."}
    given = [user("Hi."), said, late, user("Go on.")]
    answer = post(gateway, {"model": gateway.model, "input": given, "instructions": "Be kind."})
    assert answer.status == 200, answer.body
    messages = gateway.wire.bodies[0]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"].startswith("From now on, be brief.")


def test_a_call_without_arguments_is_an_empty_object_here_and_nothing_there():
    call = chat_call("call_1", "shell", "")
    gateway = scripted_gateway(chat_message(None, tool_calls=[call]), chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [SHELL]}
    (told,) = items = items_of(post(gateway, body))
    assert told["arguments"] == "{}"
    done = {"type": "function_call_output", "call_id": told["call_id"], "output": "ok"}
    post(gateway, {**body, "input": [user("Go."), *items, done]})
    assert gateway.wire.bodies[1]["messages"][1]["tool_calls"] == [call]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_whole_number_is_told_as_one(stream):
    emitted = '{"command":["5.0"],"timeout_ms":120000.0,"x":1.50}'
    call = chat_call("call_1", "shell", emitted)
    first = chat_message(None, tool_calls=[call])
    if stream:
        first = chat_stream({"tool_calls": [{"index": 0, **call}]}, finish="tool_calls")
    gateway = scripted_gateway(first, chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [SHELL]}
    (told,) = items = items_of(post(gateway, {**body, "stream": stream}), stream=stream)
    assert told["arguments"] == '{"command":["5.0"],"timeout_ms":120000,"x":1.50}'
    done = {"type": "function_call_output", "call_id": told["call_id"], "output": "ok"}
    post(gateway, {**body, "input": [user("Go."), *items, done]})
    assert gateway.wire.bodies[1]["messages"][1]["tool_calls"] == [call]


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_an_image_in_a_result_follows_all_results(known):
    calls = [chat_call(f"call_{n}", "shell", "{}") for n in (1, 2)]
    gateway = scripted_gateway(chat_message(None, tool_calls=calls), chat_message("Done."))
    body = {"model": "m", "input": [user("Go.")], "tools": [SHELL]}
    items = items_of(post(gateway, body))
    shown = [
        {"type": "input_text", "text": "A picture."},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": output}
        for item, output in zip(items, (shown, "ok"), strict=True)
    ]
    opening = user("Go." if known else "Another.")
    post(gateway, {**body, "input": [opening, *items, *results]})
    first, second, seen = gateway.wire.bodies[1]["messages"][2:]
    assert (first["role"], first["content"]) == ("tool", "A picture.")
    assert (second["role"], second["content"]) == ("tool", "ok")
    assert seen["role"] == "user"
    assert first["tool_call_id"] in seen["content"][0]["text"]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert seen["content"][1] == image


@pytest.mark.parametrize(
    "more",
    [
        {"background": True},
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
    ],
    ids=["background", "hosted tool", "image by id", "file by id"],
)
def test_what_cannot_be_done_is_refused_and_said(more):
    gateway = scripted_gateway(chat_message())
    answer = post(gateway, {"model": "m", "input": "Go.", **more})
    assert answer.status == 400
    assert answer.json["error"]["code"] == "untranslatable"
    assert gateway.wire.sent == []


def test_arguments_that_are_repeated_in_every_chunk_are_taken_once():
    whole = '{"command":["ls","-l"]}'
    snapshots = [whole[:at] for at in (4, 14, 19, len(whole))]
    first = {"index": 0, **chat_call("call_1", "shell", snapshots[0])}
    more = [{"index": 0, "function": {"arguments": text}} for text in snapshots[1:]]
    chunks = [{"tool_calls": [one]} for one in (first, *more)]
    gateway = scripted_gateway(chat_stream(*chunks, finish="tool_calls"))
    body = {"model": "m", "input": [user("Go.")], "tools": [SHELL], "stream": True}
    (told,) = items_of(post(gateway, body), stream=True)
    assert told["arguments"] == whole


def test_an_object_that_begins_like_all_arguments_is_no_repetition():
    first = {"index": 0, **chat_call("call_1", "shell", '{"a":')}
    second = {"index": 0, "function": {"arguments": '{"a":1}}'}}
    gateway = scripted_gateway(
        chat_stream({"tool_calls": [first]}, {"tool_calls": [second]}, finish="tool_calls")
    )
    body = {"model": "m", "input": [user("Go.")], "tools": [SHELL], "stream": True}
    (told,) = items_of(post(gateway, body), stream=True)
    assert told["arguments"] == '{"a":{"a":1}}'


def test_a_tool_loop_as_codex_runs_it_with_free_text_and_thoughts():
    def script(turn, sim):
        if turn % 2:
            return Think(f"b {sim.serial}"), Say(f"Done {sim.mark}.")
        return Think(f"a {sim.serial}"), Use("apply_patch", json.dumps({"input": sim.mark}))

    gateway = TranslatingGateway("deepseek", sim={"script": script})
    history = [user("Go.")]
    assert TOOL_NAMES
    for _ in range(6):
        answer = post(
            gateway, {**CODEX, "tools": [SHELL, APPLY_PATCH], "input": [*history], "stream": True}
        )
        items = items_of(answer, stream=True)
        history += items
        calls = [item for item in items if item["type"] == "custom_tool_call"]
        history += [
            {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "ok"}
            for call in calls
        ] or [user("And then?")]
    audit = gateway.records[-1].audit
    assert audit.clean, str(audit)
    assert audit.exact == 5

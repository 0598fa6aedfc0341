"""Blocks of a provider's own tools are recognised in whatever way a client sends them back.

Clients keep a block in types of their own: members that are not set come back as null or with
their zero value, members that a client does not know are gone, names are spelled in another way.
"""

import json

import pytest

from thoughtline.dialects import DIALECTS
from thoughtline.engine.capture import output_parts
from thoughtline.log import keys
from thoughtline.log.index import beside_digest
from thoughtline.log.parts import Origin
from thoughtline.log.turns import Turn
from thoughtline.testing import FrozenClock
from thoughtline.testing.sims.values import sse

ID = "srvtoolu_01A09q90qw90lq917835lq9"
DIRECT = {"type": "direct"}
HIT = {"type": "web_search_result", "url": "https://a.example/1", "title": "One"}


def use(name, **input):
    return {"type": "server_tool_use", "id": ID, "name": name, "input": input}


def result(kind, content, **more):
    return {"type": kind, "tool_use_id": ID, "content": content, **more}


def hit(**more):
    return result("web_search_tool_result", [{**HIT, "encrypted_content": "Eo8", **more}])


FOUND = {"type": "code_execution_result", "stdout": "1\n", "stderr": "", "return_code": 0}
FETCHED = {"type": "web_fetch_result", "url": "https://a.example", "content": {"type": "document"}}
SHORT = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "a"}}
MCP = {"type": "mcp_tool_use", "id": ID, "name": "ls", "server_name": "files", "input": {}}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
CODE = {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "cntr_1"}
MCP_CALL = {"type": "mcp_call", "id": "mcp_1", "name": "ls", "server_label": "f", "output": "a"}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}}
RUN = {"language": "PYTHON", "code": "print(1)"}
GOOGLED = {"toolType": "GOOGLE_SEARCH_WEB", "id": "t1"}

SAME = {
    "messages": [
        (use("web_search", q="a"), {**use("web_search", q="a"), "caller": DIRECT}),
        ({**use("web_search", q="a"), "caller": DIRECT}, use("web_search", q="a")),
        (SHORT, {**SHORT, "caller": DIRECT, "cache_control": {"type": "ephemeral"}}),
        (hit(page_age="1 day"), hit()),
        (hit(page_age=None), {**hit(), "caller": DIRECT, "is_error": False}),
        (hit(), hit(page_age=None, citations=None)),
        (
            result("bash_code_execution_tool_result", FOUND, caller=DIRECT),
            result("bash_code_execution_tool_result", {**FOUND, "content": []}),
        ),
        (result("web_fetch_tool_result", FETCHED), result("web_fetch_tool_result", FETCHED)),
        (MCP, {**MCP, "cache_control": None}),
        (
            result("mcp_tool_result", [{"type": "text", "text": "a"}], is_error=False),
            result("mcp_tool_result", [{"type": "text", "text": "a", "citations": None}]),
        ),
        (
            {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
            {"type": "fallback", "to": {"model": "b"}, "from": {"model": "a"}, "reason": None},
        ),
        ({"type": "compaction", "content": "a"}, {"type": "compaction", "content": "a", "x": None}),
    ],
    "responses": [
        (
            {**SEARCH, "action": {"type": "search", "query": "a", "sources": None}},
            {"type": "web_search_call", "action": {"query": "a", "type": "search"}},
        ),
        ({**CODE, "status": "completed", "outputs": []}, {**CODE, "outputs": None}),
        ({**MCP_CALL, "status": "completed", "error": None}, MCP_CALL),
        (
            {**SHELL, "status": "completed", "max_output_length": None, "caller": DIRECT},
            {**SHELL, "action": {"commands": ["ls"], "timeout_ms": None}},
        ),
    ],
    "gemini": [
        ({"toolCall": GOOGLED}, {"tool_call": {"tool_type": "GOOGLE_SEARCH_WEB", "args": {}}}),
        ({"toolCall": {**GOOGLED, "args": {}}}, {"toolCall": GOOGLED, "text": None}),
        ({"executableCode": {**RUN, "id": ""}}, {"executable_code": RUN, "thought": False}),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": ""}},
            {"code_execution_result": {"outcome": "OUTCOME_OK"}, "inline_data": None},
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"inline_data": {"mime_type": "image/png", "data": "AAAA"}, "video_metadata": None},
        ),
        (
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://a"}},
            {"file_data": {"mime_type": "image/png", "file_uri": "gs://a"}},
        ),
    ],
    "chat": [
        (
            {"type": "tool_reference", "tool": {"name": "a"}, "score": 1},
            {"type": "tool_reference", "tool": {"name": "a"}, "score": 1, "extra": None},
        ),
    ],
}
OTHER_ID = "srvtoolu_01B19q90qw90lq917835lq9"
DIFFERENT = {
    "messages": [
        (use("web_search", q="a"), {**use("web_search", q="a"), "id": OTHER_ID}),
        (SHORT, {**SHORT, "name": "web_fetch"}),
        (
            {**hit(), "tool_use_id": "s1", "caller": DIRECT},
            {**hit(encrypted_content="Eo9"), "tool_use_id": "s1", "caller": DIRECT},
        ),
        (
            {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
            {"type": "fallback", "from": {"model": "a"}, "to": {"model": "c"}},
        ),
    ],
    "responses": [
        (
            {**MCP_CALL, "approval": {"a": 1}},
            {**MCP_CALL, "approval": {"a": 1}, "name": "rm"},
        ),
    ],
    "gemini": [
        (
            {"toolResponse": {"toolType": "A", "response": {"x": 1}}},
            {"toolResponse": {"toolType": "A", "response": {"x": 2}}},
        ),
        (
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"inlineData": {"mimeType": "image/png", "data": "AAAB"}},
        ),
    ],
    "chat": [
        (
            {"type": "tool_reference", "tool": {"name": "a"}, "score": 1},
            {"type": "tool_reference", "tool": {"name": "a"}, "score": 2},
        ),
    ],
}


def stream_of(*events):
    return b"".join(map(sse, events))


def read(name, data, *, stream):
    origin = Origin(dialect=name, provider="p", model="m")
    reader = DIALECTS[name].reader(stream=stream, clock=FrozenClock(), origin=origin, sent=1)
    return output_parts([*reader.feed(data), *reader.close()])


def emitted(name, block, *, stream):
    """What is captured of an answer with this block and a word behind it."""
    made = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}[name]
    whole, events = made(block)
    return read(name, events if stream else json.dumps(whole).encode(), stream=stream)


def chat(block):
    content = [block, {"type": "text", "text": "It is one."}]
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}, b""


def responses(block):
    said = {"type": "output_text", "text": "It is one.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}
    whole = {"id": "r", "status": "completed", "output": [block, message]}
    done = [{"type": "response.output_item.done", "item": item} for item in (block, message)]
    return whole, stream_of(*done, {"type": "response.completed", "response": whole})


def messages(block):
    said = {"type": "text", "text": "It is one.", "citations": None}
    whole = {"id": "m", "content": [block, said], "stop_reason": "end_turn"}
    events = [{"type": "message_start", "message": {**whole, "content": []}}]
    for index, one in enumerate((block, said)):
        input = one.get("input")
        begun = {**one, "input": {}} if input else one
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        if input:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(input)}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    return whole, stream_of(*events, {"type": "message_stop"})


def gemini(block):
    content = {"role": "model", "parts": [block, {"text": "It is one."}]}
    whole = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    return whole, sse(whole)


def echoed(name, block):
    """What is read of a request in which the same block comes back."""
    said = {"type": "text", "text": "It is one."}
    if name == "gemini":
        parts = [block, {"text": "It is one."}]
        history = {"contents": [{"role": "model", "parts": parts}]}
    elif name == "responses":
        message = {"type": "message", "role": "assistant", "content": "It is one."}
        history = {"input": [block, message]}
    else:
        history = {"messages": [{"role": "assistant", "content": [block, said]}]}
    (turn,) = DIALECTS[name].read(json.dumps(history).encode()).turns
    return turn.output


def content_key(parts):
    return keys.RollingKey().keys_for(parts).content


def digest(parts):
    """What tells outputs with the same text apart."""
    return beside_digest(Turn(output=tuple(parts)))


def rows(table):
    return [
        pytest.param(name, *row, stream, id=f"{name}-{n}-{'stream' if stream else 'body'}")
        for name, found in table.items()
        for n, row in enumerate(found)
        for stream in ((False,) if name == "chat" else (False, True))
    ]


@pytest.mark.parametrize(("name", "one", "other", "stream"), rows(SAME))
def test_the_same_block_in_other_types_is_the_same(name, one, other, stream):
    assert content_key(emitted(name, one, stream=stream)) == content_key(echoed(name, other))


@pytest.mark.parametrize(("name", "one", "other", "stream"), rows(DIFFERENT))
def test_another_block_is_another_one(name, one, other, stream):
    captured = digest(emitted(name, one, stream=stream))
    assert captured == digest(echoed(name, one))
    assert captured != digest(echoed(name, other))


def test_documents_are_told_apart_whatever_else_stands_in_them():
    def document(data, **more):
        source = {"type": "text", "media_type": "text/plain", "data": data}
        block = {"type": "document", "source": source, "citations": {"enabled": True}, **more}
        body = {"messages": [{"role": "user", "content": [block]}]}
        (turn,) = DIALECTS["messages"].read(json.dumps(body).encode()).turns
        return keys.input_hash(turn.input)

    assert document("a") != document("b")
    assert document("a") == document("a", title=None, cache_control={"type": "ephemeral"})

"""A thought that a client wrote as text is recognised, taken out, and its turn found again."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire
from thoughtline.engine.endpoints import Directory, Upstream

FIRST = "The user greets me, so a greeting is the right answer here, and no more than that."
SECOND = "Now they want the files, so I had better call the tool for that."
OTHER = "Something else entirely that was thought in another conversation."
TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
CALL = {"id": "call_9f2k3j4h5g6f", "type": "function"}
CALL["function"] = {"name": "run", "arguments": "{}"}
DEEPSEEK = "/u/deepseek/v1/chat/completions"


def said(thought, text, *calls):
    message = {"role": "assistant", "reasoning_content": thought, "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    reason = "tool_calls" if calls else "stop"
    return Answer(200, {"choices": [{"message": message, "finish_reason": reason}]})


def answered(request):
    if "generateContent" in request.url:
        part = {"text": "Done.", "thoughtSignature": "c2ln"}
        content = {"role": "model", "parts": [part]}
        return Answer(200, {"candidates": [{"content": content, "finishReason": "STOP"}]})
    if "messages" in request.url:
        block = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
        content = [block, {"type": "text", "text": "Done."}]
        made = {"type": "message", "role": "assistant", "content": content}
        return Answer(200, {**made, "model": "claude-opus-4-1", "stop_reason": "end_turn"})
    return said("Hm.", "Done.")


def gateway_of(*answers):
    gateway = InProcessGateway(ScriptedWire(*answers, answered))
    names = ("deepseek", "anthropic", "gemini", "glm")
    upstreams = [Upstream(name=name, base_url=f"http://{name}", policy=name) for name in names]
    gateway.proxy.directory = Directory(upstreams)
    return gateway


async def conversed(greeting="hello", first=FIRST, second=SECOND):
    """A conversation with DeepSeek: an answer, then a call."""
    gateway = gateway_of(said(first, "Hello!"), said(second, "One moment.", CALL))
    await talk(gateway, greeting)
    return gateway


async def talk(gateway, greeting):
    messages = [{"role": "user", "content": greeting}]
    for _ in range(2):
        body = {"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS}
        answer = await gateway.post(DEEPSEEK, body)
        assert answer.status == 200
        message = answer.json["choices"][0]["message"]
        message.pop("reasoning_content")
        messages = [*messages, message, {"role": "user", "content": "list the files"}]
    return answer.header("x-thoughtline-session")


def to_claude(first, second, greeting="hello"):
    def blocks(*texts):
        return [{"type": "text", "text": text} for text in texts if text]

    call = {"type": "tool_use", "id": CALL["id"], "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": "a.txt"}
    return "/u/anthropic/v1/messages", {
        "model": "claude-opus-4-1",
        "max_tokens": 2048,
        "messages": [
            {"role": "user", "content": greeting},
            {"role": "assistant", "content": blocks(first, "Hello!")},
            {"role": "user", "content": "list the files"},
            {"role": "assistant", "content": [*blocks(second, "One moment."), call]},
            {"role": "user", "content": [result]},
        ],
    }


def to_gemini(first, second, greeting="hello"):
    def content(role, *parts):
        return {"role": role, "parts": [{"text": one} for one in parts if one]}

    call = {"functionCall": {"name": "run", "args": {}, "id": CALL["id"]}}
    made = content("model", second, "One moment.")
    made["parts"].append(call)
    response = {"name": "run", "id": CALL["id"], "response": {"output": "a.txt"}}
    return "/u/gemini/v1beta/models/gemini-2.5-pro:generateContent", {
        "contents": [
            content("user", greeting),
            content("model", first, "Hello!"),
            content("user", "list the files"),
            made,
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    }


def to_glm(first, second, greeting="hello"):
    return "/u/glm/v1/chat/completions", {
        "model": "glm-4.6",
        "thinking": {"type": "enabled", "clear_thinking": False},
        "tools": TOOLS,
        "messages": [
            {"role": "user", "content": greeting},
            {"role": "assistant", "content": f"{first}Hello!"},
            {"role": "user", "content": "list the files"},
            {"role": "assistant", "content": f"{second}One moment.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": CALL["id"], "content": "a.txt"},
        ],
    }


@pytest.mark.parametrize("ask", [to_claude, to_gemini, to_glm])
async def test_it_is_taken_out_and_the_turns_are_recognised(ask):
    gateway = await conversed()
    (session,) = {event.session for event in await gateway.events("turn_started")}
    path, body = ask(FIRST, SECOND)
    answer = await gateway.post(path, body)
    sent = gateway.wire.sent[-1].body
    assert answer.status == 200
    assert FIRST.encode() not in sent and SECOND.encode() not in sent
    _, clean = ask("", "")
    assert json.loads(sent) == clean
    head = answer.header("x-thoughtline-replay")
    assert "missed=0" in head and answer.header("x-thoughtline-session") == session


@pytest.mark.parametrize("ask", [to_claude, to_gemini, to_glm])
async def test_a_text_that_is_no_thought_of_this_conversation_stays(ask):
    gateway = gateway_of(
        said(FIRST, "Hello!"),
        said(SECOND, "One moment.", CALL),
        said(OTHER, "Hi there!"),
        said(OTHER, "Yes."),
    )
    await talk(gateway, "hello")
    await talk(gateway, "somebody else says this")
    for first, second in ((OTHER, ""), (SECOND, ""), (FIRST + "!", ""), (FIRST[:-1], SECOND[1:])):
        path, body = ask(first, second)
        await gateway.post(path, body)
        assert json.loads(gateway.wire.sent[-1].body) == body


async def test_one_that_is_known_goes_and_one_that_is_not_stays():
    gateway = await conversed()
    path, body = to_claude(FIRST, "An unknown text that somebody put there by hand.")
    await gateway.post(path, body)
    sent = gateway.wire.sent[-1].body
    assert FIRST.encode() not in sent and b"An unknown text" in sent


async def test_what_the_model_itself_said_stays():
    """Its answer is its thought, word for word."""
    gateway = gateway_of(said(FIRST, FIRST))
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": "deepseek-v4-pro", "messages": messages}
    await gateway.post(DEEPSEEK, body)
    said_again = [{"role": "assistant", "content": FIRST}, {"role": "user", "content": "on"}]
    await gateway.post(DEEPSEEK, {**body, "messages": [*messages, *said_again]})
    assert json.loads(gateway.wire.sent[-1].body)["messages"][1]["content"] == FIRST


async def test_words_that_a_model_both_thought_and_said_stay():
    """Beside calls a text does not count for the match: what was said is compared by itself."""
    gateway = gateway_of(said(FIRST, "Hello!"), said(SECOND, f"{SECOND} So I do.", CALL))
    await talk(gateway, "hello")
    messages = [
        {"role": "user", "content": "In short: they said hello."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "list the files"},
        {"role": "assistant", "content": f"{SECOND} So I do.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": CALL["id"], "content": "a.txt"},
    ]
    body = {"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS}
    answer = await gateway.post(DEEPSEEK, body)
    assert answer.status == 200
    sent = json.loads(gateway.wire.sent[-1].body)["messages"][3]
    assert sent["content"] == f"{SECOND} So I do."
    assert sent["reasoning_content"] == SECOND


async def test_beside_calls_it_is_taken_out_although_the_turn_is_recognised():
    gateway = gateway_of(said(SECOND, "", CALL))
    asked = {"role": "user", "content": "list the files"}
    body = {"model": "deepseek-v4-pro", "messages": [asked], "tools": TOOLS}
    await gateway.post(DEEPSEEK, body)
    call = {"type": "tool_use", "id": CALL["id"], "name": "run", "input": {}}
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": "a.txt"}
    spoken = [{"type": "text", "text": SECOND}, call]
    messages = [
        asked,
        {"role": "assistant", "content": spoken},
        {"role": "user", "content": [result]},
    ]
    body = {"model": "claude-opus-4-1", "max_tokens": 2048, "messages": messages}
    answer = await gateway.post("/u/anthropic/v1/messages", body)
    assert answer.status == 200
    assert SECOND not in gateway.wire.sent[-1].body.decode()

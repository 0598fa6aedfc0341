"""Clients of `generateContent`, Gemini CLI first of all, and providers that speak it."""

import json

import pytest

from support.gateway import Answer
from support.scripted_upstream import (
    ask,
    chat_call,
    chat_message,
    chat_stream,
    events,
    scripted_gateway,
    streamed,
)
from support.translating_gateway import TranslatingGateway

DECLARED = [{"functionDeclarations": [{"name": "run", "parameters": {"type": "OBJECT"}}]}]
GO = {"role": "user", "parts": [{"text": "Go."}]}
WHOLE = "/v1beta/models/m:generateContent"
STREAM = "/v1beta/models/m:streamGenerateContent"


def body(*contents, **more):
    return {"contents": [GO, *contents], "tools": DECLARED, **more}


def parts_of(answer):
    assert answer.status == 200, answer.body
    return answer.json["candidates"][0]["content"]["parts"]


def answered(*results):
    return {"role": "user", "parts": [{"functionResponse": result} for result in results]}


# -- clients -----------------------------------------------------------------------------------------


def two_calls(*names):
    calls = [chat_call(f"run:{n}", name, f'{{"n":{n}}}') for n, name in enumerate(names)]
    message = chat_message(None, tool_calls=calls, reasoning_content="Hm.")
    return scripted_gateway(message, chat_message("Done."))


def test_ids_that_gemini_cli_puts_the_name_before_are_recognised():
    gateway = two_calls("run", "run")
    parts = parts_of(ask(gateway, WHOLE, body()))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    renamed = [{**call, "id": f"run__{call['id']}"} for call in calls]
    echoed = {"role": "model", "parts": [{"functionCall": call} for call in renamed]}
    results = [
        {"id": call["id"], "name": "run", "response": {"output": f"r{at}"}}
        for at, call in enumerate(renamed)
    ]
    answer = ask(gateway, WHOLE, body(echoed, answered(*results[::-1])))
    assert answer.status == 200
    sent = gateway.wire.bodies[1]["messages"]
    assert sent[1]["reasoning_content"] == "Hm."
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["run:0", "run:1"]
    told = {message["tool_call_id"]: message["content"] for message in sent[2:]}
    assert told == {"run:0": "r0", "run:1": "r1"}


def test_the_filler_of_gemini_cli_is_ignored():
    gateway = two_calls("run", "run")
    parts = parts_of(ask(gateway, WHOLE, body()))
    calls = [part for part in parts if "functionCall" in part]
    for part in calls:
        part["thoughtSignature"] = "skip_thought_signature_validator"
    results = [
        {"id": part["functionCall"]["id"], "name": "run", "response": {"output": "ok"}}
        for part in calls
    ]
    echoed = {"role": "model", "parts": calls}
    assert ask(gateway, WHOLE, body(echoed, answered(*results))).status == 200
    sent = gateway.wire.sent[1].body
    assert b"skip_thought" not in sent
    assert gateway.wire.bodies[1]["messages"][1]["reasoning_content"] == "Hm."


def test_calls_without_ids_of_one_name_are_told_apart_by_their_order():
    gateway = two_calls("run", "run")
    parts = parts_of(ask(gateway, WHOLE, body()))
    calls = [
        {"functionCall": {k: v for k, v in part["functionCall"].items() if k != "id"}}
        for part in parts
        if "functionCall" in part
    ]
    results = [{"name": "run", "response": {"output": f"r{at}"}} for at in (0, 1)]
    echoed = {"role": "model", "parts": calls}
    assert ask(gateway, WHOLE, body(echoed, answered(*results))).status == 200
    sent = gateway.wire.bodies[1]["messages"][2:]
    assert [(m["tool_call_id"], m["content"]) for m in sent] == [("run:0", "r0"), ("run:1", "r1")]


def test_a_finish_in_the_chunk_of_the_text_is_told():
    chunk = {
        "id": "c1",
        "choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "length"}],
    }
    gateway = scripted_gateway(streamed(chunk, "[DONE]"))
    told = events(ask(gateway, STREAM, body(), query="alt=sse"))
    texts = [p["text"] for e in told for p in e["candidates"][0]["content"]["parts"] if "text" in p]
    assert "".join(texts) == "Hi."
    assert told[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_without_sse_a_stream_is_one_array():
    deltas = ({"reasoning_content": "Hm."}, {"content": "H"}, {"content": "i."})
    gateway = scripted_gateway(chat_stream(*deltas))
    answer = ask(gateway, STREAM, body())
    assert answer.header("content-type").startswith("application/json")
    told = json.loads(answer.body)
    assert isinstance(told, list)
    texts = [p["text"] for e in told for p in e["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == "Hm.Hi."
    assert told[-1]["candidates"][0]["finishReason"] == "STOP"


async def test_an_answer_of_thoughts_only_is_logged_once_however_often_it_is_asked_for():
    gateway = scripted_gateway(chat_message("", reasoning_content="Hm."), chat_message("Hi."))
    for _ in range(2):
        answer = await gateway.post(WHOLE, body())
        assert answer.status == 200
    thoughts = await gateway.facts("reasoning")
    assert [reasoning.thought.text for reasoning in thoughts] == ["Hm."]
    assert "Hm." not in gateway.wire.sent[1].body.decode()


def test_several_candidates_are_refused():
    gateway = scripted_gateway(chat_message())
    answer = ask(gateway, WHOLE, body(generationConfig={"candidateCount": 2}))
    assert answer.status == 400
    assert "candidateCount=2" in answer.json["error"]["message"]


# -- providers ---------------------------------------------------------------------------------------


def gemini(*answers):
    return scripted_gateway(*answers, speaks="gemini", policy="gemini")


def candidate(*parts):
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "modelVersion": "gemini-3-pro-preview",
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
    }


CHAT_TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]


def chat(gateway, *messages, **more):
    said = [{"role": "user", "content": "Go."}, *messages]
    asked = {"model": "gemini-3-pro-preview", "messages": said, "tools": CHAT_TOOLS, **more}
    return ask(gateway, "/v1/chat/completions", asked)


def test_the_signature_stands_on_the_first_of_parallel_calls_only():
    first = {"functionCall": {"name": "run", "args": {"n": 1}}, "thoughtSignature": "c2lnbmVk"}
    second = {"functionCall": {"name": "run", "args": {"n": 2}}}
    gateway = gemini(Answer(body=candidate(first, second)), Answer(body=candidate({"text": "Hi."})))
    message = chat(gateway).json["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message["tool_calls"]
    ]
    assert chat(gateway, message, *results).status == 200
    sent = gateway.wire.bodies[1]["contents"]
    assert sent[1]["parts"] == [first, second]
    assert [content["role"] for content in sent] == ["user", "model", "user"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("thought", [False, True], ids=["alone", "after a thought"])
def test_a_signature_on_an_empty_text_goes_back_and_is_not_shown(stream, thought):
    before = [{"text": "Hm.", "thought": True}] if thought else []
    signed = {"text": "", "thoughtSignature": "c2lnbmVk"}
    pieces = [*before, {"text": "Hi."}, signed]
    first = streamed(*map(candidate, pieces)) if stream else Answer(body=candidate(*pieces))
    gateway = gemini(first, Answer(body=candidate({"text": "Yes."})))
    told = chat(gateway, stream=stream)
    shown = [c["choices"][0]["delta"] for c in events(told)] if stream else []
    message = told.json["choices"][0]["message"] if not stream else {}
    text = "".join(delta.get("content") or "" for delta in shown) or message.get("content")
    assert text == "Hi."
    assert b"c2lnbmVk" not in told.body
    said = {"role": "assistant", "content": "Hi."}
    assert chat(gateway, said, {"role": "user", "content": "More."}).status == 200
    assert gateway.wire.bodies[1]["contents"][1]["parts"] == pieces


def test_the_text_of_a_result_is_wrapped_as_an_object():
    call = {"functionCall": {"name": "run", "args": {}}, "thoughtSignature": "c2lnbmVk"}
    gateway = gemini(Answer(body=candidate(call)), Answer(body=candidate({"text": "Hi."})))
    message = chat(gateway).json["choices"][0]["message"]
    id = message["tool_calls"][0]["id"]
    chat(gateway, message, {"role": "tool", "tool_call_id": id, "content": "plain text"})
    (part,) = gateway.wire.bodies[1]["contents"][2]["parts"]
    response = part["functionResponse"]
    assert response["name"] == "run"
    assert list(response["response"].values()) == ["plain text"]


def test_keywords_that_its_parameters_do_not_have_go_as_json_schema():
    gateway = gemini(Answer(body=candidate({"text": "Hi."})))
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    tools = [{"type": "function", "function": {"name": "run", "parameters": schema}}]
    chat(gateway, tools=tools)
    (declared,) = gateway.wire.bodies[0]["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"] == schema
    assert "parameters" not in declared


@pytest.mark.parametrize(
    ("model", "inside"), [("gemini-3-pro-preview", True), ("gemini-2.5-pro", False)]
)
def test_an_image_in_a_result_stands_where_the_model_takes_it(model, inside):
    gateway = gemini(Answer(body=candidate({"text": "Hi."})))
    call = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [{"type": "text", "text": "See."}, image],
        },
    )
    chat(gateway, *said, model=model)
    result, *others = gateway.wire.bodies[0]["contents"][2]["parts"]
    data = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert (result["functionResponse"].get("parts") == [data]) is inside
    assert (data in others) is not inside


def test_a_client_that_keeps_everything_talks_to_a_strict_gemini():
    for dialect in ("chat", "messages", "responses"):
        gateway = TranslatingGateway("gemini")
        gateway.client(dialect, echo="keep", stream=True).talk(7)
        assert gateway.records[-1].audit.clean

"""A provider's filter and a model's refusal have a word in every dialect, and are no errors."""

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, events, scripted_gateway, streamed
from support.translation import blocks_of

SAID = "I cannot"


def chat_body(message, reason="content_filter"):
    choice = {"index": 0, "finish_reason": reason, "content_filter_results": {}}
    if message is not None:
        choice["message"] = {"role": "assistant", "content": message}
    return {"id": "c1", "model": "m", "choices": [choice]}


def chat_chunks(*texts, reason="content_filter"):
    made = [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in texts]
    made.append({"index": 0, "delta": {}, "finish_reason": reason})
    return [{"id": "c1", "model": "m", "choices": [choice]} for choice in made]


def response(*texts):
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "incomplete",
        "content": content,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": "incomplete",
        "incomplete_details": {"reason": "content_filter"},
        "output": [item] if texts else [],
    }


def response_events(*texts):
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **place, "delta": text} for text in texts]
    return [*deltas, {"type": "response.incomplete", "response": response(*texts)}]


def message(*texts):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text} for text in texts],
        "stop_reason": "refusal",
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }


def message_events(*texts):
    yield {"type": "message_start", "message": {**message(), "stop_reason": None}}
    for text in texts:
        block = {"type": "text", "text": ""}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        delta = {"type": "text_delta", "text": text}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "refusal"}}
    yield {"type": "message_stop"}


def candidate(reason, *texts):
    made = {"index": 0, "finishReason": reason}
    if texts:
        made["content"] = {"role": "model", "parts": [{"text": text} for text in texts]}
    return {"candidates": [made], "modelVersion": "m", "responseId": "r1"}


def failed(code):
    """A response that its provider ends for what was asked."""
    error = {"code": code, "message": "Flagged."}
    return {**response(), "status": "failed", "incomplete_details": None, "error": error}


def failed_events(code):
    return [{"type": "response.failed", "response": failed(code)}]


def sensitive(code):
    """As MiniMax says it, under status 200."""
    return chat_body(None, None) | {"base_resp": {"status_code": code, "status_msg": "sensitive"}}


INSPECTED = {"error": {"code": "data_inspection_failed", "message": "Inappropriate content."}}
BLOCKED = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "m"}
GOOGLES = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")
GOOGLES += ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")

FILTERED = {
    # name: the provider's dialect, its body, its events, whether it says something before
    "content_filter": ("chat", chat_body(SAID), chat_chunks(SAID), True),
    "content_filter, nothing said": ("chat", chat_body(""), chat_chunks(), False),
    "content_filter, no message": ("chat", chat_body(None), chat_chunks(), False),
    "sensitive": ("chat", chat_body("", "sensitive"), chat_chunks(reason="sensitive"), False),
    "incomplete": ("responses", response(SAID), response_events(SAID), True),
    "incomplete, nothing said": ("responses", response(), response_events(), False),
    "refusal": ("messages", message(SAID), [*message_events(SAID)], True),
    "refusal, nothing said": ("messages", message(), [*message_events()], False),
    "prompt blocked": ("gemini", BLOCKED, [BLOCKED], False),
    "safety, amid words": ("gemini", candidate("SAFETY", SAID), [candidate("SAFETY", SAID)], True),
    "minimax, asked": ("chat", sensitive(1026), [sensitive(1026)], False),
    "minimax, said": ("chat", sensitive(1027), [sensitive(1027)], False),
    "inspected": ("chat", INSPECTED, [INSPECTED], False),
    "inspected, amid words": ("chat", INSPECTED, [*chat_chunks(SAID)[:1], INSPECTED], None),
    **{
        code: ("responses", failed(code), failed_events(code), False)
        for code in ("invalid_prompt", "image_content_policy_violation")
    },
    **{name: ("gemini", candidate(name), [candidate(name)], False) for name in GOOGLES},
}

CLIENTS = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "messages": (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "gemini": ("/v1beta/models/m:", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
}
CASES = [(client, name) for client in CLIENTS for name in FILTERED if client != FILTERED[name][0]]


def answered(client, name, *, stream):
    speaks, body, told, _ = FILTERED[name]
    upstream = streamed(*told) if stream else Answer(body=body)
    gateway = scripted_gateway(upstream, speaks=speaks)
    path, request = CLIENTS[client]
    if client == "gemini":
        path += "streamGenerateContent" if stream else "generateContent"
    else:
        request = {**request, "model": "m", "stream": stream}
    return gateway, ask(gateway, path, request, query="alt=sse" if client == "gemini" else "")


def filter_word(client, answer, *, stream):
    """The word for it, where the client looks for it."""
    if not stream:
        last = answer.json
        match client:
            case "chat":
                return last["choices"][0]["finish_reason"]
            case "responses":
                return last["status"], last["incomplete_details"]["reason"]
            case "messages":
                return last["stop_reason"]
        return last["candidates"][0]["finishReason"]
    told = events(answer)
    match client:
        case "chat":
            reasons = [c["finish_reason"] for event in told for c in event["choices"]]
            return next(reason for reason in reasons if reason)
        case "responses":
            last = told[-1]
            assert last["type"] == "response.incomplete"
            return last["response"]["status"], last["response"]["incomplete_details"]["reason"]
        case "messages":
            assert told[-1]["type"] == "message_stop"
            return told[-2]["delta"]["stop_reason"]
    return told[-1]["candidates"][0]["finishReason"]


def said_in(client, answer, *, stream):
    """The text of an answer."""
    if client == "gemini":  # a reader of this dialect takes such an answer for a failed turn
        told = events(answer) if stream else [answer.json]
        parts = [part for event in told for part in event["candidates"][0]["content"]["parts"]]
        return "".join(part["text"] for part in parts)
    return "".join(text for _, text in blocks_of(client, answer.body, stream=stream))


WORDS = {
    "chat": "content_filter",
    "responses": ("incomplete", "content_filter"),
    "messages": "refusal",
    "gemini": "SAFETY",
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("client", "name"), CASES)
def test_a_filter_is_an_answer_in_the_clients_words(client, name, stream):
    _, answer = answered(client, name, stream=stream)
    assert answer.status == 200, answer.body
    assert b'"error":{' not in answer.body
    assert filter_word(client, answer, stream=stream) == WORDS[client]
    says = stream if FILTERED[name][3] is None else FILTERED[name][3]
    assert said_in(client, answer, stream=stream) == (SAID if says else "")


def call_cut_off(client, answer, *, stream):
    """Whether a client was told that a call is complete which the filter cut off."""
    if stream and client == "messages":
        return events(answer)[-2]["delta"]["stop_reason"] == "tool_use"
    return b"functionCall" in answer.body if client == "gemini" else b'"name"' in answer.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_a_call_that_a_filter_cuts_off_is_none(client, stream):
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"a": "'}}
    body = chat_body("")
    body["choices"][0]["message"]["tool_calls"] = [call]
    chunks = chat_chunks("")
    chunks[0]["choices"][0]["delta"] = {"tool_calls": [{"index": 0, **call}]}
    upstream = streamed(*chunks) if stream else Answer(body=body)
    path, request = CLIENTS[client]
    query = "alt=sse" if client == "gemini" else ""
    if client == "gemini":
        path += "streamGenerateContent" if stream else "generateContent"
    else:
        request = {**request, "model": "m", "stream": stream}
    answer = ask(scripted_gateway(upstream), path, request, query=query)
    assert answer.status == 200, answer.body
    assert filter_word(client, answer, stream=stream) == WORDS[client]
    if not stream or client != "responses":  # there it is shown while it grows, and stays open
        assert not call_cut_off(client, answer, stream=stream)


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "OTHER"])
def test_what_is_no_filter_stays_an_error(client, reason):
    """The same question may well be answered the next time: clients ask again."""
    gateway = scripted_gateway(Answer(body=candidate(reason)), speaks="gemini")
    path, request = CLIENTS[client]
    assert ask(gateway, path, {**request, "model": "m"}).status == 502

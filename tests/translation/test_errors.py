"""Errors of providers in the words of the client's dialect."""

import json

import pytest

from support.gateway import Answer, ScriptedWire
from support.scripted_upstream import ask, chat_message, chat_stream, events, scripted_gateway
from support.translating_gateway import TranslatingGateway
from thoughtline.dialects.chat.reader import ChatReader
from thoughtline.dialects.chat.response import ChatBodyReader
from thoughtline.errors import WireError

BODIES = {
    "chat": (
        "/v1/chat/completions",
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "responses": ("/v1/responses", {"model": "m", "input": "Hi"}),
    "messages": (
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    ),
    "gemini": ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}]}),
}
SHAPES = {
    "error": {"error": {"message": "Too many.", "type": "x"}},
    "detail": {"detail": "Too many."},
    "base_resp": {"base_resp": {"status_code": 1002, "status_msg": "Too many."}},
    "text": "Too many.",
    "param": {"error": {"message": "", "param": "Too many."}},
}


def asked(dialect, *, stream=False):
    path, body = BODIES[dialect]
    if stream and dialect == "gemini":
        return path.replace("generate", "streamGenerate"), body, "alt=sse"
    return path, {**body, "stream": True} if stream else body, ""


def message_of(error):
    return error["error"]["message"]


PAIRS = [(client, speaks) for client in BODIES for speaks in BODIES if client != speaks]
every_pair = pytest.mark.parametrize(("client", "speaks"), PAIRS)

RATE, QUOTA, SERVER = "rate_limit_exceeded", "insufficient_quota", "server_error"
INVALID = "invalid_request_error"
KINDS = {
    # status: type and code for OpenAI's clients, type for Anthropic's, status for Google's
    400: (INVALID, None, INVALID, "INVALID_ARGUMENT"),
    401: (INVALID, "invalid_api_key", "authentication_error", "UNAUTHENTICATED"),
    402: (QUOTA, QUOTA, "billing_error", "RESOURCE_EXHAUSTED"),
    403: (INVALID, None, "permission_error", "PERMISSION_DENIED"),
    404: (INVALID, "model_not_found", "not_found_error", "NOT_FOUND"),
    413: (INVALID, None, "request_too_large", "INVALID_ARGUMENT"),
    422: (INVALID, None, INVALID, "INVALID_ARGUMENT"),
    429: ("rate_limit_error", RATE, "rate_limit_error", "RESOURCE_EXHAUSTED"),
    500: (SERVER, None, "api_error", "INTERNAL"),
    502: (SERVER, None, "api_error", "INTERNAL"),
    503: (SERVER, None, "overloaded_error", "UNAVAILABLE"),
    529: (SERVER, None, "overloaded_error", "UNAVAILABLE"),
}
"""What a status is called in each client's words."""


def words_of(client, error):
    """How an error is classified in its client's dialect."""
    match client:
        case "messages":
            return error["error"]["type"]
        case "gemini":
            return error["error"]["status"]
    return error["error"]["type"], error["error"]["code"]


def expected_words(client, status):
    kind, code, anthropic, google = KINDS[status]
    return {"messages": anthropic, "gemini": google}.get(client, (kind, code))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", KINDS)
@every_pair
def test_the_status_of_the_provider_is_the_status_of_the_answer(client, speaks, status, stream):
    """Also for a client that streams: SDKs raise and try again by the status alone."""
    gateway = scripted_gateway(
        Answer(status, json.dumps({"error": {"message": "No."}}).encode()), speaks=speaks
    )
    path, request, query = asked(client, stream=stream)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == status
    assert answer.header("content-type").startswith("application/json")
    assert message_of(answer.json) == "No."
    assert words_of(client, answer.json) == expected_words(client, status)


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.4s"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@every_pair
def test_when_to_come_back_is_said_in_the_clients_way(client, speaks, stream):
    """Google says it in the body, everybody else in a header."""
    error, head = {"message": "Wait."}, {"content-type": "application/json"}
    if speaks == "gemini":
        error["details"] = [{"@type": "x"}, RETRY_INFO]
    else:
        head["retry-after"] = "7.4"
    gateway = scripted_gateway(Answer(429, {"error": error}, head), speaks=speaks)
    path, request, query = asked(client, stream=stream)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == 429
    if client == "gemini":
        assert answer.json["error"]["details"] == [RETRY_INFO]
    assert answer.header("retry-after") == ("8" if speaks == "gemini" else "7.4")


# -- Codex ---------------------------------------------------------------------------------------

CODEX = {"user-agent": "codex_exec/0.166.0 (Debian 12.0.0; x86_64) unknown"}
FULL = {"error": {"message": "This model's maximum context length is 10 tokens."}}


@pytest.mark.parametrize("head", [{}, {"user-agent": "OpenAI/Python 2.50.0"}, CODEX])
def test_only_codex_is_told_in_the_stream_that_the_window_is_full(head):
    """It knows that by an event alone; a status tells everybody else."""
    gateway = scripted_gateway(Answer(400, FULL))
    path, request, _ = asked("responses", stream=True)
    answer = ask(gateway, path, request, headers=head)
    if head is CODEX:
        assert answer.status == 200
        error = events(answer)[-1]["response"]["error"]
    else:
        assert answer.status == 400
        error = answer.json["error"]
    assert error["code"] == "context_length_exceeded"


def test_codex_gets_the_status_of_everything_else():
    for status in sorted(KINDS.keys() - {400}):
        gateway = scripted_gateway(Answer(status, {"error": {"message": "No."}}))
        path, request, _ = asked("responses", stream=True)
        assert ask(gateway, path, request, headers=CODEX).status == status


# -- answers that are to be continued ------------------------------------------------------------


def responses_gateway(speaks):
    """A gateway to a provider of another dialect that answers as often as it is asked."""
    return TranslatingGateway(
        {"chat": "deepseek", "messages": "claude", "gemini": "gemini"}[speaks]
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("speaks", ["chat", "messages", "gemini"])
def test_a_response_that_is_not_known_cannot_be_continued(speaks, stream):
    gateway = responses_gateway(speaks)
    body = {"model": gateway.model, "input": "Go.", "stream": stream}
    first = ask(gateway, "/v1/responses", body)
    id = (events(first)[-1]["response"] if stream else first.json)["id"]
    again = {**body, "previous_response_id": id}
    assert ask(gateway, "/v1/responses", again).status == 200
    assert len(gateway.wire.sent) == 2

    def refused(body, **headers):
        answer = ask(gateway, "/v1/responses", body, headers=headers)
        error = answer.json["error"]
        assert error["param"] == "previous_response_id"
        assert error["type"] == "invalid_request_error"
        return answer.status, error["code"]

    not_found = (404, "previous_response_not_found")
    assert refused({**body, "previous_response_id": "resp_unknown"}) == not_found
    assert refused({**body, "previous_response_id": f"resp_{'0' * 32}"}) == not_found
    other = {"authorization": "Bearer another-key"}
    assert refused(again, **other) == not_found  # another tenant's
    assert len(gateway.wire.sent) == 2  # nobody was asked


@pytest.mark.parametrize("member", ["conversation", "prompt"])
def test_what_the_server_would_have_stored_is_refused(member):
    gateway = scripted_gateway(Answer(500, b"{}"))
    value = {"conversation": "conv_1", "prompt": {"id": "pmpt_1"}}[member]
    answer = ask(gateway, "/v1/responses", {"model": "m", "input": "Go.", member: value})
    assert (answer.status, answer.json["error"]["code"]) == (400, "untranslatable")
    assert member in message_of(answer.json)
    assert not gateway.wire.sent


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("client", BODIES)
def test_the_providers_sentence_is_in_the_clients_shape(client, shape):
    said = SHAPES[shape]
    body = said.encode() if isinstance(said, str) else json.dumps(said).encode()
    speaks = "messages" if client == "chat" else "chat"
    gateway = scripted_gateway(Answer(429, body), speaks=speaks)
    path, request, query = asked(client)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == 429
    assert message_of(answer.json) == "Too many."
    kinds = {
        "chat": ("code", "rate_limit_exceeded"),
        "responses": ("code", "rate_limit_exceeded"),
        "messages": ("type", "rate_limit_error"),
        "gemini": ("status", "RESOURCE_EXHAUSTED"),
    }
    member, value = kinds[client]
    assert answer.json["error"][member] == value


class Breaking(ScriptedWire):
    """Breaks off behind what it was given."""

    def send(self, request):
        self.sent.append(request)
        return _Broken(self.answers[0].body)


class _Broken:
    status = 200
    headers = (("content-type", "text/event-stream"),)

    def __init__(self, body):
        self.body = body

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return False

    async def chunks(self):
        yield self.body
        raise WireError("it broke")


@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_a_failure_after_the_first_byte_ends_the_stream_in_the_clients_way(client):
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": '{"a'}}
    begun = chat_stream({"content": "I "}, {"tool_calls": [{"index": 0, **call}]})
    begun.body = begun.body[: begun.body.rindex(b'data: {"id": "c1"')]
    gateway = scripted_gateway(begun, wire=Breaking)
    path, request, query = asked(client, stream=True)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == 200
    told = events(answer)
    last = told[-1]
    if client == "responses":
        assert last["type"] == "response.failed"
        done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
        assert [item["type"] for item in done] == ["message"]  # the open call is not completed
        message, call = last["response"]["output"]
        assert (message["type"], message["status"]) == ("message", "completed")
        assert (call["type"], call["status"]) == ("function_call", "incomplete")
        assert call["arguments"] == '{"a'
    elif client == "messages":
        kinds = [event["type"] for event in told]
        assert kinds[-2:] == ["content_block_stop", "error"]
        assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
        assert "message_stop" not in kinds
    else:
        assert "it broke" in message_of(last)
        assert not any("functionCall" in json.dumps(event) for event in told)


@pytest.mark.parametrize("client", ["responses", "messages"])
def test_a_text_that_breaks_off_is_not_left_open(client):
    begun = chat_stream({"content": "I "}, {"content": "am"})
    begun.body = begun.body[: begun.body.rindex(b'data: {"id": "c1"')]
    gateway = scripted_gateway(begun, wire=Breaking)
    path, request, query = asked(client, stream=True)
    told = events(ask(gateway, path, request, query=query))
    if client == "messages":
        assert [event["type"] for event in told][-2:] == ["content_block_stop", "error"]
        return
    (item,) = told[-1]["response"]["output"]
    assert item["status"] == "incomplete"
    assert item["content"][0]["text"] == "I am"


UNKNOWN = {
    "another member": {"code": 1305, "msg": "The model is busy."},
    "inside": {"success": False, "error": {"code": 7, "error_msg": "The model is busy."}},
    "a list": {"errors": [{"code": "x", "message": "The model is busy."}]},
    "text": "The model is busy.",
    "a page": "<html><body>The model is busy.</body></html>",
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("shape", UNKNOWN)
@pytest.mark.parametrize(
    ("client", "speaks"),
    [("responses", "chat"), ("messages", "responses"), ("gemini", "messages"), ("chat", "gemini")],
)
def test_an_error_in_no_known_shape_keeps_the_providers_words(client, speaks, shape, stream):
    said = UNKNOWN[shape]
    body = said.encode() if isinstance(said, str) else json.dumps(said).encode()
    gateway = scripted_gateway(Answer(200, body), speaks=speaks)
    path, request, query = asked(client, stream=stream)
    answer = ask(gateway, path, request, query=query)
    assert b"The model is busy." in answer.body
    last = events(answer)[-1] if stream else answer.json
    assert answer.status == (200 if stream else 502)
    assert (last.get("response") or last)["error"]


NO_ERROR = {
    "cut": b'{"id":"c1","choices":[{"index":0,"message":{"content":"I think so',
    "malformed": b'{"id":"c1","choices":{"message":{"content":"I think so"}}}',
    "a cut event": b'data: {"id":"c1","choices":[{"delta":{"content":"I think so',
    "another shape": b'{"said":["I think so"]}',
}


@pytest.mark.parametrize("body", NO_ERROR)
@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_what_is_not_known_as_an_error_is_not_told_as_one(client, body):
    gateway = scripted_gateway(Answer(200, NO_ERROR[body]))
    path, request, query = asked(client)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == 502
    assert message_of(answer.json)
    assert b"I think so" not in answer.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["responses", "messages"])
def test_a_full_window_under_status_200_is_known_as_one(client, stream):
    said = {"error": {"message": "This model's maximum context length is 10 tokens."}}
    gateway = scripted_gateway(Answer(200, json.dumps(said).encode()))
    path, request, query = asked(client, stream=stream)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == (200 if stream else 400)
    last = events(answer)[-1] if stream else answer.json
    error = (last.get("response") or last)["error"]
    assert "maximum context length is 10" in error["message"]
    if client == "messages":
        assert "prompt is too long" in error["message"]
    else:
        assert error["code"] == "context_length_exceeded"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("broken", ["feed", "close"])
def test_a_fault_of_the_reader_is_told_as_an_error(broken, stream, monkeypatch):
    def fault(*args, **options):
        raise ZeroDivisionError("a fault of ours")

    answered = chat_stream({"content": "Hi"}) if stream else chat_message("Hi")
    gateway = scripted_gateway(answered)
    reader = ChatReader if stream else ChatBodyReader
    monkeypatch.setattr(reader, broken, fault)
    path, request, query = asked("messages", stream=stream)
    answer = ask(gateway, path, request, query=query)
    assert answer.status == (200 if stream else 502)
    last = events(answer)[-1] if stream else answer.json
    assert last["type"] == "error"
    assert "could not be read" in last["error"]["message"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["responses", "messages", "gemini"])
def test_an_error_under_status_200_is_an_error(client, stream):
    said = {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
    gateway = scripted_gateway(Answer(body=said))
    path, request, query = asked(client, stream=stream)
    answer = ask(gateway, path, request, query=query)
    if not stream:
        assert answer.status >= 400
        assert "insufficient balance" in message_of(answer.json)
        return
    assert b"insufficient balance" in answer.body
    last = events(answer)[-1] if answer.status == 200 else answer.json
    text = json.dumps(last)
    assert "error" in text
    assert '"completed"' not in text

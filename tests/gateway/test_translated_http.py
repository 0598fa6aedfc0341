"""Where a translated request goes, and what its client is told."""

import json

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.translating_gateway import TranslatingGateway
from thoughtline.engine.endpoints import Directory, Upstream

CHAT_ANSWER = {
    "id": "c1",
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
}
RESPONSES_BODY = {"model": "m", "input": "Hi."}


def gateway_of(answer, **options):
    gateway = InProcessGateway(ScriptedWire(answer), "generic", **options)
    upstream = Upstream(name="up", base_url="http://sim", policy="generic", dialects=("chat",))
    gateway.proxy.directory = Directory([upstream])
    return gateway


async def test_a_request_goes_where_the_provider_expects_it_with_its_kind_of_credential():
    gateway = TranslatingGateway("claude")
    await gateway.post("/v1/chat/completions", {"model": "claude-sonnet-4-5", "messages": []})
    sent = gateway.wire.sent[0]
    assert sent.url == "http://sim/v1/messages"
    head = dict(sent.headers)
    assert head["x-api-key"] == "a-key"
    assert head["anthropic-version"] == "2023-06-01"
    assert "authorization" not in head


async def test_headers_of_the_client_stay_here():
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    head = {"anthropic-beta": "x", "user-agent": "codex", "cookie": "a=b"}
    await gateway.post("/v1/responses", RESPONSES_BODY, head)
    assert dict(gateway.wire.sent[0].headers).keys() == {
        "content-type",
        "accept",
        "accept-encoding",
        "authorization",
    }


async def test_the_answer_says_what_was_translated_and_what_was_left():
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    body = {**RESPONSES_BODY, "tools": [{"type": "web_search"}], "service_tier": "flex"}
    answer = await gateway.post("/v1/responses", body)
    assert answer.status == 200
    said = "responses>chat; left=service_tier,web_search"
    assert answer.header("x-thoughtline-translated") == said
    assert answer.header("x-reasoning-included") == "true"
    assert answer.header("x-thoughtline-turn")


async def test_names_that_no_header_can_hold_are_written_in_plain_letters():
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    names = ["a\r\nset-cookie: b", "c,d;e", "\u00e9", "x" * 5000, *(f"n{i}" for i in range(500))]
    answer = await gateway.post("/v1/responses", {**RESPONSES_BODY, **dict.fromkeys(names, 1)})
    said = answer.header("x-thoughtline-translated")
    assert said.startswith("responses>chat; left=a__set-cookie:_b,c_d_e,_,xxx")
    assert said.isprintable()
    assert len(said) < 2500


async def test_a_strict_client_is_told_instead():
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    body = {**RESPONSES_BODY, "tools": [{"type": "web_search"}]}
    answer = await gateway.post("/v1/responses", body, {"x-thoughtline-replay": "strict"})
    assert answer.status == 400
    assert "web_search" in answer.json["error"]["message"]
    assert gateway.wire.sent == []


REFUSED = {"error": {"message": "This model's maximum context length is 8 tokens."}}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_history_that_is_too_long_makes_codex_compact(stream):
    gateway = gateway_of(Answer(400, REFUSED))
    head = {"user-agent": "codex_cli_rs/0.166.0 (Debian 12.0.0; x86_64) dumb"}
    answer = await gateway.post("/v1/responses", {**RESPONSES_BODY, "stream": stream}, head)
    if stream:
        assert answer.status == 200
        events = answer.body.decode().split("\n\n")
        assert events[0].startswith("event: response.created")
        assert '"code":"context_length_exceeded"' in events[2]
    else:
        assert answer.status == 400
        assert answer.json["error"]["code"] == "context_length_exceeded"


async def test_a_history_that_is_too_long_makes_claude_code_compact():
    gateway = gateway_of(Answer(400, REFUSED))
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi."}]}
    answer = await gateway.post("/v1/messages", {**body, "stream": True})
    assert answer.status == 400
    assert "prompt is too long" in answer.json["error"]["message"]


async def test_when_to_try_again_is_passed_on():
    head = {"content-type": "application/json", "retry-after": "7", "x-ratelimit-remaining": "0"}
    gateway = gateway_of(Answer(429, {"error": {"message": "Slow down."}}, head))
    answer = await gateway.post("/v1/messages", {"model": "m", "messages": []})
    assert answer.status == 429
    assert answer.header("retry-after") == "7"
    assert answer.header("x-ratelimit-remaining") is None
    assert answer.json["error"]["type"] == "rate_limit_error"


async def test_an_error_under_status_200_fails_the_answer():
    body = {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}
    gateway = gateway_of(Answer(body=json.dumps(body).encode()))
    answer = await gateway.post("/v1/messages", {"model": "m", "messages": []})
    assert (answer.status, answer.json["error"]["type"]) == (402, "billing_error")


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        ({"model": "m", "input": {"type": "image"}}, {}, 400, "not what this API takes"),
        (b"{", {}, 400, "not what this API takes"),
        (RESPONSES_BODY, {"x-thoughtline-replay": "off"}, 400, "x-thoughtline-replay: off"),
        ({"model": "m", "input": [[]] * 60_000}, {}, 413, "elements"),
    ],
)
async def test_what_cannot_be_translated_is_not_sent_in_a_dialect_that_nobody_speaks(
    body, headers, status, why
):
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    answer = await gateway.post("/v1/responses", body, headers)
    assert answer.status == status
    assert why in answer.json["error"]["message"]
    assert answer.json["error"]["code"] == "untranslatable"
    assert not gateway.wire.sent


@pytest.mark.parametrize(("after", "told"), [("3", True), (" 1.5 ", True), ("9" * 400, False)])
async def test_a_rate_limit_says_when_to_come_back_if_that_is_a_number(after, told):
    gateway = gateway_of(Answer(429, {"error": {"message": "Slow."}}, {"retry-after": after}))
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    answer = await gateway.post("/v1beta/models/m:generateContent", body)
    assert answer.status == 429
    assert ("retryDelay" in answer.body.decode()) is told


async def test_a_choice_that_forces_a_tool_which_the_provider_would_run_is_refused():
    """Claude Code searches the web that way: an answer without it would be made up."""
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    search = {"type": "web_search_20250305", "name": "web_search"}
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
    forced = {"tools": [search], "tool_choice": {"type": "tool", "name": "web_search"}}
    answer = await gateway.post("/v1/messages", asked | forced)
    assert answer.status == 400
    assert "web_search_20250305" in answer.json["error"]["message"]
    assert (await gateway.post("/v1/messages", asked | {"tools": [search]})).status == 200


@pytest.mark.parametrize(
    ("choice", "told", "declared"),
    [
        ({"type": "function", "name": "ls"}, {"name": "files__ls"}, 2),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "ls"}]}, "auto", 1),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}, None, 0),
    ],
)
async def test_a_choice_names_tools_that_the_provider_is_told_of(choice, told, declared):
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    inner = [{"type": "function", "name": "ls", "parameters": {}}]
    tools = [
        {"type": "namespace", "name": "files", "tools": inner},
        {"type": "function", "name": "run", "parameters": {}},
    ]
    await gateway.post("/v1/responses", {**RESPONSES_BODY, "tools": tools, "tool_choice": choice})
    (sent,) = gateway.wire.bodies
    chosen = sent.get("tool_choice")
    assert (chosen["function"] if isinstance(chosen, dict) else chosen) == told
    assert len(sent.get("tools", ())) == declared


@pytest.mark.parametrize("model", ["qwen3:8b", "z-ai/glm-4.7:free"])
async def test_a_model_with_a_colon_is_asked_for_by_a_client_that_names_it_in_the_path(model):
    gateway = gateway_of(Answer(body=CHAT_ANSWER))
    contents = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
    reply = await gateway.post(f"/v1beta/models/{model}:generateContent", contents)
    assert reply.json["candidates"][0]["content"]["parts"] == [{"text": "Hi."}]
    assert gateway.wire.bodies[0]["model"] == model
    assert reply.header("x-thoughtline-translated") == "gemini>chat"
    assert len(await gateway.facts("turn_ended")) == 1

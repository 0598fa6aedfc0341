"""Tokens of requests that would be translated: asked of the provider, else estimated."""

import httpx2
import pytest

from support.gateway_server import running, upstreams
from support.translating_gateway import TranslatingGateway

QUESTIONS = {
    "messages": (
        "/v1/messages/count_tokens",
        {"messages": [{"role": "user", "content": "How long is this?" * 40}]},
    ),
    "responses": ("/v1/responses/input_tokens", {"input": "How long is this?" * 40}),
    "gemini": (
        "/v1beta/models/{model}:countTokens",
        {"contents": [{"role": "user", "parts": [{"text": "How long is this?" * 40}]}]},
    ),
}
MEMBERS = {"messages": "input_tokens", "responses": "input_tokens", "gemini": "totalTokens"}


def asked(gateway, dialect):
    path, body = QUESTIONS[dialect]
    model = {} if dialect == "gemini" else {"model": gateway.model}
    return gateway.post(path.format(model=gateway.model), {**model, **body})


@pytest.mark.parametrize("dialect", QUESTIONS)
async def test_a_provider_that_does_not_count_is_not_asked(dialect):
    gateway = TranslatingGateway("deepseek")
    answer = await asked(gateway, dialect)
    assert answer.status == 200, answer.body
    assert answer.json[MEMBERS[dialect]] > 100
    assert answer.header("x-thoughtline-estimate") == "tokens"
    assert answer.header("x-thoughtline-replay").startswith("restored=0; ")
    assert gateway.wire.sent == []


@pytest.mark.parametrize(
    ("dialect", "provider"),
    [("messages", "openai"), ("messages", "gemini"), ("responses", "claude"), ("gemini", "claude")],
)
async def test_a_provider_that_counts_is_asked(dialect, provider):
    gateway = TranslatingGateway(provider)
    answer = await asked(gateway, dialect)
    assert answer.status == 200, answer.body
    assert answer.json[MEMBERS[dialect]] > 10
    assert answer.header("x-thoughtline-estimate") is None, gateway.wire.replies[-1].body
    assert len(gateway.wire.sent) == 1


async def test_counting_writes_nothing():
    gateway = TranslatingGateway("deepseek")
    await asked(gateway, "messages")
    assert await gateway.events("turn_started") == []


def test_thoughts_go_back_for_counting_too(sims):
    """Anthropic refuses to count a running tool loop whose thinking is missing, too."""
    tools = [{"name": "run", "input_schema": {"type": "object"}}]
    thinking = {"type": "enabled", "budget_tokens": 1024}
    asked = {"model": "claude-opus-4-5", "max_tokens": 2048, "tools": tools, "thinking": thinking}
    headers = {"x-api-key": "a-key", "anthropic-version": "2023-06-01"}
    question = {"role": "user", "content": "Please mend a.txt"}
    with running(upstreams(sims, "claude")) as gateway:
        first = httpx2.post(
            f"{gateway.url}/v1/messages", json={**asked, "messages": [question]}, headers=headers
        )
        assert first.status_code == 200, first.text
        said = [block for block in first.json()["content"] if block["type"] != "thinking"]
        assert len(said) < len(first.json()["content"])
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
            for block in said
            if block["type"] == "tool_use"
        ]
        history = [
            question,
            {"role": "assistant", "content": said},
            {"role": "user", "content": results},
        ]
        del asked["max_tokens"]
        counting = {"json": {**asked, "messages": history}, "headers": headers}
        directly = httpx2.post(f"{sims.root('claude')}/v1/messages/count_tokens", **counting)
        through = httpx2.post(f"{gateway.url}/v1/messages/count_tokens", **counting)
    assert results
    assert directly.status_code == 400, directly.text
    assert through.status_code == 200, through.text

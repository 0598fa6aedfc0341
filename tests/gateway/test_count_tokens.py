"""Tokens of requests that would be translated: asked of the provider, else estimated."""

import pytest

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

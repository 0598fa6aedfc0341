"""Names of `[models]`: which requests they change, who is sent whose key, and what is said of it."""

import pytest

from support.built_gateway import BuiltGateway, configured
from support.gateway import Answer, ScriptedWire
from thoughtline.gateway.settings import ModelSettings
from thoughtline.gateway.settings.upstreams import complete

CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "served", "choices": []}
OWN = {"authorization": "Bearer own-key", "cookie": "login=own-cookie", "x-team-token": "own-token"}
REDIRECTED = "x-thoughtline-model"


def gateway(rows, *, env=None, upstreams=None, answer=CHAT, status=200):
    """A gateway with every known upstream, and these rows."""
    known = complete(upstreams or {}, env or {}, local=False)
    settings = configured(
        upstreams=known, models={name: ModelSettings(to=to) for name, to in rows.items()}
    )
    wire = ScriptedWire(Answer(status, answer))
    return BuiltGateway(settings, wire=wire).gateway(), wire


def body(model):
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}


async def ask(gateway, path, model, headers=OWN):
    return await gateway.post(path, body(model), headers)


def secrets(sent):
    """Values of the client's own that went out."""
    told = f"{sent.url} {sent.headers}"
    return [own for own in ("own-key", "own-cookie", "own-token", "query-key") if own in told]


# -- which names are changed -----------------------------------------------------------------------


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-cheap-20260101", "claude-chea"])
async def test_an_alias_is_its_exact_name_and_takes_over_no_other(model):
    made, wire = gateway({"claude-cheap": "deepseek/deepseek-v4-pro"})
    reply = await ask(made, "/v1/messages", model)
    assert wire.sent[-1].url == "https://api.anthropic.com/v1/messages"
    assert wire.bodies[-1]["model"] == model
    assert reply.header(REDIRECTED) is None
    assert secrets(wire.sent[-1]) == ["own-key", "own-cookie", "own-token"]


async def test_an_alias_of_the_same_provider_changes_no_other_of_its_models():
    made, wire = gateway({"claude-deep": "anthropic/claude-opus-5-5"})
    for path in ("/v1/messages", "/u/anthropic/v1/messages"):
        reply = await ask(made, path, "claude-haiku-4-5")
        assert wire.bodies[-1]["model"] == "claude-haiku-4-5"
        assert reply.header(REDIRECTED) is None
    reply = await ask(made, "/v1/messages", "claude-deep")
    assert wire.bodies[-1]["model"] == "claude-opus-5-5"
    assert reply.header(REDIRECTED) == "claude-deep>anthropic/claude-opus-5-5"
    assert "own-key" in secrets(wire.sent[-1])  # it is Anthropic's, and goes to Anthropic


@pytest.mark.parametrize("model", ["claude-cheap", "claude-sonnet-5-5"])
async def test_under_an_upstreams_own_path_its_models_keep_their_names(model):
    made, wire = gateway(
        {"claude-cheap": "deepseek/deepseek-v4-pro", "claude-sonnet-*": "anthropic/claude-haiku"}
    )
    reply = await ask(made, "/u/anthropic/v1/messages", model)
    assert wire.sent[-1].url == "https://api.anthropic.com/v1/messages"
    assert wire.bodies[-1]["model"] == model
    assert reply.header(REDIRECTED) is None


async def test_under_an_upstreams_own_path_another_providers_names_become_its_own():
    made, wire = gateway({"claude-*": "deepseek/deepseek-v4-pro", "gpt-*": "kimi/kimi-k3"})
    reply = await ask(made, "/u/deepseek/v1/messages", "claude-haiku-4-5")
    assert wire.sent[-1].url == "https://api.deepseek.com/anthropic/v1/messages"
    assert wire.bodies[-1]["model"] == "deepseek-v4-pro"
    assert reply.header(REDIRECTED) == "claude-haiku-4-5>deepseek/deepseek-v4-pro"
    assert "own-key" in secrets(wire.sent[-1])  # the client itself says where it goes
    await ask(made, "/u/deepseek/v1/messages", "gpt-5.6")  # a row that leads elsewhere
    assert wire.sent[-1].url == "https://api.deepseek.com/anthropic/v1/messages"
    assert wire.bodies[-1]["model"] == "gpt-5.6"


# -- whose key goes where --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/embeddings"])
async def test_another_provider_gets_its_own_key_and_nothing_of_the_clients(path):
    made, wire = gateway(
        {"claude-cheap": "deepseek/deepseek-v4-pro"}, env={"DEEPSEEK_API_KEY": "the-key"}
    )
    reply = await made.post(path, body("claude-cheap"), OWN, query="key=query-key&a=1")
    (sent,) = wire.sent
    assert reply.header(REDIRECTED) == "claude-cheap>deepseek/deepseek-v4-pro"
    assert sent.url.startswith("https://api.deepseek.com/")
    assert "the-key" in str(sent.headers)
    assert secrets(sent) == []


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
async def test_a_provider_without_a_key_is_not_asked_with_the_clients(path):
    made, wire = gateway({"claude-cheap": "deepseek/deepseek-v4-pro"})
    reply = await ask(made, path, "claude-cheap")
    assert wire.sent == []
    assert (reply.status, reply.header("x-thoughtline-replay")) == (
        401,
        "refused=upstream_key_missing",
    )
    message = reply.json["error"]["message"]
    assert "DEEPSEEK_API_KEY" in message and "/u/deepseek" in message


async def test_a_server_that_asks_for_no_key_gets_none():
    mine = {"mine": {"base_url": "http://10.0.0.5:8000/v1", "dialects": ("chat", "messages")}}
    made, wire = gateway({"claude-*": "mine/qwen3"}, upstreams=mine)
    for path in ("/v1/messages", "/v1/chat/completions"):
        await ask(made, path, "claude-opus-5-5")
        assert wire.sent[-1].url.startswith("http://10.0.0.5:8000/v1/")
        assert wire.bodies[-1]["model"] == "qwen3"
        assert secrets(wire.sent[-1]) == []


async def test_a_translated_request_brings_no_key_of_the_clients():
    mine = {"mine": {"base_url": "http://10.0.0.5:8000/v1", "dialects": ("chat",)}}
    made, wire = gateway({"claude-*": "mine/qwen3"}, upstreams=mine)
    await ask(made, "/v1/messages", "claude-opus-5-5")
    assert wire.sent[-1].url == "http://10.0.0.5:8000/v1/chat/completions"
    assert secrets(wire.sent[-1]) == []


async def test_a_name_that_is_nobody_elses_brings_the_clients_key():
    made, wire = gateway({"fast": "deepseek/deepseek-v4-flash"})
    reply = await ask(made, "/v1/chat/completions", "fast")
    assert wire.bodies[-1]["model"] == "deepseek-v4-flash"
    assert "own-key" in secrets(wire.sent[-1])
    assert reply.header(REDIRECTED) == "fast>deepseek/deepseek-v4-flash"


# -- what is said ----------------------------------------------------------------------------------


async def test_a_refusal_says_it_too_and_a_wild_name_breaks_no_header():
    made, _ = gateway(
        {"*": "deepseek/deepseek-v4-pro"}, env={"DEEPSEEK_API_KEY": "k"}, answer={}, status=429
    )
    reply = await ask(made, "/v1/chat/completions", "a>b; c\r\nx-evil: 1" + "é" * 999)
    assert reply.status == 429
    told = reply.header(REDIRECTED)
    assert told.startswith("a_b__c__x-evil:_1___") and told.endswith(">deepseek/deepseek-v4-pro")
    assert len(told) < 200

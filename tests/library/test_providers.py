"""Where a provider leads: addresses, keys, dialects, policies."""

import pytest

import thoughtline
from thoughtline.library.providers import Provider, endpoint
from thoughtline.settings import PROVIDERS

KEYS = {name: f"key of {known.name}" for known in PROVIDERS for name in known.keys[:1]}


def led(name, env=KEYS, **said):
    return endpoint(Provider(name, **{"model": "m", **said}), env)


@pytest.mark.parametrize(
    ("name", "said", "url", "dialect", "policy"),
    [
        ("deepseek", {}, "https://api.deepseek.com/v1/chat/completions", "chat", "deepseek"),
        (
            "deepseek",
            {"dialect": "messages"},
            "https://api.deepseek.com/anthropic/v1/messages",
            "messages",
            "deepseek",
        ),
        ("openai", {}, "https://api.openai.com/v1/responses", "responses", "openai"),
        ("xai", {}, "https://api.x.ai/v1/responses", "responses", "xai"),
        ("anthropic", {}, "https://api.anthropic.com/v1/messages", "messages", "anthropic"),
        (
            "gemini",
            {"model": "gemini-3-pro"},
            (
                "https://generativelanguage.googleapis.com/v1beta/models/"
                "gemini-3-pro:streamGenerateContent?alt=sse"
            ),
            "gemini",
            "gemini",
        ),
        (
            "gemini",
            {"dialect": "chat"},
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "chat",
            "gemini",
        ),
        ("glm", {}, "https://api.z.ai/api/paas/v4/chat/completions", "chat", "glm"),
        ("groq", {}, "https://api.groq.com/openai/v1/chat/completions", "chat", "groq"),
        ("ollama", {}, "http://127.0.0.1:11434/v1/chat/completions", "chat", "ollama"),
        ("codex", {}, "https://chatgpt.com/backend-api/codex/responses", "responses", "codex"),
        (
            "mine",
            {"base_url": "http://127.0.0.1:8000/v1/", "policy": "vllm"},
            "http://127.0.0.1:8000/v1/chat/completions",
            "chat",
            "vllm",
        ),
        (
            "kimi",  # a mirror that is named after it
            {"base_url": "https://mirror.example/kimi"},
            "https://mirror.example/kimi/v1/chat/completions",
            "chat",
            "kimi",
        ),
        (
            "mine",
            {"base_url": "https://me.openai.azure.com/openai/v1"},
            "https://me.openai.azure.com/openai/v1/responses",
            "responses",
            "azure",
        ),
        (
            "mine",
            {"base_url": "https://example.com/v1", "path": "/custom/v9/ask?x=1"},
            "https://example.com/v1/custom/v9/ask?x=1",
            "chat",
            "generic",
        ),
    ],
)
def test_where_it_leads(name, said, url, dialect, policy):
    found = led(name, **said)
    assert found.url == url
    assert found.dialect.name == dialect
    assert found.target.policy.dialect == dialect
    assert found.target.origin.provider == policy
    assert found.target.origin.asked == found.provider.model


@pytest.mark.parametrize("known", PROVIDERS, ids=lambda known: known.name)
def test_every_known_provider_leads_somewhere(known):
    assert led(known.name).url.startswith(known.base_url.partition("://")[0])


def test_the_key_stands_where_each_looks_for_it():
    assert ("authorization", "Bearer key of openai") in led("openai").headers
    assert ("x-goog-api-key", "key of gemini") in led("gemini").headers
    claude = led("anthropic", headers={"anthropic-beta": "interleaved-thinking-2025-05-14"}).headers
    assert ("x-api-key", "key of anthropic") in claude
    assert ("anthropic-version", "2023-06-01") in claude
    assert ("anthropic-beta", "interleaved-thinking-2025-05-14") in claude


def test_a_key_goes_only_where_it_belongs():
    assert led("openai", base_url="https://elsewhere.example/v1").credential == ""
    assert led("openai", base_url="http://api.openai.com/v1").credential == ""
    assert led("openai", base_url="https://elsewhere.example/v1", key="mine").credential == "mine"
    assert led("openai", base_url="https://api.openai.com").credential == "key of openai"


@pytest.mark.parametrize(
    ("name", "said", "says"),
    [
        ("deepsek", {}, "no provider is called 'deepsek'; did you mean 'deepseek'?"),
        ("mine", {}, "One that is not known needs a base_url"),
        ("deepseek", {"dialect": "latin"}, "'latin' is no dialect; use one of chat"),
        ("deepseek", {"policy": "mistrl"}, "no policy is called 'mistrl'; did you mean 'mistral'?"),
        (
            "deepseek",
            {"options": {"messages": [], "model": "other", "top_p": 1}},
            "options cannot hold messages, model:",
        ),
        ("deepseek", {"env": {}}, "no key for 'deepseek': set DEEPSEEK_API_KEY"),
    ],
)
def test_what_cannot_be(name, said, says):
    with pytest.raises(thoughtline.ThoughtlineError) as caught:
        led(name, **said)
    assert says in str(caught.value)


def test_nothing_shows_a_key():
    found = led("openai", key="sk-secret")
    assert "sk-secret" not in repr(found.provider) + repr(found) + str(found.provider)

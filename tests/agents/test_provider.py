"""Where a provider leads: addresses, keys, dialects, policies."""

import pytest

import thoughtline
from thoughtline.agents.provider import Provider, resolve
from thoughtline.errors import UnknownProvider
from thoughtline.providers.known_providers import PROVIDERS

KEYS = {name: f"key of {known.name}" for known in PROVIDERS for name in known.keys[:1]}


def led(name, env=KEYS, **said):
    return resolve(Provider(name, **{"model": "m", **said}), env)


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
            "mine",  # a version in the middle of the base stands for the path's own, too
            {"base_url": "https://example.com/v1beta/openai"},
            "https://example.com/v1beta/openai/chat/completions",
            "chat",
            "generic",
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


@pytest.mark.parametrize(
    "known", [one for one in PROVIDERS if one.name != "sim"], ids=lambda known: known.name
)
def test_every_known_provider_leads_somewhere(known):
    if known.missing:
        with pytest.raises(
            thoughtline.ProviderError, match=rf"depends on {known.missing}: set it, or give a"
        ):
            led(known.name)
    else:
        assert led(known.name).url.startswith(known.base_url.partition("://")[0])


async def test_the_key_stands_where_each_looks_for_it():
    assert ("authorization", "Bearer key of openai") in await led("openai").headers()
    assert ("x-goog-api-key", "key of gemini") in await led("gemini").headers()
    beta = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    claude = await led("anthropic", headers=beta).headers()
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
        ("mine", {}, "Any other needs a base_url"),
        ("deepseek", {"dialect": "latin"}, "no dialect is called 'latin'; use one of chat"),
        ("deepseek", {"policy": "mistrl"}, "no policy is called 'mistrl'; did you mean 'mistral'?"),
        (
            "deepseek",
            {"options": {"messages": [], "model": "other", "top_p": 1}},
            "options cannot hold messages, model:",
        ),
        ("deepseek", {"env": {}}, "there is no key for 'deepseek'; set DEEPSEEK_API_KEY"),
    ],
)
def test_what_cannot_be(name, said, says):
    with pytest.raises(thoughtline.ThoughtlineError) as caught:
        led(name, **said)
    assert says in str(caught.value)


def test_nothing_shows_a_key():
    found = led("openai", key="sk-secret")
    assert "sk-secret" not in repr(found.provider) + repr(found) + str(found.provider)


@pytest.mark.parametrize("name", ["DeepSeek", "deepseek", "DEEPSEEK"])
def test_names_are_known_in_any_case(name):
    endpoint = led(name, policy="DeepSeek")
    assert endpoint.url == "https://api.deepseek.com/v1/chat/completions"
    assert endpoint.target.origin.provider == "deepseek"
    assert endpoint.credential == "key of deepseek"


# -- strings, and mistakes that are found at once ------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "model"),
    [
        ("deepseek/deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
        ("openrouter/z-ai/glm-4.7", "openrouter", "z-ai/glm-4.7"),
        ("claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5"),
        (" gpt-5.6 ", "openai", "gpt-5.6"),
    ],
)
def test_a_provider_from_a_string(text, name, model):
    made = Provider.from_string(text, options={"top_p": 1})
    assert (made.name, made.model, made.options) == (name, model, {"top_p": 1})


def test_a_string_with_an_address_of_its_own():
    made = Provider.from_string("mine/glm-4.7", base_url="http://127.0.0.1:8000/v1")
    assert (made.name, made.model) == ("mine", "glm-4.7")


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("deepseek", thoughtline.InvalidArgument, "expected deepseek/MODEL"),
        ("deepseek/", thoughtline.InvalidArgument, "needs the name of a model"),
        ("deepsek/deepseek-v4-pro", thoughtline.UnknownProvider, "did you mean 'deepseek'?"),
        ("nope/x", thoughtline.UnknownProvider, "known providers: openai"),
        ("", thoughtline.UnknownProvider, "expected PROVIDER/MODEL"),
        ("sim", thoughtline.InvalidArgument, "names a provider and no model"),
    ],
)
def test_strings_that_name_nobody(text, kind, says):
    with pytest.raises(kind) as caught:
        Provider.from_string(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("deepsek", {}, thoughtline.UnknownProvider),
        ("deepseek", {"dialect": "latin"}, thoughtline.ProviderError),
        ("deepseek", {"policy": "mistrl"}, thoughtline.ProviderError),
        ("deepseek", {"options": {"messages": []}}, thoughtline.InvalidArgument),
        ("deepseek", {"model": ""}, thoughtline.InvalidArgument),
    ],
)
def test_a_mistake_is_found_when_the_provider_is_made(name, said, kind):
    with pytest.raises(kind):
        Provider(name, **{"model": "m", **said})


def test_a_missing_key_is_found_when_it_is_needed():
    made = Provider("deepseek", model="m")  # the environment may change until then
    with pytest.raises(thoughtline.MissingKey):
        resolve(made, {})


@pytest.mark.parametrize("name", ["nope", "claude-like", "x", "gtp"])
def test_a_name_that_is_near_to_none_gets_no_suggestion(name):
    with pytest.raises(thoughtline.UnknownProvider) as caught:
        Provider(name, model="m")
    assert "did you mean" not in str(caught.value) and "known are openai" in str(caught.value)


async def test_a_chat_takes_the_string_and_says_what_it_cannot_take():
    async with thoughtline.open() as log:
        chat = await log.create(provider="deepseek/deepseek-v4-pro")
        assert chat.options.provider == Provider("deepseek", model="deepseek-v4-pro")
        assert chat.use("claude-sonnet-5-5").options.provider.name == "anthropic"
        with pytest.raises(thoughtline.InvalidArgument, match="expected deepseek/MODEL"):
            await log.create(provider="deepseek")
        with pytest.raises(thoughtline.InvalidArgument, match="not dict"):
            await log.create(provider={"name": "deepseek"})


def test_addresses_that_are_one():
    said = {"base_url": "http://one.example/v1", "policy": "vllm", "same_as": ("http://two/v1/",)}
    assert led("mine", **said).target.same_endpoints == {"http://two/v1"}


async def test_a_simulated_provider_by_its_string():
    made = Provider.from_string("sim/claude")
    assert (made.name, made.model) == ("claude", "claude-opus-5-5")
    assert Provider.from_string("sim/deepseek/deepseek-v4-flash").model == "deepseek-v4-flash"
    with pytest.raises(UnknownProvider, match="did you mean 'deepseek'"):
        Provider.from_string("sim/deepsek")
    async with thoughtline.open("memory://") as log:
        chat = await log.create(provider="sim/deepseek")
        answer = await chat.run("Is anybody there?")
    assert answer.outcome == "completed" and answer.thoughts and answer.text

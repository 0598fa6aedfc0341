"""pydantic-ai's agents: the library runs the tools and keeps the messages."""

import pytest

from e2e.ways import KEY, THINKING, TOOLS, providers, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
CHAT = providers("chat")
RESPONSES = providers("responses", without={"codex"})


async def converse(way, model, *, stream=False, **settings):
    agent = sdk("pydantic_ai").Agent(
        model, tools=list(TOOLS.values()), instructions="Be brief.", model_settings=settings or None
    )
    history = None
    for number in range(3):
        result = await agent.run(
            way.ask(number),
            message_history=history,
            event_stream_handler=watch if stream else None,
        )
        history = result.all_messages()
    await way.aclose()
    way.judge()


async def watch(context, events):
    """With somebody who watches, answers are streamed."""
    async for _ in events:
        pass


def openai(way):
    return sdk("openai").AsyncOpenAI(
        base_url=way.url, api_key=KEY, http_client=way.ahttp(), max_retries=0
    )


def chat(way, provider):
    models = sdk("pydantic_ai.models.openai")
    return models.OpenAIChatModel(way.model, provider=provider)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", CHAT)
async def test_openai_provider(way, stream):
    provider = sdk("pydantic_ai.providers.openai").OpenAIProvider(openai_client=openai(way))
    await converse(way, chat(way, provider), stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize(
    ("name", "module", "provider"),
    [
        ("deepseek", "deepseek", "DeepSeekProvider"),
        ("deepseek-v3.2", "deepseek", "DeepSeekProvider"),
        ("kimi", "moonshotai", "MoonshotAIProvider"),
        ("kimi-k3", "moonshotai", "MoonshotAIProvider"),
        ("qwen", "alibaba", "AlibabaProvider"),
        ("cerebras", "cerebras", "CerebrasProvider"),
        ("glm", "zai", "ZaiProvider"),
    ],
)
async def test_their_own_providers(way, module, provider, stream):
    made = getattr(sdk(f"pydantic_ai.providers.{module}"), provider)(openai_client=openai(way))
    await converse(way, chat(way, made), stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", ["openrouter"])
async def test_openrouter(way, stream):
    made = sdk("pydantic_ai.providers.openrouter").OpenRouterProvider(openai_client=openai(way))
    model = sdk("pydantic_ai.models.openrouter").OpenRouterModel(way.model, provider=made)
    await converse(way, model, stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", RESPONSES)
async def test_responses(way, stream):
    provider = sdk("pydantic_ai.providers.openai").OpenAIProvider(openai_client=openai(way))
    models = sdk("pydantic_ai.models.openai")
    model = models.OpenAIResponsesModel(way.model, provider=provider)
    await converse(way, model, stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", providers("messages"))
async def test_anthropic(way, stream):
    client = sdk("anthropic").AsyncAnthropic(
        base_url=way.root, api_key=KEY, http_client=way.ahttp(), max_retries=0
    )
    provider = sdk("pydantic_ai.providers.anthropic").AnthropicProvider(anthropic_client=client)
    model = sdk("pydantic_ai.models.anthropic").AnthropicModel(way.model, provider=provider)
    settings = {"max_tokens": 4096}
    if way.name in THINKING:
        settings["anthropic_thinking"] = THINKING[way.name]
    await converse(way, model, stream=stream, **settings)


def google(way):
    provider = sdk("pydantic_ai.providers.google").GoogleProvider(
        api_key=KEY, base_url=way.root, http_client=way.ahttp()
    )
    return sdk("pydantic_ai.models.google").GoogleModel(way.model, provider=provider)


@pytest.mark.parametrize("name", providers("gemini"))
async def test_google(way):
    await converse(way, google(way), google_thinking_config={"include_thoughts": True})


@pytest.mark.parametrize("name", providers("gemini", tame=True))
async def test_google_stream(way):
    settings = {"google_thinking_config": {"include_thoughts": True}}
    await converse(way, google(way), stream=True, **settings)


@pytest.mark.parametrize("name", ["codex"])
async def test_a_backend_that_only_streams(way):
    provider = sdk("pydantic_ai.providers.openai").OpenAIProvider(openai_client=openai(way))
    models = sdk("pydantic_ai.models.openai")
    model = models.OpenAIResponsesModel(way.model, provider=provider)
    await converse(way, model, stream=True, openai_store=False)

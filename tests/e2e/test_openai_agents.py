"""OpenAI's agents: the runner calls the tools, `to_input_list` is the history."""

import pytest

from e2e.ways import KEY, TOOLS, providers, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
# It cannot read content in parts (Mistral), and of two calls with one id it answers only one:
# Kimi K3 counts the calls of each message from zero.
CHAT = providers("chat", without={"mistral", "kimi-k3"})
RESPONSES = providers("responses", without={"codex"})


def openai(way):
    return sdk("openai").AsyncOpenAI(
        base_url=way.url, api_key=KEY, http_client=way.ahttp(), max_retries=0
    )


async def converse(way, model, *, stream, settings=None):
    agents = sdk("agents")
    agents.set_tracing_disabled(True)
    agent = agents.Agent(
        name="worker",
        instructions="Be brief.",
        model=model,
        tools=[agents.function_tool(tool, strict_mode=False) for tool in TOOLS.values()],
        model_settings=settings or agents.ModelSettings(),
    )
    history = []
    for number in range(3):
        history.append({"role": "user", "content": way.ask(number)})
        if stream:
            result = agents.Runner.run_streamed(agent, history)
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(agent, history)
        history = result.to_input_list()
    await way.aclose()
    way.judge()


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", CHAT)
async def test_chat(way, stream):
    model = sdk("agents").OpenAIChatCompletionsModel(model=way.model, openai_client=openai(way))
    await converse(way, model, stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", RESPONSES)
async def test_responses(way, stream):
    model = sdk("agents").OpenAIResponsesModel(model=way.model, openai_client=openai(way))
    await converse(way, model, stream=stream)


@pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("name", RESPONSES)
async def test_responses_without_storage(way, stream):
    agents = sdk("agents")
    model = agents.OpenAIResponsesModel(model=way.model, openai_client=openai(way))
    settings = agents.ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
    await converse(way, model, stream=stream, settings=settings)


@pytest.mark.parametrize("name", ["codex"])
async def test_a_backend_that_only_streams(way):
    agents = sdk("agents")
    model = agents.OpenAIResponsesModel(model=way.model, openai_client=openai(way))
    await converse(way, model, stream=True, settings=agents.ModelSettings(store=False))

"""LangChain's ChatOpenAI: thoughts are not part of its messages."""

import pytest

from e2e.langchains import converse, invoke, stream
from e2e.ways import KEY, providers, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
CHAT = providers("chat")
# In a stream these classes lose text that comes in parts, as Mistral's does: what is shown, too.
TEXTUAL = providers("chat", without={"mistral"})
RESPONSES = providers("responses", without={"codex"})


def chat_openai(way, **more):
    module = sdk("langchain_openai")
    return module.ChatOpenAI(
        base_url=way.url,
        api_key=KEY,
        model=way.model,
        http_client=way.http(),
        max_retries=0,
        **more,
    )


@pytest.mark.parametrize("name", CHAT)
def test_chat_openai(way):
    converse(way, chat_openai(way), invoke)


@pytest.mark.parametrize("name", TEXTUAL)
def test_chat_openai_streaming(way):
    converse(way, chat_openai(way), stream)


@pytest.mark.parametrize("ask", [invoke, stream])
@pytest.mark.parametrize("name", RESPONSES)
def test_responses(way, ask):
    converse(way, chat_openai(way, use_responses_api=True, output_version="responses/v1"), ask)


@pytest.mark.parametrize("ask", [invoke, stream])
@pytest.mark.parametrize("name", RESPONSES)
def test_responses_without_storage(way, ask):
    model = chat_openai(
        way,
        use_responses_api=True,
        store=False,
        include=["reasoning.encrypted_content"],
        output_version="responses/v1",
    )
    converse(way, model, ask)


@pytest.mark.parametrize("name", ["codex"])
def test_a_backend_that_only_streams(way):
    model = chat_openai(way, use_responses_api=True, store=False, output_version="responses/v1")
    converse(way, model, stream)

"""LangChain's ChatOpenAI: thoughts are not part of its messages."""

import pytest

from e2e.langchains import CHAT, TEXTUAL, converse, invoke, model, stream
from e2e.ways import providers, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
RESPONSES = providers("responses", without={"codex"})


def chat_openai(way, **more):
    return model(sdk("langchain_openai").ChatOpenAI, way, **more)


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
    asker = chat_openai(
        way,
        use_responses_api=True,
        store=False,
        include=["reasoning.encrypted_content"],
        output_version="responses/v1",
    )
    converse(way, asker, ask)


@pytest.mark.parametrize("name", ["codex"])
def test_a_backend_that_only_streams(way):
    asker = chat_openai(way, use_responses_api=True, store=False, output_version="responses/v1")
    converse(way, asker, stream)

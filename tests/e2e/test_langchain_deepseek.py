"""LangChain's ChatDeepSeek: thoughts are not part of its messages."""

import pytest

from e2e.langchains import converse, invoke, stream
from e2e.ways import KEY, providers, sdk

pytestmark = pytest.mark.filterwarnings("ignore")
CHAT = providers("chat")
# In a stream these classes lose text that comes in parts, as Mistral's does: what is shown, too.
TEXTUAL = providers("chat", without={"mistral"})


def chat_deepseek(way, **more):
    module = sdk("langchain_deepseek")
    return module.ChatDeepSeek(
        api_base=way.url,
        api_key=KEY,
        model=way.model,
        http_client=way.http(),
        max_retries=0,
        **more,
    )


@pytest.mark.parametrize("name", CHAT)
def test_chat_deepseek(way):
    converse(way, chat_deepseek(way), invoke)


@pytest.mark.parametrize("name", TEXTUAL)
def test_chat_deepseek_streaming(way):
    converse(way, chat_deepseek(way), stream)

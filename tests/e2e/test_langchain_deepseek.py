"""LangChain's ChatDeepSeek: thoughts are not part of its messages."""

import pytest

from e2e.langchains import CHAT, TEXTUAL, converse, invoke, model, stream
from e2e.ways import sdk

pytestmark = pytest.mark.filterwarnings("ignore")


def chat_deepseek(way):
    return model(sdk("langchain_deepseek").ChatDeepSeek, way)


@pytest.mark.parametrize("name", CHAT)
def test_chat_deepseek(way):
    converse(way, chat_deepseek(way), invoke)


@pytest.mark.parametrize("name", TEXTUAL)
def test_chat_deepseek_streaming(way):
    converse(way, chat_deepseek(way), stream)

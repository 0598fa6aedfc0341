"""SDKs on providers that speak another dialect: the programs of the other files, unchanged."""

import pytest

from e2e import test_anthropic, test_genai, test_openai_chat, test_openai_responses
from e2e.ways import simulator

PROVIDERS = ("deepseek", "kimi-k3", "openai", "claude", "gemini")
PROGRAMS = {
    "chat": (
        test_openai_chat.test_create_and_append_the_message,
        test_openai_chat.test_stream_and_gather_the_deltas,
        test_openai_chat.test_the_stream_helper,
    ),
    "responses": (
        test_openai_responses.test_append_the_output,
        test_openai_responses.test_write_down_what_is_seen_without_ids,
        test_openai_responses.test_the_stream_helper,
        test_openai_responses.test_go_on_from_the_previous_response,
    ),
    "messages": (
        test_anthropic.test_create_and_append_the_content,
        test_anthropic.test_create_and_write_down_what_is_seen,
    ),
    "gemini": (
        test_genai.test_generate_content_stream,
        test_genai.test_chats,
        test_genai.test_chats_with_automatic_calls,
    ),
}
CASES = [
    pytest.param(name, program, id=f"{dialect}-{program.__name__.removeprefix('test_')}-{name}")
    for dialect, programs in PROGRAMS.items()
    for program in programs
    for name in PROVIDERS
    if simulator(name).dialect != dialect
]

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@by_gateway
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "program"), CASES)
def test_providers_of_other_dialects(way, program):
    way.model = way.alias
    program(way)

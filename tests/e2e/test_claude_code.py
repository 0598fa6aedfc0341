"""Claude Code, through the gateway: three runs of one conversation, two of them continued."""

import json

import pytest

from e2e.programs import Program
from e2e.ways import KEY, providers

TRANSLATED = ["deepseek", "kimi", "kimi-k3", "glm", "openai", "gemini"]

by_gateway = pytest.mark.parametrize("way", ["gateway"], indirect=True)


@pytest.fixture
def claude(way, tmp_path):
    return Program(
        "claude",
        tmp_path,
        ANTHROPIC_BASE_URL=way.root,
        ANTHROPIC_AUTH_TOKEN=KEY,
        ANTHROPIC_MODEL=way.alias,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=way.alias,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )


def ask(claude, question, *options):
    """The result of one run, which must not be an error."""
    printed = claude(*options, "--output-format=json", "--tools=Read,Glob", "-p", question)
    result = json.loads(printed.splitlines()[-1])
    assert not result["is_error"], result
    return result


@by_gateway
@pytest.mark.parametrize("name", [*providers("messages", without={"claude"}), *TRANSLATED])
def test_print_and_continue(way, claude):
    ask(claude, way.ask(0))
    ask(claude, way.ask(1), "--continue")
    result = ask(claude, way.ask(2), "--continue")
    way.judge()
    usage = result["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] > 0
    assert usage["output_tokens"] > 0

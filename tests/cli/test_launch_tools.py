"""One row per tool: each says what the tool's own documentation asks for, and nothing else."""

import json

import pytest

from thoughtline.cli.launch_tools import TOOLS, fill, find_tool, tool_names
from thoughtline.dialects import DIALECTS
from thoughtline.providers.catalogue import BY_NAME

VALUES = {"base": "http://127.0.0.1:7337/u/kimi", "model": "kimi-k3", "key_variable": "THE_KEY"}
V1 = "http://127.0.0.1:7337/u/kimi/v1"


def row(name):
    tool = find_tool(name)
    variables = fill({**tool.variables, **tool.model_variables}, VALUES)
    arguments = [fill(one, VALUES) for one in (*tool.arguments, *tool.model_arguments)]
    return tool, variables, arguments


def test_names_are_unique_and_every_reference_exists():
    names = [name for tool in TOOLS for name in (tool.name, *tool.aliases)]
    assert len(names) == len(set(names))
    assert list(tool_names()) == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        assert tool.dialect in DIALECTS and tool.install and tool.executable
        assert {tool.home, tool.login} - {""} <= BY_NAME.keys()


@pytest.mark.parametrize(
    "name", ["claude", "Claude-Code", "codex", "gemini-cli", "qwen-code", "kimi-cli", "pi"]
)
def test_a_tool_is_found_by_each_of_its_names(name):
    assert find_tool(name) is not None


def test_no_other_name_is_found():
    assert find_tool("emacs") is None


def test_claude_code():
    """Every family of its models is named, or it asks for one that the provider does not have."""
    tool, variables, arguments = row("claude")
    assert variables == {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:7337/u/kimi",  # it adds /v1 itself
        "ANTHROPIC_MODEL": "kimi-k3",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": "kimi-k3",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "kimi-k3",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "kimi-k3",
        "ANTHROPIC_DEFAULT_FABLE_MODEL": "kimi-k3",
        "CLAUDE_CODE_SUBAGENT_MODEL": "kimi-k3",
    }
    assert tool.key_variables == ("ANTHROPIC_AUTH_TOKEN",)
    assert tool.unset == ("ANTHROPIC_API_KEY",)
    assert arguments == []


def test_codex():
    tool, variables, arguments = row("codex")
    assert variables == {}
    settings = arguments[1::2]
    assert arguments[::2] == ["-c"] * 3
    assert settings == [
        'model_provider="thoughtline"',
        (
            f'model_providers.thoughtline={{name="Thoughtline", base_url="{V1}", '
            'wire_api="responses", env_key="THE_KEY"}'
        ),
        'model="kimi-k3"',
    ]
    assert "requires_openai_auth=true" in tool.login_arguments[3]
    assert "env_key" not in tool.login_arguments[3]


def test_gemini_cli():
    """Without the choice of a key in its own file, it refuses another address."""
    tool, variables, arguments = row("gemini")
    assert variables == {
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:7337/u/kimi",
        "GEMINI_MODEL": "kimi-k3",
    }
    assert tool.key_variables == ("GEMINI_API_KEY",)
    assert (tool.config.folder, tool.config.file) == ("~/.gemini", "settings.json")
    assert tool.config.path == ("security", "auth", "selectedType")
    assert tool.config.value == "gemini-api-key"
    assert arguments == []


def test_opencode():
    _, variables, arguments = row("opencode")
    (content,) = variables.values()
    assert list(variables) == ["OPENCODE_CONFIG_CONTENT"]
    assert content["model"] == content["small_model"] == "thoughtline/kimi-k3"
    provider = content["provider"]["thoughtline"]
    assert provider["npm"] == "@ai-sdk/openai-compatible"
    assert provider["options"] == {"baseURL": V1, "apiKey": "{env:THE_KEY}"}
    assert list(provider["models"]) == ["kimi-k3"]
    assert arguments == []


def test_qwen_code():
    """A login that it remembers comes before its variables, but not before the argument."""
    tool, variables, arguments = row("qwen")
    assert variables == {"OPENAI_BASE_URL": V1, "OPENAI_MODEL": "kimi-k3"}
    assert tool.key_variables == ("OPENAI_API_KEY",)
    assert arguments == ["--auth-type", "openai"]


def test_kimi():
    """The Python program reads KIMI_BASE_URL, its successor KIMI_MODEL_BASE_URL."""
    tool, variables, arguments = row("kimi")
    assert variables == {
        "KIMI_BASE_URL": V1,
        "KIMI_MODEL_BASE_URL": V1,
        "KIMI_MODEL_NAME": "kimi-k3",
        "KIMI_MODEL_MAX_CONTEXT_SIZE": "262144",
        "KIMI_MODEL_CAPABILITIES": "thinking",
    }
    assert tool.key_variables == ("KIMI_API_KEY", "KIMI_MODEL_API_KEY")
    assert arguments == []


def test_pi():
    """It sends a role that most providers refuse, unless it is told not to."""
    tool, variables, arguments = row("pi")
    assert variables == {}
    assert arguments == ["--provider", "thoughtline", "--model", "kimi-k3"]
    config = tool.config
    assert (config.folder, config.folder_variable) == ("~/.pi/agent", "PI_CODING_AGENT_DIR")
    assert (config.file, config.path) == ("models.json", ("providers", "thoughtline"))
    assert fill(config.value, VALUES) == {
        "baseUrl": V1,
        "api": "openai-completions",
        "apiKey": "!printenv THE_KEY",
        "compat": {"supportsDeveloperRole": False},
        "models": [{"id": "kimi-k3", "reasoning": True}],
    }


def test_aider():
    tool, variables, arguments = row("aider")
    assert variables == {"OPENAI_API_BASE": V1, "AIDER_MODEL": "openai/kimi-k3"}
    assert tool.key_variables == ("OPENAI_API_KEY",)
    assert arguments == []


def test_braces_that_are_no_placeholder_stay():
    assert fill({"{model}": ["{env:{key_variable}}", 1]}, VALUES) == {
        "kimi-k3": ["{env:THE_KEY}", 1]
    }
    assert json.dumps(fill({"a": True}, VALUES)) == '{"a": true}'

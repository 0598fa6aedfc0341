"""The tools that `thoughtline launch` knows: one row says all that is needed to point one at us.

Texts are templates. `{base}` is the gateway's address with the upstream in its path, `{model}` the
model as the upstream knows it, `{key}` its key, and `{key_variable}` the variable that holds it.
A value that is a table is written as JSON.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

PROVIDER = "thoughtline"
"""What our entry is called in a tool's own configuration."""

_OPENAI_COMPATIBLE = {
    "npm": "@ai-sdk/openai-compatible",
    "name": "Thoughtline",
    "options": {"baseURL": "{base}/v1", "apiKey": "{env:{key_variable}}"},
    "models": {"{model}": {"name": "{model}", "reasoning": True}},
}
_CLOUDS = (
    *("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "GATEWAY"),
    *("ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD"),
)
"""Where Claude Code goes instead, whatever its base URL is."""
_CODEX = 'name="Thoughtline", base_url="{base}/v1", wire_api="responses"'


class ConfigEntry(NamedTuple):
    """An entry in the JSON file that a tool reads, where no variable says the same."""

    folder: str
    folder_variable: str  # in which a user may name another folder
    file: str
    path: tuple[str, ...]  # the keys that lead to the entry
    value: Any


class LaunchTool(NamedTuple):
    """One program, and how it is pointed at the gateway."""

    name: str
    title: str
    dialect: str
    executable: str
    install: str
    variables: Mapping[str, Any] = {}
    model_variables: Mapping[str, Any] = {}  # in addition, where a model is chosen
    window_variables: tuple[str, ...] = ()  # how long a prompt may be, for models it does not know
    key_variables: tuple[str, ...] = ()  # that hold the key, unless it brings its own login
    arguments: tuple[str, ...] = ()  # in front of the user's own
    model_arguments: tuple[str, ...] = ()
    login_arguments: tuple[str, ...] = ()  # in place of `arguments`, with its own login
    unset: tuple[str, ...] = ()  # variables with keys that another provider must not see
    elsewhere: tuple[str, ...] = ()  # variables that lead it past any base URL, to another cloud
    config: ConfigEntry | None = None
    home: str = ""  # the upstream of its own models; empty: a model has to be chosen
    login: str = ""  # the upstream of its own login; empty: it has none, and needs a key
    default: str = ""  # the model to use where none is chosen
    side_models: tuple[str, ...] = ()  # names that it asks for beside the chosen model
    aliases: tuple[str, ...] = ()


TOOLS: tuple[LaunchTool, ...] = (
    LaunchTool(
        name="claude",
        title="Claude Code",
        dialect="messages",
        executable="claude",
        install="npm install -g @anthropic-ai/claude-code",
        variables={"ANTHROPIC_BASE_URL": "{base}"},
        model_variables={
            "ANTHROPIC_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_OPUS_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_SONNET_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}",
            "ANTHROPIC_DEFAULT_FABLE_MODEL": "{model}",
            "CLAUDE_CODE_SUBAGENT_MODEL": "{model}",
        },
        window_variables=("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"),
        key_variables=("ANTHROPIC_AUTH_TOKEN",),
        unset=("ANTHROPIC_API_KEY",),
        elsewhere=tuple(f"CLAUDE_CODE_USE_{cloud}" for cloud in _CLOUDS),
        home="anthropic",
        login="anthropic",
        side_models=("claude-*",),
        aliases=("claude-code",),
    ),
    LaunchTool(
        name="codex",
        title="Codex",
        dialect="responses",
        executable="codex",
        install="npm install -g @openai/codex",
        arguments=(
            "-c",
            f'model_provider="{PROVIDER}"',
            "-c",
            f'model_providers.{PROVIDER}={{{_CODEX}, env_key="{{key_variable}}"}}',
        ),
        login_arguments=(
            "-c",
            f'model_provider="{PROVIDER}"',
            "-c",
            f"model_providers.{PROVIDER}={{{_CODEX}, requires_openai_auth=true}}",
        ),
        model_arguments=("-c", 'model="{model}"'),
        home="openai",
        login="codex",
        side_models=("gpt-*", "codex-*"),
        aliases=("codex-cli",),
    ),
    LaunchTool(
        name="gemini",
        title="Gemini CLI",
        dialect="gemini",
        executable="gemini",
        install="npm install -g @google/gemini-cli",
        variables={"GOOGLE_GEMINI_BASE_URL": "{base}"},
        model_variables={"GEMINI_MODEL": "{model}"},
        key_variables=("GEMINI_API_KEY",),
        unset=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"),
        home="gemini",
        side_models=("gemini-*",),
        aliases=("gemini-cli",),
        config=ConfigEntry(
            folder="~/.gemini",
            folder_variable="",
            file="settings.json",
            path=("security", "auth", "selectedType"),  # a login by browser uses no other address
            value="gemini-api-key",
        ),
    ),
    LaunchTool(
        name="opencode",
        title="opencode",
        dialect="chat",
        executable="opencode",
        install="npm install -g opencode-ai",
        model_variables={
            "OPENCODE_CONFIG_CONTENT": {
                "provider": {PROVIDER: _OPENAI_COMPATIBLE},
                "model": f"{PROVIDER}/{{model}}",
                "small_model": f"{PROVIDER}/{{model}}",
            }
        },
    ),
    LaunchTool(
        name="qwen",
        title="Qwen Code",
        dialect="chat",
        executable="qwen",
        install="npm install -g @qwen-code/qwen-code",
        model_variables={"OPENAI_BASE_URL": "{base}/v1", "OPENAI_MODEL": "{model}"},
        key_variables=("OPENAI_API_KEY",),
        model_arguments=("--auth-type", "openai"),
        aliases=("qwen-code",),
    ),
    LaunchTool(
        name="kimi",
        title="Kimi CLI and Kimi Code",
        dialect="chat",
        executable="kimi",
        install="uv tool install kimi-cli",
        model_variables={
            "KIMI_BASE_URL": "{base}/v1",
            "KIMI_MODEL_BASE_URL": "{base}/v1",
            "KIMI_MODEL_NAME": "{model}",
            "KIMI_MODEL_MAX_CONTEXT_SIZE": "262144",
            "KIMI_MODEL_CAPABILITIES": "thinking",
        },
        key_variables=("KIMI_API_KEY", "KIMI_MODEL_API_KEY"),
        home="kimi",
        default="kimi/kimi-k3",
        aliases=("kimi-cli", "kimi-code"),
    ),
    LaunchTool(
        name="pi",
        title="pi",
        dialect="chat",
        executable="pi",
        install="npm install -g @earendil-works/pi-coding-agent",
        model_arguments=("--provider", PROVIDER, "--model", "{model}"),
        config=ConfigEntry(
            folder="~/.pi/agent",
            folder_variable="PI_CODING_AGENT_DIR",
            file="models.json",
            path=("providers", PROVIDER),
            value={
                "baseUrl": "{base}/v1",
                "api": "openai-completions",
                "apiKey": "!printenv {key_variable}",  # older and newer ones read it so
                "compat": {"supportsDeveloperRole": False},
                "models": [{"id": "{model}", "reasoning": True}],
            },
        ),
    ),
    LaunchTool(
        name="aider",
        title="aider",
        dialect="chat",
        executable="aider",
        install="uv tool install aider-chat",
        model_variables={"OPENAI_API_BASE": "{base}/v1", "AIDER_MODEL": "openai/{model}"},
        key_variables=("OPENAI_API_KEY",),
    ),
)
"""In the order people meet them."""


def find_tool(name: str) -> LaunchTool | None:
    """The tool of this name, in any case, or of one of its other names."""
    wanted = name.strip().lower()
    return next((tool for tool in TOOLS if wanted in (tool.name, *tool.aliases)), None)


def tool_names() -> Iterable[str]:
    """The names to choose from."""
    return [tool.name for tool in TOOLS]


def fill(template: Any, values: Mapping[str, str]) -> Any:
    """A template with its placeholders replaced, in keys of tables, too."""
    if isinstance(template, str):
        for name, value in values.items():
            template = template.replace(f"{{{name}}}", value)
        return template
    if isinstance(template, Mapping):
        return {fill(key, values): fill(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(one, values) for one in template]
    return template


def complete(_context: object, _parameter: object, text: str) -> list[str]:
    """Names that begin like this, for the shell's completion."""
    return [name for name in tool_names() if name.startswith(text)]

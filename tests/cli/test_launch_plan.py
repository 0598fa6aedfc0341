"""What a tool is told: address, model and key, and nothing of another provider's."""

import json

import pytest

from thoughtline.cli.launch_plan import KEY_VARIABLE, choose_model, make_plan, merged
from thoughtline.cli.launch_tools import find_tool
from thoughtline.errors import SettingsError
from thoughtline.gateway.settings import load

URL = "http://127.0.0.1:7337"


@pytest.fixture
def plan(tmp_path):
    def make(name, model="", toml="", effort="", **env):
        env = {"HOME": str(tmp_path), **env}
        (tmp_path / "thoughtline.toml").write_text(toml, "utf-8")
        settings = load({}, env, tmp_path)
        return make_plan(find_tool(name), model, settings, env, URL, effort=effort), env

    return make


def test_its_own_models_need_the_address_alone(plan):
    made, env = plan("claude", ANTHROPIC_API_KEY="a")
    assert made.environment(env) == {**env, "ANTHROPIC_BASE_URL": f"{URL}/u/anthropic"}
    assert made.missing_key == ()


def test_another_providers_model_gets_that_providers_key_and_no_other(plan):
    made, env = plan(
        "claude", "deepseek/deepseek-v4-pro", DEEPSEEK_API_KEY="d", ANTHROPIC_API_KEY="a"
    )
    told = made.environment(env)
    assert told["ANTHROPIC_BASE_URL"] == f"{URL}/u/deepseek;claude-*=deepseek-v4-pro"
    assert told["ANTHROPIC_AUTH_TOKEN"] == "d"
    assert "ANTHROPIC_API_KEY" not in told


def test_a_tool_is_told_the_window_of_a_model_that_it_does_not_know(plan):
    names = ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "CLAUDE_CODE_AUTO_COMPACT_WINDOW")
    made, _ = plan("claude", "deepseek/deepseek-v4-pro", DEEPSEEK_API_KEY="d")
    assert [made.variables[name] for name in names] == ["1000000"] * 2
    made, _ = plan("claude", "deepseek/of-tomorrow", DEEPSEEK_API_KEY="d")
    assert not set(names) & made.variables.keys()
    made, _ = plan("claude", "claude-opus-5-5", ANTHROPIC_API_KEY="a")
    assert not set(names) & made.variables.keys()
    made, _ = plan("claude", "deepseek/deepseek-v4-pro", DEEPSEEK_API_KEY="d", **{names[0]: "5"})
    assert names[0] not in made.variables  # the user's own stays


def test_names_that_the_settings_map_already_stay_theirs(plan):
    toml = '[models]\n"claude-*" = "deepseek/deepseek-v4-flash"\n'
    made, _ = plan("claude", "deepseek/deepseek-v4-pro", toml, DEEPSEEK_API_KEY="d")
    assert made.variables["ANTHROPIC_BASE_URL"] == f"{URL}/u/deepseek"


def test_an_effort_is_asked_for_by_the_path(plan):
    made, _ = plan("claude", effort="high")
    assert made.variables["ANTHROPIC_BASE_URL"] == f"{URL}/u/anthropic;effort=high"
    made, _ = plan("codex", "openrouter/z-ai/glm-5", effort="low", OPENROUTER_API_KEY="o")
    assert "/u/openrouter;gpt-*=z-ai%2Fglm-5;codex-*=z-ai%2Fglm-5;effort=low/v1" in str(
        made.arguments
    )


def test_a_model_without_an_upstream_goes_where_its_name_belongs(plan):
    made, _ = plan("opencode", "kimi-k3", MOONSHOT_API_KEY="k")
    assert made.chosen.name == "kimi/kimi-k3"


def test_a_name_of_the_users_own_map(plan):
    toml = '[models]\n"fast" = "deepseek/deepseek-v4-flash"\n'
    made, _ = plan("aider", "fast", toml, DEEPSEEK_API_KEY="d")
    assert made.chosen.name == "deepseek/deepseek-v4-flash"


def test_a_models_own_slash_stays_with_it(plan):
    made, _ = plan("aider", "openrouter/z-ai/glm-5", OPENROUTER_API_KEY="o")
    assert made.variables["AIDER_MODEL"] == "openai/z-ai/glm-5"
    assert made.variables["OPENAI_API_BASE"] == f"{URL}/u/openrouter/v1"


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("deepsek/deepseek-v4-pro", "did you mean 'deepseek'?"),
        ("nobody/x", "known are: openai, anthropic"),
        ("sim/deepsek", "did you mean 'deepseek'?"),
        ("frobnicate-7", "as in deepseek/frobnicate-7"),
    ],
)
def test_an_unknown_model_is_an_error_that_helps(plan, model, says):
    with pytest.raises(SettingsError) as error:
        plan("codex", model)
    assert says in str(error.value)


def test_a_tool_without_models_of_its_own_needs_one(plan):
    with pytest.raises(SettingsError, match="thoughtline launch pi --model"):
        plan("pi")


def test_kimi_has_a_default(plan):
    made, env = plan("kimi", MOONSHOT_API_KEY="k")
    assert made.environment(env)["KIMI_MODEL_API_KEY"] == "k"
    assert made.variables["KIMI_MODEL_NAME"] == "kimi-k3"


def test_a_simulated_model_needs_no_key(plan):
    made, _ = plan("codex", "sim/deepseek")
    assert f'env_key="{KEY_VARIABLE}"' in made.arguments[3]
    assert made.variables == {KEY_VARIABLE: "thoughtline"} and made.missing_key == ()


def test_a_missing_key_is_named(plan):
    made, _ = plan("qwen", "glm/glm-5")
    assert made.missing_key == ("ZAI_API_KEY", "ZHIPU_API_KEY")


def test_codex_without_a_key_uses_its_own_login(plan):
    made, _ = plan("codex")
    assert f'base_url="{URL}/u/codex/v1"' in made.arguments[3]
    assert "requires_openai_auth=true" in made.arguments[3]
    with_key, _ = plan("codex", OPENAI_API_KEY="o")
    assert f'base_url="{URL}/u/openai/v1"' in with_key.arguments[3]
    assert 'env_key="OPENAI_API_KEY"' in with_key.arguments[3]


def test_where_the_gateway_asks_for_a_client_key_the_tool_shows_that(plan):
    toml = '[access.clients.me]\nkey = "mine"\n'
    made, env = plan("claude", toml=toml, ANTHROPIC_API_KEY="a")
    told = made.environment(env)
    assert told["ANTHROPIC_AUTH_TOKEN"] == "mine" and "ANTHROPIC_API_KEY" not in told


def test_a_key_that_the_tool_reads_already_is_not_set_again(plan):
    made, _ = plan("gemini", GEMINI_API_KEY="g")
    assert made.references == {} and set(made.variables) == {"GOOGLE_GEMINI_BASE_URL"}


def test_the_users_own_inline_configuration_stays(plan):
    own = {"theme": "dark", "provider": {"mine": {}}}
    made, _ = plan("opencode", "sim/deepseek", OPENCODE_CONFIG_CONTENT=json.dumps(own))
    content = json.loads(made.variables["OPENCODE_CONFIG_CONTENT"])
    assert content["theme"] == "dark"
    assert set(content["provider"]) == {"mine", "thoughtline"}


def test_the_file_of_a_tool_is_where_the_user_has_it(plan, tmp_path):
    made, _ = plan("pi", "sim/deepseek")
    assert made.config_file == tmp_path / ".pi/agent/models.json"
    moved, _ = plan("pi", "sim/deepseek", PI_CODING_AGENT_DIR=str(tmp_path / "pi"))
    assert moved.config_file == tmp_path / "pi/models.json"


def test_tables_are_merged_level_by_level():
    assert merged({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}, "c": {}}) == {
        "a": {"b": 1, "d": 3},
        "c": {},
    }


def test_choosing_depends_on_the_settings_alone(tmp_path):
    settings = load({}, {"HOME": str(tmp_path)}, tmp_path)
    assert choose_model(find_tool("gemini"), "", settings).upstream == "gemini"

import pytest

from thoughtline.engine.model_names import ModelNames, ModelRow


def row(pattern, to="deepseek/deepseek-v4-pro"):
    upstream, _, model = to.partition("/")
    return ModelRow(pattern=pattern, upstream=upstream, model=model)


NAMES = ModelNames(
    [
        row("claude-opus-4-6", "kimi/kimi-k3"),
        row("claude-sonnet-*"),
        row("claude-sonnet-4-*", "glm/glm-5.2"),
        row("gpt-5.6", "gemini/gemini-3-pro-preview"),
    ]
)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("claude-opus-4-6", "kimi-k3"),
        ("Claude-Opus-4-6", "kimi-k3"),
        ("claude-opus-4-6[1m]", "kimi-k3"),
        ("claude-sonnet-5-5", "deepseek-v4-pro"),
        ("claude-sonnet-4-7", "glm-5.2"),  # the longer pattern
        ("gpt-5.6", "gemini-3-pro-preview"),
    ],
)
def test_the_name_and_then_the_longest_pattern(name, model):
    assert NAMES.find(name).model == model


@pytest.mark.parametrize(
    "name",
    [
        "",
        "[1m]",
        "claude-haiku-4-5",
        "claude-opus-4-6-20260101",
        "claude-opus-4-6-fast",
        "claude-opus-4",
        "claude-opus-4-60",
        "gpt-5",
        "gpt-5.6-mini",
        "deepseek-v4-pro",
    ],
)
def test_a_name_stands_for_no_other_name(name):
    assert NAMES.find(name) is None


def test_an_upstream_that_is_named_has_its_own_rows_only():
    assert NAMES.find("claude-sonnet-4-7", "glm").model == "glm-5.2"
    assert NAMES.find("claude-sonnet-4-7", "deepseek").model == "deepseek-v4-pro"
    assert NAMES.find("claude-sonnet-4-7", "openai") is None
    assert ModelNames().find("claude-sonnet-4-7") is None

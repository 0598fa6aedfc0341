"""What is said of names that stand for models."""

from thoughtline.cli.doctor_models import model_names
from thoughtline.gateway.settings import load

ROWS = """
[models]
"claude-cheap" = "deepseek/deepseek-v4-pro"
"gpt-*" = "kimi/kimi-k3"
"claude-deep" = "anthropic/claude-opus-5-5"
"fast" = "sim/deepseek"
"""


def said(tmp_path, **env):
    (tmp_path / "thoughtline.toml").write_text(ROWS, "utf-8")
    settings = load({}, {"HOME": str(tmp_path), **env}, tmp_path)
    return {one.text.partition(" ")[0]: one for one in model_names(settings)}


def test_a_name_alone_or_a_family(tmp_path):
    found = said(tmp_path)
    assert "this name alone" in found["claude-cheap"].text and "`*`" in found["claude-cheap"].text
    assert "all names like it" in found["gpt-*"].text


def test_another_providers_model_needs_a_key_here(tmp_path):
    found = said(tmp_path, MOONSHOT_API_KEY="k")
    levels = {name: one.level for name, one in found.items()}
    assert levels == {"claude-cheap": "note", "gpt-*": "ok", "claude-deep": "ok", "fast": "ok"}
    assert "DEEPSEEK_API_KEY" in found["claude-cheap"].advice

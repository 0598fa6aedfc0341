"""Names of models that stand for models of other providers."""

import pytest

from support.settings import Place
from thoughtline.errors import SettingsError


@pytest.fixture
def load_text(tmp_path):
    def load(text):
        place = Place(tmp_path)
        place.project(text)
        return place.load()

    return load


def test_a_text_alone_says_what_a_name_stands_for(load_text):
    settings = load_text(
        """
        [models]
        "claude-sonnet-*" = "deepseek/deepseek-v4-pro"
        "claude-opus-*" = { to = "openai/gpt-5.6", effort = "high", dialect = "chat" }
        """
    )
    assert settings.models["claude-sonnet-*"].to == "deepseek/deepseek-v4-pro"
    row = settings.models["claude-opus-*"]
    assert (row.to, row.effort, row.dialect) == ("openai/gpt-5.6", "high", "chat")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[models]\n"a" = "deepseek-v4-pro"', "expected an upstream and a model"),
        ('[models]\n"a" = "nowhere/b"', "names the upstream 'nowhere'"),
        ('[models.a]\nto = "openai/b"\neffort = "much"', "effort"),
        ('[upstreams.x]\nbase_url = "http://127.0.0.1:1"\ndialects = ["chess"]', "not a dialect"),
    ],
)
def test_what_leads_nowhere_is_said(load_text, text, said):
    with pytest.raises(SettingsError, match=said):
        load_text(text)


def test_what_a_provider_speaks_is_known_by_its_name(load_text):
    upstreams = load_text("").upstreams
    assert upstreams["openai"].dialects == ("responses", "chat")
    assert upstreams["anthropic"].dialects == ("messages",)
    assert upstreams["kimi"].dialects == ("chat", "messages")
    own = load_text('[upstreams.mine]\nbase_url = "http://127.0.0.1:1"\ndialects = ["chat"]')
    assert own.upstreams["mine"].dialects == ("chat",)

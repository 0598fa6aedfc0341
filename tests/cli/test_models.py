"""`thoughtline models`: what can be asked for, with key, context, price and efforts."""

import datetime as dt
import json

import pytest
from click.testing import CliRunner

from thoughtline.cli import main
from thoughtline.providers.prices import PriceTable


@pytest.fixture
def run(folder, monkeypatch):
    def invoke(*arguments, **env):
        result = CliRunner().invoke(main, ["models", *arguments], env=env)
        assert "sk-never" not in result.output
        return result

    return invoke


def test_with_a_key_its_models_are_listed_and_the_others_named(run):
    said = run(DEEPSEEK_API_KEY="sk-never").output
    assert "deepseek  key found in DEEPSEEK_API_KEY; chat, " in said
    (line,) = [one for one in said.splitlines() if " deepseek/deepseek-v4-pro " in one]
    assert line.split() == [
        "deepseek/deepseek-v4-pro",
        "1M",
        "$1.32",
        "in,",
        "$3.96",
        "out",
        "none",
        "high",
        "max",
    ]
    assert "sim/deepseek" in said and "anthropic/claude" not in said
    assert "No key for anthropic" in said.replace("\n", " ").replace("openai, ", "")
    assert f"of {PriceTable().date.isoformat()}." in said


def test_one_provider_by_any_of_its_names(run):
    said = run("Anthropic").output
    assert "anthropic  no key: set ANTHROPIC_API_KEY" in said
    assert "anthropic/claude-opus-5-5" in said and "sim/" not in said
    assert "did you mean 'deepseek'?" in run("depseek").output


def test_as_json(run):
    said = json.loads(run("--all", "--json", OPENAI_API_KEY="sk-never").output)
    by_name = {one["name"]: one for one in said["providers"]}
    assert by_name["openai"]["ready"] and not by_name["kimi"]["ready"]
    assert next(iter(by_name)) == "openai"
    opus = next(m for m in by_name["anthropic"]["models"] if m["name"].endswith("opus-5-5"))
    assert opus == {
        "name": "anthropic/claude-opus-5-5",
        "context": 1_000_000,
        "input": 4,
        "output": 20,
        "approximate": False,
        "efforts": ["low", "medium", "high", "xhigh", "max"],
    }


def test_own_upstreams_and_names_are_listed(run, folder):
    (folder / "thoughtline.toml").write_text(
        '[upstreams.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["big-1", "*"]\n'
        '[models]\n"fast" = "mine/big-1"\n[prices."big-*"]\ninput = 1\noutput = 2\n'
    )
    said = run().output
    assert "mine/big-1" in said and "$1 in, $2 out" in said
    assert "fast → mine/big-1" in said


def test_old_prices_are_said_to_be_old(run, monkeypatch):
    assert "days ago" not in run().output
    old = PriceTable().date - dt.timedelta(days=400)
    monkeypatch.setattr(PriceTable, "date", old)
    assert "days ago: they may be others by now" in run().output

"""What tokens cost, and when that is not known."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from thoughtline.log.usage import Usage
from thoughtline.providers.catalogue import BY_NAME, matches_model
from thoughtline.providers.prices import OLD, Price, PriceTable

TABLE = PriceTable()
USED = Usage(input=1_000_000, output=100_000, cached=400_000, reasoning=50_000)


def test_the_table_is_of_known_providers_and_has_a_date_and_a_source():
    providers = TABLE._file.keys() - {"date", "source"}
    assert providers <= BY_NAME.keys()
    assert TABLE.date.year >= 2026
    assert TABLE.source.startswith("https://")
    for provider in providers:
        for model in TABLE._file[provider]:
            price = TABLE.find(provider, model)
            assert price.output > price.input > (price.cached or 0) >= 0, model
            assert "*" in model or price.approximate is False


def test_cached_tokens_cost_less_and_thoughts_are_output():
    cost = TABLE.cost("anthropic", "claude-sonnet-4-6-20260217", USED)
    assert cost == pytest.approx(0.6 * 3 + 0.4 * 0.3 + 0.1 * 15)


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        ("anthropic", "claude-unheard-of", USED),
        ("openrouter", "claude-sonnet-4-6", USED),
        ("date", "x", USED),
        ("gemini", "gemini-2.5-pro", USED),  # longer prompts cost more
        ("mistral", "magistral-medium-latest", USED),  # the lists disagree
        ("anthropic", "claude-opus-4-1", USED),  # of another generation than its family
        ("openai", "gpt-5", Usage(input=5)),
        ("openai", "gpt-5", None),
    ],
)
def test_unknown_is_unknown(provider, model, usage):
    assert TABLE.cost(provider, model, usage) is None


def test_the_users_own_prices_come_first():
    table = PriceTable({"claude-*": Price(input=1.0, cached=0.0, output=2.0)})
    assert table.cost("anywhere", "claude-x", USED) == pytest.approx(0.6 + 0.2)
    assert table.cost("openai", "gpt-5", Usage(input=1_000_000, output=0)) == 1.25


def test_what_is_written_to_a_cache_costs_as_the_prompt_where_nothing_else_is_known():
    used = Usage(input=1_000_000, output=0, cache_write=500_000)
    assert Price(input=2.0, output=1.0).cost(used) == 2.0
    assert Price(input=2.0, output=1.0, cache_write=4.0).cost(used) == 3.0


@pytest.mark.parametrize(
    ("provider", "model", "like"),
    [
        ("anthropic", "claude-opus-5-7", "claude-opus-5-5"),
        ("openai", "gpt-6.2-luna", "gpt-6-luna"),
        ("kimi", "Kimi-K3.2", "kimi-k3"),
    ],
)
def test_another_model_of_a_family_costs_about_as_much(provider, model, like):
    found, known = TABLE.find(provider, model), TABLE.find(provider, like)
    assert (found.input, found.output, found.approximate) == (known.input, known.output, True)
    assert not known.approximate and known.context and found.context is None


def test_an_old_table_is_known_to_be_old():
    assert TABLE.age(TABLE.date) == 0
    assert TABLE.age(TABLE.date + timedelta(days=OLD + 1)) > OLD


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
UNPRICED = {
    "deepseek-r1": "a model of others' servers",
    "deepseek-v3.2": "a simulated one",
    "deepseek-v4": "a family",
    "claude-4-5": "a simulated one",
    "qwen-3": "a family",
}


def named_models():
    """Every name in the documents that a provider claims as its own."""
    labs = [BY_NAME[name] for name in TABLE._file if name in BY_NAME]
    for page in PAGES:
        for model in re.findall(r"(?<![\w-])[a-z]+-[a-z0-9.-]*[a-z0-9]", page.read_text("utf-8")):
            for lab in labs:
                if re.search(r"\d", model) and any(
                    matches_model(pattern, model) for pattern in lab.models
                ):
                    yield page.name, lab.name, model


def test_each_model_that_a_document_names_has_a_price():
    found = list(named_models())
    assert len({model for _, _, model in found}) > 5
    missing = {one for one in found if one[2] not in UNPRICED and not TABLE.find(*one[1:])}
    assert not missing

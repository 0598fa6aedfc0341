"""What tokens cost, and when that is not known."""

import pytest

from thoughtline.log.usage import Usage
from thoughtline.providers.catalogue import BY_NAME
from thoughtline.providers.prices import Price, PriceTable

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
        ("mistral", "magistral-small-latest", USED),  # what its cache costs is not known
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

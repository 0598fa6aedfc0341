"""Tokens and costs of several models add up, and what is not priced is said."""

from thoughtline.inspector.spending import Spending, spending, turn_cost
from thoughtline.log.usage import Usage
from thoughtline.providers.prices import Price, PriceTable

PRICES = PriceTable({"dear": Price(input=10.0, output=20.0), "long": Price(input=1.0, output=1.0, up_to=5)})  # fmt: skip


def counts(model, **more):
    return ("p", model), {"turns": 2, "input_tokens": 1_000_000, "output_tokens": 500_000, **more}


def test_they_add_up():
    found = spending([counts("dear"), counts("cheap", reasoning_tokens=7)], PRICES)
    assert found == Spending(
        turns=4, input=2_000_000, output=1_000_000, reasoning=7, cost=20.0, unpriced=2
    )


def test_a_long_prompt_among_them_makes_the_sum_unknown():
    assert spending([counts("long", long_turns=1)], PRICES).cost is None


def test_turns_without_tokens_cost_nothing_and_miss_no_price():
    assert spending([(("p", "cheap"), {"turns": 3})], PRICES) == Spending(turns=3)


def test_nobody_charges_what_is_simulated():
    assert spending([counts("dear", simulated_turns=1)], PRICES).cost is None
    used = Usage(input=1_000_000, output=0)
    assert turn_cost("p", "dear", "sim:openai", used, PRICES).amount is None
    assert turn_cost("p", "dear", "https://api.openai.com", used, PRICES) == (10.0, False)


def test_a_price_of_a_family_is_said():
    used = Usage(input=1_000_000, output=0)
    counts = {"turns": 1, "input_tokens": 1_000_000}
    table = PriceTable()
    assert turn_cost("anthropic", "claude-opus-5-7", "https://a", used, table) == (4.0, True)
    assert spending([(("anthropic", "claude-opus-5-7"), counts)], table).cost_approximate
    assert not spending([(("anthropic", "claude-opus-5-5"), counts)], table).cost_approximate

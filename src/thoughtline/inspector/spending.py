"""Tokens and what they cost: of a turn, a session, an interval."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from thoughtline.log.turn_counts import SIMULATED
from thoughtline.log.usage import Usage
from thoughtline.providers.prices import PriceTable


class Spending(Struct, frozen=True, kw_only=True, rename="camel"):
    """Tokens of several turns, and what they cost in US dollars."""

    turns: int = 0
    input: int = 0
    output: int = 0
    reasoning: int = 0  # of the output
    cached: int = 0  # of the input: read from the provider's cache
    cache_write: int = 0  # of the input: written to it
    cost: float | None = None  # of the turns whose price is known; null: of none
    cost_approximate: bool = False  # some of it is by the price of the model's family
    unpriced: int = 0  # turns whose price is not known


class TurnCost(NamedTuple):
    """What one turn cost in US dollars; None where that is not known, or where nobody charges."""

    amount: float | None = None
    approximate: bool = False


def turn_cost(
    provider: str, model: str, endpoint: str, usage: Usage | None, prices: PriceTable
) -> TurnCost:
    """What one turn cost."""
    if endpoint.startswith(SIMULATED):
        return TurnCost()
    amount = prices.cost(provider, model, usage)
    return TurnCost(amount, amount is not None and prices.is_approximate(provider, model))


_TOKENS = ("input", "output", "reasoning", "cached", "cache_write")


def spending(
    counts: Iterable[tuple[tuple[str, str], Mapping[str, int]]], prices: PriceTable
) -> Spending:
    """Add up the counts of turns by provider and model, named as `log.turn_counts` names them."""
    sums = dict.fromkeys(_TOKENS, 0)
    turns = unpriced = 0
    cost: float | None = None
    approximate = False
    for (provider, model), counted in counts:
        tokens = {name: counted.get(f"{name}_tokens", 0) for name in _TOKENS}
        for name in _TOKENS:
            sums[name] += tokens[name]
        turns += counted.get("turns", 0)
        if not tokens["input"] and not tokens["output"]:
            continue  # it failed, or its provider does not count
        if counted.get("simulated_turns"):
            continue  # nobody charges it
        long = counted.get("long_turns", 0) > 0
        price = prices.cost(provider, model, Usage(**tokens), long=long)
        if price is None:
            unpriced += counted.get("turns", 0) or 1
        else:
            cost = (cost or 0.0) + price
            approximate = approximate or prices.is_approximate(provider, model)
    return Spending(turns=turns, cost=cost, cost_approximate=approximate, unpriced=unpriced, **sums)

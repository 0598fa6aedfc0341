"""What a model's tokens cost: a table of public prices with its date, and the user's own.

Unknown stays unknown: a model that is not in the table has no cost, and neither has a turn for
which one of the prices it needs is not known. A model whose family is in it costs about as much.
"""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from thoughtline.log.usage import Usage

_MILLION = 1_000_000
OLD = 60
"""Days after which prices may well be others."""
_DATED = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4}|latest)\Z")


class Price(Struct, frozen=True, kw_only=True):
    """US dollars per million tokens; None is unknown."""

    input: float | None = None
    output: float | None = None
    cached: float | None = None  # of the input: read from the provider's cache
    cache_write: float | None = None  # of the input: written to it
    up_to: int | None = None  # longer prompts have other prices, which are not known here
    context: int | None = None  # tokens that a prompt may have
    approximate: bool = False  # it is that of the model's family ("≈")

    def cost(self, usage: Usage, *, long: bool = False) -> float | None:
        """What this many tokens cost; None where that is not known.

        `long`: they are of several turns, of which one may be longer than `up_to`.
        """
        prompt = usage.input
        if prompt is None or usage.output is None:
            return None
        if self.up_to is not None and (long or prompt > self.up_to):
            return None
        cached, written = usage.cached or 0, usage.cache_write or 0
        write_price = self.input if self.cache_write is None else self.cache_write
        amounts = (
            (max(0, prompt - cached - written), self.input),
            (cached, self.cached),
            (written, write_price),
            (usage.output, self.output),
        )
        total = 0.0
        for tokens, price in amounts:
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return total / _MILLION


class PriceTable:
    """The prices that are known here, and those of the settings in front of them."""

    def __init__(self, own: Mapping[str, Price] | None = None) -> None:
        self._own = dict(own or {})  # pattern of model names → price

    @cached_property
    def _file(self) -> dict[str, Any]:
        text = (files("thoughtline.providers") / "prices.toml").read_text("utf-8")
        return tomllib.loads(text)

    @property
    def date(self) -> dt.date:
        """When the table was made."""
        found: dt.date = self._file["date"]
        return found

    def age(self, today: dt.date) -> int:
        """Its age in days; above `OLD` it should be said."""
        days: int = today.toordinal() - self.date.toordinal()
        return days

    @property
    def source(self) -> str:
        """Where the prices come from."""
        return str(self._file["source"])

    def find(self, provider: str, model: str) -> Price | None:
        """The price of a provider's model: the user's own, else the table's."""
        for pattern, price in self._own.items():
            if fnmatchcase(model, pattern):
                return price
        return self._listed(provider, model)

    def context(self, provider: str, model: str) -> int | None:
        """The tokens that a prompt of a model may have; the user's own prices do not say it."""
        listed = self._listed(provider, model)
        return listed.context if listed is not None else None

    def _listed(self, provider: str, model: str) -> Price | None:
        """The price that the table has for a provider's model."""
        rows = self._file.get(provider)
        if not isinstance(rows, dict):
            return None
        row = rows.get(model) or rows.get(_DATED.sub("", model))
        if row:
            return convert(row, Price)
        families = [one for one in rows if "*" in one and fnmatchcase(model.lower(), one.lower())]
        if not families:
            return None
        return replace(convert(rows[max(families, key=len)], Price), approximate=True)

    def is_approximate(self, provider: str, model: str) -> bool:
        """Whether a price is that of the model's family."""
        price = self.find(provider, model)
        return price is not None and price.approximate

    def models(self, provider: str) -> list[str]:
        """The models of a provider that the table has, in its order: the newest first."""
        rows = self._file.get(provider)
        return [name for name in rows if "*" not in name] if isinstance(rows, dict) else []

    def cost(
        self, provider: str, model: str, usage: Usage | None, *, long: bool = False
    ) -> float | None:
        """What a turn cost in US dollars; None where that is not known."""
        if usage is None or usage.input is None:
            return None
        price = self.find(provider, model)
        return price.cost(usage, long=long) if price is not None else None

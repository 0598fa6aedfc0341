"""Serves `/api/usage`: what the turns since a time took and cost, all of them and by model."""

from collections import Counter, defaultdict
from typing import Any

from msgspec import Struct
from starlette.requests import Request

from thoughtline.clock import Clock
from thoughtline.gateway.build import Components
from thoughtline.gateway.failed_requests import FailedLog
from thoughtline.gateway.pages.page import integer, page
from thoughtline.inspector.feed import LiveFeed
from thoughtline.inspector.shapes import DecisionCounts
from thoughtline.inspector.spending import Spending, spending
from thoughtline.log.turn_counts import COARSE, FINE, KEPT, NEW

DAY = 86_400


class ModelSpending(Spending, frozen=True, kw_only=True, rename="camel"):
    """What one model took and cost."""

    provider: str
    model: str


class UsageTotals(Struct, frozen=True, kw_only=True, rename="camel"):
    """What happened since a time."""

    since: float
    total: Spending
    models: list[ModelSpending]  # the dearest and busiest first
    failed: int  # turns that broke off or reported an error, and requests that were refused
    running: int
    thoughts: DecisionCounts  # what became of earlier thoughts; each counts once
    prices_date: str  # of the table of prices
    prices_source: str
    now: float


class UsageApi:
    """The route of what was used."""

    def __init__(self, components: Components, feed: LiveFeed, failed: FailedLog) -> None:
        self._store = components.store
        self._clock: Clock = components.clock
        self._prices = components.prices
        self._failed = failed
        self._unwritten = components.proxy.failed.unwritten
        self._feed = feed

    @page(
        "/api/usage",
        parameters=[
            integer(
                "since",
                "Seconds since the epoch; by default a day ago. Rounded to five minutes, and to "
                "three hours where it is more than three days ago.",
                0,
            )
        ],
    )
    async def usage(self, _: Request, query: dict[str, Any]) -> UsageTotals:
        """Tokens, costs and failures since a time."""
        now = self._clock.wall()
        since = float(query["since"]) if query["since"] is not None else now - DAY
        length = FINE if since > now - KEPT[FINE] else COARSE
        since = since // length * length
        found = await self._store.turn_counts(seconds=length, since=since)
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for one in found:
            counts[one.provider, one.model].update(one.counts)
        total = Counter[str]()
        for counted in counts.values():
            total.update(counted)
        refused = [event.at for event, _ in await self._failed.newest_first()]
        refused += [at for _, at, body in self._unwritten if body.status >= 400]
        return UsageTotals(
            since=since,
            total=spending(counts.items(), self._prices),
            models=self._models(counts),
            failed=total["failed_turns"] + sum(at >= since for at in refused),
            running=len(await self._feed.turns()),
            thoughts=DecisionCounts(
                **{name: total[NEW + name] for name in DecisionCounts.__struct_fields__}
            ),
            prices_date=self._prices.date.isoformat(),
            prices_source=self._prices.source,
            now=now,
        )

    def _models(self, counts: dict[tuple[str, str], Counter[str]]) -> list[ModelSpending]:
        rows = []
        for (provider, model), counted in counts.items():
            spent = spending([((provider, model), counted)], self._prices)
            fields = {name: getattr(spent, name) for name in Spending.__struct_fields__}
            rows.append(ModelSpending(provider=provider, model=model, **fields))
        return sorted(rows, key=lambda row: (-(row.cost or 0.0), -row.input, row.model))

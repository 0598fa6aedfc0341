"""Adds up what became of thoughts over time, from the counts that the store keeps."""

from collections import Counter
from functools import partial

from thoughtline.clock import Clock
from thoughtline.engine.offload import run_aside
from thoughtline.inspector.shapes import Bucket, Continuity, DecisionCounts
from thoughtline.inspector.spending import spending
from thoughtline.log.turn_counts import NEW, TurnCounts
from thoughtline.providers.prices import PriceTable
from thoughtline.stores.base import Store

BUCKETS = 48
"""About how many buckets an answer has."""
LENGTHS = (300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
"""Seconds that a bucket may be long."""
MANY = 200
"""Counts from which adding them up takes so long that other requests would wait."""
_NAMES = frozenset(Bucket.__struct_fields__) - {"at", "cost", "new"}
_Sums = dict[tuple[str, str], Counter[str]]
"""Counts by provider and model."""


class ContinuityCounter:
    """Adds up decisions, turns and tokens of the last hours."""

    def __init__(self, store: Store, clock: Clock, prices: PriceTable) -> None:
        self._store = store
        self._clock = clock
        self._prices = prices

    async def over(
        self, hours: float, provider: str | None = None, model: str | None = None
    ) -> Continuity:
        """The counts of the last hours."""
        now = self._clock.wall()
        length = next((n for n in LENGTHS if n * BUCKETS >= hours * 3600), LENGTHS[-1])
        since = (now - hours * 3600) // length * length + length
        counts = await self._store.turn_counts(seconds=length, since=since)
        times = range(int(since), int(now) + 1, length)
        adding = partial(self._added_up, counts, times, provider, model, now)
        return await run_aside(adding) if len(counts) > MANY else adding()

    def _added_up(
        self,
        counts: list[TurnCounts],
        times: range,
        provider: str | None,
        model: str | None,
        now: float,
    ) -> Continuity:
        buckets: dict[int, _Sums] = {at: {} for at in times}
        whole: _Sums = {}
        for one in counts:
            wanted = provider in {None, one.provider} and model in {None, one.model}
            if wanted and one.at in buckets:
                for sums in (buckets[int(one.at)], whole):
                    sums.setdefault((one.provider, one.model), Counter()).update(one.counts)
        total = _added(whole)
        found = total["restored"] + total["replaced"] + total["exact"]
        needed = found + total["missed"] + total["tied"]
        tokens = total["input_tokens"]
        return Continuity(
            buckets=[self._bucket(at, sums) for at, sums in sorted(buckets.items())],
            seconds=float(times.step),
            total=self._bucket(times.start, whole),
            hit_rate=found / needed if needed else None,
            cached_share=total["cached_tokens"] / tokens if tokens else None,
            by_provider=self._grouped(times.start, whole, 0),
            by_model=self._grouped(times.start, whole, 1),
            now=now,
        )

    def _grouped(self, since: float, sums: _Sums, place: int) -> dict[str, Bucket]:
        """A bucket for each provider, or for each model."""
        groups: dict[str, _Sums] = {}
        for key, counts in sums.items():
            groups.setdefault(key[place], {})[key] = counts
        return {name: self._bucket(since, groups[name]) for name in sorted(groups)}

    def _bucket(self, at: float, sums: _Sums) -> Bucket:
        counts = _added(sums)
        return Bucket(
            at=float(at),
            **{name: counts[name] for name in _NAMES & counts.keys()},
            cost=spending(sums.items(), self._prices).cost,
            new=DecisionCounts(
                **{name: counts[NEW + name] for name in DecisionCounts.__struct_fields__}
            ),
        )


def _added(sums: _Sums) -> Counter[str]:
    total = Counter[str]()
    for counts in sums.values():
        total.update(counts)
    return total

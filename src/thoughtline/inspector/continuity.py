"""Adds up what became of thoughts over time, from the counts that the store keeps."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from thoughtline.clock import Clock
from thoughtline.inspector.shapes import Bucket, Continuity
from thoughtline.stores.base import Store

BUCKETS = 48
"""About how many buckets an answer has."""
LENGTHS = (300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
"""Seconds that a bucket may be long."""
_NAMES = frozenset(Bucket.__struct_fields__) - {"at"}


class ContinuityCounter:
    """Adds up decisions, turns and tokens of the last hours."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def over(
        self, hours: float, provider: str | None = None, model: str | None = None
    ) -> Continuity:
        """The counts of the last hours."""
        now = self._clock.wall()
        length = next((n for n in LENGTHS if n * BUCKETS >= hours * 3600), LENGTHS[-1])
        since = (now - hours * 3600) // length * length + length
        page = await self._store.turn_counts(seconds=length, since=since)
        buckets = {at: Counter[str]() for at in range(int(since), int(now) + 1, length)}
        total = Counter[str]()
        providers: dict[str, Counter[str]] = defaultdict(Counter)
        models: dict[str, Counter[str]] = defaultdict(Counter)
        for one in page.counts:
            wanted = provider in {None, one.provider} and model in {None, one.model}
            if one.at not in buckets or not wanted:
                continue
            for sums in (buckets[int(one.at)], total, providers[one.provider], models[one.model]):
                sums.update(one.counts)
        found = total["restored"] + total["replaced"] + total["exact"]
        needed = found + total["missed"] + total["tied"]
        tokens = total["input_tokens"]
        return Continuity(
            buckets=[_bucket(at, counts) for at, counts in sorted(buckets.items())],
            seconds=float(length),
            total=_bucket(since, total),
            hit_rate=found / needed if needed else None,
            cached_share=total["cached_tokens"] / tokens if tokens else None,
            by_provider={name: _bucket(since, n) for name, n in sorted(providers.items())},
            by_model={name: _bucket(since, n) for name, n in sorted(models.items())},
            complete=page.complete,
            now=now,
        )


def _bucket(at: float, counts: Mapping[str, int]) -> Bucket:
    return Bucket(at=float(at), **{name: counts[name] for name in _NAMES & counts.keys()})

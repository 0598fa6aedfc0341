"""What became of thoughts, over time: counted from the log when somebody asks, and kept up to date.

Only starts and ends of turns are read, each of them once, in the order they were written. The
counts of a minute are kept; a longer look back than before counts anew from there.
"""

import asyncio
import math
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.events import Event, Usage
from thoughtline.inspector.reading import gently
from thoughtline.inspector.rulings import Started, Target, started
from thoughtline.inspector.shapes import Bucket, Continuity
from thoughtline.stores.base import Store

MINUTE = 60
PIECES = 48
"""About how many buckets a look back has."""
LENGTHS = (60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
"""Seconds that a bucket may be long."""
PENDING = 10_000
"""Turns that have started and not ended, at most."""
SLICE = 50
"""Events that are counted at a time."""

_NAMES = (
    "restored",
    "replaced",
    "exact",
    "absent",
    "placeholder",
    "dropped",
    "missed",
    "turns",
    "input_tokens",
    "cached_tokens",
)


class _Ended(Struct):
    usage: Usage | None = None
    model: str = ""


_ended = msgspec.json.Decoder(_Ended)

Key = tuple[int, str, str]
"""Minute, provider, model."""


class Counting:
    """Counts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._since = math.inf
        self._position = 0
        self._counts: dict[Key, dict[str, int]] = {}
        self._pending: dict[tuple[str, str], tuple[str, str]] = {}  # turn → provider, model
        self._lock = asyncio.Lock()

    async def look(
        self, hours: float, provider: str | None = None, model: str | None = None
    ) -> Continuity:
        """The last hours."""
        now = self._clock.wall()
        length = next((n for n in LENGTHS if n * PIECES >= hours * 3600), LENGTHS[-1])
        since = (now - hours * 3600) // length * length + length
        async with self._lock:
            await self._catch_up(since)
        return self._told(since, length, now, provider, model)

    async def _catch_up(self, since: float) -> None:
        if since < self._since:
            self._since, self._position = since, 0
            self._counts, self._pending = {}, {}
        elif len(self._counts) > 100_000:
            self._forget(since)
        more = True
        while more:
            chapter = await self._store.history(
                ("turn_started", "turn_ended"), since=self._since, after=self._position
            )
            async for event in gently(chapter.events, SLICE):
                self._take(event)
            more, self._position = chapter.more, chapter.position

    def _forget(self, since: float) -> None:
        self._since = since
        self._counts = {key: n for key, n in self._counts.items() if key[0] * MINUTE >= since}

    def _take(self, event: Event) -> None:
        try:
            if event.type == "turn_started":
                self._start(event, started(event.data))
            else:
                self._end(event, _ended.decode(event.data))
        except msgspec.MsgspecError:
            return  # of a newer version, or damaged

    def _start(self, event: Event, body: Started) -> None:
        target = body.target or Target()
        self._pending[event.session, event.id] = (target.provider, target.model)
        if len(self._pending) > PENDING:
            del self._pending[next(iter(self._pending))]
        counts = self._of(event.at, target.provider, target.model)
        counts["turns"] += 1
        for name, count in msgspec.structs.asdict(body.counts).items():
            if name in counts:
                counts[name] += count

    def _end(self, event: Event, body: _Ended) -> None:
        provider, model = self._pending.pop((event.session, event.parent), ("", body.model))
        if body.usage is not None:
            counts = self._of(event.at, provider, model)
            counts["input_tokens"] += body.usage.input or 0
            counts["cached_tokens"] += body.usage.cached or 0

    def _of(self, at: float, provider: str, model: str) -> dict[str, int]:
        return self._counts.setdefault(
            (int(at // MINUTE), provider, model), dict.fromkeys(_NAMES, 0)
        )

    # -- telling ---------------------------------------------------------------------------------

    def _told(
        self, since: float, length: int, now: float, provider: str | None, model: str | None
    ) -> Continuity:
        buckets = {at: dict.fromkeys(_NAMES, 0) for at in _steps(since, length, now)}
        total = dict.fromkeys(_NAMES, 0)
        providers: dict[str, dict[str, int]] = {}
        models: dict[str, dict[str, int]] = {}
        for (minute, by, of), counts in self._counts.items():
            at = minute * MINUTE // length * length
            if at not in buckets or provider not in {None, by} or model not in {None, of}:
                continue
            _add(buckets[at], counts)
            _add(total, counts)
            _add(providers.setdefault(by, dict.fromkeys(_NAMES, 0)), counts)
            _add(models.setdefault(of, dict.fromkeys(_NAMES, 0)), counts)
        found = total["restored"] + total["replaced"] + total["exact"]
        wanted = found + total["missed"]
        read = total["input_tokens"]
        return Continuity(
            buckets=[Bucket(at=float(at), **counts) for at, counts in sorted(buckets.items())],
            seconds=float(length),
            total=Bucket(at=since, **total),
            hit_rate=found / wanted if wanted else None,
            cached_share=min(total["cached_tokens"] / read, 1.0) if read else None,
            by_provider={name: Bucket(at=since, **n) for name, n in sorted(providers.items())},
            by_model={name: Bucket(at=since, **n) for name, n in sorted(models.items())},
            now=now,
        )


def _steps(since: float, length: int, now: float) -> Iterator[int]:
    return iter(range(int(since // length) * length, int(now) + 1, length))


def _add(into: dict[str, int], counts: dict[str, int]) -> None:
    for name, count in counts.items():
        into[name] += count

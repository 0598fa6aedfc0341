"""The counts of turns in the database (see `stores/turn_counting.py`)."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from thoughtline.clock import Clock
from thoughtline.errors import StoreError
from thoughtline.log.events import TurnStarted
from thoughtline.log.turn_counts import KEPT, TurnCounts, body_of, from_rows, kept_length
from thoughtline.stores.base import Batch
from thoughtline.stores.postgres.connections import Connections
from thoughtline.stores.postgres.rows import kinds_mask
from thoughtline.stores.postgres.sealed_rows import read_events
from thoughtline.stores.postgres.seals import Seals
from thoughtline.stores.turn_counting import ADD_EVERY, TurnCounting, TurnPlace

_COUNTS = """
SELECT at / $3 * $3 AS at, provider, model, name, sum(count)::bigint
FROM turn_counts WHERE seconds = $1 AND at >= $2 GROUP BY 1, 2, 3, 4
"""
_ADD = """
INSERT INTO turn_counts AS t
SELECT * FROM unnest($1::int[], $2::bigint[], $3::bytea[], $4::bytea[], $5::text[], $6::bigint[])
     AS u (seconds, at, provider, model, name, count)
ORDER BY seconds, at, provider, model, name
ON CONFLICT (seconds, at, provider, model, name) DO UPDATE SET count = t.count + excluded.count
"""
_EXPIRE = "DELETE FROM turn_counts WHERE seconds = $1 AND at < $2"
_STARTS = """
SELECT tenant, session, id, nth, entry, turn, first, count, said FROM batches
WHERE session = ANY ($1) AND kinds & $2 <> 0 ORDER BY session, first DESC
"""


class TurnCountTable:
    """Counts what this node writes, and adds it to the table of all."""

    def __init__(self, connections: Connections, seals: Seals, clock: Clock) -> None:
        self._connections = connections
        self._seals = seals
        self._clock = clock
        self._counting = TurnCounting()
        self._adding = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def note(self, batches: Sequence[Batch]) -> None:
        """Count what was written."""
        for batch in batches:
            self._counting.add(batch.session, batch.drafts)
        if self._timer is None and self._counting:
            self._timer = asyncio.get_running_loop().call_later(ADD_EVERY, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self.try_to_add())

    async def try_to_add(self) -> None:
        """Add what was counted, if that can be: otherwise it is added later."""
        with suppress(StoreError):
            await self._add()

    async def _add(self) -> None:
        async with self._adding:
            if not self._counting:
                return
            starts = await self._starts(self._counting.unknown)
            now = self._clock.wall()
            rows = self._counting.take(starts, now)
            columns = list(zip(*rows, strict=True)) if rows else [()] * 6
            for text in (2, 3):
                columns[text] = tuple(value.encode() for value in columns[text])
            try:
                await self._connections.write(_ADD, *columns)
            except BaseException:
                self._counting.give_back(rows)
                raise
            for seconds, kept in KEPT.items():
                await self._connections.write(_EXPIRE, seconds, int(now - kept))

    async def _starts(self, wanted: set[TurnPlace]) -> Mapping[TurnPlace, TurnStarted]:
        """Return the starts of turns that began elsewhere, or long ago."""
        found: dict[TurnPlace, TurnStarted] = {}
        if not wanted:
            return found
        sessions = sorted({session.encode() for session, _ in wanted})
        rows = (await self._seals.read(_STARTS, sessions, kinds_mask(["turn_started"]))).opened
        for row in rows:
            for event in read_events(row, self._seals.damage):
                place = (event.session, event.id)
                if event.type == "turn_started" and place in wanted and place not in found:
                    body = body_of(event)
                    if isinstance(body, TurnStarted):
                        found[place] = body
        return found

    async def counts(self, seconds: int, since: float) -> list[TurnCounts]:
        """Return the counts of intervals of this length."""
        await self.try_to_add()
        rows = await self._connections.read(_COUNTS, kept_length(seconds), int(since), seconds)
        found = [
            (at, provider.decode(), model.decode(), name, count)
            for at, provider, model, name, count in rows
        ]
        return from_rows(found)

    async def close(self) -> None:
        """Add what was counted, for the last time."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})
        await self.try_to_add()

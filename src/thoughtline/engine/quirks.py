"""What endpoints have taught: a refusal, a correction, and the answer that proved it right.

A quirk is what differs from an endpoint's policy row, known by endpoint, dialect and model. It is
kept once it was proved, as an `endpoint_learned` event in a session of its own that belongs to no
tenant, so that the next request is right at once: after a restart, and in other processes too,
which read on in that session whenever they meet a refusal themselves. A correction that did not
help is only doubted, in memory: the next refusal tries the next one.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.engine.switches import without_switches
from thoughtline.errors import StoreError, Unreadable
from thoughtline.log.events import EndpointLearned, Event, draft
from thoughtline.log.parts import Origin
from thoughtline.log.quirks import Quirk
from thoughtline.providers.policy import Policy
from thoughtline.stores.base import INTERNAL_PREFIX, Batch, Store

SESSION = f"{INTERNAL_PREFIX}learned"
TENANT = ""
ANY = "*"
"""In place of a model: the whole endpoint is like that."""
PAUSE = 5_000_000_000
"""Nanoseconds before a store that did not answer is asked again."""
STORE_TIMEOUT = 5.0
"""Seconds within which it answers, or counts as down."""
DOUBTS = 4096
"""How many doubts are remembered: clients make up model names."""


_LISTS = ("drops", "refused_asks", "legal", "moves")
_COLUMNS = [
    name
    for name in Quirk.__struct_fields__
    if name in Policy.__struct_fields__ and name not in _LISTS
]

Place = tuple[str, str, str]
"""Endpoint, dialect, model."""


def place(origin: Origin, quirk: Quirk | None = None) -> Place:
    """Where a quirk holds."""
    model = ANY if quirk and quirk.anywhere else origin.asked or origin.model
    return origin.endpoint, origin.dialect, model


def strengthened(policy: Policy, quirk: Quirk) -> Policy:
    """The row with what a quirk says in its columns."""
    said = {name: getattr(quirk, name) for name in _COLUMNS}
    changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if quirk.legal:
        changes["legal"] = tuple(dict((*policy.legal, *quirk.legal)).items())
    if quirk.moves:
        changes["moves"] = quirk.moves
    if quirk.refused_asks:
        changes["asks"] = without_switches(policy.asks, quirk.refused_asks)
    return replace(policy, **changes) if changes else policy


def joined(old: Quirk, new: Quirk) -> Quirk:
    """Both quirks; where they differ, the later one."""
    said = {name: getattr(new, name) for name in Quirk.__struct_fields__ if name not in _LISTS}
    changes = {name: value for name, value in said.items() if value is not None}
    for name in _LISTS:
        changes[name] = tuple(dict.fromkeys((*getattr(old, name), *getattr(new, name))))
    return replace(old, **changes)


class Quirks:
    """All quirks, in memory, with the log behind them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._quirks: dict[Place, Quirk] = {}
        self._doubts: set[tuple[Place, Quirk]] = set()
        self._seq = -1
        self.wait: int | None = 0  # until this reading of the clock; None: everything was read

    @property
    def behind(self) -> bool:
        """Whether something was learned, by others or before, that was not read yet."""
        return self.wait is not None or self._store.learned > self._seq

    async def ready(self) -> None:
        """Read what was learned before, or by others; a store that is down is asked later."""
        if self.behind and (self.wait is None or self._clock.mono() >= self.wait):
            await self.refresh()

    async def refresh(self) -> None:
        """Read what was learned since, here or in another process."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT):
                self._take(await self._store.read(SESSION, after=self._seq))
            self.wait = None
        except (StoreError, TimeoutError):
            self.wait = self._clock.mono() + PAUSE

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._seq = event.seq
            with contextlib.suppress(Unreadable, msgspec.ValidationError):
                body = event.body()
                if isinstance(body, EndpointLearned):
                    self._keep((body.endpoint, body.dialect, body.model), body.quirk)

    def _keep(self, where: Place, quirk: Quirk) -> None:
        known = self._quirks.get(where)
        self._quirks[where] = joined(known, quirk) if known else quirk

    def quirk(self, origin: Origin) -> Quirk | None:
        """What is known of an endpoint and model."""
        if not self._quirks:
            return None
        every = self._quirks.get((origin.endpoint, origin.dialect, ANY))
        own = self._quirks.get(place(origin))
        return joined(every, own) if every and own else own or every

    def doubt(self, origin: Origin, quirk: Quirk) -> None:
        """Remember, in memory, that this quirk did not help at this endpoint."""
        if len(self._doubts) >= DOUBTS:
            self._doubts.clear()
        self._doubts.add((place(origin, quirk), quirk))

    def doubted(self, origin: Origin, quirk: Quirk) -> bool:
        """Whether this quirk was tried at this endpoint, and did not help."""
        return (place(origin, quirk), quirk) in self._doubts

    async def learn(self, origin: Origin, quirk: Quirk, reason: str) -> None:
        """Keep a quirk that helped: in memory at once, and in the log if that can be."""
        where = place(origin, quirk)
        known = self._quirks.get(where)
        self._doubts.discard((where, quirk))
        self._keep(where, quirk)
        if self._quirks[where] == known:
            return
        endpoint, dialect, model = where
        body = EndpointLearned(
            endpoint=endpoint, dialect=dialect, model=model, quirk=quirk, reason=reason
        )
        made = draft(body, id=self._clock.new_id(), parent="", at=self._clock.wall())
        with contextlib.suppress(StoreError):
            batch = Batch(id=made.id, session=SESSION, tenant=TENANT, drafts=(made,))
            await self._store.append(batch)

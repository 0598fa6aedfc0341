"""What endpoints have taught: a refusal, a remedy, and the answer that proved it right.

A lesson is what differs from an endpoint's policy row, known by endpoint, dialect and model. It is
kept once it was proved, as an `endpoint_learned` event in a session of its own that belongs to no
tenant, so that the next request is right at once: after a restart, and in other processes too,
which read on in that session whenever they meet a refusal themselves. A remedy that did not help
is only doubted, in memory: the next refusal tries the next one.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.errors import StoreError, Unreadable
from thoughtline.events import EndpointLearned, Event, draft
from thoughtline.guards import Target
from thoughtline.parts import Carrier, Origin
from thoughtline.policies import Need, Policy, Scope
from thoughtline.stores.base import INTERNAL, Batch, Store

SESSION = f"{INTERNAL}learned"
TENANT = ""
ANY = "*"
"""In place of a model: the whole endpoint is like that."""
PAUSE = 5_000_000_000
"""Nanoseconds before a store that did not answer is asked again."""
PATIENCE = 5.0
"""Seconds within which it answers, or counts as down."""
DOUBTS = 4096
"""How many doubts are remembered: clients make up model names."""


class Lesson(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an endpoint wants; what is None stays as its policy row has it."""

    need: Need | None = None
    scope: Scope | None = None
    with_tools: bool | None = None
    reads: tuple[Carrier, ...] | None = None
    copies: bool | None = None
    every_call: bool | None = None
    lost: str | None = None
    off: tuple[str, str] | None = None
    thinks: bool | None = None
    # beyond the row
    nameless: bool | None = None  # sealed items go without ids
    summaries: bool | None = None  # reasoning items have a summary, if only an empty one
    nine: bool | None = None  # tool call ids have nine characters
    bare: bool | None = None  # a key that is not known there may not even hold null
    all_turns: bool | None = None  # `reasoning.context` must be said
    unstored: bool | None = None  # `store` must be false
    unsealed: bool | None = None  # it cannot be asked for encrypted content
    drops: tuple[str, ...] = ()  # parameters it does not take
    anywhere: bool | None = None  # whatever the model


_COLUMNS = [name for name in Lesson.__struct_fields__ if name in Policy.__struct_fields__]

Place = tuple[str, str, str]
"""Endpoint, dialect, model."""


def place(origin: Origin, lesson: Lesson | None = None) -> Place:
    """Where a lesson holds."""
    model = ANY if lesson and lesson.anywhere else origin.asked or origin.model
    return origin.endpoint, origin.dialect, model


def strengthened(policy: Policy, lesson: Lesson) -> Policy:
    """The row with what a lesson says in its columns."""
    said = {name: getattr(lesson, name) for name in _COLUMNS}
    changes = {name: value for name, value in said.items() if value is not None}
    return replace(policy, **changes) if changes else policy


def joined(old: Lesson, new: Lesson) -> Lesson:
    """Both lessons; where they differ, the later one."""
    said = {name: getattr(new, name) for name in Lesson.__struct_fields__ if name != "drops"}
    changes = {name: value for name, value in said.items() if value is not None}
    return replace(old, **changes, drops=tuple(dict.fromkeys((*old.drops, *new.drops))))


class Learned:
    """All lessons, in memory, with the log behind them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lessons: dict[Place, Lesson] = {}
        self._doubts: set[tuple[Place, Lesson]] = set()
        self._seq = -1
        self.wait: int | None = 0  # until this reading of the clock; None: everything was read

    async def ready(self) -> None:
        """Read what was learned before, the first time; a store that is down is asked later."""
        if self.wait is not None and self._clock.mono() >= self.wait:
            await self.refresh()

    async def refresh(self) -> None:
        """Read what was learned since, here or in another process."""
        try:
            async with asyncio.timeout(PATIENCE):
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
                    lesson = msgspec.convert(body.lesson, Lesson)
                    self._keep((body.endpoint, body.dialect, body.model), lesson)

    def _keep(self, where: Place, lesson: Lesson) -> None:
        known = self._lessons.get(where)
        self._lessons[where] = joined(known, lesson) if known else lesson

    def lesson(self, origin: Origin) -> Lesson | None:
        """What is known of an endpoint and model."""
        if not self._lessons:
            return None
        every = self._lessons.get((origin.endpoint, origin.dialect, ANY))
        own = self._lessons.get(place(origin))
        return joined(every, own) if every and own else own or every

    def target(self, target: Target) -> Target:
        """The target with the row that its endpoint has shown to want."""
        lesson = self.lesson(target.origin)
        if lesson is None:
            return target
        return replace(target, policy=strengthened(target.policy, lesson))

    def doubt(self, origin: Origin, lesson: Lesson) -> None:
        """This did not help there."""
        if len(self._doubts) >= DOUBTS:
            self._doubts.clear()
        self._doubts.add((place(origin, lesson), lesson))

    def doubted(self, origin: Origin, lesson: Lesson) -> bool:
        """Whether it was tried there, and did not help."""
        return (place(origin, lesson), lesson) in self._doubts

    async def learn(self, origin: Origin, lesson: Lesson, reason: str) -> None:
        """This helped there: keep it, in memory at once and in the log if that can be."""
        where = place(origin, lesson)
        known = self._lessons.get(where)
        self._doubts.discard((where, lesson))
        self._keep(where, lesson)
        if self._lessons[where] == known:
            return
        endpoint, dialect, model = where
        said: dict[str, Any] = msgspec.to_builtins(lesson)
        body = EndpointLearned(
            endpoint=endpoint, dialect=dialect, model=model, lesson=said, reason=reason
        )
        made = draft(body, id=self._clock.new_id(), parent="", at=self._clock.wall())
        with contextlib.suppress(StoreError):
            await self._store.append(Batch(session=SESSION, tenant=TENANT, drafts=(made,)))

"""One controlled retry when a provider refuses a thought, or the lack of one.

The refusal is deterministic, so the same body is never sent twice: the provider's own words name a
remedy (`policies.remedies`), its treatment (`treatments`) says what to try, and the first thing
that really changes what is sent is tried, once. Thoughts that were refused are quarantined in the
log before that; what the second answer proves about the endpoint is kept (`learned`). Everything
else, and every refusal that is about something else, is passed on as it came.
"""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from thoughtline import keys as k
from thoughtline.clock import Clock
from thoughtline.errors import StoreError, Unreadable
from thoughtline.events import Outcome, Quarantined, draft
from thoughtline.exchanges import Exchange
from thoughtline.gateway.cases import Case, Change, named
from thoughtline.gateway.flattening import flattened
from thoughtline.gateway.histories import path_to
from thoughtline.gateway.learned import Learned
from thoughtline.gateway.treatments import TREATMENTS
from thoughtline.memories import Memory
from thoughtline.policies.remedies import Remedy, diagnose
from thoughtline.replay import Action
from thoughtline.stores.base import Batch, Store
from thoughtline.turns import Turn

READ_LIMIT = 1 << 16
"""How much of a refusal is looked at."""


class Observer(Protocol):
    """Who wants to know."""

    def healed(self, exchange: Exchange, remedy: str, *, changed: bool) -> None:
        """A remedy was looked for; `changed`: there is something to try."""

    def lost(self, exchange: Exchange, error: Exception) -> None:
        """Something could not be written."""


class Trial(Struct, frozen=True, kw_only=True):
    """A second try, on its way."""

    exchange: Exchange
    remedy: Remedy
    change: Change


class Healer:
    """Knows remedies, and what endpoints have taught so far."""

    def __init__(self, observer: Observer, store: Store, clock: Clock) -> None:
        self.observer = observer
        self.learned = Learned(store, clock)

    async def heal(
        self, exchange: Exchange, status: int, refusal: bytes, *, strict: bool = False
    ) -> Trial | None:
        """Change the exchange so that it may be tried once more; None: pass the answer on.

        With `strict`, nothing is tried that puts a value in the place of a thought, or switches
        thinking off.
        """
        remedy = diagnose(status, refusal)
        if remedy is None:
            return None
        await self.learned.refresh()
        case = await self._case(exchange, remedy, refusal)
        back, body, headers = exchange.bookmark(), exchange.body, exchange.terms.headers
        for change in self._changes(case, remedy):
            await _make(exchange, change)
            changed = exchange.body != body or exchange.terms.headers != headers
            if changed and not (strict and _stands_in(exchange)):
                await self._quarantine(case, change, remedy)
                self.observer.healed(exchange, remedy.value, changed=True)
                return Trial(exchange=exchange, remedy=remedy, change=change)
            back()
        self.observer.healed(exchange, remedy.value, changed=False)
        return None

    async def settle(self, trial: Trial, status: int) -> None:
        """The second answer: what it says about the endpoint is kept, or doubted."""
        lesson, origin = trial.change.lesson, trial.exchange.target.origin
        if lesson is None:
            return
        if status < 400:
            await self.learned.learn(origin, lesson, trial.remedy.value)
        elif status < 500 and status != 429:
            self.learned.doubt(origin, lesson)

    def _changes(self, case: Case, remedy: Remedy) -> list[Change]:
        """What to try, without what did not help at this endpoint before."""
        origin = case.exchange.target.origin
        try:
            found = list(TREATMENTS[remedy](case))
        except Unreadable:  # a body that is not for us to edit
            return []
        return [c for c in found if not (c.lesson and self.learned.doubted(origin, c.lesson))]

    # -- evidence --------------------------------------------------------------------------------

    async def _case(self, exchange: Exchange, remedy: Remedy, refusal: bytes) -> Case:
        words = refusal[:READ_LIMIT].decode("utf-8", "replace").replace('\\"', '"')
        ids = named(words)
        names = {id: k.ref("item", id) for id in ids}
        known: dict[str, Memory] = {}
        behind: tuple[Turn, ...] = ()
        try:
            if names:
                found = await exchange.store.find(exchange.tenant, list(names.values()))
                memories = {id: _completed(found.get(name, ())) for id, name in names.items()}
                known = {id: memory for id, memory in memories.items() if memory is not None}
            if remedy in _GOES_ON and exchange.request.previous:
                name = k.ref("response", exchange.request.previous)
                after = _completed(exchange.found.get(name, ()))
                behind = await path_to(exchange.store, after) if after else ()
        except StoreError:
            pass  # then nothing more is known
        return Case(exchange=exchange, words=words, known=known, behind=behind)

    # -- consequences ----------------------------------------------------------------------------

    async def _quarantine(self, case: Case, change: Change, remedy: Remedy) -> None:
        """Write down what was refused, each in the session where it was thought."""
        if not change.quarantine:
            return
        exchange, clock = case.exchange, case.exchange.clock
        filed = [memory for found in (change.found or {}).values() for memory in found]
        sessions: dict[str, list[Quarantined]] = {}
        for memory in {m.turn: m for m in filed if m.turn in change.quarantine}.values():
            positions = tuple(sorted(change.quarantine[memory.turn]))
            body = Quarantined(turn=memory.turn, thoughts=positions, reason=remedy.value)
            sessions.setdefault(memory.session, []).append(body)
        for session, bodies in sessions.items():
            drafts = tuple(
                draft(body, id=clock.new_id(), parent=body.turn, at=clock.wall()) for body in bodies
            )
            batch = Batch(session=session, tenant=exchange.tenant, drafts=drafts)
            try:
                await exchange.store.append(batch)
            except StoreError as error:
                self.observer.lost(exchange, error)


_GOES_ON = (Remedy.REPLAY_IN_FULL, Remedy.DEDUPLICATE, Remedy.SET_STORE_FALSE)
"""Remedies that ask what a request goes on from."""


async def _make(exchange: Exchange, change: Change) -> None:
    exchange.again(target=change.target, found=change.found, path=change.path, terms=change.terms)
    if change.request is not None:
        await exchange.reread(change.request, certain=change.certain)


def _completed(memories: Iterable[Memory]) -> Memory | None:
    return next((m for m in memories if m.outcome is Outcome.COMPLETED), None)


def _stands_in(exchange: Exchange) -> bool:
    """Whether something else than a thought goes out in the place of one."""
    made = exchange.restoration
    told = flattened in exchange.terms.rewrites
    return told or bool(made.fields) or made.count(Action.PLACEHOLDER) > 0

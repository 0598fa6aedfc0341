"""One corrected retry when a provider refuses a thought, or the lack of one.

The refusal is deterministic, so the same body is never sent twice. The provider's own words name a
strategy (`providers.errors`), the strategy says what to try (`strategies`), and the first thing
that really changes what is sent is tried, once. Only where a provider names its culprits one at a
time, and refuses the corrected request for the same reason, goes a last one without all sealed
thoughts. Thoughts that were refused are quarantined in the log before that; what the second answer
proves about the endpoint is kept (`quirks`). Every other refusal is handed on as it came.
"""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from thoughtline.clock import Clock
from thoughtline.engine.decision import RequestDecision
from thoughtline.engine.legal_values import refused_value
from thoughtline.engine.offload import run_for
from thoughtline.engine.quirks import Quirks
from thoughtline.engine.recovery.added import STATUSES, is_vague, names_added_key
from thoughtline.engine.recovery.case import Case, Correction, named
from thoughtline.engine.recovery.strategies import STRATEGIES
from thoughtline.engine.server_state import completed
from thoughtline.errors import StoreError, Unreadable
from thoughtline.log import keys as k
from thoughtline.log.events import Quarantined
from thoughtline.log.index import IndexEntry
from thoughtline.log.turns import Turn
from thoughtline.providers.errors import Strategy, diagnose
from thoughtline.replay.guard import LostThought
from thoughtline.stores.base import Store

MAX_REFUSAL_BYTES = 1 << 16
"""How much of a refusal is looked at."""
_CONTINUING = (Strategy.REPLAY_IN_FULL, Strategy.DEDUPLICATE, Strategy.SET_STORE_FALSE)
"""Strategies that ask which turns a request continues."""


class Attempt(Struct, frozen=True, kw_only=True):
    """A corrected request on its way, and what it is to prove."""

    decision: RequestDecision
    strategy: Strategy
    correction: Correction
    last: bool = False  # nothing more is tried after it


Unwritten = Callable[[StoreError], None]
"""Told of a quarantine that could not be written."""


class Recovery:
    """Corrects refused requests, and knows what endpoints have taught so far."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.quirks = Quirks(store, clock)
        self._store = store

    async def recover(
        self,
        decision: RequestDecision,
        *,
        tenant: str,
        status: int,
        refusal: bytes,
        strict: bool = False,
        after: Attempt | None = None,
        unwritten: Unwritten | None = None,
    ) -> tuple[Strategy | None, Attempt | None]:
        """What the refusal calls for, and the corrected request; None: hand the answer on.

        With `strict`, nothing is tried that puts a value in the place of a thought, or switches
        thinking off. `after` is the attempt that was refused now, if it is not the first refusal.
        """
        body = decision.body
        decision = await run_for(body, decision.with_body)
        strategy = diagnose(status, refusal)
        if strategy is None:
            words = refusal[:MAX_REFUSAL_BYTES]
            strategy = await run_for(body, partial(_by_its_words, decision, status, words))
        if strategy is None:
            return None, None
        if after is not None and (after.last or after.strategy is not strategy):
            return strategy, None
        await self.quirks.refresh()
        case = await self._case(decision, tenant, strategy, refusal)
        finding = partial(self._corrections, case, strategy, widest=after is not None)
        for correction in await run_for(body, finding):
            corrected = await _corrected(decision, case, correction)
            changed = (
                corrected.body != decision.body
                or corrected.overrides.headers != decision.overrides.headers
            )
            if changed and not (strict and _makes_up(corrected)) and _may_go(corrected):
                await _quarantine(case, correction, strategy, unwritten)
                last = after is not None or not correction.drops
                return strategy, Attempt(
                    decision=corrected, strategy=strategy, correction=correction, last=last
                )
        return strategy, None

    async def settle(self, attempt: Attempt, status: int) -> None:
        """Keep, or doubt, what the answer to a corrected request says about the endpoint."""
        quirk, origin = attempt.correction.quirk, attempt.decision.target.origin
        if quirk is None:
            return
        if status < 400:
            await self.quirks.learn(origin, quirk, attempt.strategy.value)
        elif status < 500 and status != 429:
            self.quirks.doubt(origin, quirk)

    def _corrections(self, case: Case, strategy: Strategy, *, widest: bool) -> list[Correction]:
        """What to try, without what did not help at this endpoint before."""
        if widest:
            found = case.without(lambda _, out: out.sealed)
            return [found] if found else []
        origin = case.decision.target.origin
        try:
            corrections = list(STRATEGIES[strategy](case))
        except Unreadable:  # a body that is not for us to edit
            return []
        doubted = self.quirks.doubted
        return [c for c in corrections if not (c.quirk and doubted(origin, c.quirk))]

    # -- evidence --------------------------------------------------------------------------------

    async def _case(
        self, decision: RequestDecision, tenant: str, strategy: Strategy, refusal: bytes
    ) -> Case:
        words = refusal[:MAX_REFUSAL_BYTES].decode("utf-8", "replace").replace('\\"', '"')
        names = {id: k.reference_key("item", id) for id in named(words)}
        known: dict[str, IndexEntry] = {}
        continued: tuple[Turn, ...] = ()
        try:
            if names:
                found = await self._store.find(tenant, list(names.values()))
                endpoint = decision.target.origin.endpoint
                entries = {
                    id: completed(found.get(name, ()), endpoint) for id, name in names.items()
                }
                known = {id: entry for id, entry in entries.items() if entry is not None}
            if strategy in _CONTINUING:
                continued = await decision.source.continued(decision)
        except StoreError:
            pass  # then nothing more is known
        return Case(decision=decision, words=words, known=known, continued=continued)


async def _quarantine(
    case: Case, correction: Correction, strategy: Strategy, unwritten: Unwritten | None
) -> None:
    """Write down what was refused, each in the session where it was thought."""
    for session, bodies in _by_session(correction, strategy).items():
        try:
            await case.decision.source.quarantine(session, bodies)
        except StoreError as error:
            if unwritten is not None:
                unwritten(error)


def _by_session(correction: Correction, strategy: Strategy) -> dict[str, list[Quarantined]]:
    gone = correction.quarantine
    entries: Iterable[IndexEntry] = (
        entry for filed in (correction.found or {}).values() for entry in filed
    )
    sessions: dict[str, list[Quarantined]] = {}
    for entry in {entry.turn: entry for entry in entries if entry.turn in gone}.values():
        positions = tuple(sorted(gone[entry.turn]))
        body = Quarantined(turn=entry.turn, thoughts=positions, reason=strategy.value)
        sessions.setdefault(entry.session, []).append(body)
    return sessions


async def _corrected(
    decision: RequestDecision, case: Case, correction: Correction
) -> RequestDecision:
    changes = {
        name: value
        for name in ("target", "found", "path", "overrides")
        if (value := getattr(correction, name)) is not None
    }
    corrected = await run_for(decision.request.body, partial(decision.revise, **changes))
    if correction.with_items:
        corrected = await decision.source.with_items(corrected)
    if correction.in_full:
        corrected = await decision.source.in_full(corrected, case.continued)
    return corrected


def _by_its_words(decision: RequestDecision, status: int, words: bytes) -> Strategy | None:
    """The strategy for a refusal that is in no list: it says what is legal, or names our keys."""
    if status in STATUSES and _lists_values(decision, words):
        return Strategy.NEAREST_VALUE
    ours = names_added_key(decision, status, words) or is_vague(decision, status, words)
    return Strategy.TAKE_OUT if ours else None


def _lists_values(decision: RequestDecision, words: bytes) -> bool:
    text = words.decode("utf-8", "replace").replace('\\"', '"')
    try:
        return refused_value(decision.body, decision.dialect.history_member, text) is not None
    except Unreadable:
        return False


def _makes_up(decision: RequestDecision) -> bool:
    """Whether something else than a thought goes out in the place of one."""
    return decision.stands_in or _is_flattened(decision)


def _may_go(decision: RequestDecision) -> bool:
    """Whether a request may go out without thinking, or without its tool loop, if it does."""
    if decision.target.lost_thought is LostThought.THINKING_OFF:
        return True
    return not decision.replay_plan.thinking_off and not _is_flattened(decision)


def _is_flattened(decision: RequestDecision) -> bool:
    return decision.dialect.rewrites.flatten_tool_loop in decision.overrides.rewrites

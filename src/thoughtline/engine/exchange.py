"""The walk: one exchange with a provider, in eight steps, for everybody.

    authenticate → read → look up → decide → patch or write → send → relay → commit

The HTTP gateway (and the in-process transports with it), the WebSocket gateway and the agents' loop
are `Caller`s: they say who asks and what, take the request to the wire, and give the answer
back. What goes upstream is decided here, a refusal is corrected here, and what came back is
recorded here. A store that is down never stops an exchange.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects import splice
from thoughtline.dialects.limits import is_heavy
from thoughtline.engine.caller import AnswerT, Caller, ExchangeObserver, Incoming
from thoughtline.engine.client_source import ClientSource
from thoughtline.engine.commit import TurnWriter
from thoughtline.engine.decision import Fields, RequestDecision, decide, path_of
from thoughtline.engine.early_requests import unwritten, without_look_alikes
from thoughtline.engine.normalise import DROP_BLOCK, Normalised, keep_dropping, normalise
from thoughtline.engine.offload import run_aside
from thoughtline.engine.parted_calls import with_calls_together
from thoughtline.engine.prefix_cache import PrefixCache
from thoughtline.engine.quirks import strengthened
from thoughtline.engine.recording import MAX_BYTES, Recording, RunningRecordings
from thoughtline.engine.recovery.recover import Attempt, Recovery
from thoughtline.engine.settled_prefix import Unsettled, Whole
from thoughtline.engine.settling import settle
from thoughtline.engine.spoken_thoughts import without_spoken_thoughts
from thoughtline.errors import StoreError, WireError
from thoughtline.log.keys import session_key
from thoughtline.log.parts import Origin
from thoughtline.log.quirks import Quirk
from thoughtline.replay.guard import Target
from thoughtline.replay.match import RequestPath
from thoughtline.replay.plan import NO_LIMITS, NOTHING_SETTLED, ReplayLimits
from thoughtline.stores.base import Store

_NOT_KEPT = frozenset({Whole.OFF, Whole.OTHER, Whole.SHORT})
"""Why a request was walked in whole whose beginning is not kept either."""


class Exchange:
    """One exchange: what was asked, the decision that holds now, and the answer's recording."""

    recording: Recording  # of the answer to what was sent last, once something was
    failed_request = ""  # the id under which it is kept that nothing came back, if so
    session = ""  # that the client names, where nothing else says which one is continued
    corrected = False  # the decision that holds now was made after a refusal
    walked_whole: Whole | None = None  # why all of its history was looked at; None: it was not

    def __init__(self, engine: "Engine", incoming: Incoming, decision: RequestDecision) -> None:
        self.incoming = incoming
        self.decision = decision
        self._engine = engine

    @property
    def sent(self) -> bool:
        """Whether anything has gone out."""
        return hasattr(self, "recording")

    def record(self) -> None:
        """Begin a fresh recording: the request leaves now."""
        engine, incoming = self._engine, self.incoming
        self.recording = Recording(
            self.decision,
            tenant=incoming.tenant,
            clock=engine.clock,
            stream=incoming.request.stream,
            session=incoming.session or ("" if self.decision.replay_plan.parent else self.session),
            turn=incoming.turn,
            translation=incoming.translation,
            max_bytes=engine.options.max_bytes,
            heavy=incoming.heavy,
        )
        engine.recordings.add(self.recording)


class EngineOptions(Struct, frozen=True, kw_only=True):
    """What of the settings every exchange needs."""

    limits: ReplayLimits = NO_LIMITS
    max_bytes: int = MAX_BYTES  # of an answer that is kept
    commit_wait: float = 2.0  # seconds that the end of an answer waits for the store
    records_all: bool = True  # the log holds what is said, so that it can be said again
    prefix_bytes: int = 64 << 20  # of memory for settled beginnings of conversations; 0: none


class Engine:
    """Runs exchanges over one store."""

    def __init__(
        self,
        store: Store,
        *,
        observer: ExchangeObserver,
        clock: Clock | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        self.store = store
        self.observer = observer
        self.clock = clock or SystemClock()
        self.options = options or EngineOptions()
        self.recovery = Recovery(store, self.clock)
        self.writer = TurnWriter(store, observer, self.options.commit_wait)
        self.prefixes = PrefixCache(self.options.prefix_bytes)
        self.recordings = RunningRecordings()

    async def run(self, caller: Caller[AnswerT]) -> None:
        """One exchange, from the caller's question to the turn in the log."""
        caller.authenticate()  # 1. authenticate
        incoming = await caller.read()  # 2. read
        if incoming is None:
            return
        exchange = await self.begin(incoming)  # 3, 4, 5
        await caller.decided(exchange)
        await self.complete(exchange, caller)  # 6, 7, 8

    async def begin(self, incoming: Incoming) -> Exchange:
        """Look up what is known of a request's history, and decide what goes back.

        Where its beginning is settled, that is done for the rest only, unless it could come out
        otherwise than for the whole of it.
        """
        resumed = incoming.resumed
        if resumed is None:
            why = self._why_whole(incoming)
        else:
            try:
                exchange = await self._walk(incoming)
            except Unsettled as unsettled:
                why = unsettled.why
                self.prefixes.remove(resumed.prefix)
                incoming = await self.in_whole(incoming)
            else:
                await self._settle(exchange)
                return exchange
        exchange = await self._walk(incoming)
        exchange.walked_whole = why
        if why not in _NOT_KEPT:
            await self._settle(exchange)
        return exchange

    def _why_whole(self, incoming: Incoming) -> Whole:
        if not self.prefixes.max_bytes:
            return Whole.OFF
        if incoming.owner is None:
            return Whole.OTHER
        short = not self._is_long(incoming)
        return Whole.SHORT if short else Whole.NEW

    async def in_whole(self, incoming: Incoming) -> Incoming:
        """The same request, with all of its history read."""
        resumed = incoming.resumed
        if resumed is None:
            return incoming
        heavy = is_heavy(resumed.body)
        reading = partial(resumed.whole, incoming.request, incoming.dialect)
        whole = await run_aside(reading) if heavy else reading()
        return replace(incoming, request=whole, resumed=None, heavy=heavy)

    def _is_long(self, incoming: Incoming) -> bool:
        """Whether a request is so long that it pays to settle its beginning."""
        return len(incoming.request.body) >= self.prefixes.min_size

    async def _walk(self, incoming: Incoming) -> Exchange:
        """Steps 3 to 5. Raises `Unsettled` where a resumed request has to be walked in whole."""
        target, quirks = incoming.target, self.recovery.quirks
        if quirks.behind:
            await quirks.ready()
        quirk = quirks.quirk(target.origin)
        if quirk is not None:
            target = replace(target, policy=strengthened(target.policy, quirk))
        source = incoming.source or ClientSource(
            self.store,
            incoming.tenant,
            self.clock,
            incoming.dialect,
            incoming.resumed,
            settles=incoming.resumed is not None or self._is_long(incoming),
        )
        normal = await self._normalised(incoming, target, quirk)
        path = (
            await run_aside(partial(self._path, incoming, normal, target))
            if incoming.heavy
            else self._path(incoming, normal, target)
        )
        found, lookup_error = await source.look_up(path, normal.known_turns)  # 3. look up
        if quirks.behind:  # another node has learned something
            await quirks.ready()
            if quirks.quirk(target.origin) != quirk:
                return await self._walk(incoming)
        if running := unwritten(self.recordings, incoming.tenant, path, found):
            await self._until_written(running)
            found, lookup_error = await source.look_up(path, normal.known_turns)
            if unwritten(running, incoming.tenant, path, found):
                found = without_look_alikes(path, found)
        resumed = incoming.resumed
        asked = RequestDecision(
            source=source,
            request=normal.request,
            original=incoming.request if resumed is None else resumed.original(incoming.request),
            dialect=incoming.dialect,
            target=target,
            path=path,
            found=found,
            limits=incoming.limits or self.options.limits,
            overrides=normal.overrides,
            predecessor=normal.predecessor,
            lookup_error=lookup_error,
            settled=NOTHING_SETTLED if resumed is None else resumed.prefix.turns,
        )
        decision = await run_aside(partial(decide, asked)) if incoming.heavy else decide(asked)
        plan = decision.replay_plan
        if resumed is not None:
            resumed.check_decision(decision)
        elif not plan.certain or (incoming.source is None and plan.leaves_out):
            decision = await self._as_logged(incoming, decision, normal.known_turns)
            plan = decision.replay_plan
        if DROP_BLOCK in plan.skipped_before:
            decision = await keep_dropping(decision)
        exchange = Exchange(self, incoming, decision)
        own = incoming.session or (plan.parent.session if plan.parent is not None else "")
        if used := plan.matches.sessions(but=own):
            self.store.touch(used)
        if path.unique_hints and plan.parent is None and not incoming.session:
            exchange.session = await self._named_session(incoming.tenant, path.unique_hints)
        return exchange

    async def _as_logged(
        self, incoming: Incoming, decision: RequestDecision, known_turns: frozenset[str]
    ) -> RequestDecision:
        """Decide again with outputs that the client tells in another form read as the log has them.

        A request that is written has no thoughts in the place of texts.
        """
        asked_of = self.store, incoming.tenant, known_turns
        decision = await with_calls_together(decision, *asked_of)
        if incoming.source is not None:
            return decision
        return await without_spoken_thoughts(decision, *asked_of)

    async def _normalised(
        self, incoming: Incoming, target: Target, quirk: Quirk | None
    ) -> Normalised:
        normal = incoming.normalised
        if normal is None and (quirk is not None or incoming.dialect.always_normalised):
            normal = await self._normalise(incoming, target, quirk)
        elif normal is None:
            normal = Normalised(request=incoming.request)
        if not incoming.fields:
            return normal
        fields = _with_quirks(incoming.fields, normal.overrides.fields)
        return replace(normal, overrides=replace(normal.overrides, fields=fields))

    async def _normalise(
        self, incoming: Incoming, target: Target, quirk: Quirk | None
    ) -> Normalised:
        resumed = incoming.resumed
        return await normalise(
            incoming.request,
            dialect=incoming.dialect,
            policy=target.policy,
            tenant=incoming.tenant,
            store=self.store,
            quirk=quirk,
            records_all=self.options.records_all,
            endpoint=target.origin.endpoint,
            aside=resumed is not None and resumed.prefix.aside,
        )

    def _path(self, incoming: Incoming, normal: Normalised, target: Target) -> RequestPath:
        """The request's path after the settled prefix. Raises `Unsettled`."""
        if incoming.resumed is not None:
            limits = incoming.limits or self.options.limits
            incoming.resumed.check_request(normal, incoming.tenant, target, limits)
            return incoming.resumed.path(normal, incoming.dialect, target, incoming.hints)
        if incoming.path is not None:
            return incoming.path
        return path_of(
            normal.request,
            dialect=incoming.dialect,
            target=target,
            hints=incoming.hints,
            predecessor=normal.predecessor,
        )

    async def _settle(self, exchange: Exchange) -> None:
        """Keep the settled beginning of a client's own request, for the next one behind it."""
        incoming, cache = exchange.incoming, self.prefixes
        owner, resumed = incoming.owner, incoming.resumed
        if owner is None or incoming.source is not None or incoming.normalised is not None:
            return
        source = exchange.decision.source
        epoch = source.epoch if isinstance(source, ClientSource) else None
        asked = exchange.decision, incoming.tenant, owner, resumed, epoch
        prefix = await run_aside(partial(settle, *asked)) if incoming.heavy else settle(*asked)
        if prefix is not None:
            cache.put(prefix, before=resumed.prefix if resumed is not None else None)

    async def _until_written(self, running: Sequence[Recording]) -> None:
        """Wait for these, at most as long as the end of an answer would."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.options.commit_wait):
                for recording in running:
                    await recording.until_written()

    async def _named_session(self, tenant: str, hints: Sequence[str]) -> str:
        """The session that these hints stand for; empty: none yet, or it cannot be looked up."""
        keys = [session_key(hint) for hint in hints]
        try:
            found = await self.store.find(tenant, keys)
        except StoreError:
            return ""
        return next((found[key][0].session for key in keys if key in found), "")

    async def quirk(self, origin: Origin) -> Quirk | None:
        """What an endpoint's refusals have taught so far."""
        await self.recovery.quirks.ready()
        return self.recovery.quirks.quirk(origin)

    async def complete(self, exchange: Exchange, caller: Caller[AnswerT]) -> None:
        """Send, and once more if a refusal can be corrected; hand the answer on, and write it."""
        attempt: Attempt | None = None
        while True:
            exchange.record()
            try:
                async with caller.send(exchange) as answer:  # 6. send
                    if attempt is not None:
                        await self.recovery.settle(attempt, answer.status)
                    if 400 <= answer.status < 500 and not (attempt and attempt.last):
                        refusal = await caller.refusal(answer)
                        attempt = await self._recover(exchange, answer.status, refusal, attempt)
                        if attempt is not None:
                            exchange.decision, exchange.corrected = attempt.decision, True
                            continue
                    await caller.relay(exchange, answer)  # 7. relay
                    if answer.status == 200 and not exchange.recording.finished:
                        await caller.commit(exchange)  # 8. commit, unless the end waited for it
                break
            except WireError as error:
                if not await caller.retries(exchange, error):
                    raise
        if refusal_inside := exchange.recording.refusal:  # too late here: the next one is better
            await self._recover(exchange, 400, refusal_inside.encode(), None, strict=True)

    async def _recover(
        self,
        exchange: Exchange,
        status: int,
        refusal: bytes,
        after: Attempt | None,
        *,
        strict: bool = False,
    ) -> Attempt | None:
        if exchange.incoming.resumed is not None:  # all that went out is looked at
            refused = replace(await self.in_whole(exchange.incoming), owner=None)
            whole = await self._walk(refused)
            exchange.incoming, exchange.decision = whole.incoming, whole.decision
            exchange.walked_whole = Whole.REFUSED
        strategy, attempt = await self.recovery.recover(
            exchange.decision,
            tenant=exchange.incoming.tenant,
            status=status,
            refusal=refusal,
            strict=strict or exchange.incoming.strict,
            after=after,
            unwritten=lambda error: self.observer.lost(exchange.recording, error),
        )
        if strategy is not None and (attempt is not None or after is None):
            self.observer.recovered(exchange, strategy.value, changed=attempt is not None)
        return attempt


def _with_quirks(fields: Fields, quirks: Fields) -> Fields:
    """Members to set, and what the endpoint wants beside them: what it refuses stays out."""
    made = {**fields, **quirks}
    for name in fields.keys() & quirks.keys():
        wanted, known = fields[name], quirks[name]
        if wanted is not None and known is not None:
            ours, theirs = splice.loads(wanted), splice.loads(known)
            both = isinstance(ours, dict) and isinstance(theirs, dict)
            made[name] = splice.dumps({**theirs, **ours}) if both else wanted
    return made

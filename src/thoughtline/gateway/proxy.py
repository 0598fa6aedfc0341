"""THE WALK: one request through the rooms, from top to bottom.

door (who is it) → reading room (`dialect.read`) → archive and workshop (`exchanges.begin`: one
look-up, then `replay.restore`, then `dialect.patch`) → dispatch (the wire; one controlled retry in
`healing`) → gallery (client first, then the reader) → ledger (the turn, in one transaction).

What is not a request with a history passes through untouched, and so does a body that no dialect
can read. Whatever the store does, requests flow.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import quote
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect, Request
from thoughtline.errors import StoreError, ThoughtlineError, Unreadable, WireError
from thoughtline.exchanges import Exchange, begin
from thoughtline.gateway import bodies, headers
from thoughtline.gateway.access import Door, Visitor, without_key
from thoughtline.gateway.gallery import Gallery, fault
from thoughtline.gateway.healing import Healer, Trial
from thoughtline.gateway.preparing import keep_on, prepare
from thoughtline.gateway.routes import Route, climbs, parse
from thoughtline.gateway.upstreams import Directory, Upstream
from thoughtline.gateway.watching import Watch
from thoughtline.replay import NOTHING, Action, Limits
from thoughtline.stores.base import Store
from thoughtline.wires.answers import Sent
from thoughtline.wires.base import Inbound, Outbound, Wire, beginning

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
ERROR_LIMIT = 1 << 20
_IN_PATHS = "/:@!$&'()*+,;=~[]|"  # what stands in a path as it is


class Observer(Protocol):
    """Who watches the walk: metrics, logs, traces."""

    def replayed(self, exchange: Exchange) -> None: ...
    def healed(self, exchange: Exchange, remedy: str, *, changed: bool) -> None: ...
    def ended(self, exchange: Exchange, status: int, reason: str) -> None: ...
    def lost(self, exchange: Exchange, error: Exception) -> None: ...
    def passed(self, upstream: str, dialect: str, status: int) -> None: ...
    def refused(self, upstream: str, dialect: str, status: int, code: str) -> None: ...
    def sent(self, upstream: str, sent: Sent) -> None: ...


class Options(Struct, frozen=True, kw_only=True):
    """What of the settings the walk needs."""

    max_body_bytes: int = 64 << 20
    keepalive: float = 15.0  # seconds of silence before a ping; 0: never
    commit_wait: float = 2.0  # how long the end of a response waits for the ledger
    finish_on_disconnect: bool = False  # read on and keep the turn when the client leaves
    strict: bool = False  # answer an error instead of sending a placeholder
    whole: bool = True  # the log holds what is said, so that it can be said again
    limits: Limits = NOTHING


class Refusal(Exception):
    """We answer ourselves: status and words."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class Proxy:
    """Walks requests through the rooms."""

    def __init__(
        self,
        *,
        door: Door,
        directory: Directory,
        store: Store,
        wire: Wire,
        observer: Observer,
        options: Options | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.door = door
        self.directory = directory
        self.store = store
        self.wire = wire
        self.observer = observer
        self.options = options or Options()
        self.clock = clock or SystemClock()
        self.healer = Healer(observer, store, self.clock)
        self.exchanges: WeakSet[Exchange] = WeakSet()  # under way, for whoever wants to look
        self.open = 0  # responses under way
        self.draining = False  # going down: those that are here may finish
        self._idle = asyncio.Event()
        self._idle.set()
        self._writes: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from the door to the ledger."""
        route = parse(scope["method"], escaped(scope))
        walk = _Walk(self, scope, receive, send, route)
        with self.under_way():
            try:
                await walk.go()
            except Refusal as refusal:
                await walk.answer(refusal)
            except bodies.TooLarge as error:
                await walk.answer(Refusal(413, str(error), "request_too_large"))
            except WireError as error:
                said = f"{error}; is the upstream up?"
                await walk.answer(Refusal(502, said, "upstream_unreachable"))
            except bodies.Gone:
                pass
            except Exception as error:
                said = f"a fault of ours, {fault(error)}: please report it"
                await walk.answer(Refusal(500, said, "internal_error"))
                raise  # for the server's log

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Something is being answered: `drain` waits for it."""
        self.open += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.open -= 1
            if not self.open:
                self._idle.set()

    def upstream(self, route: Route, model: str) -> Upstream:
        """Who serves a request. Raises `Refusal` when nobody does."""
        upstream = self.directory.pick(route.upstream, model)
        if upstream is not None:
            return upstream
        known = ", ".join(self.directory.names)
        if route.upstream:
            raise Refusal(
                404,
                f"no upstream is called {route.upstream!r}; known: {known}",
                "unknown_upstream",
            )
        raise Refusal(
            404,
            f"no upstream serves the model {model!r}; name one in the path "
            f"(/u/NAME{route.path}), or give one a pattern under `upstreams.NAME.models`; "
            f"known: {known}",
            "model_not_found",
        )

    # -- archive, workshop -----------------------------------------------------------------------

    async def begin(
        self,
        request: Request,
        *,
        dialect: Dialect,
        upstream: Upstream,
        visitor: Visitor,
        hints: Sequence[str],
    ) -> Exchange:
        """Prepare a request, find what is known of its history, and decide what goes back."""
        credential = upstream.key or visitor.credential
        learned = self.healer.learned
        await learned.ready()
        target = upstream.target(
            dialect=dialect.name,
            model=request.model,
            account=self.door.fingerprint(credential),
        )
        target = learned.target(target)
        ready = await prepare(
            request,
            dialect=dialect,
            policy=target.policy,
            tenant=visitor.tenant,
            store=self.store,
            lesson=learned.lesson(target.origin),
            whole=self.options.whole,
        )
        exchange = await begin(
            ready.request,
            dialect=dialect,
            target=target,
            tenant=visitor.tenant,
            store=self.store,
            clock=self.clock,
            hints=hints,
            limits=self.options.limits,
            terms=ready.terms,
            behind=ready.behind,
            certain=ready.certain,
            original=request,
        )
        if exchange.unfit and exchange.restoration.count(Action.DROPPED):
            raise Refusal(
                400,
                f"the body holds a thought that may not go to {upstream.name!r}, and it cannot be "
                f"taken out ({exchange.unfit}); write each key once",
                "ambiguous_body",
            )
        keep_on(exchange)
        exchange.most = self.options.max_body_bytes
        self.exchanges.add(exchange)
        return exchange

    # -- the ledger ------------------------------------------------------------------------------

    async def drain(self, grace: float) -> None:
        """Wait for responses and writes that are still under way, at most this long."""
        self.draining = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace)
        if self._writes:
            await asyncio.wait(set(self._writes))

    async def write(self, exchange: Exchange, reason: str = "") -> None:
        """The ledger: write the turn; wait for it, but not for ever."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        task = loop.create_task(self._write(exchange, reason))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        task.add_done_callback(lambda _: _release(over))
        late = loop.call_later(self.options.commit_wait, _release, over)
        try:
            await over
        finally:
            late.cancel()

    async def _write(self, exchange: Exchange, reason: str) -> None:
        try:
            await exchange.finish(reason=reason)
        except StoreError as error:
            self.observer.lost(exchange, error)
        except Exception as error:  # noqa: BLE001 (a turn less, and not an answer less)
            self.observer.lost(exchange, ThoughtlineError(f"a fault of ours, {fault(error)}"))


def _release(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class _Walk:
    """One request on its way."""

    def __init__(
        self, proxy: Proxy, scope: Scope, receive: Receive, send: Send, route: Route
    ) -> None:
        self.proxy, self.scope, self.receive, self.send, self.route = (
            proxy,
            scope,
            receive,
            send,
            route,
        )
        self.headers = headers.text(scope["headers"])
        self._known = dict(self.headers)
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.dialect: Dialect | None = DIALECTS.get(route.dialect)
        self.upstream = ""  # its name, once it is certain
        self.started = False  # the client has a status line
        self._keyed = False  # its credential is for our door only

    async def go(self) -> None:
        options = self.proxy.options
        visitor = self._door()
        if climbs(self.route.path):
            raise Refusal(400, "the path goes up with `..`; name what you mean", "invalid_path")
        body = await bodies.read(self.receive, self.headers, options.max_body_bytes)
        received = self.proxy.clock.mono()
        plain = bodies.unpack(body, self._known.get("content-encoding", ""), options.max_body_bytes)
        request = self._read(plain)
        if plain is None and request is None:
            self._readable()
        upstream = self.proxy.upstream(self.route, request.model if request else self.route.model)
        self.upstream = upstream.name
        if request is None or self.dialect is None:
            await self._watched(None, self._pass(body, upstream, visitor))
            return
        exchange = await self.proxy.begin(
            request,
            dialect=self.dialect,
            upstream=upstream,
            visitor=visitor,
            hints=headers.hints(self.headers),
        )
        exchange.received = received
        if options.strict or self._asked("strict"):
            insist(exchange)
        self.proxy.observer.replayed(exchange)
        await self._watched(exchange, self._dispatch(exchange, body, upstream))

    # -- door, reading room ----------------------------------------------------------------------

    def _door(self) -> Visitor:
        visitor = self.proxy.door.admit(self.scope["headers"], self.query)
        if visitor is None:
            raise Refusal(
                401,
                "this gateway does not know that key; expected one of its client keys",
                "invalid_api_key",
            )
        if page := self.proxy.door.stranger(self.scope["headers"]):
            raise foreign(page)
        self._keyed = bool(visitor.client)
        return visitor

    def _read(self, body: bytes | None) -> Request | None:
        if self.dialect is None or body is None or self._asked("off"):
            return None
        try:
            request = self.dialect.read(body)
        except Unreadable:
            return None
        return _with(request, self.route)

    def _readable(self) -> None:
        """A history that nobody here can unpack would lose its thoughts without a word."""
        packed = self._known.get("content-encoding", "")
        if self.dialect is not None and not bodies.known(packed) and not self._asked("off"):
            raise Refusal(
                415,
                f"the body is packed as {packed!r}, which cannot be read here; send it plain or as "
                f"{bodies.encodings()} (zstd: install `thoughtline[zstd]`), or do without replay "
                "(`x-thoughtline-replay: off`)",
                "unsupported_encoding",
            )

    def _asked(self, word: str) -> bool:
        return self._known.get("x-thoughtline-replay", "").strip().lower() == word

    # -- dispatch --------------------------------------------------------------------------------

    async def _dispatch(self, exchange: Exchange, body: bytes, upstream: Upstream) -> None:
        """Send; one refusal may be answered with a second try, before the client has a byte."""
        trial: Trial | None = None
        while True:
            exchange.sent()
            sent = exchange.body if exchange.altered else body
            outbound = self._outbound(sent, upstream, recoded=sent is not body)
            if exchange.terms.headers:
                made = headers.joined(outbound.headers, exchange.terms.headers)
                outbound = replace(outbound, headers=made)
            async with self.proxy.wire.send(outbound) as inbound:
                if trial is not None:
                    await self.proxy.healer.settle(trial, inbound.status)
                elif 400 <= inbound.status < 500:
                    refusal = await beginning(inbound, ERROR_LIMIT)
                    trial = await self._heal(exchange, inbound, refusal)
                    if trial is not None:
                        continue
                    await self._whole(inbound, refusal)
                    self.proxy.observer.ended(exchange, inbound.status, "refused")
                    return
                await self._show(exchange, inbound)
                return

    async def _heal(self, exchange: Exchange, inbound: Inbound, refusal: bytes) -> Trial | None:
        encoding = next((v for n, v in inbound.headers if n.lower() == "content-encoding"), "")
        try:
            plain = bodies.unpack(refusal, encoding, ERROR_LIMIT) or b""
        except bodies.TooLarge:
            return None
        strict = self.proxy.options.strict or self._asked("strict")
        return await self.proxy.healer.heal(exchange, inbound.status, plain, strict=strict)

    def _outbound(self, body: bytes, upstream: Upstream, *, recoded: bool) -> Outbound:
        query = without_key(self.query) if upstream.key or self._keyed else self.query
        made = headers.upstream(
            self.headers,
            dialect=self.route.dialect,
            key=upstream.key,
            recoded=recoded,
            ours=self._keyed,
        )
        return Outbound(
            method=self.scope["method"],
            url=upstream.url(self.route.dialect, self.route.path, query),
            headers=headers.overlaid(made, upstream.headers),
            body=body,
            patience=upstream.patience,
        )

    # -- gallery, ledger -------------------------------------------------------------------------

    async def _show(self, exchange: Exchange, inbound: Inbound) -> None:
        proxy, known = self.proxy, dict(inbound.headers)
        kind = next((v for n, v in inbound.headers if n.lower() == "content-type"), "")
        encoding = next((v for n, v in inbound.headers if n.lower() == "content-encoding"), "")
        stream = "event-stream" in kind or (exchange.request.stream and "json" not in kind)
        captured = inbound.status == 200
        gallery = Gallery(self.send, exchange, lambda: proxy.write(exchange), encoding)
        await self._start(inbound, _ours(exchange, known), stream=stream and captured)
        if not captured:
            await self._rest(inbound)
            proxy.observer.ended(exchange, inbound.status, "")
            return
        reason = await self._guarded(gallery, exchange, inbound, stream=stream)
        proxy.observer.ended(exchange, inbound.status, reason)
        if refusal := exchange.refusal:
            await proxy.healer.heal(exchange, 400, refusal.encode(), strict=True)

    async def _guarded(
        self, gallery: Gallery, exchange: Exchange, inbound: Inbound, *, stream: bool
    ) -> str:
        """Show the response; an upstream that breaks off is part of the record."""
        if stream:
            gallery.keep_alive(self.proxy.options.keepalive)
        try:
            await gallery.show(inbound.chunks(), stream=stream)
        except WireError as error:
            await self.proxy.write(exchange, str(error))
            gallery.stop()
            if stream and gallery.plain:
                await self._break_off(str(error), between=gallery.between)
            return str(error)
        finally:
            gallery.stop()
        return exchange.lapse

    async def _watched(self, exchange: Exchange | None, walking: Coroutine[Any, Any, None]) -> None:
        """Walk on; if the client leaves, let go of the upstream, and log what there was."""
        if exchange is not None and self.proxy.options.finish_on_disconnect:
            await walking  # what is sent to nobody is dropped by the server
            return
        watch = Watch(self.receive)
        try:
            await walking
        except asyncio.CancelledError:
            if not watch.left:
                raise
            watch.forgive()
            if exchange is None:
                self.proxy.observer.passed(self.upstream, self.route.dialect, 499)
                return
            await self.proxy.write(exchange, "the client left")
            self.proxy.observer.ended(exchange, 499, "the client left")
        finally:
            watch.stop()

    async def _break_off(self, reason: str, *, between: bool) -> None:
        """The upstream broke: tell a stream's client in its own tongue.

        Everybody else is cut off: the server does so with a response that does not end.
        """
        if self.dialect is None:
            return
        error = self.dialect.error(502, reason, code="upstream_broke_off")
        event = b"event: error\n" if self.dialect.name in ("messages", "responses") else b""
        body = (b"" if between else b"\n\n") + event + b"data: " + error + b"\n\n"
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    # -- answers without a history ---------------------------------------------------------------

    async def _pass(self, body: bytes, upstream: Upstream, visitor: Visitor) -> None:
        """Untouched, both ways."""
        outbound = self._outbound(body, upstream, recoded=False)
        async with self.proxy.wire.send(outbound) as inbound:
            await self._start(inbound, ())
            await self._rest(inbound)
            self.proxy.observer.passed(upstream.name, self.route.dialect, inbound.status)

    async def _start(
        self, inbound: Inbound, ours: Sequence[tuple[str, str]], *, stream: bool = False
    ) -> None:
        self.started = True
        made = headers.downstream(inbound.headers, ours)
        if stream:  # a ping, or the news that the upstream broke, may make it longer
            made = [pair for pair in made if pair[0] != b"content-length"]
        await self.send({"type": "http.response.start", "status": inbound.status, "headers": made})

    async def _rest(self, inbound: Inbound) -> None:
        async for chunk in inbound.chunks():
            await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _whole(self, inbound: Inbound, body: bytes) -> None:
        """An upstream's refusal, unchanged: what was read of it, and the rest."""
        await self._start(inbound, ())
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        await self._rest(inbound)

    async def answer(self, refusal: Refusal) -> None:
        """An answer of ours, in the shape of the dialect that was spoken."""
        self.proxy.observer.refused(self.upstream, self.route.dialect, refusal.status, refusal.code)
        if self.started:  # too late for words: what does not end is cut off
            return
        self.started = True
        speaker = self.dialect or DIALECTS["chat"]
        body = speaker.error(refusal.status, refusal.message, code=refusal.code)
        made = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": made})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


def foreign(page: str) -> Refusal:
    """The answer to a web page that nobody named."""
    return Refusal(
        403,
        f"a web page from {page} asks through a browser, and this gateway knows its clients only "
        "by their being on this machine; list the page under `access.origins` if you trust it, "
        "or set client keys",
        "foreign_page",
    )


def escaped(scope: Scope) -> str:
    """The path as the client wrote it, fit for a request line."""
    raw: bytes = scope.get("raw_path") or b""
    return quote(raw, safe="%" + _IN_PATHS) if raw else quote(scope["path"], safe=_IN_PATHS)


def _with(request: Request, route: Route) -> Request:
    """What the path says about a request, where the dialect keeps it there."""
    if route.model or route.stream is not None:
        return replace(
            request,
            model=route.model or request.model,
            stream=request.stream if route.stream is None else route.stream,
        )
    return request


def _ours(exchange: Exchange, known: dict[str, str]) -> list[tuple[str, str]]:
    """Our headers: where the turn is kept, and what became of the thoughts."""
    restoration = exchange.restoration
    report = "restored=0; missed=0; placeholder=0; dropped=0"
    if restoration.rulings:
        restored = restoration.count(Action.RESTORED) + restoration.count(Action.REPLACED)
        report = (
            f"restored={restored}; missed={restoration.missed}; "
            f"placeholder={restoration.count(Action.PLACEHOLDER)}; "
            f"dropped={restoration.count(Action.DROPPED)}"
        )
    made = [
        ("x-thoughtline-session", exchange.session),
        ("x-thoughtline-turn", exchange.turn),
        ("x-thoughtline-replay", report),
    ]
    return [(name, value) for name, value in made if name not in known]


def insist(exchange: Exchange) -> None:
    """Strict mode: an error instead of a placeholder, or of thinking switched off."""
    missing = [
        str(ruling.turn)
        for ruling in exchange.restoration.rulings
        if ruling.action is Action.PLACEHOLDER
    ]
    if missing or exchange.restoration.fields:
        where = ", ".join(missing) or "the running tool loop"
        raise Refusal(
            409,
            f"strict replay: the thoughts of assistant turn(s) {where} are not known, and this "
            "provider demands them; start a new conversation, or do without strict mode",
            "thought_missing",
        )

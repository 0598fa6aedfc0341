"""THE WALK: one request through the rooms, from top to bottom.

door (who is it) → reading room (`dialect.read`) → archive and workshop (`exchanges.begin`: one
look-up, then `replay.restore`, then `dialect.patch`) → dispatch (the wire; one controlled retry in
`healing`) → gallery (client first, then the reader) → ledger (the turn, in one transaction).

What is not a request with a history passes through untouched, and so does a body that no dialect
can read. Whatever the store does, requests flow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect, Request
from thoughtline.errors import Unreadable, WireError
from thoughtline.exchanges import Exchange, begin
from thoughtline.gateway import bodies, headers
from thoughtline.gateway.access import Door, Visitor, without_key
from thoughtline.gateway.gallery import Gallery
from thoughtline.gateway.healing import Healer, Trial
from thoughtline.gateway.ledger import Ledger
from thoughtline.gateway.preparing import keep_on, prepare
from thoughtline.gateway.presence import Presence
from thoughtline.gateway.refusals import Refusal, fault, foreign, insist, unserved
from thoughtline.gateway.routes import Route, asked, climbs
from thoughtline.gateway.upstreams import Directory, Upstream
from thoughtline.gateway.watching import Watch
from thoughtline.replay import NOTHING, Action, Limits
from thoughtline.stores.base import Store
from thoughtline.wires.answers import Sent
from thoughtline.wires.base import Inbound, Outbound, Wire, beginning

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
ERROR_LIMIT = 1 << 20
STOPPED = "the gateway was stopped"


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
        self.ledger = Ledger(observer, self.options.commit_wait)
        self.present = Presence()  # responses under way
        self.draining = False  # going down: those that are here may finish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from the door to the ledger."""
        route = asked(scope, scope["method"])
        walk = _Walk(self, scope, receive, send, route)
        with self.present:
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
                said = f"{fault(error)}: please report it"
                await walk.answer(Refusal(500, said, "internal_error"))
                raise  # for the server's log

    def upstream(self, route: Route, model: str) -> Upstream:
        """Who serves a request. Raises `Refusal` when nobody does."""
        upstream = self.directory.pick(route.upstream, model)
        if upstream is not None:
            return upstream
        raise unserved(route, model, self.directory.names)

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
        learned = self.healer.learned
        if learned.wait is not None:
            await learned.ready()
        target = upstream.target(
            dialect=dialect.name,
            model=request.model,
            account=self.door.fingerprint(upstream.key) if upstream.key else visitor.account,
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

    async def drain(self, grace: float) -> None:
        """Wait for responses and writes that are still under way, at most this long."""
        self.draining = True
        await self.present.over(grace)
        await self.ledger.settled()


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
        self.headers: headers.Pairs = scope["headers"]
        self._known: dict[bytes, bytes] = dict(self.headers)
        self._wish = headers.wish(self._known)
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.dialect: Dialect | None = DIALECTS.get(route.dialect)
        self.upstream = ""  # its name, once it is certain
        self.status = 0  # what the client was told; 0: nothing yet
        self._keyed = False  # its credential is for our door only

    async def go(self) -> None:
        options = self.proxy.options
        visitor = self._door()
        if climbs(self.route.path):
            raise Refusal(400, "the path goes up with `..`; name what you mean", "invalid_path")
        declared = self._known.get(b"content-length", b"")
        body = await bodies.read(self.receive, declared, options.max_body_bytes)
        received = self.proxy.clock.mono()
        plain = bodies.unpack(body, self._packed, options.max_body_bytes)
        request = self._read(plain)
        if plain is None and request is None:
            self._readable()
        upstream = self.proxy.upstream(self.route, request.model if request else self._model(plain))
        self.upstream = upstream.name
        if request is None or self.dialect is None:
            await self._watched(None, self._pass(body, upstream, visitor))
            return
        exchange = await self.proxy.begin(
            request,
            dialect=self.dialect,
            upstream=upstream,
            visitor=visitor,
            hints=headers.hints(self._known),
        )
        exchange.received = received
        if options.strict or self._wish == "strict":
            insist(exchange)
        self.proxy.observer.replayed(exchange)
        try:
            await self._watched(exchange, self._dispatch(exchange, body, upstream))
            if refusal := exchange.refusal:  # the client has its answer: the next one is better
                await self.proxy.healer.heal(exchange, 400, refusal.encode(), strict=True)
        except asyncio.CancelledError:  # its time is over: the server cuts the client off
            await self.proxy.ledger.write(exchange, STOPPED)
            self.proxy.observer.ended(exchange, 499, STOPPED)

    # -- door, reading room ----------------------------------------------------------------------

    def _door(self) -> Visitor:
        visitor = self.proxy.door.admit(self.headers, self.query)
        if visitor is None:
            raise Refusal(
                401,
                "this gateway does not know that key; expected one of its client keys",
                "invalid_api_key",
            )
        if page := self.proxy.door.stranger(self.headers):
            raise foreign(page)
        self._keyed = bool(visitor.client)
        return visitor

    def _read(self, body: bytes | None) -> Request | None:
        if self.dialect is None or body is None or self._wish == "off":
            return None
        try:
            request = self.dialect.read(body)
        except Unreadable:
            return None
        return _with(request, self.route)

    def _model(self, body: bytes | None) -> str:
        """The model of what passes through, where that decides who gets it."""
        sure = self.route.upstream or self.route.model
        return self.route.model if sure else bodies.model(body or b"")

    def _readable(self) -> None:
        """A history that nobody here can unpack would lose its thoughts without a word."""
        packed = self._packed
        if self.dialect is not None and not bodies.known(packed) and self._wish != "off":
            raise Refusal(
                415,
                f"the body is packed as {packed!r}, which cannot be read here; send it plain or as "
                f"{bodies.encodings()} (zstd: install `thoughtline[zstd]`), or do without replay "
                "(`x-thoughtline-replay: off`)",
                "unsupported_encoding",
            )

    @property
    def _packed(self) -> str:
        return self._known.get(b"content-encoding", b"").decode("latin-1")

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
        encoding = dict(inbound.headers).get("content-encoding", "")
        try:
            plain = bodies.unpack(refusal, encoding, ERROR_LIMIT) or b""
        except bodies.TooLarge:
            return None
        strict = self.proxy.options.strict or self._wish == "strict"
        return await self.proxy.healer.heal(exchange, inbound.status, plain, strict=strict)

    def _outbound(self, body: bytes, upstream: Upstream, *, recoded: bool) -> Outbound:
        query = without_key(self.query) if upstream.key or self._keyed else self.query
        made = headers.upstream(
            self.headers,
            dialect=upstream.tongue(self.route.family),
            key=upstream.key,
            recoded=recoded,
            ours=self._keyed,
        )
        return Outbound(
            method=self.scope["method"],
            url=upstream.url(self.route.family, self.route.path, query),
            headers=headers.overlaid(made, upstream.headers),
            body=body,
            patience=upstream.patience,
        )

    # -- gallery, ledger -------------------------------------------------------------------------

    async def _show(self, exchange: Exchange, inbound: Inbound) -> None:
        proxy, known = self.proxy, dict(inbound.headers)
        kind = known.get("content-type", "")
        stream = "event-stream" in kind or (exchange.request.stream and "json" not in kind)
        captured = inbound.status == 200
        ours = headers.ours(exchange, known)
        if not captured:
            await self._start(inbound, ours)
            await self._rest(inbound)
            proxy.observer.ended(exchange, inbound.status, "")
            return
        gallery = Gallery(
            self.send,
            exchange,
            lambda: proxy.ledger.write(exchange),
            known.get("content-encoding", ""),
            start=lambda: self._start(inbound, ours, stream=stream),
        )
        reason = await self._guarded(gallery, exchange, inbound, stream=stream)
        proxy.observer.ended(exchange, self.status, reason)

    async def _guarded(
        self, gallery: Gallery, exchange: Exchange, inbound: Inbound, *, stream: bool
    ) -> str:
        """Show the response; an upstream that breaks off is part of the record."""
        if stream:
            gallery.keep_alive(self.proxy.options.keepalive)
        try:
            await gallery.show(inbound.chunks(), stream=stream)
        except WireError as error:
            await self.proxy.ledger.write(exchange, str(error))
            gallery.stop()
            if not self.status:
                await self._say(Refusal(502, str(error), "upstream_broke_off"))
            elif stream and gallery.plain:
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
            await self.proxy.ledger.write(exchange, "the client left")
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
        self.status = inbound.status
        made = headers.downstream(inbound.headers, ours, stream=stream)
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
        if not self.status:  # otherwise it is too late for words: what does not end is cut off
            await self._say(refusal)

    async def _say(self, refusal: Refusal) -> None:
        self.status = refusal.status
        speaker = DIALECTS.get(self.route.family, DIALECTS["chat"])
        body = speaker.error(refusal.status, refusal.message, code=refusal.code)
        made = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": made})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


def _with(request: Request, route: Route) -> Request:
    """What the path says about a request, where the dialect keeps it there."""
    if route.model or route.stream is not None:
        return replace(
            request,
            model=route.model or request.model,
            stream=request.stream if route.stream is None else route.stream,
        )
    return request

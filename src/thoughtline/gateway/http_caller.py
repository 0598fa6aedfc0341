"""One client's request over HTTP, as the engine's caller: it is read, sent on, and answered.

The eight steps are those of `engine.exchange`. A request without a history passes through
untouched, and so does a body that no dialect can read. `http_answer` is what the client hears.
"""

import asyncio
from codecs import BOM_UTF8
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import DIALECTS, splice
from thoughtline.dialects.base import Request
from thoughtline.dialects.effort import with_effort
from thoughtline.dialects.limits import TooComplex, is_heavy
from thoughtline.engine.caller import Incoming
from thoughtline.engine.decision import Fields
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.normalise import Normalised
from thoughtline.engine.offload import run_aside, run_for
from thoughtline.engine.prefix_cache import Owner
from thoughtline.engine.routes import with_model
from thoughtline.engine.settled_prefix import Resumed
from thoughtline.errors import Unreadable, WireError
from thoughtline.gateway import bodies, headers
from thoughtline.gateway.asgi import DisconnectWatcher
from thoughtline.gateway.count_tokens import counted
from thoughtline.gateway.errors import check_encoding, check_lost, check_patchable, not_translated
from thoughtline.gateway.failed_requests import answer_words
from thoughtline.gateway.headers import PassedThrough
from thoughtline.gateway.http_answer import HttpAnswer
from thoughtline.gateway.translated_http import translated_request
from thoughtline.gateway.upstream_models import ForeignList, foreign_list
from thoughtline.wires.base import Inbound, Outbound, with_appended

STOPPED = "the gateway was stopped"
LEFT = "the client left"
_NO_FIELDS: Fields = {}


class HttpCaller(HttpAnswer):
    """One client's request, for the engine."""

    _body = b""  # as the client sent it
    _owner: Owner | None = None  # of its settled beginning, where it may have one
    _passed = ""  # why it passes through, if it does

    # -- 1. authenticate -------------------------------------------------------------------------

    def authenticate(self) -> None:
        self._principal = self._head.authenticate(self.proxy.auth)

    # -- 2. read ---------------------------------------------------------------------------------

    async def read(self) -> Incoming | None:
        proxy, head, limit = self.proxy, self._head, self.proxy.options.max_body_bytes
        body = self._server.take_body() if self._server is not None else None
        if body is None:
            declared = dict(self._headers).get(b"content-length", b"")
            body = await bodies.read_body(self._receive, declared, limit)
        elif len(body) > limit:
            raise bodies.BodyTooLarge(limit)
        self._body = body
        self._received = proxy.clock.mono()
        plain: bytes | None = body.removeprefix(BOM_UTF8)
        if head.encoding:
            plain = await bodies.decompressed(body, head.encoding, limit)
        resumed = self._resumed(plain)
        text = plain if resumed is None else resumed.text
        heavy = text is not None and is_heavy(text)
        request = await run_aside(partial(self._request, text)) if heavy else self._request(text)
        if request is None or self.dialect is None:
            await self._without_history(plain)
            return None
        where = head.model_route
        if where is None or where.model != request.model:
            where = proxy.model_route(head, self.dialect.name, request.model, plain)
        self.route, self.upstream, goal = where.route, where.upstream, where.goal
        counts, provider = where.route.counts, where.provider
        asked, fields = request, _NO_FIELDS
        if provider and resumed is not None:
            whole = partial(resumed.whole, request, self.dialect)
            asked, resumed = await run_for(resumed.body, whole), None
        elif (where.upstream.asked or where.upstream.effort) and not provider:
            named, effort = self._renamed(where.upstream), "" if counts else where.upstream.effort
            takes = goal.target.policy.takes
            asking = partial(with_effort, request, self.dialect, effort, takes)
            asked, said = await run_for(request.body, asking)
            fields = {**said, **named}
        incoming = Incoming(
            request=asked,
            dialect=self.dialect,
            target=goal.target,
            tenant=goal.tenant,
            claimed=goal.claimed,
            effort=where.upstream.effort,
            fields=fields,
            hints=head.hints,
            strict=proxy.options.strict or head.replay == "strict",
            received=self._received,
            heavy=heavy,
            # What a request needs to be answered is nothing to the one that counts its tokens.
            normalised=Normalised(request=asked) if counts else None,
            owner=None if counts or provider else self._owner,
            resumed=resumed,
        )
        return await self._translated(incoming, where.upstream) if provider else incoming

    def _resumed(self, body: bytes | None) -> Resumed | None:
        """Look the body up in the prefix cache."""
        who, dialect = self._principal, self.dialect
        if not (body and who and dialect) or self.route.counts:
            return None
        self._owner = owner = (who.tenant, dialect.name)
        return self.proxy.engine.prefixes.resume(owner, body)

    async def _without_history(self, plain: bytes | None) -> None:
        """Pass a request through that has no history, or none that can be read."""
        if plain is None and self.dialect and self._head.replay != "off":
            check_encoding(self._head.encoding)
        model = await run_for(plain or b"", partial(self._model, plain))
        self.route = self.proxy.directory.understood(self.route, model)
        self.upstream = self.proxy.upstream(self.route, model, plain)
        if self.dialect and (provider := self.upstream.translates(self.dialect.name)):
            raise not_translated(PassedThrough(self._passed), self.dialect.name, provider)
        expects = foreign_list(self._head.method, self.route, self._headers, self.upstream)
        if expects is not None and self._head.replay != "off":
            await self._tell_models(expects, self.upstream)
            return
        body = self._body
        if self.upstream.asked and (fields := self._renamed(self.upstream)) and plain:
            with suppress(Unreadable):
                body = await run_for(plain, partial(splice.with_members, plain, fields))
        await self._pass_through(self.upstream, body)

    async def _tell_models(self, asked: ForeignList, upstream: Upstream) -> None:
        """The upstream's models, as a client of another API expects them."""
        wire, shown = upstream.wire or self.proxy.wire, self._head.credential_for(upstream)
        told = await asked.answer(upstream, wire, shown)
        request = self.proxy.failed.new_id() if told.status >= 400 else ""
        added = headers.failure_headers(None, request=request, passed=self._passed)
        await self._answer(told.status, told.body, added)
        self.proxy.observer.passed(upstream.name, self.route.dialect, told.status, request)
        self._note_request(request, told.status, answer_words((), told.body))

    async def _translated(self, asked: Incoming, upstream: Upstream) -> Incoming | None:
        """The request in the dialect that the upstream speaks."""
        proxy, provider = self.proxy, DIALECTS[asked.target.origin.dialect]
        incoming, self._translation = await translated_request(
            asked,
            provider,
            proxy.auth,
            proxy.engine,
            query=self._head.query,
            program=dict(self._headers).get(b"user-agent", b"").decode("latin-1"),
            socket=self._posted,
        )
        if not self.route.counts:
            return incoming
        exchange = await proxy.engine.begin(incoming)
        wire, shown = upstream.wire or proxy.wire, self._head.credential_for(upstream)
        count = await counted(
            exchange.decision, self._translation, upstream, wire=wire, credential=shown
        )
        made = headers.to_client(count.headers, headers.failure_headers(exchange))
        await self._begin(200, made, count.body)
        proxy.observer.passed(upstream.name, self.route.dialect, 200)
        self._note_request("", 200, "")
        return None

    def _renamed(self, upstream: Upstream) -> Fields:
        """The members that say the upstream's name of the model; a path says it by itself."""
        if not upstream.asked:
            return {}
        if self.route.model:
            self.route = with_model(self.route, upstream.served)
            return {}
        return {"model": splice.dumps(upstream.served)}

    def _request(self, body: bytes | None) -> Request | None:
        """The request with its history; None where it passes through, and `_passed` says why."""
        dialect, route = self.dialect, self.route
        if dialect is None or self._head.replay == "off":
            off = self._head.replay == "off"
            self._passed = PassedThrough.OFF if off else PassedThrough.NO_HISTORY
            return None
        if body is None:
            self._passed = PassedThrough.UNREADABLE
            return None
        try:
            request = dialect.read(body)
        except TooComplex:
            self._passed = PassedThrough.TOO_COMPLEX
            return None
        except Unreadable:
            self._passed = PassedThrough.UNREADABLE
            return None
        if not route.model and route.stream is None:
            return request
        stream = request.stream if route.stream is None else route.stream
        return replace(request, model=route.model or request.model, stream=stream)

    def _model(self, body: bytes | None) -> str:
        """The model of what passes through, where that decides who gets it."""
        sure = self.route.upstream or self.route.model
        return self.route.model if sure else bodies.model_name(body or b"")

    async def _pass_through(self, upstream: Upstream, body: bytes) -> None:
        """Untouched, both ways."""
        self._watcher = DisconnectWatcher(self._receive, self._server)
        async with (upstream.wire or self.proxy.wire).send(
            self._outbound(body, upstream)
        ) as inbound:
            status, received = inbound.status, dict(inbound.headers)
            request = self._failed_id() if status >= 400 else ""
            added = headers.failure_headers(None, received, request=request, passed=self._passed)
            await self._start(inbound, added)
            words = await self._rest(inbound)
            self.proxy.observer.passed(upstream.name, self.route.dialect, status, request)
            self._note_request(request, status, answer_words(inbound.headers, words))

    # -- 6. send ---------------------------------------------------------------------------------

    async def decided(self, exchange: Exchange) -> None:
        self._exchange = exchange
        check_patchable(exchange.decision)
        check_lost(exchange.decision, strict=exchange.incoming.strict)
        counts, proxy = self.route.counts, self.proxy
        if not counts:
            proxy.observer.replayed(exchange)
        if counts or not proxy.options.finish_on_disconnect:
            self._watcher = DisconnectWatcher(self._receive, self._server)

    def send(self, exchange: Exchange) -> AbstractAsyncContextManager[Inbound]:
        self._beginning = None
        if self.route.counts:
            exchange.recording.discard()
        decision, upstream = exchange.decision, self.upstream
        body = decision.body if decision.altered else self._body
        assert upstream is not None  # noqa: S101 (set by `read`)
        if self._translation is not None:
            model, shown = decision.target.origin.model, self._head.credential_for(upstream)
            outbound = self._translation.outbound(body, upstream, model, shown)
        else:
            outbound = self._outbound(body, upstream)
        if decision.overrides.headers:
            joined = with_appended(outbound.headers, decision.overrides.headers)
            outbound = replace(outbound, headers=joined)
        return (upstream.wire or self.proxy.wire).send(outbound)

    def _outbound(self, body: bytes, upstream: Upstream) -> Outbound:
        decompressed = body is not self._body
        return self._head.outbound(body, upstream, self.route, decompressed=decompressed)

    async def retries(self, exchange: Exchange, error: WireError) -> bool:
        return False  # the client knows best whether it asks again

    # -- 8. commit -------------------------------------------------------------------------------

    def commit(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        return self.proxy.engine.writer.write(exchange.recording)

    # -- when it does not go that way ------------------------------------------------------------

    async def cancelled(self) -> None:
        """The client left, or the server was stopped: keep what there is of the answer."""
        if self._relayed:
            return
        exchange, left = self._exchange, self._watcher is not None and self._watcher.disconnected
        if left and self._watcher is not None:
            self._watcher.uncancel()
        if exchange is None:
            if not left:
                raise asyncio.CancelledError
            name = self.upstream.name if self.upstream else ""
            self.proxy.observer.passed(name, self.route.dialect, 499)
            return
        reason = LEFT if left else STOPPED
        try:
            await self.proxy.engine.writer.write(exchange.recording, reason, stopped=True)
        finally:  # a second cancellation ends the waiting, and not the writing
            self.proxy.observer.ended(exchange, 499, reason)

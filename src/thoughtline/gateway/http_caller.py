"""One client's request over HTTP, as the engine's caller: it is read, sent on, and answered.

The eight steps are those of `engine.exchange`. A request without a history passes through
untouched, and so does a body that no dialect can read.
"""

import asyncio
from codecs import BOM_UTF8
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec.structs import replace

from thoughtline.dialects import DEFAULT, DIALECTS, splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.limits import TooComplex, is_heavy
from thoughtline.engine.caller import Incoming
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.engine.normalise import Normalised
from thoughtline.engine.offload import run_aside, run_for
from thoughtline.engine.prefix_cache import Owner
from thoughtline.engine.settled_prefix import Resumed
from thoughtline.errors import Unreadable, WireError
from thoughtline.gateway import bodies, headers
from thoughtline.gateway.asgi import (
    OWN_SERVER,
    DisconnectWatcher,
    OwnServer,
    RawHeaders,
    Receive,
    Scope,
    Send,
    respond,
    respond_json,
)
from thoughtline.gateway.auth import Principal
from thoughtline.gateway.client_head import ModelRoute, head_of
from thoughtline.gateway.count_tokens import counted
from thoughtline.gateway.errors import (
    GatewayError,
    check_encoding,
    check_lost,
    check_patchable,
    not_translated,
)
from thoughtline.gateway.failed_requests import MAX_BODY, answer_words, of_exchange
from thoughtline.gateway.headers import PassedThrough
from thoughtline.gateway.relay import Relay, Start
from thoughtline.gateway.translated_http import HttpTranslation, translated_request
from thoughtline.gateway.translated_relay import TranslatedRelay
from thoughtline.log.events import RequestFailed
from thoughtline.wires.base import Inbound, Outbound, read_up_to, with_appended

if TYPE_CHECKING:
    from thoughtline.gateway.proxy import Proxy

MAX_REFUSAL_BYTES = 1 << 20
STOPPED = "the gateway was stopped"
LEFT = "the client left"


class HttpCaller:
    """One client's request, for the engine."""

    upstream: Upstream | None = None  # once it is certain
    status = 0  # what the client was told; 0: nothing yet
    _principal: Principal | None = None
    _body = b""  # as the client sent it
    _owner: Owner | None = None  # of its settled beginning, where it may have one
    _passed = ""  # why it passes through, if it does
    _received = 0  # when, by the monotonic clock
    _exchange: Exchange | None = None
    _watcher: DisconnectWatcher | None = None
    _beginning: bytes | None = None  # of the refusal that was looked at last
    _relayed = False  # the client has its answer, and the observer knows
    _translation: HttpTranslation | None = None  # where the upstream speaks another dialect

    def __init__(self, proxy: "Proxy", scope: Scope, receive: Receive, send: Send) -> None:
        self.proxy = proxy
        self._head = head = head_of(scope)
        self.route = head.route
        self.dialect = head.dialect
        self._receive = receive
        self._send = send
        self._server: OwnServer | None = scope.get("extensions", {}).get(OWN_SERVER)
        self._headers: RawHeaders = scope["headers"]

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
        if provider or where.upstream.renames:
            request, resumed = await self._rewritten(request, resumed, where), None
        incoming = Incoming(
            request=request,
            dialect=self.dialect,
            target=goal.target,
            tenant=goal.tenant,
            claimed=goal.claimed,
            effort=where.upstream.effort,
            hints=head.hints,
            strict=proxy.options.strict or head.replay == "strict",
            received=self._received,
            heavy=heavy,
            # What a request needs to be answered is nothing to the one that counts its tokens.
            normalised=Normalised(request=request) if counts else None,
            owner=None if counts or provider else self._owner,
            resumed=resumed,
        )
        return await self._translated(incoming, where.upstream) if provider else incoming

    def _resumed(self, body: bytes | None) -> Resumed | None:
        """The request as one that goes on from what is settled of its conversation, if it does."""
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
        await self._pass_through(self.upstream)

    async def _rewritten(
        self, request: Request, resumed: Resumed | None, where: ModelRoute
    ) -> Request:
        """The whole request, with the upstream's name for its model where it goes as it is."""
        dialect = DIALECTS[where.route.dialect]
        if resumed is not None:
            whole = partial(resumed.whole, request, dialect)
            request = await run_for(resumed.body, whole)
        if where.provider:
            return request
        renaming = partial(self._renamed, request, dialect, where.upstream.served)
        return await run_for(request.body, renaming)

    async def _translated(self, asked: Incoming, upstream: Upstream) -> Incoming | None:
        """The request in the dialect that the upstream speaks."""
        proxy, provider = self.proxy, DIALECTS[asked.target.origin.dialect]
        incoming, self._translation = await translated_request(
            asked, provider, proxy.auth, proxy.engine, query=self._head.query
        )
        if not self.route.counts:
            return incoming
        decision = (await proxy.engine.begin(incoming)).decision
        wire, shown = upstream.wire or proxy.wire, self._head.own_credential
        count = await counted(decision, self._translation, upstream, wire=wire, credential=shown)
        await self._begin(200, headers.to_client(count.headers, ()), count.body)
        proxy.observer.passed(upstream.name, self.route.dialect, 200)
        self._note_request("", 200, "")
        return None

    def _renamed(self, request: Request, dialect: Dialect, model: str) -> Request:
        """The request for the model that the client's name for it stands for."""
        if self.route.model:
            stream = bool(self.route.stream)
            path = dialect.request_path(quote(model, safe=""), stream=stream).partition("?")[0]
            self.route = replace(self.route, path=path, model=model)
            return replace(request, model=model)
        self._body = dialect.patch(request, (), {"model": splice.dumps(model)})
        return dialect.read(self._body)

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

    async def _pass_through(self, upstream: Upstream) -> None:
        """Untouched, both ways."""
        self._watcher = DisconnectWatcher(self._receive, self._server)
        async with (upstream.wire or self.proxy.wire).send(
            self._outbound(self._body, upstream)
        ) as inbound:
            status, received = inbound.status, dict(inbound.headers)
            request = self.proxy.failed.new_id() if status >= 400 else ""
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
            model, shown = decision.target.origin.model, self._head.own_credential
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

    # -- 7. relay --------------------------------------------------------------------------------

    async def refusal(self, answer: Inbound) -> bytes:
        self._beginning = await read_up_to(answer, MAX_REFUSAL_BYTES)
        encoding = dict(answer.headers).get("content-encoding", "")
        try:
            return bodies.decompress(self._beginning, encoding, MAX_REFUSAL_BYTES) or b""
        except bodies.BodyTooLarge:
            return b""

    def relay(self, exchange: Exchange, answer: Inbound) -> Coroutine[Any, Any, None]:
        if answer.status != 200:
            return self._relay_refusal(exchange, answer)
        relaying = self._relay_count if self.route.counts else self._relay
        return relaying(exchange, answer)

    def _ended(self, exchange: Exchange, reason: str) -> None:
        """The client has its answer: the observer is told, and nobody looks whether it leaves."""
        self.proxy.observer.ended(exchange, self.status, reason)
        self._relayed = True
        self.stop_watching()

    async def _relay_count(self, exchange: Exchange, answer: Inbound) -> None:
        """Forward how many tokens a request has."""
        await self._start(answer, headers.failure_headers(exchange, dict(answer.headers)))
        await self._rest(answer)
        self.proxy.observer.passed(exchange.decision.target.name, self.route.dialect, 200)
        self._note_request("", 200, "")
        self._relayed = True
        self.stop_watching()

    async def _relay_refusal(self, exchange: Exchange, answer: Inbound) -> None:
        """Forward an answer that is none, or tell it in the client's dialect."""
        status = answer.status
        if self._translation is not None:
            await self._tell_error(self._translation, answer, exchange)
            self._ended(exchange, "refused")
            return
        passed_on = self._beginning is not None and not exchange.corrected  # a first refusal
        exchange.failed_request = self.proxy.failed.new_id() if status >= 400 else ""
        received, request = dict(answer.headers), exchange.failed_request
        added = headers.failure_headers(exchange, received, request=request)
        await self._start(answer, added)
        words = self._beginning or b""
        if self._beginning is not None:
            await self._send_body(self._beginning)
        words += await self._rest(answer)
        self._note_request(exchange.failed_request, status, answer_words(answer.headers, words))
        self._ended(exchange, "refused" if passed_on else "")

    async def _relay(self, exchange: Exchange, inbound: Inbound) -> None:
        """Forward the answer; an upstream that breaks off is part of the record."""
        raw, translation, recording = _raw_headers(inbound), self._translation, exchange.recording
        known = dict(raw)
        added = headers.thoughtline_headers(exchange, known)
        if translation is None:
            kind = known.get(b"content-type", b"")
            asked = exchange.incoming.request.stream
            stream = b"event-stream" in kind or (asked and b"json" not in kind)
        else:
            stream = translation.translation.params.stream
            raw = headers.encoded(translation.answer_headers(inbound.headers, stream=stream))
        made = headers.raw_to_client(raw, added, stream=stream)
        encoding = known.get(b"content-encoding", b"").decode("latin-1")
        start = partial(self._begin, inbound.status, made)
        relay = self._new_relay(exchange, inbound, encoding, start)
        if stream:
            relay.keep_alive(self.proxy.options.keepalive)
        try:
            await relay.forward(inbound.chunks(), stream=stream)
            reason = recording.capture_error
        except WireError as error:
            reason = str(error)
            await self.proxy.engine.writer.write(recording, reason)
            relay.stop()
            if not self.status:
                await self._answer(*relay.refusal(self._speaker, reason), added)
            elif stream and relay.plain:
                await self._break_off(reason, relay)
        finally:
            relay.stop()
        self._ended(exchange, reason)

    def _new_relay(
        self, exchange: Exchange, inbound: Inbound, encoding: str, start: Start
    ) -> Relay:
        recording, dialect = exchange.recording, exchange.decision.dialect
        commit = partial(self.proxy.engine.writer.write, recording)
        if self._translation is not None:
            return TranslatedRelay(
                self._translation.translation,
                self._send,
                recording,
                dialect,
                commit,
                encoding=encoding,
                start=start,
            )
        return Relay(
            self._send,
            recording,
            dialect,
            commit,
            encoding,
            start=start,
            push=getattr(inbound, "push", None),
            write_now=self._server.write_now if self._server is not None else None,
            holds=self.proxy.options.many_processes,
        )

    async def _tell_error(
        self, translation: HttpTranslation, answer: Inbound, exchange: Exchange
    ) -> None:
        """A provider's error, in the words of the client's dialect."""
        body = await self.refusal(answer) if self._beginning is None else self._beginning
        status, told, stream = translation.error(answer.status, body, answer.headers)
        received = translation.answer_headers(answer.headers, stream=stream)
        request = exchange.failed_request = self.proxy.failed.new_id()
        added = headers.failure_headers(exchange, request=request)
        await self._begin(status, headers.to_client(received, added, stream=stream), told)
        self._note_request(request, status, answer_words(answer.headers, body))

    async def _break_off(self, reason: str, relay: Relay) -> None:
        """The upstream broke: tell a stream's client in its own dialect.

        Everybody else is cut off: the server does so with a response that does not end.
        """
        if self.dialect is None:
            return
        event = relay.broken_off(self.dialect, reason)
        body = event if relay.between else b"\n\n" + event
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _start(self, inbound: Inbound, added: Sequence[tuple[str, str]]) -> None:
        await self._begin(inbound.status, headers.to_client(inbound.headers, added))

    def _begin(self, status: int, made: RawHeaders, body: bytes | None = None) -> Awaitable[None]:
        """Send status and headers; with a body, all of the response."""
        self.status = status
        kind = "http.response.start"
        if body is None:
            return self._send({"type": kind, "status": status, "headers": made})
        if self._server is None:
            return respond(self._send, status, made, body)
        return self._send({"type": kind, "status": status, "headers": made, "body": body})

    async def _send_body(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _rest(self, inbound: Inbound) -> bytes:
        """Forward what remains; returns the beginning of it, in which a refusal has its words."""
        beginning = b""
        async for chunk in inbound.chunks():
            if len(beginning) < MAX_BODY and inbound.status >= 400:
                beginning += chunk[:MAX_BODY]
            await self._send_body(chunk)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return beginning

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

    def stop_watching(self) -> None:
        """Whether the client leaves does not matter any more."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    async def answer(self, refusal: GatewayError) -> None:
        """An error answer of the gateway, in the shape of the dialect that was spoken."""
        self.stop_watching()  # the answer is made, whether or not the client waits for it
        name = self.upstream.name if self.upstream else ""
        late = bool(self.status)  # too late for words: what does not end is cut off
        # Who could not say who they are writes nothing here.
        request = self.proxy.failed.new_id() if self._principal and not late else ""
        self.proxy.observer.refused(name, self.route.dialect, refusal.status, refusal.code, request)
        if not late:
            code = refusal.code
            added = headers.failure_headers(self._exchange, request=request, code=code)
            await self._say(refusal, added)
        self._note_request(request, refusal.status, refusal.message, refusal.code)

    async def _say(self, refusal: GatewayError, added: Sequence[tuple[str, str]]) -> None:
        body = self._speaker.error(refusal.status, refusal.message, code=refusal.code)
        await self._answer(refusal.status, body, added)

    @property
    def _speaker(self) -> Dialect:
        """In whose shape errors are told."""
        return DIALECTS.get(self.route.family, DEFAULT)

    async def _answer(self, status: int, body: bytes, added: Sequence[tuple[str, str]]) -> None:
        self.status = status
        made = [(name.encode(), value.encode("latin-1")) for name, value in added]
        await respond_json(self._send, status, body, made)

    def _note_request(self, request: str, status: int, reason: str, code: str = "") -> None:
        """Write down that the request failed, and why; what cannot be written is remembered."""
        took = self.proxy.clock.mono() - self._received if self._received else 0
        failed = RequestFailed(
            status=status,
            reason=reason,
            code=code,
            method=self._head.method,
            path=self.route.path,
            upstream=self.upstream.name if self.upstream else "",
            tenant=self._principal.tenant if self._principal else "",
            seconds=took / 1e9,
        )
        self.proxy.failed.record(request, of_exchange(failed, self._exchange))


def _raw_headers(inbound: Inbound) -> RawHeaders:
    """The headers of an answer as they came, where its wire has them so."""
    raw: RawHeaders | None = getattr(inbound, "raw_headers", None)
    return headers.encoded(inbound.headers) if raw is None else raw

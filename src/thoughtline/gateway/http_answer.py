"""The answer to a client over HTTP: the upstream's, as it comes, or an error of the gateway.

Its headers name the turn or the failed request, and say what became of the thoughts. `http_caller`
is the other half: the request, up to where it is sent.
"""

from collections.abc import Awaitable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from thoughtline.dialects import DEFAULT, DIALECTS
from thoughtline.dialects.base import Dialect
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.exchange import Exchange
from thoughtline.errors import WireError
from thoughtline.gateway import bodies, headers
from thoughtline.gateway.asgi import (
    OWN_SERVER,
    POSTED,
    DisconnectWatcher,
    OwnServer,
    RawHeaders,
    Receive,
    Scope,
    Send,
    respond,
    respond_json,
)
from thoughtline.gateway.asked_model import AskedModel, AskedModelSend
from thoughtline.gateway.auth import Principal
from thoughtline.gateway.client_head import head_of
from thoughtline.gateway.errors import GatewayError
from thoughtline.gateway.failed_requests import MAX_BODY, answer_words, of_exchange
from thoughtline.gateway.relay import Relay, Start
from thoughtline.gateway.translated_http import HttpTranslation
from thoughtline.gateway.translated_relay import TranslatedRelay
from thoughtline.log.events import RequestFailed
from thoughtline.wires.base import Inbound, read_up_to

if TYPE_CHECKING:
    from thoughtline.gateway.proxy import Proxy

MAX_REFUSAL_BYTES = 1 << 20


class HttpAnswer:
    """What one client is answered, once or not at all."""

    upstream: Upstream | None = None  # once it is certain
    status = 0  # what the client was told; 0: nothing yet
    _principal: Principal | None = None
    _received = 0  # when the request was complete, by the monotonic clock
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
        self._write_now = self._server.write_now if self._server is not None else None
        self._headers: RawHeaders = scope["headers"]
        self._posted = POSTED in scope

    # -- the upstream's, relayed ------------------------------------------------------------------

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
        encoding = known.get(b"content-encoding", b"").decode("latin-1")
        renames = translation is None and not encoding and self._asked_model(stream=stream)
        made = headers.raw_to_client(raw, added, stream=stream or renames)
        start = partial(self._begin, inbound.status, made)
        relay = self._new_relay(exchange, inbound, encoding, start)
        if stream:
            relay.keep_alive(self.proxy.options.keepalive)
        try:
            await relay.forward(inbound.chunks(), stream=stream)
            reason = recording.capture_error
        except WireError as error:
            reason = error.log_reason
            await self._broke_off(exchange, relay, str(error), stream=stream)
        finally:
            relay.stop()
        self._ended(exchange, reason)

    def _asked_model(self, *, stream: bool) -> bool:
        """Whether the answer goes out with the client's own name of the model: from now on."""
        if self.dialect is None or self.upstream is None or not self.upstream.asked:
            return False
        asked = AskedModel(self.dialect, self.upstream.asked)
        sending = AskedModelSend(asked, self._send, self._write_now, stream=stream)
        self._send = sending.send
        if self._write_now is not None:
            self._write_now = sending.write_now
        return True

    async def _broke_off(
        self, exchange: Exchange, relay: Relay, reason: str, *, stream: bool
    ) -> None:
        """Write down that there is no more, and tell the client as far as that is possible."""
        recording = exchange.recording
        said = self._translation is not None and recording.capture.ended is not None
        await self.proxy.engine.writer.write(recording, reason)
        relay.stop()
        if not self.status:
            code = "" if said else "upstream_broke_off"  # what the provider said is its own error
            status, body = relay.refusal(self._speaker, reason)
            await self._answer(status, body, headers.broken_off_headers(exchange, code))
        elif stream and relay.plain:
            await self._break_off(reason, relay)

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
            write_now=self._write_now,
            holds=self.proxy.options.many_processes,
        )

    async def _tell_error(
        self, translation: HttpTranslation, answer: Inbound, exchange: Exchange
    ) -> None:
        """A provider's error, in the words of the client's dialect."""
        body = await self.refusal(answer) if self._beginning is None else self._beginning
        status, received, told = translation.error(answer.status, body, answer.headers)
        request = exchange.failed_request = self.proxy.failed.new_id()
        added = headers.failure_headers(exchange, request=request)
        await self._begin(status, headers.to_client(received, added, stream=status == 200), told)
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
        if self.upstream is not None and self.upstream.asked:
            made = [*made, *headers.encoded(headers.model_header(self.upstream))]
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

    def stop_watching(self) -> None:
        """Whether the client leaves does not matter any more."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    # -- the gateway's own -----------------------------------------------------------------------

    async def answer(self, refusal: GatewayError) -> None:
        """An error answer of the gateway, in the shape of the dialect that was spoken."""
        self.stop_watching()  # the answer is made, whether or not the client waits for it
        name = self.upstream.name if self.upstream else ""
        late = bool(self.status)  # too late for words: what does not end is cut off
        # Who could not say who they are writes nothing here.
        request = self._failed_id() if self._principal and not late else ""
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
        told = [*added, *(headers.model_header(self.upstream) if self.upstream else ())]
        await respond_json(self._send, status, body, headers.encoded(told))

    def _failed_id(self) -> str:
        """The id under which a failure is written; empty for one that is none.

        A `HEAD` asks whether somebody is there, as Claude Code does at its start.
        """
        return "" if self._head.method == "HEAD" else self.proxy.failed.new_id()

    def _note_request(self, request: str, status: int, reason: str, code: str = "") -> None:
        """Write down that the request failed, and why; what cannot be written is remembered."""
        if self._head.method == "HEAD":
            return
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

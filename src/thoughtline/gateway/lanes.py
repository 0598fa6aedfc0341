"""One lane of a client's WebSocket: requests one after the other, each walked like any other.

A frame becomes the full request (`transcripts`), and then it is the walk again: begin, dispatch
with one controlled retry, client first, the ledger before the end. What goes upstream is decided
there anew: over a WebSocket, with a continuation where that is proven, or over HTTP.
"""

import asyncio
from typing import Protocol

from thoughtline import splice
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.sse import Splitter
from thoughtline.errors import Unreadable, WireError
from thoughtline.exchanges import Exchange
from thoughtline.gateway import transcripts
from thoughtline.gateway.access import Visitor
from thoughtline.gateway.healing import Trial
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.refusals import Refusal, insist
from thoughtline.gateway.routes import Route
from thoughtline.gateway.transcripts import Create, Transcript
from thoughtline.gateway.upstreams import Upstream
from thoughtline.wires.answers import Answer, Sent, State
from thoughtline.wires.base import Headers, Outbound
from thoughtline.wires.connections import Dial, Dialling, Refused, Socket
from thoughtline.wires.continuation import Guard, Position
from thoughtline.wires.fallback import over_http
from thoughtline.wires.placed import framed
from thoughtline.wires.websocket import Options, ResponsesWire

LEFT = "the client left"


class Visit(Protocol):
    """The connection that a lane is part of."""

    proxy: Proxy
    route: Route
    visitor: Visitor
    hints: list[str]
    asked: str  # off or strict, where the client says so

    async def tell(self, event: bytes, lane: str | None) -> None:
        """Send an event to the client; nothing happens when it is gone."""

    async def refuse(self, refusal: Refusal, lane: str | None) -> None:
        """An error of ours, in the protocol's envelope."""

    def find(self, response: str) -> Transcript | None:
        """The transcript of a response in any lane."""

    def outbound(self, body: bytes, upstream: Upstream, exchange: Exchange | None) -> Outbound:
        """A request on its way to the upstream, as a POST."""


class Lane:
    """Requests of one lane."""

    def __init__(self, visit: Visit, name: str | None) -> None:
        self.visit = visit
        self.name = name
        self.latest: Transcript | None = None
        self._wires: dict[str, ResponsesWire] = {}

    async def serve(self, create: Create) -> None:
        """Answer one request, in whatever way; raises nothing but a cancel."""
        proxy = self.visit.proxy
        upstream = ""
        with proxy.present:
            try:
                request, whole = self._read(create)
                chosen = proxy.upstream(self.visit.route, request.model)
                upstream = chosen.name
                await self._walk(request, whole, chosen, create)
            except Refusal as refusal:
                await self._refused(refusal, upstream)
            except WireError as error:
                said = f"{error}; is the upstream up?"
                await self._refused(Refusal(502, said, "upstream_unreachable"), upstream)

    async def close(self) -> None:
        """Let go of the upstreams."""
        for wire in self._wires.values():
            await wire.close()

    # -- reading room ----------------------------------------------------------------------------

    def _read(self, create: Create) -> tuple[Request, Transcript]:
        held = self.visit.find(create.previous) if create.previous else None
        if create.previous and held is None and not create.stored:
            raise Refusal(
                400,
                f"Previous response with id '{create.previous}' not found.",
                "previous_response_not_found",
            )
        whole = transcripts.behind(create, held)
        body = transcripts.posted(create, whole)
        limit = self.visit.proxy.options.max_body_bytes
        if len(body) > limit:
            raise Refusal(
                413,
                f"with all that came before, the request is larger than {limit} bytes; "
                "shorten the history, or raise `server.max_body_bytes`",
                "request_too_large",
            )
        try:
            return _DIALECT.read(body), whole
        except Unreadable as error:
            raise Refusal(400, str(error), "invalid_request") from None

    # -- the walk --------------------------------------------------------------------------------

    async def _walk(
        self, request: Request, whole: Transcript, upstream: Upstream, create: Create
    ) -> None:
        visit, proxy = self.visit, self.visit.proxy
        exchange: Exchange | None = None
        if visit.asked != "off":
            received = proxy.clock.mono()
            exchange = await proxy.begin(
                request,
                dialect=_DIALECT,
                upstream=upstream,
                visitor=visit.visitor,
                hints=visit.hints,
            )
            exchange.received = received
            if self._strict:
                insist(exchange)
        if not create.generate:
            await self._warm(request, whole, upstream, exchange)
            return
        if exchange is None:
            await self._dispatch(request, whole, upstream, None)
            return
        proxy.observer.replayed(exchange)
        try:
            await self._dispatch(request, whole, upstream, exchange)
        except asyncio.CancelledError:
            await asyncio.shield(proxy.ledger.write(exchange, LEFT))
            proxy.observer.ended(exchange, 499, LEFT)
            raise

    async def _dispatch(
        self, request: Request, whole: Transcript, upstream: Upstream, exchange: Exchange | None
    ) -> None:
        """Send; one refusal may be answered with a second try, before the client has anything."""
        healer = self.visit.proxy.healer
        wire = self._wire(upstream)
        trial: Trial | None = None
        while True:
            if exchange is not None:
                exchange.sent()
            body = exchange.body if exchange is not None else request.body
            outbound = self.visit.outbound(body, upstream, exchange)
            async with wire.send(outbound, self._position(request, upstream, exchange)) as answer:
                refusal = answer.refusal
                if exchange is not None and trial is not None:
                    await healer.settle(trial, answer.status)
                elif exchange is not None and refusal and 400 <= refusal.status < 500:
                    trial = await healer.heal(
                        exchange, refusal.status, refusal.data, strict=self._strict
                    )
                    if trial is not None:
                        continue
                await self._show(answer, whole, exchange)
                return

    def _position(
        self, request: Request, upstream: Upstream, exchange: Exchange | None
    ) -> Position:
        """Where a request stands in the log; without one, only its own words are proof."""
        if exchange is None:
            return Position(guard=Guard(endpoint=upstream.base_url, model=request.model))
        origin, restoration = exchange.target.origin, exchange.restoration
        return Position(
            guard=Guard(endpoint=origin.endpoint, account=origin.account, model=origin.model),
            turn=exchange.turn,
            head=restoration.parent.turn if restoration.parent else "",
            ancestors=frozenset(ruling.memory for ruling in restoration.rulings),
        )

    # -- gallery, ledger -------------------------------------------------------------------------

    async def _show(self, answer: Answer, whole: Transcript, exchange: Exchange | None) -> None:
        proxy = self.visit.proxy
        reason = ""
        try:
            async for event in answer:
                if answer.over:
                    await self._ended(answer, whole, exchange, event)
                await self.visit.tell(event, self.name)
                if exchange is not None and not answer.over:
                    exchange.feed(framed(event))
        except WireError as error:
            reason = str(error)
            if exchange is not None:
                await proxy.ledger.write(exchange, reason)
            await self.visit.refuse(Refusal(502, reason, "upstream_broke_off"), self.name)
        if exchange is not None:
            refused = "refused" if answer.refusal is not None else reason
            proxy.observer.ended(exchange, answer.status, refused)

    async def _ended(
        self, answer: Answer, whole: Transcript, exchange: Exchange | None, event: bytes
    ) -> None:
        """The end waits for the ledger; then the client may go on from here."""
        if answer.refusal is not None:
            return
        if exchange is not None:
            exchange.feed(framed(event))
            exchange.capture.wire = str(answer.sent.plan)
            await self.visit.proxy.ledger.write(exchange)
        answer.commit()
        if answer.sound and (answer.state is State.COMPLETED or answer.incomplete):
            self.latest = whole.grown(answer.response, answer.items)

    async def _warm(
        self, request: Request, whole: Transcript, upstream: Upstream, exchange: Exchange | None
    ) -> None:
        """No answer is asked for yet: the upstream may get ready, the client gets an id."""
        if upstream.supports_websockets:
            body = exchange.body if exchange is not None else request.body
            outbound = self.visit.outbound(body, upstream, exchange)
            await self._wire(upstream).warm(outbound, self._position(request, upstream, exchange))
        id = f"resp_{self.visit.proxy.clock.new_id()}"
        self.latest = whole.grown(id, ())
        events = transcripts.empty(id, request.model, self.visit.proxy.clock.wall())
        for number, event in enumerate(events):
            numbered = {"sequence_number": number, **event}
            await self.visit.tell(splice.dumps(numbered), self.name)

    # -- the rest --------------------------------------------------------------------------------

    @property
    def _strict(self) -> bool:
        return self.visit.proxy.options.strict or self.visit.asked == "strict"

    async def _refused(self, refusal: Refusal, upstream: str) -> None:
        observer = self.visit.proxy.observer
        observer.refused(upstream, _DIALECT.name, refusal.status, refusal.code)
        await self.visit.refuse(refusal, self.name)

    def _wire(self, upstream: Upstream) -> ResponsesWire:
        if upstream.name not in self._wires:
            self._wires[upstream.name] = _wire(self.visit.proxy, upstream)
        return self._wires[upstream.name]


def _wire(proxy: Proxy, upstream: Upstream) -> ResponsesWire:
    """The way to an upstream: its WebSocket if it has one, and HTTP."""
    patience = upstream.patience
    options = Options(idle_timeout=patience.idle) if patience is not None else Options()

    def watch(sent: Sent) -> None:
        proxy.observer.sent(upstream.name, sent)

    dial: Dial = _none
    if upstream.supports_websockets:
        dial = Dialling(
            open_timeout=patience.connect if patience is not None else 10.0,
            max_size=proxy.options.max_body_bytes,
        )
    return ResponsesWire(
        fallback=over_http(proxy.wire, Splitter),
        dial=dial,
        clock=proxy.clock,
        options=options,
        watch=watch,
    )


async def _none(_url: str, _headers: Headers) -> Socket:
    raise Refused(426)  # as a server would answer that has none


_DIALECT: Dialect = DIALECTS["responses"]

"""Serves clients over HTTP: the engine takes each request, an `HttpCaller`, through its steps.

Whatever goes wrong on the way is answered here, in the client's dialect, and whatever the store
does, requests flow.
"""

import asyncio

from thoughtline.clock import Clock
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.exchange import Engine, EngineOptions
from thoughtline.engine.routes import Route
from thoughtline.errors import SettingsError, WireError, fault
from thoughtline.gateway import bodies
from thoughtline.gateway.asgi import InFlight, Receive, Scope, Send
from thoughtline.gateway.auth import Auth, Principal
from thoughtline.gateway.client_head import ClientHead, ClientTarget, ModelRoute
from thoughtline.gateway.errors import GatewayError, no_key, unknown_upstream
from thoughtline.gateway.failed_requests import FailedRequests
from thoughtline.gateway.http_caller import HttpCaller
from thoughtline.gateway.options import GatewayObserver, ProxyOptions
from thoughtline.stores.base import Store
from thoughtline.wires.base import Wire

_MAX_MODEL = 256  # characters of a model's name that is remembered with a connection


class Proxy:
    """Serves clients over HTTP, and holds what the WebSocket side shares with it."""

    def __init__(
        self,
        *,
        auth: Auth,
        directory: Directory,
        store: Store,
        wire: Wire,
        observer: GatewayObserver,
        options: ProxyOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.auth = auth
        self.directory = directory
        self.store = store
        self.wire = wire
        self.observer = observer
        self.options = options or ProxyOptions()
        self.engine = Engine(
            store,
            observer=observer,
            clock=clock,
            options=EngineOptions(
                limits=self.options.limits,
                max_bytes=self.options.max_body_bytes,
                commit_wait=self.options.commit_wait,
                records_all=self.options.records_all,
                prefix_bytes=self.options.prefix_bytes,
            ),
        )
        self.clock = self.engine.clock
        self.failed = FailedRequests(store, self.clock, keeps_words=self.options.records_all)
        self.in_flight = InFlight()  # responses under way
        self.draining = False  # going down: those that are here may finish

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from its client's credential to the turn in the log."""
        caller = HttpCaller(self, scope, receive, send)
        with self.in_flight:
            try:
                await self.engine.run(caller)
            except asyncio.CancelledError:
                await caller.cancelled()
            except GatewayError as refusal:
                await caller.answer(refusal)
            except bodies.BodyTooLarge as error:
                await caller.answer(GatewayError(413, str(error), "request_too_large"))
            except WireError as error:
                message = f"{error}; is the upstream up, and the network?"
                await caller.answer(GatewayError(502, message, "upstream_unreachable"))
            except bodies.ClientDisconnected:
                pass
            except Exception as error:
                message = f"{fault(error)}: please report it"
                await caller.answer(GatewayError(500, message, "internal_error"))
                raise  # for the server's log
            finally:
                caller.stop_watching()

    def upstream(self, route: Route, model: str, body: bytes | None = None) -> Upstream:
        """Who serves a request. Raises `GatewayError` when nobody does."""
        try:
            upstream = self.directory.pick(route.upstream, model, route.options)
        except SettingsError as error:
            raise GatewayError(400, str(error), "invalid_path") from error
        if upstream is None:
            raise unknown_upstream(route, model, self.directory, body)
        if upstream.lacks_key:
            raise no_key(upstream)
        return upstream

    def model_route(
        self, head: ClientHead, dialect: str, model: str, body: bytes | None
    ) -> ModelRoute:
        """Where a request for this model goes; the next one with the same head finds it there."""
        route = self.directory.understood(head.route, model)
        upstream = self.upstream(route, model, body)
        provider = upstream.translates(dialect)
        asked = upstream.served if upstream.asked and not provider else model
        principal = head.authenticate(self.auth)
        goal = self.client_target(upstream, principal, provider or dialect, asked)
        made = ModelRoute(model=model, route=route, upstream=upstream, provider=provider, goal=goal)
        if len(model) <= _MAX_MODEL:
            head.model_route = made
        return made

    def client_target(
        self, upstream: Upstream, principal: Principal, dialect: str, model: str
    ) -> ClientTarget:
        """Where a client's request goes that an upstream is asked in this dialect."""
        if principal.claims is not None:
            principal = self.auth.at_upstream(principal, upstream)
        account = self.auth.account(principal, upstream)
        return ClientTarget(
            target=upstream.target(dialect=dialect, model=model, account=account),
            tenant=principal.tenant,
            claimed=principal.claimed,
        )

    async def drain(self, grace: float) -> None:
        """Wait for responses and writes that are still under way, at most this long."""
        self.draining = True
        await self.in_flight.wait_until_idle(grace)
        await self.engine.writer.settled()
        await self.failed.settled()

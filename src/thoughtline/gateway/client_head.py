"""The head of a client's request, and all that follows from it alone.

Clients repeat it with every request of a connection, but for the length of the body. The server
notices that (`server.protocol`), and who asks, what the path means and which headers go upstream
are worked out once for as long as the head stays the same.
"""

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Dialect
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.routes import Route, asked, climbs
from thoughtline.gateway import headers
from thoughtline.gateway.asgi import App, RawHeaders, Scope
from thoughtline.gateway.auth import Auth, Principal
from thoughtline.gateway.credentials import credential, without_key
from thoughtline.gateway.errors import GatewayError
from thoughtline.replay.guard import Target
from thoughtline.wires.base import Outbound

HEAD = "thoughtline.head"
"""The member of a scope under which the own server keeps the head."""


class ClientTarget(Struct, frozen=True, kw_only=True):
    """Where a client's requests for one model go, and as whose."""

    target: Target
    tenant: str
    claimed: bool = False  # the tenant goes by what the client says, and only a provider can check


class ModelRoute(Struct, frozen=True, kw_only=True):
    """All that follows from a head and the name of a model."""

    model: str
    route: Route
    upstream: Upstream
    provider: str  # the dialect that the request is translated to; empty: it goes as it is
    goal: ClientTarget


class ClientHead:
    """One head; two requests with the same one share it, if they come over one connection."""

    app: App | None = None  # which application decided who answers it
    handler: App | None = None  # and who that is
    principal: Principal | None = None  # who asks, once that is known
    model_route: ModelRoute | None = None  # of the request before, where it had a history
    _identity = b""  # the header in which a proxy names the client

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.headers: RawHeaders = scope["headers"]
        self.query: str = scope.get("query_string", b"").decode("latin-1")
        self.route = asked(scope, self.method)
        self.dialect: Dialect | None = DIALECTS.get(self.route.dialect)
        known = dict(self.headers)
        self.replay = headers.replay_mode(known)  # `off`, `strict`, or empty
        self.hints = headers.session_hints(known)
        self.encoding = known.get(b"content-encoding", b"").decode("latin-1")
        self._sent: tuple[Upstream, Route, bool] | None = None  # what `_outbound` was made for
        self._outbound: Outbound | None = None

    def authenticate(self, auth: Auth) -> Principal:
        """Who asks. Raises `GatewayError` for those who may not, and for paths that climb."""
        if self.principal is None:
            principal = auth.require_principal(self.headers, self.query)
            if climbs(self.route.path):
                raise GatewayError(400, "the path contains `..`; write it without", "invalid_path")
            self.principal, self._identity = principal, auth.identity_header
        return self.principal

    @property
    def keyed(self) -> bool:
        """Whether the client's credential is for this gateway only."""
        return self.principal is not None and bool(self.principal.client)

    def credential_for(self, upstream: Upstream) -> str:
        """The client's credential, where it is for the upstream."""
        return "" if self.keyed or upstream.foreign else credential(self.headers, self.query)

    def outbound(
        self, body: bytes, upstream: Upstream, route: Route, *, decompressed: bool
    ) -> Outbound:
        """The request to an upstream; `decompressed`: its body lost its content encoding."""
        sent = (upstream, route, decompressed)
        if self._outbound is None or self._sent != sent:
            self._sent = sent
            self._outbound = self._prepared(upstream, route, decompressed=decompressed)
        return replace(self._outbound, body=body)

    def _prepared(self, upstream: Upstream, route: Route, *, decompressed: bool) -> Outbound:
        query = self.query
        if upstream.key or self.keyed or upstream.foreign:
            query = without_key(query, others=upstream.foreign)
        made = headers.to_upstream(
            self.headers,
            dialect=upstream.credential_dialect_for(route.family),
            key=upstream.key,
            decompressed=decompressed,
            gateway_key=self.keyed,
            foreign=upstream.foreign,
            identity=self._identity,
        )
        return Outbound(
            method=self.method,
            url=upstream.url(route.family, route.path, query),
            headers=tuple(headers.with_configured(made, upstream.headers)),
            timeouts=upstream.timeouts,
        )


def head_of(scope: Scope) -> ClientHead:
    """The head of a request; that of the request before, where the server says so."""
    head: ClientHead | None = scope.get(HEAD)
    return ClientHead(scope) if head is None else head

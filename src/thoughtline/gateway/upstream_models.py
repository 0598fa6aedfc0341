"""Asks an upstream for its models, and tells them to a client of another API.

Each API has a list of its own shape, at a path and with a credential of its own. A client that
names the upstream gets that upstream's list all the same.
"""

import re
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.json import encode

from thoughtline.dialects import DEFAULT, DIALECTS, dialect_by_headers
from thoughtline.dialects.base import Dialect
from thoughtline.dialects.model_lists import Model
from thoughtline.dialects.upstream_errors import upstream_error
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.routes import Route
from thoughtline.errors import Unreadable
from thoughtline.gateway.asgi import RawHeaders
from thoughtline.providers.contracts import preferred_dialect
from thoughtline.wires.base import Outbound, Wire, WireTimeouts, read_up_to

MAX_BYTES = 4 << 20
TIMEOUTS = WireTimeouts(connect=3.0, first_byte=5.0, idle=5.0)
_PATH = re.compile(r"(?:/v\d+[a-z0-9]*)?/models(?:/(.+))?/?")


class ModelsAnswer(Struct, frozen=True):
    """What a client is told."""

    status: int
    body: bytes


def lists_in(upstream: Upstream) -> Dialect:
    """The dialect in which an upstream lists its models."""
    policy = upstream.policy_name
    return DIALECTS[upstream.credential_dialect_for("") or preferred_dialect(policy)]


def models_request(upstream: Upstream, credential: str, id: str = "") -> Outbound:
    """The request for all models of an upstream, or for one."""
    dialect = lists_in(upstream)
    shown = (dialect.credential(credential),) if credential else ()
    path = f"{dialect.models_path}/{quote(id, safe='')}" if id else dialect.models_path
    return Outbound(
        method="GET",
        url=upstream.url(dialect.name, path, "" if id else dialect.models_query),
        headers=(
            ("accept", "application/json"),
            ("accept-encoding", "identity"),
            *dialect.request_headers,
            *shown,
            *upstream.headers.items(),
        ),
        timeouts=TIMEOUTS,
    )


class ForeignList(Struct, frozen=True):
    """A request for the models of an upstream that lists them otherwise than its client expects."""

    client: Dialect
    id: str  # of the one that is asked for; empty: all

    async def answer(self, upstream: Upstream, wire: Wire, credential: str) -> ModelsAnswer:
        """Ask the upstream, and tell it as the client expects it."""
        request = models_request(upstream, upstream.key or credential, self.id)
        async with wire.send(request) as inbound:
            body = await read_up_to(inbound, MAX_BYTES)
        if inbound.status != 200:
            error = upstream_error(inbound.status, body)
            return ModelsAnswer(error.status, self.client.upstream_error(error))
        shape = self.client.model_shape
        if self.id:
            return ModelsAnswer(200, encode(shape.one(Model(id=self.id, owned_by=upstream.name))))
        try:
            ids = lists_in(upstream).model_names(body)
        except Unreadable as problem:
            return ModelsAnswer(502, self.client.error(502, f"{upstream.name}: {problem}"))
        models = [Model(id=id, owned_by=upstream.name) for id in ids]
        return ModelsAnswer(200, encode(shape.many(models)))


def foreign_list(
    method: str, route: Route, headers: RawHeaders, upstream: Upstream
) -> ForeignList | None:
    """What a client asks that expects another list of models; None for any other request."""
    found = _PATH.fullmatch(route.path) if method == "GET" and route.upstream else None
    if found is None:
        return None
    named = dialect_by_headers(name.decode("latin-1") for name, _ in headers)
    client = named or DIALECTS.get(route.family, DEFAULT)
    if client.model_shape is lists_in(upstream).model_shape:
        return None
    return ForeignList(client, unquote(found[1] or "").removeprefix("models/"))

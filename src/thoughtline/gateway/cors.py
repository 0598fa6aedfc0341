"""CORS: lets web pages that `auth` trusts read the gateway's answers.

A browser sends a preflight request, without the client's key, before it lets a page send JSON or a
key to another origin; the gateway answers it, and no upstream sees it. Every other answer, the
gateway's own errors included, gets the headers that let the page read it. An upstream's CORS
headers speak of the upstream and are removed. The administrator's pages are shared with no page.
"""

from typing import Any

from thoughtline.gateway.asgi import App, RawHeaders, Receive, Scope, Send, respond
from thoughtline.gateway.auth import Auth

_PREFIX = b"access-control-"
_MAX_AGE = b"600"  # seconds for which a browser may remember the answer to a preflight


def request_origin(headers: RawHeaders) -> bytes:
    """The `Origin` of the page that asks through a browser; empty for other clients."""
    for name, value in headers:
        if name == b"origin":
            return value
    return b""


class Cors:
    """An application whose answers trusted pages may read."""

    def __init__(self, app: App, auth: Auth) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight; let everything else through."""
        headers = scope["headers"]
        origin = request_origin(headers)
        if self._auth.foreign_origin(headers):  # it is refused, and need not read why
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and (wanted := _preflight(headers)):
            await respond(send, 204, _allow(origin, wanted))
        else:
            await self._app(scope, receive, _with_cors_headers(send, origin))


def _preflight(headers: RawHeaders) -> dict[bytes, bytes]:
    """What a preflight request asks for; empty for a request that is none."""
    wanted = {name: value for name, value in headers if name.startswith(_PREFIX + b"request-")}
    return wanted if b"access-control-request-method" in wanted else {}


def _allow(origin: bytes, wanted: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """CORS preflight: allow the method and the headers that the page asked for."""
    allowed = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", wanted[b"access-control-request-method"]),
        (b"access-control-max-age", _MAX_AGE),
        (b"vary", b"origin"),
    ]
    if names := wanted.get(b"access-control-request-headers"):
        allowed.append((b"access-control-allow-headers", names))
    if b"access-control-request-private-network" in wanted:  # from a web site to this machine
        allowed.append((b"access-control-allow-private-network", b"true"))
    return allowed


def _with_cors_headers(send: Send, origin: bytes) -> Send:
    """A `send` that lets the page at this origin read the answer."""

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            others = [pair for pair in message["headers"] if not pair[0].startswith(_PREFIX)]
            added = (
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", b"*"),
                (b"vary", b"origin"),
            )
            message = {**message, "headers": [*others, *added]}
        await send(message)

    return sending

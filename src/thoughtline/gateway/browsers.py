"""Clients that run in a browser: answers are shared with the pages that may ask.

A browser asks before it lets a page send JSON and a key elsewhere, and asks without the key: so we
answer that, and no upstream. What comes back can be read by the page only if a header says so, on
our own refusals too. Whatever an upstream says about sharing is said about itself, and left out.
Who may ask is the door's to say; the administrator's pages are shared with nobody.
"""

from typing import Any

from thoughtline.gateway.access import Door, Headers
from thoughtline.gateway.proxy import App, Receive, Scope, Send

_SHARING = b"access-control-"
_GRANTED = b"600"  # seconds for which a browser need not ask again


def page(headers: Headers) -> bytes:
    """The page that asks through a browser, if it is one and says so."""
    for name, value in headers:
        if name == b"origin":
            return value
    return b""


class Browsed:
    """An application whose answers pages may read, where the door trusts them."""

    def __init__(self, app: App, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser's question; let everything else through."""
        said = scope["headers"]
        if self._door.stranger(said):  # who is refused, and need not read why
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and (asked := _asked(said)):
            head = _leave(page(said), asked)
            await send({"type": "http.response.start", "status": 204, "headers": head})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await self._app(scope, receive, _sharing(send, page(said)))


def _asked(headers: Headers) -> dict[bytes, bytes]:
    """What a browser wants to know; nothing where that is no such question."""
    wanted = {name: value for name, value in headers if name.startswith(b"access-control-request-")}
    return wanted if b"access-control-request-method" in wanted else {}


def _leave(reader: bytes, asked: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Yes, to all of it."""
    made = [
        (b"access-control-allow-origin", reader),
        (b"access-control-allow-methods", asked[b"access-control-request-method"]),
        (b"access-control-max-age", _GRANTED),
        (b"vary", b"origin"),
    ]
    if names := asked.get(b"access-control-request-headers"):
        made.append((b"access-control-allow-headers", names))
    if b"access-control-request-private-network" in asked:  # from a site to this machine
        made.append((b"access-control-allow-private-network", b"true"))
    return made


def _sharing(send: Send, reader: bytes) -> Send:
    """The same, with a head that lets this page read."""

    async def shared(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message["headers"] if not pair[0].startswith(_SHARING)]
            ours = (
                (b"access-control-allow-origin", reader),
                (b"access-control-expose-headers", b"*"),
                (b"vary", b"origin"),
            )
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return shared

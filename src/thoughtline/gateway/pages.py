"""What all pages of our own share: answers as JSON, refusals, and the administrator's door."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from thoughtline.gateway.access import Door
from thoughtline.gateway.shapes import Failure, Problem

PRIVATE = "/api"
"""The beginning of paths that are the administrator's."""

SHELL = "/inspect"
"""The beginning of paths of a page that holds no data, and asks for the token itself."""

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    503: "unavailable_error",
}
_encode = msgspec.json.Encoder().encode


class Json(Response):
    """A struct as JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return _encode(content)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """For whoever asked, and for nobody after them; and it is nothing but JSON."""
        usual = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        super().init_headers(usual | dict(headers or {}))


class Mistaken(Exception):
    """The request cannot be answered as it is."""

    def __init__(self, message: str, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def refusal(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> Json:
    """An answer that says no."""
    kind = KINDS.get(status, "api_error")
    problem = Problem(message=message, type=kind, code=code)
    return Json(Failure(error=problem), status, headers=headers)


def peer(scope: Scope) -> str:
    """The address that the request came from; empty over a local socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def admitted(door: Door, request: Request) -> bool:
    """Whether the administrator is asking."""
    return door.admits_admin(request.scope["headers"], peer(request.scope))


class AdminOnly:
    """An application whose private pages open for the administrator alone."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let through, or say why not."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or self._open(path) or self._admin(scope):
            await self._app(scope, receive, send)
        else:
            await self._refuse()(scope, receive, send)

    def _open(self, path: str) -> bool:
        """Whether anybody may see it: a browser cannot show a token when it opens a page."""
        if path.startswith(SHELL):
            return self._door.guarded
        return not path.startswith(PRIVATE)

    def _admin(self, scope: Scope) -> bool:
        return self._door.admits_admin(scope["headers"], peer(scope))

    def _refuse(self) -> Json:
        if self._door.guarded:
            return refusal(
                401,
                "this page is the administrator's; send `authorization: Bearer TOKEN` with the "
                "token of `access.admin_token` (THOUGHTLINE_ADMIN_TOKEN)",
                "admin_token_needed",
                {"www-authenticate": "Bearer"},
            )
        return refusal(
            403,
            "this page is the administrator's, and without a token it opens only on the machine "
            "itself; set `access.admin_token` (THOUGHTLINE_ADMIN_TOKEN), and send that as a bearer "
            "token",
            "loopback_only",
        )

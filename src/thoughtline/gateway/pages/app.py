"""The application of the gateway's own pages: routes, JSON errors, admin checks."""

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Scope

from thoughtline.errors import StoreError
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.pages.openapi import openapi_page
from thoughtline.gateway.pages.page import (
    ADMIN_PATHS,
    Json,
    Page,
    PageError,
    client_address,
    error_response,
)

INSPECTOR_PATHS = "/inspect"
"""The prefix of the inspector's files, which hold no data: the page itself asks for the token."""


def pages_app(pages: Sequence[Page], files: Sequence[BaseRoute], auth: Auth) -> "AdminOnly":
    """The application of these pages, of `/openapi.json`, which describes them, and of `files`."""
    described = [*pages, openapi_page(pages)]
    app = Starlette(
        routes=[*(page.route() for page in described), *files],
        exception_handlers={
            HTTPException: _no_page,
            PageError: _page_error,
            StoreError: _store_error,
        },
    )
    return AdminOnly(app, auth)


async def _no_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for nothing else)
    text = f"there is no page for {request.method} {request.url.path}; /openapi.json lists all"
    code = "method_not_allowed" if error.status_code == 405 else "not_found"
    return error_response(error.status_code, text, code, dict(error.headers or {}))


async def _page_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, PageError)  # noqa: S101 (it is registered for nothing else)
    return error_response(error.status, str(error), error.code)


async def _store_error(_: Request, error: Exception) -> Response:
    return error_response(503, str(error), "store_unavailable")


class AdminOnly:
    """An application whose admin paths answer only the administrator."""

    def __init__(self, app: ASGIApp, auth: Auth) -> None:
        self._app = app
        self._auth = auth

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let the request through, or answer with an error that says why not."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or self._is_public(path) or self._is_admin(scope):
            await self._app(scope, receive, send)
        else:
            await self._error()(scope, receive, send)

    def _is_public(self, path: str) -> bool:
        """Whether anybody may ask: a browser cannot send a token when it opens the inspector."""
        if path.startswith(INSPECTOR_PATHS):
            return self._auth.has_admin_token
        return not path.startswith(ADMIN_PATHS)

    def _is_admin(self, scope: Scope) -> bool:
        version = scope.get("http_version", "")
        return self._auth.is_admin(scope["headers"], client_address(scope), version)

    def _error(self) -> Json:
        if self._auth.has_admin_token:
            return error_response(
                401,
                "this page is for the administrator; send `authorization: Bearer TOKEN` with the "
                "token of `access.admin_token` (THOUGHTLINE_ADMIN_TOKEN)",
                "admin_token_needed",
                {"www-authenticate": "Bearer"},
            )
        return error_response(
            403,
            "this page is for the administrator, and without a token it opens only on the machine "
            "itself; set `access.admin_token` (THOUGHTLINE_ADMIN_TOKEN), and send that as a bearer "
            "token",
            "loopback_only",
        )

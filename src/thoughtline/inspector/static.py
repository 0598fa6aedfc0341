"""Serves the files of the page at `/inspect`: markup, a script, a style sheet, and no data.

When an admin token is set, anybody who can reach the port may see them, because a browser cannot
send a token when it opens a page: the page asks for the token, and `/api` demands it. The content
security policy lets the page run its own scripts and talk to its own server, and nothing else.
"""

from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from thoughtline.inspector.bundle import script, style

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",  # ask each time; the ETag makes that cheap
}
FOLDER = files("thoughtline.inspector") / "page"
SCRIPT, STYLE = "page.js", "page.css"
SHEETS = ("base.css", "views.css", "requests.css")


async def redirect(_: Request) -> Response:
    """Redirect to the path with a slash, so that the page's relative links work."""
    return RedirectResponse("/inspect/", 307)


async def serve(request: Request) -> Response:
    """Serve one file; it is read from disk, or put together, when it is asked for."""
    name = request.path_params.get("name") or "index.html"
    kind = TYPES.get(PurePosixPath(name).suffix)
    body = contents(name) if kind is not None else None
    if body is None or kind is None:
        raise HTTPException(404)
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {**HEADERS, "etag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers | {"content-type": kind})


def contents(name: str) -> bytes | None:
    """What is served under a name; None where there is no such file."""
    if name == SCRIPT:
        return script("app.js", _read).encode()
    if name == STYLE:
        return style(SHEETS, _read).encode()
    found = next((file for file in FOLDER.iterdir() if file.name == name), None)
    return found.read_bytes() if found is not None else None


def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


ROUTES = [
    Route("/inspect", redirect, methods=["GET"]),
    Route("/inspect/", serve, methods=["GET"]),
    Route("/inspect/{name:path}", serve, methods=["GET"]),
]

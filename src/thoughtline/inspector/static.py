"""The files of the page at `/inspect`: markup, modules and styles, and no data.

They may be shown to anybody who can reach the port when a token is set, because a browser cannot
send one when it opens a page: the page asks for it, and `/api` wants it. The policy in the headers
lets the page run its own scripts and talk to its own server, and nothing else.
"""

from hashlib import blake2b
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",  # ask each time; the tag makes that cheap
}
START = "index.html"


class Static:
    """Answers with the files; they are read when they are asked for."""

    def __init__(self) -> None:
        self._folder = files("thoughtline.inspector") / "page"

    def routes(self) -> list[Route]:
        """Paths and who answers there."""
        return [
            Route("/inspect", self.start, methods=["GET"]),
            Route("/inspect/", self.show, methods=["GET"]),
            Route("/inspect/{name:path}", self.show, methods=["GET"]),
        ]

    async def start(self, request: Request) -> Response:
        """With a slash at the end, so that the page can name its files relative to itself."""
        return RedirectResponse("/inspect/", 307)

    async def show(self, request: Request) -> Response:
        """One file."""
        name = request.path_params.get("name") or START
        body = self._read(name)
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        headers = {**HEADERS, "etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers | {"content-type": TYPES[_ending(name)]})

    def _read(self, name: str) -> bytes:
        parts = PurePosixPath(name).parts
        plain = all(part[0] not in "./" and "\\" not in part for part in parts)
        if not plain or not name.isprintable() or _ending(name) not in TYPES:
            raise HTTPException(404)
        found = self._folder.joinpath(*parts)
        if not found.is_file():
            raise HTTPException(404)
        return found.read_bytes()


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix

"""What a path means: which upstream it names, which dialect it speaks, which model it asks for.

`/u/{upstream}/…` names the upstream, and may have options behind the name (`engine.path_options`);
without it the model decides. Four paths are dialects whose histories carry thoughts, and beside
three of them one counts the tokens of such a history; everything else passes through untouched.
"""

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.dialects import DIALECTS

_VERSION = re.compile(r"v\d+[a-z0-9]*")
_DOUBLED = re.compile(r"^/(v\d+[a-z0-9]*)/+\1/")  # a base URL with the version that a client adds
_METHOD = re.compile(r"(?::|%3[Aa])[a-zA-Z]+$")
_SLASHES = re.compile("//+")
_IN_PATHS = "/:@!$&'()*+,;=~[]|"  # what stands in a path as it is
_REMEMBERED = 128  # paths: those of one client are always the same few


class Route(Struct, frozen=True, kw_only=True):
    """A client's path, understood."""

    path: str  # as it goes on to the upstream, still with its version segment
    upstream: str = ""  # named by the client; empty: the model decides
    options: str = ""  # what stands behind that name, as `engine.path_options` reads it
    dialect: str = ""  # empty: passes through
    family: str = ""  # the dialect it belongs to, also where it passes through
    model: str = ""  # where the path holds it
    stream: bool | None = None  # where the path says so
    counts: bool = False  # it asks how many tokens the request has, and nothing is said

    @property
    def base(self) -> str:
        """What stands in front of the upstream's own path."""
        options = f";{self.options}" if self.options else ""
        return f"/u/{quote(self.upstream, safe='')}{options}" if self.upstream else ""


def with_model(route: Route, model: str) -> Route:
    """A route with another model in its path."""
    before, _, after = route.path.partition("/models/")
    method = _METHOD.search(after)
    path = f"{before}/models/{quote(model, safe='')}{method[0] if method else ''}"
    return replace(route, path=path, model=model)


def asked(scope: dict[str, Any], method: str) -> Route:
    """What a request of the server's means."""
    raw: bytes = scope.get("raw_path") or b""
    return _read(method, raw) if raw else parse(method, quote(scope["path"], safe=_IN_PATHS))


@lru_cache(_REMEMBERED)
def _read(method: str, raw: bytes) -> Route:
    """The path as the client wrote it, fit for a request line."""
    return parse(method, quote(raw, safe="%" + _IN_PATHS))


def parse(method: str, path: str) -> Route:
    """Understand a path, escaped as the client sent it: so it goes on."""
    upstream = options = ""
    if path.startswith("/u/"):
        named, _, rest = path[3:].partition("/")
        upstream, _, options = named.partition(";")
        upstream, path = unquote(upstream), "/" + rest
    if path.startswith("/v"):
        path = _DOUBLED.sub(r"/\1/", path)
    tidy = _SLASHES.sub("/", path).rstrip("/")  # `/v1/` and `/chat/completions`, put together
    model = ""
    for name, dialect in DIALECTS.items():
        found = dialect.match_path(tidy)
        if found is None:
            continue
        if method == "POST" and (found.generates or found.counts):
            return Route(
                path=tidy,
                upstream=upstream,
                options=options,
                dialect=name,
                family=name,
                model=found.model,
                stream=found.stream,
                counts=found.counts,
            )
        model = found.model
    family = _family(tidy)
    return Route(path=path, upstream=upstream, options=options, family=family, model=model)


def _family(path: str) -> str:
    """Whose neighbour a path is that is no dialect's own, like `/messages/count_tokens`."""
    below = [d for d in DIALECTS.values() if d.path_prefix and path.startswith(d.path_prefix)]
    if below:
        return max(below, key=lambda dialect: len(dialect.path_prefix)).name
    for name, dialect in DIALECTS.items():
        ends = (dialect.path_suffix, dialect.path_neighbour)
        if any(end and f"{end}/" in f"{path}/" for end in ends):
            return name
    return ""


def climbs(path: str) -> bool:
    """Whether a path, however it is escaped, goes up from where it stands."""
    if "." not in path and "%" not in path:
        return False
    for _ in range(3):  # a server may decode what another one has decoded
        if ".." in re.split(r"[/\\]", path):
            return True
        path = unquote(path)
    return False


def join(base_url: str, path: str, query: str = "") -> str:
    """The upstream's URL: a version segment that the base ends in stands for the path's own."""
    url = _joined(base_url, path)
    return f"{url}?{query}" if query else url


@lru_cache(_REMEMBERED)
def _joined(base_url: str, path: str) -> str:
    base = base_url.rstrip("/")
    if within := beneath(base, path):
        return base + within
    if _VERSION.fullmatch(base.rpartition("/")[2]):
        path = unversioned(path)
    if not path.startswith("/"):  # `*@elsewhere` would make a login of the base, and lead there
        path = "/" + path
    return base + path


def beneath(base_url: str, path: str) -> str:
    """A path that repeats the upstream's own, as base URLs are often copied; without that."""
    place = urlsplit(base_url).path.rstrip("/")
    return path[len(place) :] if place and path.startswith(f"{place}/") else ""


def unversioned(path: str) -> str:
    """A path without its version segment."""
    head, _, rest = path.lstrip("/").partition("/")
    return "/" + rest if _VERSION.fullmatch(head) else path


def named_first(path: str) -> tuple[str, str]:
    """The first segment of a dialect's path that has one before it, and the rest; else two empty.

    `/deepseek/v1/chat/completions` is how `/u/deepseek/v1/chat/completions` is often written.
    """
    head, _, rest = path.lstrip("/").partition("/")
    bare = unversioned("/" + rest)
    for dialect in DIALECTS.values():
        own = (dialect.path_suffix, dialect.count_suffix)
        if bare in own or (not dialect.path_suffix and bare.startswith("/models/")):
            return (unquote(head), "/" + rest) if not _VERSION.fullmatch(head) else ("", "")
    return "", ""


def has_version(base_url: str) -> bool:
    """Whether any segment of a base URL is a version."""
    return any(_VERSION.fullmatch(segment) for segment in urlsplit(base_url).path.split("/"))

"""What must hold between settings that are fine one by one.

Each check yields sentences: where it was written, what is wrong, what was expected. `exposed` is
apart, because only a server that is about to listen has to refuse.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from thoughtline.errors import SettingsError
from thoughtline.policies import names
from thoughtline.settings.hosts import is_loopback, unfit
from thoughtline.settings.sections import Access, Settings, Store, Telemetry, Upstream

DIALECTS = ("chat", "responses", "messages", "gemini")
STORES = ("sqlite", "postgresql", "postgres", "memory")
CACHES = ("redis", "rediss", "unix")


def problems(settings: Settings, origins: Mapping[str, str]) -> list[str]:
    """All that is wrong, each with where it was written."""
    found = [
        *_server(settings),
        *_store(settings.store),
        *_access(settings.access),
        *_telemetry(settings.telemetry),
        *(
            p
            for u in settings.upstreams.values()
            if u.standing == "configured"
            for p in _upstream(u)
        ),
    ]
    return [f"{_origin(path, origins)}: {text}" for path, text in found]


def _origin(path: str, origins: Mapping[str, str]) -> str:
    """Where a key was written, or else the table that it belongs to."""
    while path and path not in origins:
        path = path.rpartition(".")[0]
    return origins.get(path, "settings")


def _server(settings: Settings) -> Iterator[tuple[str, str]]:
    server = settings.server
    if not server.host or any(c.isspace() or c in "/@?#" for c in server.host):
        yield "server.host", "`server.host` is no address; expected one such as 127.0.0.1"
    if server.workers > 1 and settings.store.url.startswith("memory:"):
        text = (
            f"`server.workers` is {server.workers} and `store.url` is memory://, which every "
            "worker would have for itself; use one worker, or a store they can share"
        )
        yield "server.workers", text


def _store(store: Store) -> Iterator[tuple[str, str]]:
    if store.url.partition("://")[0] not in STORES or "://" not in store.url:
        yield (
            "store.url",
            "`store.url` names no store; expected sqlite:///file.db, postgresql://… or memory://",
        )
    if store.cache_url and store.cache_url.partition("://")[0] not in CACHES:
        yield "store.cache_url", "`store.cache_url` names no cache; expected redis://…, or nothing"


def _access(access: Access) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for name, client in access.clients.items():
        path = f"access.clients.{name}.key"
        key = client.key.reveal()
        if not key:
            yield path, f'`{path}` is missing; expected the key this client sends, or "env:NAME"'
        elif access.admin_token.matches(key):
            yield path, f"`{path}` is the admin token; expected a key of its own"
        elif key in seen:
            yield path, f"`{path}` is the key of {seen[key]!r} too; expected a key of its own"
        seen.setdefault(key, name)


def _telemetry(telemetry: Telemetry) -> Iterator[tuple[str, str]]:
    if telemetry.otel_endpoint and (reason := unfit(telemetry.otel_endpoint)):
        path = "telemetry.otel_endpoint"
        yield path, f"`{path}` {reason}; expected http://host:4318, or nothing"


def _upstream(upstream: Upstream) -> Iterator[tuple[str, str]]:
    here = f"upstreams.{upstream.name}"
    if not upstream.base_url:
        text = (
            f"`{here}.base_url` is missing, and no provider of that name is known; "
            "expected a URL such as https://api.example.com"
        )
        yield f"{here}.base_url", text
    elif reason := unfit(upstream.base_url):
        text = (
            f"`{here}.base_url` {reason}; expected http(s)://host/path, with credentials in "
            "`env_key` or `headers`"
        )
        yield f"{here}.base_url", text
    if upstream.policy not in names():
        near = get_close_matches(upstream.policy.lower(), names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names())}"
        yield f"{here}.policy", f"`{here}.policy` names no row of the policy table; {hint}"
    for dialect, url in upstream.endpoints.items():
        path = f"{here}.endpoints.{dialect}"
        if dialect not in DIALECTS:
            yield path, f"`{path}` names no dialect; expected one of {', '.join(DIALECTS)}"
        elif reason := unfit(url):
            yield path, f"`{path}` {reason}; expected http(s)://host/path"


def exposed(settings: Settings) -> bool:
    """Whether others than this machine could come in without a key, and nobody said they may."""
    open_door = not settings.access.clients and not settings.server.allow_remote
    return open_door and not is_loopback(settings.server.host)


def refuse_exposure(settings: Settings) -> None:
    """Raise before anything listens where it should not."""
    if exposed(settings):
        raise SettingsError(
            f"`server.host` is {settings.server.host}, which other machines can reach, and no "
            "client keys are set; give each client a key under [access.clients.NAME], or say "
            "`--allow-remote` (`server.allow_remote = true`) if anybody may come in"
        )

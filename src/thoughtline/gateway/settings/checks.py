"""What must hold for addresses and between settings that are fine one by one.

Each check yields sentences: where it was written, what is wrong, what was expected. `exposed` is
apart, because only a server that is about to listen has to refuse.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from thoughtline.dialects import DIALECTS
from thoughtline.errors import SettingsError, did_you_mean
from thoughtline.gateway.settings.keys import Path, dotted
from thoughtline.gateway.settings.sections import (
    AccessSettings,
    Settings,
    StoreSettings,
    TelemetrySettings,
    UpstreamSettings,
)
from thoughtline.providers.contracts import policy_names
from thoughtline.providers.known_providers import SCHEME
from thoughtline.stores.secret_sources import EXPECTED, is_source

STORES = ("sqlite", "postgresql", "postgres", "memory")


# --- Addresses ---------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach a server that listens on this host."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def url_problem(url: str) -> str:
    """Why a URL cannot be an upstream's base; empty when it can. Never quotes the URL."""
    if url == SCHEME:
        return ""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "is not an http:// or https:// URL"
    if "@" in parts.netloc:
        return "has a credential in it"
    if parts.query or parts.fragment:
        return "has a query or a fragment"
    if any(c.isspace() for c in url):
        return "has a space in it"
    return ""


# --- Between settings --------------------------------------------------------------------------


def problems(settings: Settings, sources: Mapping[Path, str]) -> list[str]:
    """All that is wrong, each with where it was written."""
    written = {dotted(path): source for path, source in sources.items()}
    found = [
        *_server(settings),
        *_store(settings.store),
        *_access(settings.access),
        *_telemetry(settings.telemetry),
    ]
    found += _models(settings)
    for upstream in settings.upstreams.values():
        if upstream.source == "configured":
            found += [
                *_upstream(upstream),
                *_dialects(upstream),
                *_same_as(upstream, settings.upstreams),
            ]
    return [f"{_source(path, written)}: `{path}` {text}" for path, text in found]


def _models(settings: Settings) -> Iterator[tuple[str, str]]:
    for pattern, row in settings.models.items():
        name, _, model = row.to.partition("/")
        path = f"models.{pattern}.to"
        if not name or not model:
            yield path, f"is {row.to!r}; expected an upstream and a model, as in `deepseek/NAME`"
        elif name not in settings.upstreams:
            known = ", ".join(settings.upstreams)
            yield path, f"names the upstream {name!r}, which does not exist; known: {known}"


def _source(path: str, written: Mapping[str, str]) -> str:
    """Where a key was written, or else the table that it belongs to."""
    while path and path not in written:
        path = path.rpartition(".")[0]
    return written.get(path, "settings")


def _server(settings: Settings) -> Iterator[tuple[str, str]]:
    server = settings.server
    if not server.host or any(c.isspace() or c in "/@?#" for c in server.host):
        yield "server.host", "is not an address; expected one such as 127.0.0.1"
    if server.workers > 1 and settings.store.url.startswith("memory:"):
        text = (
            f"is {server.workers} and `store.url` is memory://, of which each worker would have "
            "its own; use one worker, or a store they can share"
        )
        yield "server.workers", text


def _store(store: StoreSettings) -> Iterator[tuple[str, str]]:
    scheme, mark, _ = store.url.partition("://")
    if not mark and "@" not in store.url:  # a path; anything else may hold a password
        text = f"is {store.url!r}, which is not a store URL; for a file, write sqlite:///{scheme}"
        yield "store.url", text
    elif scheme not in STORES:
        text = "is not a URL of a store; expected sqlite:///file.db, postgresql:// or memory://"
        yield "store.url", text
    if store.secret and not is_source(store.secret):
        yield "store.secret", f"does not say where the secret is; {EXPECTED}"
    if store.keys and not is_source(store.keys):  # which may be a key itself: not quoted
        yield "store.keys", f"does not say where the keys are; {EXPECTED}"
    if store.require_sealed and not store.keys:
        yield "store.require_sealed", "is set, and `store.keys` is not; name the keys there"


def _access(access: AccessSettings) -> Iterator[tuple[str, str]]:
    owners: dict[str, str] = {}
    for name, client in access.clients.items():
        path, key = f"access.clients.{name}.key", client.key.reveal()
        if not key:
            yield path, 'is missing; expected the key this client sends, or "env:NAME"'
        elif access.admin_token.matches(key):
            yield path, "is the admin token; expected a key of its own"
        elif key in owners:
            yield path, f"is the key of {owners[key]!r} too; expected a key of its own"
        owners.setdefault(key, name)


def _telemetry(telemetry: TelemetrySettings) -> Iterator[tuple[str, str]]:
    if telemetry.otel_endpoint and (reason := url_problem(telemetry.otel_endpoint)):
        yield "telemetry.otel_endpoint", f"{reason}; expected http://host:4318, or nothing"


def _dialects(upstream: UpstreamSettings) -> Iterator[tuple[str, str]]:
    for name in upstream.dialects:
        if name not in DIALECTS:
            known = ", ".join(DIALECTS)
            path = f"upstreams.{upstream.name}.dialects"
            yield path, f"names {name!r}, which is not a dialect; known: {known}"


def _upstream(upstream: UpstreamSettings) -> Iterator[tuple[str, str]]:
    here = f"upstreams.{upstream.name}"
    if not upstream.base_url:
        text = "is missing, and no provider of that name is known; expected a URL such as"
        yield f"{here}.base_url", f"{text} https://api.example.com"
    elif reason := url_problem(upstream.base_url):
        text = "expected http(s)://host/path, with credentials in `env_key` or `headers`"
        yield f"{here}.base_url", f"{reason}; {text}"
    if upstream.policy not in policy_names():
        known = f"known: {', '.join(policy_names())}"
        hint = did_you_mean(upstream.policy, policy_names(), known)
        yield f"{here}.policy", f"is not a row of the policy table; {hint}"
    for dialect, url in upstream.endpoints.items():
        if dialect not in DIALECTS:
            text = f"is not a dialect; expected one of {', '.join(DIALECTS)}"
            yield f"{here}.endpoints.{dialect}", text
        elif reason := url_problem(url):
            yield f"{here}.endpoints.{dialect}", f"{reason}; expected http(s)://host/path"


def _same_as(
    upstream: UpstreamSettings, all_of_them: Mapping[str, UpstreamSettings]
) -> Iterator[tuple[str, str]]:
    path, name = f"upstreams.{upstream.name}.same_as", upstream.same_as
    if not name:
        return
    other = all_of_them.get(name)
    if other is None:
        hint = did_you_mean(name, all_of_them, "expected the name of another upstream")
        yield path, f"is not the name of an upstream; {hint}"
    elif other is upstream:
        yield path, "names itself; expected another upstream"
    elif other.policy != upstream.policy:
        text = f"has the policy {other.policy!r}, and this one has {upstream.policy!r}"
        yield path, f"names {name!r}, which {text}; one provider has one policy"


# --- Who may come in ---------------------------------------------------------------------------


def exposed(settings: Settings) -> bool:
    """Whether other machines could connect without a key although nobody allowed it."""
    unguarded = not settings.access.clients and not settings.server.allow_remote
    return unguarded and not is_loopback(settings.server.host)


def refuse_exposure(settings: Settings) -> None:
    """Raise `SettingsError` before anything listens where it should not."""
    if exposed(settings):
        raise SettingsError(
            f"`server.host` is {settings.server.host}, which other machines can reach, and no "
            "client keys are set; give each client a key under [access.clients.NAME], or say "
            "`--allow-remote` (`server.allow_remote = true`) if anybody may use it"
        )

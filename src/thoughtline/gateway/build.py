"""Builds the gateway from the settings.

Nothing runs yet and no file but the secret is made: the server that is given the result starts
the rest. Raises `SettingsError` for settings that cannot work: a gateway that is open to other
machines without keys, a secret that cannot be read, traces without the package for them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct, field
from starlette.routing import BaseRoute

from thoughtline.clock import Clock, SystemClock
from thoughtline.engine import secrets
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.folders import make_store_folder, spill_file
from thoughtline.engine.model_names import ModelNames, ModelRow
from thoughtline.errors import SealError, SettingsError
from thoughtline.gateway.app import BackgroundTask, Gateway
from thoughtline.gateway.asgi import App
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.deletions import WAIT, Deletions
from thoughtline.gateway.hosts import AllowedHosts
from thoughtline.gateway.options import ProxyOptions
from thoughtline.gateway.pages.app import pages_app
from thoughtline.gateway.pages.cache import CachePages
from thoughtline.gateway.pages.model_lists import ModelLists
from thoughtline.gateway.pages.models import ModelPages
from thoughtline.gateway.pages.own_turns import OwnTurnPages
from thoughtline.gateway.pages.page import Page, pages_of
from thoughtline.gateway.pages.status import StatusPages
from thoughtline.gateway.proxy import Proxy
from thoughtline.gateway.retention import Sweep, record_filter
from thoughtline.gateway.settings import Settings, refuse_exposure
from thoughtline.gateway.settings.upstreams import same_endpoints
from thoughtline.gateway.telemetry import Metrics, Telemetry, connect, open_log
from thoughtline.gateway.upstream_entries import UpstreamEntries
from thoughtline.providers.prices import PriceTable
from thoughtline.replay.guard import LostThought
from thoughtline.replay.plan import ReplayLimits
from thoughtline.stores import is_shared, open_store
from thoughtline.stores.base import Store
from thoughtline.stores.cached import SAVE_AFTER, CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.wires.base import Wire
from thoughtline.wires.http import HttpWire

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

SIMULATED = "sim:"
Simulated = Callable[[str], Upstream | None]


class Components(Struct, frozen=True, kw_only=True):
    """The parts of a gateway that extra pages may read."""

    proxy: Proxy
    store: CachedStore
    telemetry: Telemetry
    clock: Clock
    prices: PriceTable = field(default_factory=PriceTable)


class ExtraPages(Struct, frozen=True, kw_only=True):
    """Pages beside the gateway's own, and what they need while it runs."""

    pages: Sequence[Page] = ()
    files: Sequence[BaseRoute] = ()  # routes that /openapi.json does not describe
    background: Sequence[BackgroundTask] = ()  # run for as long as the gateway does
    on_shutdown: Sequence[Callable[[], None]] = ()  # called as soon as shutdown begins


def build(
    settings: Settings,
    *,
    wire: Wire | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    simulated: Simulated | None = None,
    models: Mapping[str, str] | None = None,
    pages: Callable[[Components], ExtraPages] | None = None,
    log: TextIO | None = None,
    env: Mapping[str, str] | None = None,
) -> Gateway:
    """Build a gateway with these settings.

    `simulated` finds the upstream of a `sim/…` model, and `models` are their names, each with its
    dialect. `pages` makes extra pages over the gateway's components (the inspector's). `log` is the
    stream of log lines.
    """
    refuse_exposure(settings)
    clock = clock or SystemClock()
    telemetry = _telemetry(settings, clock, log)
    env = os.environ if env is None else env
    secret = _secret(settings, store, env)
    keychain = _keychain(settings, store, env)
    cached = _store(settings, store, clock, telemetry, secret=secret, keychain=keychain, env=env)
    proxy = Proxy(
        auth=_auth(settings, secret),
        directory=make_directory(settings, simulated, tuple(models or ())),
        store=cached,
        wire=wire or HttpWire(),
        observer=telemetry,
        options=_options(settings),
        clock=clock,
    )
    cached.on_delete = proxy.engine.prefixes.clear
    telemetry.metrics.add_gauges(
        streams=lambda: proxy.in_flight.count,
        trouble=lambda: cached.trouble,
        backlog=lambda: cached.backlog,
        memory_entries=lambda: cached.remembered,
    )
    components = Components(
        proxy=proxy,
        store=cached,
        telemetry=telemetry,
        clock=clock,
        prices=settings.price_table(),
    )
    # With several processes, the next request may reach one that does not know the deletion.
    alone = settings.server.workers == 1 and not cached.shared
    deletions = Deletions(clock, telemetry.log, wait=WAIT if alone else None)
    extra = pages(components) if pages else ExtraPages()
    return Gateway(
        proxy,
        _pages(settings, components, deletions, extra, models),
        grace=settings.server.shutdown_grace,
        background=[
            _sweep(settings, components, own=store is None).run,
            deletions.guard,
            *extra.background,
        ],
        on_shutdown=extra.on_shutdown,
        on_closed=[telemetry.close],
    )


# -- components ----------------------------------------------------------------------------------


def _telemetry(settings: Settings, clock: Clock, log: TextIO | None) -> Telemetry:
    endpoint = settings.telemetry.otel_endpoint
    return Telemetry(
        log=open_log(level=settings.log.level, style=settings.log.format, stream=log),
        metrics=Metrics(worker=str(os.getpid()) if settings.server.workers > 1 else ""),
        traces=connect(endpoint) if endpoint else None,
        clock=clock,
    )


def _store(
    settings: Settings,
    store: Store | None,
    clock: Clock,
    telemetry: Telemetry,
    *,
    secret: bytes,
    keychain: "Keychain | None",
    env: Mapping[str, str],
) -> CachedStore:
    options = settings.store
    lasting = store is None and options.record != "off"
    return CachedStore(
        store or _backing_store(settings, clock, secret, keychain),
        entries=options.memory_entries,
        size=options.memory_bytes,
        spill=_spill(options.url, env) if lasting else None,
        keychain=keychain,
        save_after=min(SAVE_AFTER, options.commit_timeout / 4),
        record=record_filter(options.record),
        observer=telemetry,
        timeout=options.find_wait,
        retention=options.retention,
        clock=clock,
    )


def _spill(url: str, env: Mapping[str, str]) -> Path | None:
    """Where turns wait that the store could not take; a folder that cannot be made is told then."""
    place = spill_file(url, env)
    if place is not None:
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def _keychain(settings: Settings, store: Store | None, env: Mapping[str, str]) -> "Keychain | None":
    """The keys that the settings name; a gateway that cannot read them does not start."""
    options = settings.store
    if store is not None or options.record == "off":
        return None
    try:
        return options.keychain(env)
    except SealError as error:
        raise SettingsError(str(error)) from error


def _backing_store(
    settings: Settings, clock: Clock, secret: bytes, keychain: "Keychain | None"
) -> Store:
    if settings.store.record == "off":
        return MemoryStore(clock)
    return open_store(
        settings.store.url,
        clock=clock,
        fingerprint=secrets.fingerprint(secret),
        upgrade=settings.store.migrate,
        keychain=keychain,
    )


def _secret(settings: Settings, store: Store | None, env: Mapping[str, str]) -> bytes:
    """The secret of the store; where nothing is kept, a fresh one."""
    if store is not None or settings.store.record == "off":
        return secrets.secret(None)
    make_store_folder(settings.store.url)
    return secrets.store_secret(settings.store.url, env, settings.store.secret)


def _auth(settings: Settings, secret: bytes) -> Auth:
    return Auth(
        secret,
        clients={name: client.key.reveal() for name, client in settings.access.clients.items()},
        admin_token=settings.access.admin_token.reveal(),
        identity_header=settings.access.identity_header,
        origins=settings.access.origins,
        hosts=AllowedHosts(settings.access.hosts, listening=settings.server.host),
    )


def make_directory(
    settings: Settings,
    simulated: Simulated | None = None,
    simulated_models: Sequence[str] = (),
) -> Directory:
    """All upstreams that the settings name, and those that are known."""
    same = same_endpoints(settings.upstreams)
    upstreams = [
        Upstream(
            name=name,
            base_url=upstream.base_url,
            policy=upstream.policy,
            key=upstream.key.reveal(),
            models=upstream.models,
            headers={header: value.reveal() for header, value in upstream.headers.items()},
            endpoints=upstream.endpoints,
            dialects=upstream.dialects,
            supports_websockets=upstream.supports_websockets,
            timeouts=settings.timeouts(upstream),
            configured=upstream.source == "configured",
            overrides=settings.replay.overrides,
            identity=upstream.identity,
            lost_thought=LostThought(upstream.lost_thought),
            same_endpoints=same[name],
        )
        for name, upstream in settings.upstreams.items()
        if not upstream.base_url.startswith(SIMULATED)
    ]
    rows = [
        ModelRow(
            pattern=pattern,
            upstream=row.to.partition("/")[0],
            model=row.to.partition("/")[2],
            effort=row.effort,
            dialect=row.dialect,
        )
        for pattern, row in settings.models.items()
    ]
    return Directory(upstreams, simulated, ModelNames(rows), simulated_models)


def _options(settings: Settings) -> ProxyOptions:
    server, replay = settings.server, settings.replay
    return ProxyOptions(
        max_body_bytes=server.max_body_bytes,
        keepalive=server.keepalive_interval,
        commit_wait=settings.store.commit_timeout,
        many_processes=server.workers > 1 or is_shared(settings.store.url),
        finish_on_disconnect=server.finish_on_disconnect,
        strict=replay.strict,
        limits=ReplayLimits(last=replay.keep_last, loop_only=replay.loop_only),
        records_all=settings.store.record == "sessions",
        prefix_bytes=replay.prefix_bytes,
    )


def _sweep(settings: Settings, components: Components, *, own: bool) -> Sweep:
    options = settings.store
    in_memory = own and options.record == "off"
    return Sweep(
        components.store,
        retention=options.retention,
        clock=components.clock,
        log=components.telemetry.log,
        memory_limit=(options.memory_entries, options.memory_bytes) if in_memory else None,
    )


# -- pages ---------------------------------------------------------------------------------------


def _pages(
    settings: Settings,
    components: Components,
    deletions: Deletions,
    extra: ExtraPages,
    models: Mapping[str, str] | None,
) -> App:
    proxy, store, telemetry = components.proxy, components.store, components.telemetry
    lists = ModelLists(proxy.directory, proxy.wire, components.clock)
    cache = CachePages(
        store,
        telemetry,
        deletions,
        components.clock,
        upstreams=UpstreamEntries(proxy.directory, proxy.auth),
        retention=settings.store.retention,
    )
    pages = [
        *pages_of(StatusPages(proxy, store, telemetry.metrics)),
        *pages_of(ModelPages(proxy.directory, proxy.auth, lists, models)),
        *pages_of(cache),
        *pages_of(OwnTurnPages(store, proxy.auth, proxy.directory)),
        *extra.pages,
    ]
    return pages_app(pages, extra.files, proxy.auth)

"""The gateway, put together from the settings: every room opened and joined.

Nothing runs yet and no file but the secret is made: the server that is given the result starts
the rest. Raises `SettingsError` for what cannot work: an open door towards other machines, a secret
that cannot be read, traces without the package for them.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from thoughtline import settings as configured
from thoughtline.clock import Clock, SystemClock
from thoughtline.errors import SettingsError, StoreError
from thoughtline.gateway import keyfile, openapi, recording
from thoughtline.gateway.access import Door
from thoughtline.gateway.admin import Admin
from thoughtline.gateway.app import Gateway, Task
from thoughtline.gateway.models import Catalogue
from thoughtline.gateway.pages import AdminOnly, Mistaken, refusal
from thoughtline.gateway.proxy import Options, Proxy
from thoughtline.gateway.status import Status
from thoughtline.gateway.sweeping import Sweep
from thoughtline.gateway.upstreams import Directory, Upstream
from thoughtline.replay import Limits
from thoughtline.settings import Settings, refuse_exposure
from thoughtline.stores.base import Store
from thoughtline.stores.hot import HotStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.urls import open_store
from thoughtline.telemetry import Metrics, Telemetry, connect, open_log
from thoughtline.wires.base import Patience, Wire
from thoughtline.wires.http import HttpWire

SIMULATED = "sim:"
Simulated = Callable[[str], Upstream | None]


class Rooms(Struct, frozen=True, kw_only=True):
    """What more pages may look into."""

    proxy: Proxy
    store: HotStore
    telemetry: Telemetry
    clock: Clock


class More(Struct, frozen=True, kw_only=True):
    """More pages of our own."""

    routes: Sequence[BaseRoute] = ()
    paths: Mapping[str, Any] = {}  # as /openapi.json describes them
    answers: Sequence[type] = ()  # the structs that they answer with
    beside: Sequence[Task] = ()  # what runs for as long as the gateway does
    leave: Sequence[Callable[[], None]] = ()  # what is done as soon as the end is near


def build(
    settings: Settings,
    *,
    wire: Wire | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    simulated: Simulated | None = None,
    models: Sequence[str] = (),
    pages: Callable[[Rooms], More] | None = None,
    log: TextIO | None = None,
    env: Mapping[str, str] | None = None,
) -> Gateway:
    """A gateway with these settings.

    `simulated` finds the upstream of a `sim/…` model, `models` are the names of those; `pages`
    are more pages of our own over the same rooms (the inspector's); `log` is where lines go.
    """
    refuse_exposure(settings)
    clock = clock or SystemClock()
    telemetry = _telemetry(settings, clock, log)
    hot = _store(settings, store, clock, telemetry)
    proxy = Proxy(
        door=_door(settings, store, os.environ if env is None else env),
        directory=_directory(settings, simulated),
        store=hot,
        wire=wire or HttpWire(),
        observer=telemetry,
        options=_options(settings),
        clock=clock,
    )
    telemetry.metrics.watch(
        streams=lambda: proxy.present.count,
        trouble=lambda: hot.trouble,
        backlog=lambda: hot.backlog,
        memory=lambda: hot.remembered,
    )
    rooms = Rooms(proxy=proxy, store=hot, telemetry=telemetry, clock=clock)
    more = pages(rooms) if pages else More()
    return Gateway(
        proxy,
        AdminOnly(_pages(_routes(settings, rooms, more, models)), proxy.door),
        grace=settings.server.shutdown_grace,
        beside=[_sweep(settings, rooms, own=store is None).run, *more.beside],
        leave=more.leave,
        last=[telemetry.close],
    )


# -- rooms ---------------------------------------------------------------------------------------


def _telemetry(settings: Settings, clock: Clock, log: TextIO | None) -> Telemetry:
    endpoint = settings.telemetry.otel_endpoint
    return Telemetry(
        log=open_log(level=settings.log.level, style=settings.log.format, stream=log),
        metrics=Metrics(worker=str(os.getpid()) if settings.server.workers > 1 else ""),
        traces=connect(endpoint) if endpoint else None,
        clock=clock,
    )


def _store(settings: Settings, store: Store | None, clock: Clock, telemetry: Telemetry) -> HotStore:
    kept = settings.store
    if kept.cache_url:
        raise SettingsError(
            "`store.cache_url` is set, and this version has no shared hot tier; leave it empty"
        )
    return HotStore(
        store or _behind(settings, clock),
        entries=kept.memory_entries,
        size=kept.memory_bytes,
        shared=settings.server.workers > 1,
        sift=recording.sift(kept.record),
        watcher=telemetry,
    )


def _behind(settings: Settings, clock: Clock) -> Store:
    if settings.store.record == "off":
        return MemoryStore(clock)
    url = settings.store.url
    path = url.partition("?")[0].removeprefix("sqlite:///")
    if url.startswith("sqlite:///") and path:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise SettingsError(
                f"the folder of `store.url`, {Path(path).parent}, cannot be made "
                f"({error.strerror or error}); choose another place"
            ) from error
    return open_store(url, clock=clock)


def _door(settings: Settings, store: Store | None, env: Mapping[str, str]) -> Door:
    lasting = store is None and settings.store.record != "off"
    place = keyfile.place(settings.store.url, env) if lasting else None
    return Door(
        keyfile.secret(place),
        clients={name: client.key.reveal() for name, client in settings.access.clients.items()},
        admin_token=settings.access.admin_token.reveal(),
        origins=settings.access.origins,
    )


def _directory(settings: Settings, simulated: Simulated | None) -> Directory:
    upstreams = [
        Upstream(
            name=name,
            base_url=upstream.base_url,
            policy=upstream.policy,
            key=upstream.key.reveal(),
            models=upstream.models,
            headers={header: value.reveal() for header, value in upstream.headers.items()},
            endpoints=upstream.endpoints,
            supports_websockets=upstream.supports_websockets,
            patience=_patience(settings, upstream),
            configured=upstream.standing == "configured",
            overrides=settings.replay.overrides,
        )
        for name, upstream in settings.upstreams.items()
        if not upstream.base_url.startswith(SIMULATED)
    ]
    return Directory(upstreams, simulated)


def _patience(settings: Settings, upstream: configured.Upstream) -> Patience:
    timeouts = settings.timeouts(upstream)
    return Patience(connect=timeouts.connect, first_byte=timeouts.first_byte, idle=timeouts.idle)


def _options(settings: Settings) -> Options:
    server, replay = settings.server, settings.replay
    return Options(
        max_body_bytes=server.max_body_bytes,
        keepalive=server.keepalive_interval,
        commit_wait=settings.store.commit_wait,
        finish_on_disconnect=server.finish_on_disconnect,
        strict=replay.strict,
        limits=Limits(last=replay.keep_last, loop_only=replay.loop_only),
        whole=settings.store.record == "sessions",
    )


def _sweep(settings: Settings, rooms: Rooms, *, own: bool) -> Sweep:
    kept = settings.store
    in_memory = own and kept.record == "off"
    return Sweep(
        rooms.store,
        retention=kept.retention,
        clock=rooms.clock,
        log=rooms.telemetry.log,
        room=(kept.memory_entries, kept.memory_bytes) if in_memory else None,
    )


# -- pages ---------------------------------------------------------------------------------------


def _routes(
    settings: Settings, rooms: Rooms, more: More, models: Sequence[str]
) -> Sequence[BaseRoute]:
    proxy, store, telemetry = rooms.proxy, rooms.store, rooms.telemetry
    catalogue = Catalogue(proxy.directory, proxy.door, models)
    described = openapi.document(more.paths, more.answers)
    return [
        *Status(proxy, store, telemetry.metrics, catalogue, described).routes(),
        *Admin(store, telemetry, retention=settings.store.retention).routes(),
        *more.routes,
    ]


def _pages(routes: Sequence[BaseRoute]) -> Starlette:
    return Starlette(
        routes=list(routes),
        exception_handlers={
            HTTPException: _missing,
            Mistaken: _mistaken,
            StoreError: _unavailable,
        },
    )


async def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (it is registered for nothing else)
    text = f"there is no page for {request.method} {request.url.path}; /openapi.json lists all"
    code = "method_not_allowed" if error.status_code == 405 else "not_found"
    return refusal(error.status_code, text, code, dict(error.headers or {}))


async def _mistaken(_: Request, error: Exception) -> Response:
    assert isinstance(error, Mistaken)  # noqa: S101 (it is registered for nothing else)
    return refusal(error.status, str(error), error.code)


async def _unavailable(_: Request, error: Exception) -> Response:
    return refusal(503, str(error), "store_unavailable")

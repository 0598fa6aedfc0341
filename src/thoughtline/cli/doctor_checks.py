"""The checks of `thoughtline doctor`: access, the port, the store, the disk, the upstreams.

A check changes nothing: no file is created, no request with a credential is sent.
"""

import asyncio
import errno
import os
import shutil
import socket
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from thoughtline.engine.folders import store_file
from thoughtline.engine.secrets import fingerprint, store_secret
from thoughtline.errors import SettingsError, StoreError
from thoughtline.gateway.pages.status import Readiness
from thoughtline.gateway.settings import Settings, UpstreamSettings, exposed, is_loopback, mask
from thoughtline.stores import is_shared, open_store
from thoughtline.stores.base import Store
from thoughtline.stores.checking import check_newest
from thoughtline.stores.spill import count_waiting
from thoughtline.stores.sqlite.quick_check import quick_check

TIMEOUT = 3.0  # seconds
CHECK_SECONDS = 10.0  # for damage in the store's file
LOW_SPACE, NO_SPACE = 1 << 30, 100 << 20
Level = Literal["ok", "note", "problem"]


class Diagnostic(Struct, frozen=True, kw_only=True):
    """What one check found, and what to do about it."""

    about: str
    level: Level = "ok"
    text: str
    advice: str = ""


async def examine(
    settings: Settings, *, offline: bool = False, seconds: float = TIMEOUT
) -> list[Diagnostic]:
    """Run every check on these settings."""
    from thoughtline.cli.doctor_models import model_names
    from thoughtline.cli.doctor_sealing import sealing
    from thoughtline.cli.doctor_tools import bypasses

    found = [*_access(settings), await _port(settings, seconds), *await _store(settings)]
    found += [*await sealing(settings), *_policies(settings), *model_names(settings)]
    found += bypasses(os.environ)
    wanted = [u for u in settings.upstreams.values() if u.source != "known"]
    found += [diagnostic for upstream in wanted for diagnostic in _credential(settings, upstream)]
    places = [(f"upstream {u.name}", u.base_url) for u in wanted]
    places += [("traces", settings.telemetry.otel_endpoint)] * bool(
        settings.telemetry.otel_endpoint
    )
    if offline:
        found += [
            Diagnostic(about=a, text=f"{_origin(url)}: not checked (--offline)")
            for a, url in places
        ]
    else:
        found += await asyncio.gather(*(_reach(about, url, seconds) for about, url in places))
    others = [u.name for u in settings.upstreams.values() if u.source == "known"]
    text = f"also known, with the client's own credential: {', '.join(others)}"
    return [*found, Diagnostic(about="upstreams", text=text)]


# --- Access ------------------------------------------------------------------------------------


def _access(settings: Settings) -> Iterator[Diagnostic]:
    server, clients = settings.server, settings.access.clients
    if exposed(settings):
        yield Diagnostic(
            about="access",
            level="problem",
            text=f"`server.host` is {server.host}, which other machines can reach, without a key",
            advice="add [access.clients.NAME] tables, or set `server.allow_remote` if you mean it",
        )
    elif not clients and not is_loopback(server.host):
        text = f"anybody who reaches {server.host} may use it: `server.allow_remote` is set"
        yield Diagnostic(about="access", level="note", text=text)
    else:
        who = f"{len(clients)} client key(s)" if clients else "clients bring their own credentials"
        yield Diagnostic(about="access", text=f"listens on {server.host}; {who}")
    if not settings.access.admin_token:
        text = "no `access.admin_token`: the admin pages answer on loopback only"
        yield Diagnostic(about="access", text=text)


def _policies(settings: Settings) -> Iterator[Diagnostic]:
    """Rows of the policy table that a file of observations overrides."""
    if not settings.replay.policies:
        return
    rows = [
        f"{row.policy} ({row.dialect}, {', '.join(row.models)})"
        for row in settings.replay.overrides
    ]
    text = f"{settings.replay.policies} changes {', '.join(rows) or 'nothing'}"
    yield Diagnostic(about="policies", level="note" if rows else "ok", text=text)


async def _port(settings: Settings, seconds: float) -> Diagnostic:
    host, port = settings.server.host, settings.server.port
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and await _is_thoughtline(host, port, seconds):
            return _running(port, await _get(host, port, "/ready", seconds))
        return _no_port(error, host, port)
    return Diagnostic(about="port", text=f"{port or 'any free port'} can be used")


def _no_port(error: OSError, host: str, port: int) -> Diagnostic:
    if error.errno == errno.EADDRINUSE:
        text, advice = f"{port} is in use by another program", "choose another `server.port`"
    elif error.errno == errno.EACCES:
        text, advice = f"{port} needs administrator rights", "choose a `server.port` above 1023"
    else:
        why = error.strerror or "it is not an address of this machine"
        text = f"cannot listen on {host}: {why}"
        advice = "set `server.host` to an address of this machine"
    return Diagnostic(about="port", level="problem", text=text, advice=advice)


def _running(port: int, answer: bytes) -> Diagnostic:
    """Say what a running gateway says of itself."""
    text = f"Thoughtline is running on port {port} already"
    try:
        said = msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=Readiness)
    except msgspec.MsgspecError:
        return Diagnostic(about="port", text=text)
    reasons = said.reasons + ([f"it has lost {said.lost} turn(s)"] if said.lost else [])
    if not reasons:
        return Diagnostic(about="port", text=text)
    return Diagnostic(
        about="port",
        level="problem",
        text=f"{text}, and not as it should: {'; '.join(reasons)}",
        advice="its log says which turns, and why; `/ready` is 200 and `lost` 0 when all is well",
    )


async def _is_thoughtline(host: str, port: int, seconds: float) -> bool:
    return b"thoughtline" in (await _get(host, port, "/version", seconds)).lower()


async def _get(host: str, port: int, path: str, seconds: float) -> bytes:
    """Return the answer of a server on this machine; nothing when there is none."""
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host.strip("[]"))  # noqa: S104
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(target, port)
            try:
                head = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                writer.write(head.encode())
                return await reader.read(65536)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


# --- The store ---------------------------------------------------------------------------------


async def _store(settings: Settings) -> list[Diagnostic]:
    url = settings.store.url
    if url.startswith("memory:"):
        text = "sessions are held in memory and end with the process"
        return [Diagnostic(about="store", level="note", text=text)]
    path = store_file(url)
    if path is None:
        opened = await _opens(settings)
        return [opened if opened.level != "ok" else await _readable(settings, opened)]
    opened = await _opens(settings) if _exists(path) else _can_be_created(path)
    if opened.level == "ok" and _exists(path):
        opened = _writable(path)
    if opened.level == "ok" and _exists(path):
        opened = await asyncio.to_thread(_undamaged, path, opened)
    if opened.level != "problem" and _exists(path):
        opened = await _readable(settings, opened)
    return [opened, *_spilled(path), *_disk(path)]


def _exists(path: Path) -> bool:
    return path.exists()


def _can_be_created(path: Path) -> Diagnostic:
    """Whether the store's file can be created."""
    parent = _nearest_folder(path.parent)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Diagnostic(about="store", text=f"{path} will be created when it is needed")
    return Diagnostic(
        about="store",
        level="problem",
        text=f"{path} cannot be created: {parent} is not a folder this user may write to",
        advice="set `store.url` to another place, or change who may write there",
    )


def _nearest_folder(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


async def _opens(settings: Settings) -> Diagnostic:
    url = settings.store.url
    try:
        async with _store_of(settings) as store:
            stats = await store.stats()
    except (SettingsError, StoreError) as error:
        advice = "look at `store.secret`" if "store.secret" in str(error) else "look at `store.url`"
        return Diagnostic(about="store", level="problem", text=mask(str(error)), advice=advice)
    return Diagnostic(about="store", text=f"{mask(url)}: {stats.sessions} session(s)")


@asynccontextmanager
async def _store_of(settings: Settings) -> AsyncIterator[Store]:
    url, mark = settings.store.url, b""
    if is_shared(url):  # nodes with another secret would find nothing
        mark = fingerprint(store_secret(url, os.environ, settings.store.secret))
    keychain = settings.store.keychain(os.environ)
    store = open_store(url, keychain=keychain, fingerprint=mark, upgrade=settings.store.migrate)
    try:
        yield store
    finally:
        await store.close()


async def _readable(settings: Settings, opened: Diagnostic) -> Diagnostic:
    """Read what was used last, for a bounded time."""
    try:
        async with _store_of(settings) as store:
            report = await check_newest(store, CHECK_SECONDS)
    except StoreError as error:
        advice = "look at `store.url`"
        return Diagnostic(about="store", level="problem", text=mask(str(error)), advice=advice)
    if report.sound:
        looked = "all of it" if report.complete else f"the last {report.sessions} session(s)"
        return msgspec.structs.replace(opened, text=f"{opened.text}; {looked} can be read")
    names = ", ".join((report.unreadable + report.gaps)[:3])
    count = len(report.unreadable) + len(report.gaps)
    return Diagnostic(
        about="store",
        level="problem",
        text=f"{count} of {report.sessions} session(s) are damaged: {names}; "
        f"{'; '.join(report.reasons[:1]) or 'events are missing'}",
        advice="`thoughtline store check` names all; put a backup in its place, or delete them",
    )


def _writable(path: Path) -> Diagnostic:
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        finally:
            db.close()
    except sqlite3.Error as error:
        return Diagnostic(
            about="store",
            level="problem",
            text=f"{path} opens, but cannot be written: {error}",
            advice="check who may write to the file and its folder, and that nothing locks it",
        )
    return Diagnostic(about="store", text=f"{path} opens and can be written")


def _undamaged(path: Path, opened: Diagnostic) -> Diagnostic:
    """Look for damage, for a bounded time."""
    damage = quick_check(path, CHECK_SECONDS)
    if damage is None:
        text = f"{opened.text}; {CHECK_SECONDS:g} s were too short to look through all of it"
        advice = f"to be sure: sqlite3 {path} 'PRAGMA quick_check'"
        return Diagnostic(about="store", level="note", text=text, advice=advice)
    if not damage:
        return opened
    advice = "do as it says; turns in a spill file beside the store are written at the next start"
    return Diagnostic(about="store", level="problem", text=damage, advice=advice)


def _spilled(path: Path) -> Iterator[Diagnostic]:
    """Turns that wait in a file beside the store."""
    if count := count_waiting(path):
        yield Diagnostic(
            about="store",
            level="note",
            text=f"{count} turn(s) wait in {path.name}-spill-… beside it",
            advice="they are written by the gateway, or when it starts next; keep these files",
        )


def _disk(path: Path) -> Iterator[Diagnostic]:
    try:
        free = shutil.disk_usage(_nearest_folder(path.parent)).free
    except OSError:
        return
    level: Level = "problem" if free < NO_SPACE else "note" if free < LOW_SPACE else "ok"
    advice = "" if level == "ok" else "make room, shorten `store.retention`, or move `store.url`"
    text = f"{free / (1 << 30):.1f} GiB free where the store is"
    yield Diagnostic(about="disk", level=level, text=text, advice=advice)


# --- The upstreams -----------------------------------------------------------------------------


def _credential(settings: Settings, upstream: UpstreamSettings) -> Iterator[Diagnostic]:
    about = f"upstream {upstream.name}"
    setting = f"`upstreams.{upstream.name}.env_key`"
    if upstream.env_key and not upstream.key:
        yield Diagnostic(
            about=about,
            level="problem",
            text=f"{setting} names {upstream.env_key}, which is not set",
            advice=f"set {upstream.env_key}, or remove the setting: then clients use their own key",
        )
    elif settings.access.clients and not upstream.key and not upstream.base_url.startswith("sim:"):
        yield Diagnostic(
            about=about,
            level="note",
            text="has no key, and clients that use a key of this gateway cannot send another",
            advice=f"name the variable that holds one in {setting}",
        )
    else:
        whose = f"the key in ${upstream.env_key}" if upstream.key else "the client's own credential"
        models = ", ".join(upstream.models) or f"/u/{upstream.name}/… only"
        yield Diagnostic(about=about, text=f"{whose}; policy {upstream.policy}; models: {models}")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def _reach(about: str, url: str, seconds: float) -> Diagnostic:
    """Whether a host resolves and accepts a connection; no request is made."""
    if url.startswith("sim:"):
        return Diagnostic(about=about, text="is simulated in the process")
    place, parts = _origin(url), urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    advice = "check the address, the network, and any firewall in between"
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
    except socket.gaierror:
        text = f"{place}: the name {parts.hostname} is not known"
    except TimeoutError:
        text = f"{place}: no answer within {seconds:g} seconds"
    except OSError as error:
        text = f"{place}: cannot be reached ({error.strerror or 'no route'})"
    else:
        return Diagnostic(about=about, text=f"{place} answers")
    return Diagnostic(about=about, level="problem", text=text, advice=advice)

"""What `thoughtline doctor` looks at: the door, the port, the store, the disk, the upstreams.

Each check looks and changes nothing: no file is created, no request with a credential is sent. It
answers with findings that a person can act on.
"""

import asyncio
import errno
import os
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from thoughtline.errors import StoreError
from thoughtline.settings import Settings, Upstream, exposed, is_loopback, mask

PATIENCE = 3.0  # seconds
LITTLE, TIGHT = 1 << 30, 100 << 20
Level = Literal["ok", "note", "problem"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    about: str
    level: Level = "ok"
    text: str
    advice: str = ""


async def examine(
    settings: Settings, *, offline: bool = False, patience: float = PATIENCE
) -> list[Finding]:
    """Look at everything that settings speak of."""
    found = [*_door(settings), await _port(settings, patience), *await _store(settings)]
    found += _policies(settings)
    wanted = [u for u in settings.upstreams.values() if u.standing != "known"]
    found += [finding for upstream in wanted for finding in _credential(settings, upstream)]
    places = [(f"upstream {u.name}", u.base_url) for u in wanted]
    places += [("cache", settings.store.cache_url)] if settings.store.cache_url else []
    places += [("traces", settings.telemetry.otel_endpoint)] * bool(
        settings.telemetry.otel_endpoint
    )
    if offline:
        found += [
            Finding(about=a, text=f"{_place(url)}: not checked (--offline)") for a, url in places
        ]
    else:
        found += await asyncio.gather(*(_reach(about, url, patience) for about, url in places))
    others = [u.name for u in settings.upstreams.values() if u.standing == "known"]
    text = f"also known, with the client's own credential: {', '.join(others)}"
    return [*found, Finding(about="upstreams", text=text)]


# --- The door ----------------------------------------------------------------------------------


def _door(settings: Settings) -> Iterator[Finding]:
    server, clients = settings.server, settings.access.clients
    if exposed(settings):
        yield Finding(
            about="door",
            level="problem",
            text=f"`server.host` is {server.host}, which other machines can reach, without a key",
            advice="add [access.clients.NAME] tables, or set `server.allow_remote` if you mean it",
        )
    elif not clients and not is_loopback(server.host):
        text = f"anybody who can reach {server.host} may come in, as `server.allow_remote` says"
        yield Finding(about="door", level="note", text=text)
    else:
        who = f"{len(clients)} client key(s)" if clients else "clients bring their own credentials"
        yield Finding(about="door", text=f"listens on {server.host}; {who}")
    if not settings.access.admin_token:
        text = "no `access.admin_token`: the admin pages answer on loopback only"
        yield Finding(about="door", text=text)


def _policies(settings: Settings) -> Iterator[Finding]:
    """Rows that are not as the table has them."""
    if not settings.replay.policies:
        return
    rows = [
        f"{row.policy} ({row.dialect}, {', '.join(row.models)})"
        for row in settings.replay.overrides
    ]
    text = f"{settings.replay.policies} changes {', '.join(rows) or 'nothing'}"
    yield Finding(about="policies", level="note" if rows else "ok", text=text)


async def _port(settings: Settings, patience: float) -> Finding:
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
        if error.errno == errno.EADDRINUSE and await _is_ours(host, port, patience):
            return Finding(about="port", text=f"Thoughtline is running on port {port} already")
        return _no_port(error, host, port)
    return Finding(about="port", text=f"{port or 'any free port'} can be listened on")


def _no_port(error: OSError, host: str, port: int) -> Finding:
    if error.errno == errno.EADDRINUSE:
        text, advice = f"{port} is taken by another program", "choose another `server.port`"
    elif error.errno == errno.EACCES:
        text, advice = f"{port} needs special rights", "choose a `server.port` above 1023"
    else:
        text = f"cannot listen on {host}: {error.strerror or 'it is not of this machine'}"
        advice = "set `server.host` to an address of this machine"
    return Finding(about="port", level="problem", text=text, advice=advice)


async def _is_ours(host: str, port: int, patience: float) -> bool:
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host.strip("[]"))  # noqa: S104
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(target, port)
            try:
                writer.write(b"GET /version HTTP/1.0\r\nhost: localhost\r\n\r\n")
                answer = await reader.read(4096)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return b"thoughtline" in answer.lower()


# --- The store ---------------------------------------------------------------------------------


async def _store(settings: Settings) -> list[Finding]:
    url = settings.store.url
    if url.startswith("memory:"):
        text = "sessions are held in memory and end with the process"
        return [Finding(about="store", level="note", text=text)]
    if not url.startswith("sqlite:"):
        return [await _opens(url)]
    path = Path(url.partition("?")[0].removeprefix("sqlite:///"))
    opened = await _opens(url) if _is_there(path) else _to_be(path)
    if opened.level == "ok" and _is_there(path):
        opened = _writable(path)
    return [opened, *_disk(path)]


def _is_there(path: Path) -> bool:
    return path.exists()


def _to_be(path: Path) -> Finding:
    """Whether a file that is not there can be made."""
    parent = _standing(path.parent)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Finding(about="store", text=f"{path} will be created when it is needed")
    return Finding(
        about="store",
        level="problem",
        text=f"{path} cannot be created: {parent} is not a folder this user may write to",
        advice="set `store.url` to another place, or change who may write there",
    )


def _standing(folder: Path) -> Path:
    """The nearest folder above that is there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


async def _opens(url: str) -> Finding:
    from thoughtline.stores.urls import open_store

    try:
        store = open_store(url)
        try:
            stats = await store.stats()
        finally:
            await store.close()
    except StoreError as error:
        return Finding(
            about="store", level="problem", text=mask(str(error)), advice="look at `store.url`"
        )
    return Finding(about="store", text=f"{mask(url)}: {stats.sessions} session(s)")


def _writable(path: Path) -> Finding:
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1)
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
        finally:
            db.close()
    except sqlite3.Error as error:
        return Finding(
            about="store",
            level="problem",
            text=f"{path} opens, but cannot be written: {error}",
            advice="check who may write to the file and its folder, and that nothing locks it",
        )
    return Finding(about="store", text=f"{path} opens and can be written")


def _disk(path: Path) -> Iterator[Finding]:
    try:
        free = shutil.disk_usage(_standing(path.parent)).free
    except OSError:
        return
    level: Level = "problem" if free < TIGHT else "note" if free < LITTLE else "ok"
    advice = "" if level == "ok" else "make room, shorten `store.retention`, or move `store.url`"
    text = f"{free / (1 << 30):.1f} GiB free where the store is"
    yield Finding(about="disk", level=level, text=text, advice=advice)


# --- The upstreams -----------------------------------------------------------------------------


def _credential(settings: Settings, upstream: Upstream) -> Iterator[Finding]:
    about = f"upstream {upstream.name}"
    setting = f"`upstreams.{upstream.name}.env_key`"
    if upstream.env_key and not upstream.key:
        yield Finding(
            about=about,
            level="problem",
            text=f"{setting} names {upstream.env_key}, which is not set",
            advice=f"set {upstream.env_key}, or remove the setting: then clients use their own key",
        )
    elif settings.access.clients and not upstream.key and not upstream.base_url.startswith("sim:"):
        yield Finding(
            about=about,
            level="note",
            text="has no key, and clients with a key of this gateway have no other",
            advice=f"name the variable that holds one in {setting}",
        )
    else:
        whose = f"the key in ${upstream.env_key}" if upstream.key else "the client's own credential"
        models = ", ".join(upstream.models) or f"/u/{upstream.name}/… only"
        yield Finding(about=about, text=f"{whose}; policy {upstream.policy}; models: {models}")


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


async def _reach(about: str, url: str, patience: float) -> Finding:
    """Whether a host resolves and answers; no request is made."""
    if url.startswith("sim:"):
        return Finding(about=about, text="is simulated in the process")
    place, parts = _place(url), urlsplit(url)
    usual = {"https": 443, "redis": 6379, "rediss": 6379}
    port = parts.port or usual.get(parts.scheme, 80)
    advice = "check the address, the network and a firewall between"
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(parts.hostname, port)
            writer.close()
    except socket.gaierror:
        text = f"{place}: the name {parts.hostname} is not known"
    except TimeoutError:
        text = f"{place}: no answer within {patience:g} seconds"
    except OSError as error:
        text = f"{place}: cannot be reached ({error.strerror or 'no route'})"
    else:
        return Finding(about=about, text=f"{place} answers")
    return Finding(about=about, level="problem", text=text, advice=advice)

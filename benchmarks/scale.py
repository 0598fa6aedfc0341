"""How long the pages of the admin API and the inspector take on a file with a million turns.

Then how long deleting takes, and what requests notice of it meanwhile. Figures are printed and not
judged: seconds, and their share of 300 ms, within which a page should come.

    python -m benchmarks.scale                      a million turns, in a temporary folder
    python -m benchmarks.scale --turns 100000       fewer
    python -m benchmarks.scale --file big.db        keeps the file, or takes the one that is there
    python -m benchmarks.scale --pages              without deleting
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.big_file import FIRST_LONG, LONG, RARE, fill
from benchmarks.conversations import first_request
from benchmarks.loads import ask, request
from benchmarks.stands import Stand, gateway, process

LIMIT = 0.3
"""Seconds within which a page should come."""
TIMES = 5
SETTLE = 3.0
"""Seconds that a gateway is given after its start."""
PAUSE = 0.02
"""Seconds between two requests while something is deleted."""


class Answer(NamedTuple):
    """A page's answer."""

    seconds: float
    status: int
    body: Any


def get(port: int, path: str, method: str = "GET") -> Answer:
    """Ask for a page; an event stream up to its first event."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=1800)
    begun = time.perf_counter()
    line.request(method, path)
    answer = line.getresponse()
    kind = answer.getheader("content-type", "")
    body = answer.readline() if "event-stream" in kind else answer.read()
    took = time.perf_counter() - begun
    line.close()
    return Answer(took, answer.status, json.loads(body) if "json" in kind else body)


# -- pages ---------------------------------------------------------------------------------------


def _paths(port: int) -> Iterator[tuple[str, str]]:
    """What is asked for: what it is called, and its path. Nothing is asked for before its turn."""
    yield "sessions", "/api/sessions"
    yield "sessions, 200", "/api/sessions?limit=200"
    listed = get(port, "/api/sessions?limit=200").body
    cursor = listed["nextCursor"]
    by_turns = {one["turns"]: one["id"] for one in listed["sessions"]}
    yield "sessions, the next page", f"/api/sessions?cursor={cursor}"
    yield "sessions of a tenant", "/api/sessions?tenant=tenant-30"
    yield "sessions of a provider", "/api/sessions?provider=zai"
    yield "sessions of no provider", "/api/sessions?provider=nobody"
    yield "sessions that failed", "/api/sessions?status=failed"
    yield "search, common", "/api/sessions?q=never+ends"
    yield "search, rare", f"/api/sessions?q={RARE}"
    yield "search, nothing", "/api/sessions?q=never-said-anywhere"
    id = by_turns.get(10) or listed["sessions"][0]["id"]
    yield "session of ten turns", f"/api/sessions/{id}"
    turn = get(port, f"/api/sessions/{id}").body["turns"][-1]["id"]
    yield "turn", f"/api/sessions/{id}/turns/{turn}"
    yield f"session of {LONG} turns", f"/api/sessions/session-{FIRST_LONG}"
    yield "the same, its last turns", f"/api/sessions/session-{FIRST_LONG}?after={_late(port)}"
    for hours in (1, 24, 24 * 7, 24 * 90):
        yield f"continuity, {hours} h", f"/api/continuity?hours={hours}"
    yield "continuity of a provider, 90 days", "/api/continuity?hours=2160&provider=zai"
    cache = "/api/cache/reasoning"
    first = get(port, f"{cache}?limit=200").body
    call = first["entries"][0]["toolCallId"] or first["entries"][1]["toolCallId"]
    yield "cache", cache
    yield "cache, 200", f"{cache}?limit=200"
    yield "cache, the next page", f"{cache}?cursor={first['nextCursor']}"
    yield "cache, offset 500,000", f"{cache}?offset=500000"
    yield "cache with thoughts", f"{cache}?include=reasoning"
    yield "cache of a provider", f"{cache}?provider=zai"
    yield "cache of no provider", f"{cache}?provider=nobody"
    yield "cache of a model", f"{cache}?model=mistral-small"
    yield "cache of a tenant", f"{cache}?tenant=tenant-30"
    yield "cache of a call", f"{cache}?toolCallId={call}"
    yield "cache of no call", f"{cache}?toolCallId=none"
    yield "feed, its start", "/api/feed"
    yield "feed of a session, its start", f"/api/feed?session={id}"
    for name in ("ready", "health", "metrics", "inspect"):
        yield name, f"/{name}"


def _late(port: int) -> str:
    """A turn near the end of the first long session."""
    path, after = f"/api/sessions/session-{FIRST_LONG}", ""
    while True:
        found = get(port, f"{path}?after={after}" if after else path).body
        if not found["nextAfter"]:
            return after
        after = found["nextAfter"]


def pages(stand: Stand) -> None:
    """Print how long each page takes: the first time, and the median of the next."""
    for name, path in _paths(stand.port):
        first = get(stand.port, path)
        count = TIMES if first.seconds < 2 else 1
        again = statistics.median(get(stand.port, path).seconds for _ in range(count))
        wrong = "" if first.status == 200 else f"  status {first.status}"
        print(
            f"{name:44} {first.seconds:9.3f} s first {again:9.3f} s then"
            f" {again / LIMIT:8.2f} of 300 ms{wrong}",
            flush=True,
        )


# -- deleting ------------------------------------------------------------------------------------


async def _requests(stand: Stand, stop: asyncio.Event) -> list[float]:
    """Seconds of small requests, one after the other, until told to stop."""
    taken: list[float] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", stand.port, limit=1 << 22)
    while not stop.is_set():
        begun = time.perf_counter()
        await ask(reader, writer, request(stand.path, first_request()))
        taken.append(time.perf_counter() - begun)
        await asyncio.sleep(PAUSE)
    writer.close()
    return taken


def _until_done(port: int, path: str) -> dict[str, Any]:
    """Delete, and wait until that is done."""
    answer = get(port, path, "DELETE")
    while answer.status == 202:
        time.sleep(0.2)
        answer = get(port, f"/api/deletions/{answer.body['deletion']}")
        if answer.body["status"] != "running":
            break
        answer = answer._replace(status=202)
    return dict(answer.body)


async def _deleting(stand: Stand, path: str) -> tuple[float, dict[str, Any], list[float]]:
    stop = asyncio.Event()
    requests = asyncio.ensure_future(_requests(stand, stop))
    begun = time.perf_counter()
    said = await asyncio.to_thread(_until_done, stand.port, path)
    took = time.perf_counter() - begun
    stop.set()
    return took, said, await requests


async def _resting(stand: Stand) -> list[float]:
    stop = asyncio.Event()
    requests = asyncio.ensure_future(_requests(stand, stop))
    await asyncio.sleep(5)
    stop.set()
    return await requests


def deletes(stand: Stand) -> None:
    """Print how long deleting takes, and the requests meanwhile."""
    calm = asyncio.run(_resting(stand))
    _say("nothing", 5.0, calm, {})
    for name, path in (
        ("clear a model from the cache", "/api/cache/reasoning?model=zai-small"),
        ("delete a tenant", "/api/tenants/tenant-3"),
        ("clear the whole cache", "/api/cache/reasoning"),
        ("erase all thoughts from the log", "/api/log/reasoning?confirm=erase"),
    ):
        took, said, taken = asyncio.run(_deleting(stand, path))
        _say(name, took, taken, said)


def _say(name: str, took: float, taken: list[float], said: dict[str, Any]) -> None:
    print(
        f"{name:44} {took:9.2f} s; requests: median {statistics.median(taken) * 1e3:.1f} ms, "
        f"slowest {max(taken) * 1e3:.0f} ms, {len(taken)} of them  {json.dumps(said)}",
        flush=True,
    )


# -- the run -------------------------------------------------------------------------------------


def _warm(path: Path) -> None:
    with path.open("rb") as file:  # what is measured is the store, not the disk
        while file.read(1 << 24):
            pass


@contextlib.contextmanager
def _served(path: Path) -> Iterator[Stand]:
    with process(sys.executable, "-m", "benchmarks.upstream") as provider:
        assert provider.stdout
        with gateway(int(provider.stdout.readline()), path) as stand:
            for _ in range(3):
                get(stand.port, "/ready")
            time.sleep(SETTLE)
            yield stand


def main() -> None:
    """Make the file, then measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--file", type=Path, help="kept, and used again")
    parser.add_argument("--pages", action="store_true", help="only pages, no deletions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (options.file or Path(folder) / "big.db").absolute()
        if not path.exists():
            begun = time.perf_counter()
            fill(path, options.turns, time.time())
            print(f"{options.turns:,} turns written in {time.perf_counter() - begun:.0f} s")
        print(f"{path.stat().st_size / 1e9:.2f} GB\n", flush=True)
        _warm(path)
        with _served(path) as stand:
            pages(stand)
        if options.pages:
            return
        copy = Path(folder) / "copy.db"  # a file that is kept stays as it is
        shutil.copyfile(path, copy)
        os.sync()  # what is written to disk later would be measured, too
        print(flush=True)
        with _served(copy) as stand:
            deletes(stand)


if __name__ == "__main__":
    main()

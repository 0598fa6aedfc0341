"""What PostgreSQL costs the gateway, beside SQLite in the same run: CPU of this process.

- an append, where 64 and where 16 come together, and alone;
- a look-up of the keys of two turns, one of which was read before;
- a look-up of 150 keys, known and not, among those of what was written; among a million with
  `THOUGHTLINE_BENCH_SHARED=1000000`, which takes some minutes to write;
- a whole request, of gateways with either store that take turns.

It starts a server of its own from the wheel that tests use. SQLite works in threads of this process,
so its figures are all of its work; PostgreSQL's own work is in its server.
"""

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchmarks.pairs import compare
from benchmarks.stands import Stand, gateway
from benchmarks.stores import WRITERS, _turn
from thoughtline.stores import open_store
from thoughtline.stores.base import Batch, Store

if TYPE_CHECKING:
    from support.postgres_server import PostgresServer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

Figure = tuple[str, float, str]

KEYS = int(os.environ.get("THOUGHTLINE_BENCH_SHARED", "10000"))
OF_TURN = 5
ROUNDS = 4
APPENDS = 600
FINDS = 400


def _turns(count: int) -> Iterator[Batch]:
    parent = ""
    for number in range(count):
        made = _turn(f"s{number % 100}", parent)
        keys = tuple(os.urandom(16) for _ in range(OF_TURN))
        yield replace(made, index=(replace(made.index[0], keys=keys),))


async def _append(store: Store, writers: int, turns: list[Batch]) -> float:
    """Microseconds of CPU for each append."""
    waiting = iter(turns)

    async def write() -> None:
        for batch in waiting:
            await store.append(batch)

    began = time.process_time()
    await asyncio.gather(*(write() for _ in range(writers)))
    return (time.process_time() - began) / len(turns) * 1e6


async def _find(store: Store, tenant: str, looked_up: list[list[bytes]]) -> float:
    began = time.process_time()
    for keys in looked_up:
        found = await store.find(tenant, keys)
        assert len(found) == len(keys)
    return (time.process_time() - began) / len(looked_up) * 1e6


async def _measure(name: str, store: Store) -> list[Figure]:
    figures: list[Figure] = []
    written: list[Batch] = []
    for writers in (WRITERS, 16, 1):
        best = float("inf")
        for _ in range(ROUNDS):
            turns = list(_turns(APPENDS if writers > 1 else APPENDS // 4))
            best = min(best, await _append(store, writers, turns))
            written += turns
        figures.append((f"{name}: append, {writers} at once, CPU", best, "µs"))
    count = len(written)
    while count * OF_TURN < KEYS:
        turns = list(_turns(min(2_000, KEYS // OF_TURN - count + 1)))
        await _append(store, WRITERS, turns)
        count += len(turns)
    tenant = written[0].tenant
    keys = [batch.index[0].keys for batch in written]
    pairs = [[*keys[n][:3], *keys[n + 1][:3]] for n in range(FINDS)]
    best = min([await _find(store, tenant, pairs) for _ in range(ROUNDS)])
    figures.append((f"{name}: find of 6, CPU", best, "µs"))
    later = keys[FINDS + 1 :]  # nobody has read these
    many = [[key for n in range(50) for key in later[n * 20 + at][:3]] for at in range(20)]
    cold = await _find(store, tenant, many)
    warm = min([await _find(store, tenant, many) for _ in range(ROUNDS)])
    figures += [
        (f"{name}: find of 150 among {count * OF_TURN:,}, not read before, CPU", cold, "µs"),
        (f"{name}: find of 150 among {count * OF_TURN:,}, read before, CPU", warm, "µs"),
    ]
    return figures


async def _all(folder: Path, url: str) -> list[Figure]:
    figures: list[Figure] = []
    for name, place in (("PostgreSQL", url), ("SQLite", f"sqlite:///{folder}/bench.db")):
        store = open_store(place)
        figures += await _measure(name, store)
        await store.close()
    return figures


def _requests(server: "PostgresServer") -> list[Figure]:
    """Compare gateways with either store, each start with an empty one."""
    numbers = itertools.count()

    def shared(upstream: int) -> AbstractContextManager[Stand]:
        name = f"bench_{next(numbers)}"
        server.sql(f"CREATE DATABASE {name}")
        return gateway(upstream, url=server.url(name))

    figures: list[Figure] = []
    for what, pair in compare({"SQLite": gateway, "PostgreSQL": shared}).items():
        figures += [
            (f"SQLite: {what}, CPU", pair.plain, "µs"),
            (f"PostgreSQL: {what}, CPU", pair.other, "µs"),
            (f"PostgreSQL to SQLite: {what} (± {pair.error:.2f}; bar 1.2)", pair.ratio, "×"),
        ]
    return figures


def run() -> list[Figure]:
    """Start a server, and measure."""
    import uvloop

    from support.postgres_server import PostgresServer

    with tempfile.TemporaryDirectory(prefix="thoughtline-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        server = PostgresServer(folder / "postgres", shared_buffers="256MB").make().start()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                figures = runner.run(_all(folder, server.admin_url))
            return figures + _requests(server)
        finally:
            server.stop("immediate")

"""What sealing costs: the ciphers by themselves, and a gateway with keys beside one without.

Both gateways run in one go and take turns in short rounds (see `pairs`). The bar is five per cent
of a request.

    python -m benchmarks sealing
"""

import asyncio
import os
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.pairs import compare
from benchmarks.stands import gateway
from benchmarks.stores import _turn as a_turn
from benchmarks.timing import best
from thoughtline.stores.sealing.cipher import TenantCipher
from thoughtline.stores.sealing.keychain import Keychain
from thoughtline.stores.sealing.ring import KeyRing, new_key
from thoughtline.stores.sealing.tenant_keys import new_rows
from thoughtline.stores.sqlite import SqliteStore

Figure = tuple[str, float, str]
TIMES = 500
"""Calls in one measurement of a cipher."""
ROUNDS, BATCHES = 40, 50
"""Turns that a store takes, and how often."""
PLAIN, SEALED = "plain", "sealed"


def _cipher() -> TenantCipher:
    key = new_key()
    return Keychain(KeyRing([key])).cipher("bench", new_rows("bench", key))


def ciphers() -> list[Figure]:
    """Seal, open and blind, in a warm process."""
    cipher, figures = _cipher(), []
    for size in (300, 2_000, 4_600, 100_000):
        value = os.urandom(size)
        sealed = cipher.seal(value, "session", "batch", "said")

        def seal(value: bytes = value) -> None:
            for _ in range(TIMES):
                cipher.seal(value, "session", "batch", "said")

        def unseal(sealed: bytes = sealed) -> None:
            for _ in range(TIMES):
                cipher.open(sealed, "session", "batch", "said")

        figures.append((f"seal {size:,} bytes", best(seal) / TIMES * 1e6, "µs"))
        figures.append((f"open {size:,} bytes", best(unseal) / TIMES * 1e6, "µs"))
    for count in (6, 150):
        keys = [os.urandom(16) for _ in range(count)]

        def blind(keys: list[bytes] = keys) -> None:
            for _ in range(TIMES):
                cipher.blind(keys)

        figures.append((f"blind {count} look-up keys", best(blind) / TIMES * 1e6, "µs"))
    return figures


async def _stores(folder: Path) -> list[Figure]:
    """An append and a look-up of six keys, in two SQLite files that take turns: the best of each."""
    chain = Keychain(KeyRing([new_key()]))
    stores = {
        PLAIN: SqliteStore(folder / "plain.db"),
        SEALED: SqliteStore(folder / "sealed.db", keychain=chain),
    }
    appends: dict[str, list[float]] = {name: [] for name in stores}
    finds: dict[str, list[float]] = {name: [] for name in stores}
    for number in range(ROUNDS):
        for name, store in stores.items():
            batches = [a_turn(f"{number}-{n}", "") for n in range(BATCHES)]
            begun = time.process_time_ns()
            for batch in batches:
                await store.append(batch)
            appends[name].append(time.process_time_ns() - begun)
            begun = time.process_time_ns()
            for batch in batches:
                assert await store.find("bench", [*batch.index[0].keys, bytes(16)])
            finds[name].append(time.process_time_ns() - begun)
    for store in stores.values():
        await store.close()
    return [
        (f"{name}: {what}", min(times[name]) / BATCHES / 1e3, "µs")
        for what, times in (("append, one after the other", appends), ("find of 6", finds))
        for name in stores
    ]


def run() -> list[Figure]:
    """Figures for `make bench`."""
    rows: list[Figure] = []
    servers = {PLAIN: gateway, SEALED: partial(gateway, sealed=True)}
    for what, pair in compare(servers, starts=12).items():
        rows += [
            (f"{PLAIN}: {what}", pair.plain, "µs"),
            (f"{SEALED}: {what}", pair.other, "µs"),
            (f"sealing: {what} (± {pair.error:.1%}; bar 5)", (pair.ratio - 1) * 100, "% more"),
        ]
    with tempfile.TemporaryDirectory() as folder:
        own = asyncio.run(_stores(Path(folder)))
    return [*ciphers(), *own, *rows]

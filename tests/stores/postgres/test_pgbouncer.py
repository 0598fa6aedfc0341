"""A pool between the store and the database that hands out connections per transaction."""

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from stores.samples import notes, turn
from support.postgres_server import _another_user, free_port
from support.waiting import listens, until
from thoughtline.stores.postgres import PostgresStore

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
A = b"a" * 16

pytestmark = pytest.mark.skipif(
    not PGBOUNCER, reason="pgbouncer is not installed; `make clients` installs it"
)


@pytest.fixture
def pooled(database, postgres):
    """The URL of the database, behind pgbouncer with two connections for everybody."""
    port, name = free_port(), database.rpartition("/")[2]
    folder = tempfile.TemporaryDirectory(prefix="thoughtline-pgbouncer-")
    file = Path(folder.name) / "pgbouncer.ini"
    file.parent.chmod(0o755)  # it runs as another user than root
    file.write_text(
        f"[databases]\n{name} = host=127.0.0.1 port={postgres.port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
    )
    process = subprocess.Popen(
        [PGBOUNCER, "-q", file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **_another_user(),
    )
    until(lambda: process.poll() is not None or listens(port))
    assert process.poll() is None
    yield f"postgresql://postgres@127.0.0.1:{port}/{name}?prepared=off"
    process.terminate()
    process.wait(60)
    folder.cleanup()


async def test_several_nodes_behind_a_pool_of_two_connections(pooled, db):
    stores = [PostgresStore(pooled) for _ in range(3)]

    async def work(store, name):
        for n in range(15):
            key = f"{name}{n}".encode().ljust(16)
            await store.append(turn(f"{name}{n % 4}", f"{name}.t{n}", '"x"', keys=[A, key]))
            found = await stores[n % 3].find("T", [key, A])
            assert [entry.turn for entry in found[key]] == [f"{name}.t{n}"]

    await asyncio.gather(*(work(store, name) for store, name in zip(stores, "abc", strict=True)))
    assert (await stores[0].stats()).turns == 45
    await asyncio.gather(*(store.append(notes("s")) for store in stores * 4))
    assert [e.seq for e in await stores[1].read("s")] == list(range(12))
    backends = await db.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    )
    assert backends <= 3  # two of the pool, and this one
    for store in stores:
        await store.close()

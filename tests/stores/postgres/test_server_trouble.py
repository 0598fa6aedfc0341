"""A server whose disk is full, or that takes no more connections: turns wait, and nothing is lost."""

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from stores.postgres.conftest import Connected
from stores.samples import turn
from support.waiting import eventually, patiently
from thoughtline.errors import Unavailable
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.postgres import PostgresStore

A = b"a" * 16


def said(number, size=10):
    return replace(
        turn(f"s{number % 3}", f"t{number}", f'"{"x" * size}"', keys=[number.to_bytes(16, "big")]),
        id=f"t{number}",
    )


class SmallDisk:
    """A disk with little room."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="thoughtline-disk-"))
        self.folder.chmod(0o755)  # PostgreSQL runs as another user than root
        self.place = self.folder / "disk"
        self.place.mkdir()
        made = self._run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs")
        self.mounted = not made.returncode

    def _run(self, *command):
        return subprocess.run([*command, self.place], capture_output=True, check=False)

    def make_room(self):
        assert self._run("mount", "-o", "remount,size=96m").returncode == 0

    def close(self):
        if self.mounted:
            assert self._run("umount").returncode == 0
        shutil.rmtree(self.folder)


@pytest.fixture
def small_disk():
    disk = SmallDisk()
    if not disk.mounted:
        disk.close()
        pytest.skip("this user may not mount a disk; root may")
    nobody = pwd.getpwnam("nobody")
    os.chown(disk.place, nobody.pw_uid, nobody.pw_gid)
    yield disk
    disk.close()


@pytest.fixture
async def tight(small_disk, postgres, worker_id):
    """The URL of a database on it."""
    name = f"tight_{worker_id}"
    async with Connected(postgres.admin_url) as admin:
        await admin.execute(f"CREATE TABLESPACE {name} LOCATION '{small_disk.place}'")
        await admin.execute(f"CREATE DATABASE {name} TABLESPACE {name}")
        yield postgres.url(name)
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.execute(f"DROP TABLESPACE {name}")


async def test_a_full_disk(tight, small_disk, tmp_path):
    behind = PostgresStore(tight, patience=0.0)
    store = CachedStore(behind, spill=tmp_path / "shared", retry=0.05)
    count = 0
    while not store.trouble and count < 1000:
        count += 1
        with suppress(Unavailable):
            await store.append(said(count, 200_000))
    assert "No space left" in store.trouble or "could not extend" in store.trouble
    assert store.backlog == 1 and 3 < count < 1000
    with pytest.raises(Unavailable):
        await store.append(said(count + 1))
    for number in (1, count, count + 1):  # what was written is read, what waits is found
        key = number.to_bytes(16, "big")
        assert [entry.turn for entry in (await store.find("T", [key]))[key]] == [f"t{number}"]
    small_disk.make_room()
    await eventually(lambda: not store.backlog and not store.trouble)
    assert store.lost == 0
    assert (await behind.stats()).turns == count + 1
    await store.close()


@pytest.fixture
async def crowded(postgres, worker_id):
    """The URL of a database that takes three connections of its user."""
    name = f"crowded_{worker_id}"
    async with Connected(postgres.admin_url) as admin:
        await admin.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 3")
        await admin.execute(f"CREATE DATABASE {name} OWNER {name}")
        yield postgres.url(name).replace("postgres@", f"{name}@")
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.execute(f"DROP ROLE {name}")


async def test_a_server_without_connections_left(crowded, tmp_path):
    async with Connected(crowded), Connected(crowded) as second, Connected(crowded) as third:
        behind = PostgresStore(crowded, patience=0.0)
        store = CachedStore(behind, spill=tmp_path / "shared", retry=0.05)
        with pytest.raises(Unavailable, match="too many connections"):
            await store.append(said(1))
        with pytest.raises(Unavailable, match="too many connections"):
            await behind.find("T", [A])
        assert "too many connections" in store.trouble
        await second.close()
        await third.close()
        await eventually(lambda: not store.backlog)
    assert (store.trouble, store.lost) == ("", 0)
    await store.close()


async def test_more_nodes_than_the_server_takes(crowded):
    """Each gets its turn, one after the other, and no error but that it has to wait."""
    stores = [PostgresStore(crowded, patience=0.0) for _ in range(12)]

    async def write(number, store):
        await patiently(lambda: store.append(said(number)))
        await store.close()

    async with asyncio.timeout(60):
        await asyncio.gather(*(write(n, store) for n, store in enumerate(stores)))
    reader = PostgresStore(crowded)
    assert (await reader.stats()).turns == 12
    await reader.close()

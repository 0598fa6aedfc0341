"""A database of this worker, empty for each test."""

import asyncio

import asyncpg
import pytest

from stores.samples import StillClock
from support.postgres_server import SharedServer
from support.waiting import eventually
from thoughtline.stores.postgres import PostgresStore, migrations, queries


@pytest.fixture(scope="session")
def postgres(tmp_path_factory, worker_id):
    folder = tmp_path_factory.getbasetemp()
    shared = SharedServer(folder if worker_id == "master" else folder.parent)
    yield shared.server
    shared.close()


@pytest.fixture(scope="session")
def migrated(postgres, worker_id):
    """The URL of a database with tables in it."""

    async def make():
        connection = await asyncpg.connect(postgres.url(worker_id))
        await migrations.migrate(connection)
        await connection.close()

    postgres.sql(f"CREATE DATABASE {worker_id}", "SELECT 1")
    asyncio.run(make())
    return postgres.url(worker_id)


_EMPTY = """
DO $$
DECLARE one text; filled text[]; has_rows bool;
BEGIN
    FOREACH one IN ARRAY ARRAY['home', 'tenants', 'sessions', 'batches', 'entries', 'names',
        'pointers', 'gone', 'jobs', 'turn_counts', 'running', 'tenant_keys']
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', one) INTO has_rows;
        IF has_rows THEN filled := filled || one; END IF;
    END LOOP;
    IF filled IS NOT NULL THEN EXECUTE 'TRUNCATE ' || array_to_string(filled, ', '); END IF;
END $$
"""  # those that are empty already cost nothing


@pytest.fixture
async def database(migrated):
    """The URL of a database with nothing in its tables."""
    async with Connected(migrated) as connection:
        await connection.execute(_EMPTY)
        await connection.execute("UPDATE sealing SET master = '', plain = false")
    return migrated


_WAITING = """
SELECT count(*) FROM pg_locks AS l WHERE NOT granted AND EXISTS (
    SELECT FROM pg_locks AS o JOIN pg_database AS d ON d.oid = o.database
    WHERE o.pid = l.pid AND d.datname = current_database()
)
"""  # in this database: other tests may use the same server


async def waiting(db, count):
    """Wait until so many wait for a lock of this database."""

    async def enough():
        return await db.fetchval(_WAITING) >= count

    await eventually(enough)


class Connected:
    """A connection of the test's own."""

    def __init__(self, url):
        self.url = url

    async def __aenter__(self):
        self.connection = await asyncpg.connect(self.url)
        return self.connection

    async def __aexit__(self, *_):
        await self.connection.close()


@pytest.fixture
async def db(database):
    """A connection beside the store's."""
    async with Connected(database) as connection:
        yield connection


@pytest.fixture
async def empty(postgres, worker_id):
    """The URL of a database without tables."""
    async with Connected(postgres.admin_url) as admin:
        await admin.execute(f"CREATE DATABASE empty_{worker_id}")
        yield postgres.url(f"empty_{worker_id}")
        await admin.execute(f"DROP DATABASE empty_{worker_id} WITH (FORCE)")


@pytest.fixture(autouse=True)
def patient_feeds(monkeypatch):
    """Feeds wait for transactions anywhere on the server, so for those of other tests as well."""
    monkeypatch.setattr(queries, "OWN_WAIT", 30.0)


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
async def store(database, clock):
    store = PostgresStore(database, clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def other(database, clock):
    """Another node's store in the same database."""
    store = PostgresStore(database, clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def nodes(database):
    """Opens nodes of one database, each with keys of its own."""
    made = []

    def node(chain):
        made.append(PostgresStore(database, poll=0.02, keychain=chain))
        return made[-1]

    yield node
    for one in made:
        await one.close()

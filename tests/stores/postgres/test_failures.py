"""What errors of the database mean."""

import asyncio

import asyncpg
import pytest
from asyncpg import exceptions as pg

from thoughtline.errors import Conflict, StoreError, Unavailable
from thoughtline.stores.postgres.address import Address
from thoughtline.stores.postgres.failures import explain

HERE = Address("postgresql://me:hush@db.test/log")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "refused"),
        TimeoutError(),
        asyncpg.ConnectionDoesNotExistError("gone"),
        asyncpg.InterfaceError("connection is closed"),
        pg.TooManyConnectionsError("too many clients"),
        pg.CannotConnectNowError("starting up"),
        pg.AdminShutdownError("bye"),
        pg.QueryCanceledError("statement timeout"),
        pg.DiskFullError("full"),
        pg.ReadOnlySQLTransactionError("standby"),
        pg.DeadlockDetectedError("deadlock"),
        pg.InvalidPasswordError("no"),
        pg.InvalidCatalogNameError("no such database"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_a_moment_can_be_tried_again(error):
    found = explain(error, HERE)
    assert isinstance(found, Unavailable)
    assert "db.test" in str(found) and "hush" not in str(found)


def test_the_way_out_is_named():
    assert "thoughtline store migrate" in str(explain(pg.UndefinedTableError("no"), HERE))
    assert "prepared=off" in str(explain(pg.InvalidSQLStatementNameError("no"), HERE))


def test_what_the_database_does_not_take_is_no_outage():
    found = explain(pg.UniqueViolationError("twice"), HERE)
    assert isinstance(found, StoreError) and not isinstance(found, Unavailable)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DataError("invalid input for query argument $3: 'a thought' (it is odd)"),
        pg.InvalidTextRepresentationError('invalid input syntax for type json: "a thought"'),
        ValueError("what is 'a thought'?"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_database_does_not_take_is_not_quoted(error):
    found = explain(error, HERE)
    assert type(found) is StoreError
    assert type(error).__name__ in str(found) and "thought" not in str(found)


def test_other_errors_stay_what_they_are():
    own = Conflict("x")
    assert explain(own, HERE) is own
    assert explain(asyncio.CancelledError(), HERE) is None
    assert explain(ZeroDivisionError(), HERE) is None

"""What an error of the database or of its connection means for a caller."""

import asyncio

import asyncpg
from asyncpg import exceptions as pg

from thoughtline.errors import StoreError, Unavailable
from thoughtline.stores.postgres.address import Address

_PASSING = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    pg.InsufficientResourcesError,  # disk full, too many connections
    pg.OperatorInterventionError,  # shut down, cancelled, starting up
    pg.TransactionRollbackError,  # deadlock
    pg.ReadOnlySQLTransactionError,  # a standby
    pg.LockNotAvailableError,
    pg.PostgresSystemError,
    pg.InternalClientError,
    OSError,
    TimeoutError,
)
"""Errors of a moment: the same statement may work later."""

_NOT_MADE = (pg.UndefinedTableError, pg.UndefinedFunctionError)

_WRONG_NAME = (
    pg.InvalidAuthorizationSpecificationError,
    pg.InvalidCatalogNameError,
    pg.InsufficientPrivilegeError,
)


def explain(error: BaseException, address: Address) -> StoreError | None:
    """Return the error as a store raises it; None for what is no error of the store."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, asyncio.CancelledError) or not isinstance(error, Exception):
        return None
    place = address.label
    if isinstance(error, pg.InvalidSQLStatementNameError | pg.DuplicatePreparedStatementError):
        return Unavailable(
            f"the pool in front of PostgreSQL at {place} mixes up prepared statements; "
            "add ?prepared=off to store.url, or use pgbouncer 1.21 with max_prepared_statements"
        )
    if isinstance(error, _WRONG_NAME):
        return Unavailable(f"PostgreSQL at {place} refuses this user: {error}")
    if isinstance(error, _NOT_MADE):
        return StoreError(
            f"the database at {place} is not of this version ({error}); "
            "run `thoughtline store migrate`"
        )
    if isinstance(error, TimeoutError):
        return Unavailable(f"PostgreSQL at {place} did not answer in time")
    if isinstance(error, _PASSING):
        text = str(error) or type(error).__name__
        return Unavailable(f"PostgreSQL at {place} is not available: {text}")
    if isinstance(error, pg.DataError | ValueError | TypeError):  # its words may quote a value
        return StoreError(f"PostgreSQL at {place} did not take a value: {type(error).__name__}")
    if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError):
        return StoreError(f"PostgreSQL at {place} did not take it: {error}")
    return None

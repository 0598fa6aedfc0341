"""The store in PostgreSQL, which any number of machines share.

- `store`        what the port asks for, put together from the parts below
- `connections`  at most four per process; reconnects, time limits, what errors mean
- `migrations`   the tables and functions in `sql/`, by number
- `rows`         batches and index entries to rows and back: the only place that knows their form
- `writer`       groups of batches, each one call
- `late_writer`  batches that may be older than a deletion, without what was deleted
- `bodies`       index entries that this process has read, by id and revision
- `queries`, `searches`, `entries`, `purge`, `turn_counts`  the rest of the port
"""

from thoughtline.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

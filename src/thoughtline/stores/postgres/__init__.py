"""The store in PostgreSQL, which any number of machines share.

- `store`        what the port asks for, put together from the parts below
- `connections`  at most four per process; reconnects, time limits, what errors mean
- `migrations`   the tables and functions in `sql/`, by number
- `rows`         batches and index entries to rows and back: the only place that knows their form
- `writer`       groups of batches, each one call
- `late_writer`  batches that may be older than a deletion, without what was deleted
- `finder`       look-ups: which entries a key leads to; what this node knows of each tenant
- `lookups`      look-ups that come at the same time, in one statement
- `bodies`       index entries that this process has read, by id and revision
- `seals`, `tenant_seal`, `sealed_rows`, `vault`  keys in the database, and what they seal
- `feed`         new events, as they are written
- `entries`, `erasure`, `session_index`  thought entries: listed, taken out, filed again
- `hits`, `deletion_log`  when sessions were last used; what was deleted lately
- `queries`, `searches`, `purge`, `turn_counts`, `stats`  the rest of the port
"""

from thoughtline.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

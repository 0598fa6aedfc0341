"""Sessions in one SQLite file: the store that needs nothing beside it.

- `store`       `SqliteStore`, the port's methods, and the durability promise
- `writer`      the one thread that writes, many batches to a commit
- `rows`        batches as rows: a whole group in a handful of statements (`bulk`)
- `feed`        who is woken when something was written
- `readers`     connections beside the writer
- `queries`     what is read
- `purging`     how sessions are deleted
- `forgetting`  what is remembered, entry by entry, and how it is forgotten
- `files`       opening the file, noticing that it is gone, and what its errors mean
- `migrations`  numbered steps from an empty file to today's tables (`sql/`)
- `salvage`     what can still be read of a damaged file
"""

from thoughtline.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]

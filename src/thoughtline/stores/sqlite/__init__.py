"""A store in one SQLite file, which needs nothing beside it.

- `store`        `SqliteStore`, the methods of the port, and the durability promise
- `writer`       the thread that writes, many batches to a commit
- `inserts`      a batch as the values of its rows, made before the writer runs
- `rows`         writes a group of batches into the tables
- `subscribers`  who is woken when something was written
- `readers`      connections that read, beside the writer
- `queries`      what is read, and `search` for sessions
- `purge`        deletes sessions
- `entries`      lists and erases thought entries
- `session_index` reads and replaces the index entries of a session
- `file`         opens the file, notices that it is gone, explains its errors
- `migrations`   numbered steps from an empty file to the current tables (`sql/`)
- `statements`   loads SQL, and runs it over many rows at once
- `quick_check`  looks for damage
- `salvage`      copies what can still be read of a damaged file
"""

from thoughtline.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]

"""A store in one SQLite file, which needs nothing beside it.

- `store`        `SqliteStore`, the methods of the port, and the durability promise
- `writer`       the thread that writes, many batches to a commit
- `inserts`      a batch as the values of its rows, made before the writer runs
- `rows`         writes a group of batches into the tables
- `subscribers`  who is woken when something was written
- `readers`      connections that read, beside the writer
- `queries`      what is read, and `search` for sessions
- `just_written`, `wal_index`  what spares a reading of the file
- `entries`      lists thought entries and clears them; `erasure` erases thoughts from the log
- `filed_entries`, `session_index`  the index entries in the rows; those of one session
- `turn_counts`  what statistics read
- `purge`        deletes sessions; `upkeep` does this and other long work in slices
- `vault`, `key_tables`, `sealed`, `resealing`  keys in the file, and what they seal
- `file`         opens the file, notices that it is gone, explains its errors
- `migrations`   numbered steps from an empty file to the current tables (`sql/`)
- `statements`   loads SQL, and runs it over many rows at once; `packed` for rows with BLOBs
- `backup`, `quick_check`, `salvage`  copies the file, looks for damage, saves what can be read
"""

from thoughtline.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]

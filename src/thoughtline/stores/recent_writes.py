"""The index entries that this process wrote lately, for when the store cannot give them.

What is not committed yet is found here. The last that was committed is kept as well, since a store
that does not answer cannot give it, and one that is back may have lost it (a removed file).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from thoughtline.log.index import IndexEntry
from thoughtline.stores.answer_cache import CacheKey, entry_size, merged
from thoughtline.stores.base import Batch

Filed = dict[CacheKey, tuple[IndexEntry, ...]]
Entries = dict[bytes, tuple[IndexEntry, ...]]


class RecentWrites:
    """Entries that were written lately: of those that are committed the last, within limits."""

    def __init__(self, limit: int, max_bytes: int) -> None:
        self._limits = limit, max_bytes
        self._filed: Filed = {}  # what is not committed; but for `_unfiled`
        # Turns with tenant and entry: most are committed before anybody looks for them.
        self._unfiled: dict[str, tuple[str, IndexEntry]] = {}
        self._since: dict[str, float] = {}  # turn that is not committed → when that began
        # Kept cheaply: these are searched only when the store fails.
        self._committed: deque[tuple[str, IndexEntry, int]] = deque()
        self.size = 0  # about how many bytes of memory those take
        self._restored: Filed = {}  # what was committed when the store failed

    def __bool__(self) -> bool:
        return bool(self._unfiled or self._filed or self._committed)

    @property
    def _uncommitted(self) -> Filed:
        """What is not committed, by key."""
        if self._unfiled:
            for tenant, entry in self._unfiled.values():
                _file(self._filed, tenant, entry)
            self._unfiled.clear()
        return self._filed

    def add(self, batch: Batch, now: float = 0.0) -> None:
        """Add the entries of a batch that is being written since now."""
        for entry in batch.index:
            if entry.turn in self._since:  # more of a turn that is being written
                _file(self._uncommitted, batch.tenant, entry)
            else:
                self._since[entry.turn] = batch.held or now
                self._unfiled[entry.turn] = batch.tenant, entry

    def remove(self, batch: Batch) -> None:
        """Remove the entries of a batch that is not being written any more."""
        for entry in batch.index:
            self._since.pop(entry.turn, None)
            if self._unfiled.get(entry.turn) == (batch.tenant, entry):
                del self._unfiled[entry.turn]
            else:
                self._remove_filed(batch.tenant, entry)

    def _remove_filed(self, tenant: str, entry: IndexEntry) -> None:
        """Remove what is filed of a turn under the keys of its entry."""
        filed = self._uncommitted
        for key in entry.keys:
            held = filed.pop((tenant, key), ())
            if len(held) == 1 and held[0] is entry:
                continue
            if rest := tuple([other for other in held if other.turn != entry.turn]):
                filed[tenant, key] = rest  # other turns have this key, too

    def commit(self, batch: Batch) -> None:
        """Keep the entries of a batch that is committed."""
        self.remove(batch)
        committed = self._committed
        for entry in batch.index:
            size = entry_size(entry)
            committed.append((batch.tenant, entry, size))
            self.size += size
        limit, max_bytes = self._limits
        while committed and (len(committed) > limit or self.size > max_bytes):
            self.size -= committed.popleft()[2]

    @property
    def since(self) -> float | None:
        """When the first of what is not committed was begun; None: everything is committed."""
        return next(iter(self._since.values()), None)

    def change(self, tenant: str, change: Callable[[IndexEntry, float], IndexEntry | None]) -> None:
        """Replace what is not committed of a tenant by what `change` returns of each."""
        filed = self._uncommitted
        for cache_key, entries in list(filed.items()):
            if cache_key[0] == tenant:
                changed = [change(entry, self._since.get(entry.turn, 0.0)) for entry in entries]
                if left := tuple([entry for entry in changed if entry is not None]):
                    filed[cache_key] = left
                else:
                    del filed[cache_key]

    def entries(self) -> Iterator[IndexEntry]:
        """Yield what is held; an entry that is not committed comes once for each of its keys."""
        yield from chain.from_iterable(self._uncommitted.values())
        for _, entry, _ in self._committed:
            yield entry

    def restore(self) -> None:
        """From now on, `merge` what was committed: the store failed and may lose it."""
        self._restored.clear()
        for tenant, entry, _ in self._committed:
            _file(self._restored, tenant, entry)

    def clear(self) -> None:
        """Drop what is committed: it was deleted, or is refused."""
        self._committed.clear()
        self._restored.clear()
        self.size = 0

    def merge(
        self, tenant: str, keys: Iterable[bytes], found: dict[bytes, Sequence[IndexEntry]]
    ) -> None:
        """Add to what was found under these keys."""
        if self._restored:
            merge_entries(_entries(self._restored, tenant, keys), found)
        if self._unfiled or self._filed:
            merge_entries(_entries(self._uncommitted, tenant, keys), found)

    def uncommitted(self, tenant: str, keys: Iterable[bytes]) -> Entries:
        """Return what is not committed under these keys, the last filed last."""
        if not self._unfiled and not self._filed:
            return {}
        return _entries(self._uncommitted, tenant, keys)

    def parents(self, tenant: str) -> dict[str, str]:
        """Return the turns that are not committed yet, each with the turn that it continues."""
        return {
            entry.turn: entry.parent
            for (owner, _), entries in self._uncommitted.items()
            if owner == tenant
            for entry in entries
        }

    def committed(self, tenant: str, keys: set[bytes]) -> dict[bytes, list[IndexEntry]]:
        """Return what is committed under these keys, the last filed first."""
        found: dict[bytes, list[IndexEntry]] = {}
        for owner, entry, _ in reversed(self._committed):
            if owner == tenant:
                for key in keys.intersection(entry.keys):
                    found[key] = merged([], [*found.get(key, ()), entry])
        return found


def merge_entries(new: Entries, found: dict[bytes, Sequence[IndexEntry]]) -> None:
    """Add entries that were filed since to what was found."""
    for key, entries in new.items():
        found[key] = merged(entries, found.get(key, ()))


def _entries(filed: Filed, tenant: str, keys: Iterable[bytes]) -> Entries:
    return {key: entries for key in keys if (entries := filed.get((tenant, key)))}


def _file(filed: Filed, tenant: str, entry: IndexEntry) -> None:
    """Add an entry under all of its keys."""
    for key in entry.keys:
        cache_key = (tenant, key)
        held = filed.get(cache_key)
        filed[cache_key] = (entry,) if held is None else (*held, entry)

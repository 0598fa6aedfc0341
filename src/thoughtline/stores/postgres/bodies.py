"""Index entries with their thoughts, as this process has read them: by id and revision.

They never answer a look-up: the database says which entries are meant, and of which revision. What
is here does not have to be sent again. The least recently used are dropped, and those of a tenant
when something of it was deleted.
"""

from collections import OrderedDict
from collections.abc import Iterable

from msgspec import Struct

from thoughtline.log.index import IndexEntry
from thoughtline.stores.answer_cache import entry_size


class Body(Struct, eq=False):
    """An entry, and what names its revision."""

    entry: IndexEntry
    tenant: bytes
    token: bytes  # id and revision
    names: list[bytes]
    size: int


class BodyCache:
    """Bodies by id, found again by the names that they are filed under."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._bodies: OrderedDict[bytes, Body] = OrderedDict()
        self._by_name: dict[bytes, dict[bytes, None]] = {}
        self._by_tenant: dict[bytes, set[bytes]] = {}

    def __len__(self) -> int:
        return len(self._bodies)

    def known(self, names: Iterable[bytes]) -> dict[bytes, Body]:
        """Return the bodies that a look-up of these names is likely to find: id → body."""
        found: dict[bytes, Body] = {}
        by_name, bodies = self._by_name, self._bodies
        for name in names:
            for id in by_name.get(name, ()):
                if id not in found:
                    found[id] = bodies[id]
        for id in found:
            bodies.move_to_end(id)
        return found

    def put(
        self, id: bytes, tenant: bytes, revision: int, entry: IndexEntry, names: list[bytes]
    ) -> None:
        """Keep a body, in place of an older revision."""
        self._remove(id)
        body = Body(entry, tenant, token(id, revision), names, entry_size(entry) + 200 * len(names))
        self._bodies[id] = body
        self._by_tenant.setdefault(tenant, set()).add(id)
        for name in names:
            self._by_name.setdefault(name, {})[id] = None
        self.size += body.size
        while self.size > self.max_bytes and self._bodies:
            self._remove(next(iter(self._bodies)))

    def drop(self, tenant: bytes) -> None:
        """Drop all bodies of a tenant."""
        for id in self._by_tenant.pop(tenant, set()):
            self._remove(id)

    def clear(self) -> None:
        """Drop all bodies."""
        self._bodies.clear()
        self._by_name.clear()
        self._by_tenant.clear()
        self.size = 0

    def _remove(self, id: bytes) -> None:
        body = self._bodies.pop(id, None)
        if body is None:
            return
        self.size -= body.size
        own = self._by_tenant.get(body.tenant)
        if own is not None:
            own.discard(id)
            if not own:
                del self._by_tenant[body.tenant]
        for name in body.names:
            filed = self._by_name.get(name)
            if filed is not None:
                filed.pop(id, None)
                if not filed:
                    del self._by_name[name]


def token(id: bytes, revision: int) -> bytes:
    """Return what names a revision of an entry, as `find` compares it."""
    return id + revision.to_bytes(8, "big")

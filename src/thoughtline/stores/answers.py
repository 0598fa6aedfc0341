"""Whole answers to look-ups, held in memory: oldest out first, hits promoted.

An answer is everything filed under a name, also when that is nothing. The same turn stands in
several answers (it has several names) and is weighed once.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from thoughtline.memories import Memory
from thoughtline.stores.base import CANDIDATES

Key = tuple[str, bytes]
"""Tenant and name."""

OVERHEAD = 512
"""Bytes that a memory costs beside its thoughts."""


class Answers:
    """Answers by name, within limits of turns and of bytes."""

    def __init__(self, entries: int, size: int) -> None:
        self._limits = (entries, size)
        self._known: OrderedDict[Key, tuple[Memory, ...]] = OrderedDict()
        self._held: dict[str, int] = {}  # turn → how many answers hold it
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def turns(self) -> int:
        """How many turns are held."""
        return len(self._held)

    def find(
        self, tenant: str, names: Iterable[bytes]
    ) -> tuple[dict[bytes, Sequence[Memory]], list[bytes]]:
        """What is filed under these names, and those that are not known; hits are young again."""
        found: dict[bytes, Sequence[Memory]] = {}
        missing: list[bytes] = []
        for name in names:
            key = (tenant, name)
            answer = self._known.get(key)
            if answer is None:
                missing.append(name)
                continue
            self._known.move_to_end(key)
            if answer:
                found[name] = answer
        return found, missing

    def add(self, tenant: str, memory: Memory) -> None:
        """One more is filed: part of the answers that are known to its names."""
        for name in memory.names:
            answer = self._known.get((tenant, name))
            if answer is not None:
                self.keep((tenant, name), tuple(merged([memory], answer)))

    def keep(self, key: Key, answer: tuple[Memory, ...]) -> None:
        """Hold this answer, in place of an older one."""
        before = self._known.pop(key, ())
        self._known[key] = answer
        for memory in answer:
            count = self._held.get(memory.turn, 0)
            self._held[memory.turn] = count + 1
            self._size += 0 if count else _weight(memory)
        self._release(before)  # last: what stays is not weighed twice

    def drop(self, key: Key) -> None:
        """Let go of one."""
        self._release(self._known.pop(key, ()))

    def _release(self, answer: tuple[Memory, ...]) -> None:
        for memory in answer:
            count = self._held[memory.turn] - 1
            if count:
                self._held[memory.turn] = count
            else:
                del self._held[memory.turn]
                self._size -= _weight(memory)

    def evict(self) -> None:
        """Let go of the oldest until the limits hold."""
        entries, size = self._limits
        while self._known and (
            len(self._held) > entries or self._size > size or len(self._known) > entries * 8
        ):
            self.drop(next(iter(self._known)))

    def clear(self) -> None:
        """Let go of all."""
        self._known.clear()
        self._held.clear()
        self._size = 0


def merged(new: Sequence[Memory], old: Sequence[Memory]) -> list[Memory]:
    """What was found before, and what was filed since: the last first, each turn once."""
    turns = {memory.turn for memory in new}
    kept = (memory for memory in old if memory.turn not in turns)
    return [*reversed(new), *kept][:CANDIDATES]


def _weight(memory: Memory) -> int:
    return OVERHEAD + sum(len(thought.raw) + len(thought.text) for thought in memory.thoughts)

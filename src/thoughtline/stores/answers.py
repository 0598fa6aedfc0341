"""Whole answers to look-ups, held in memory: oldest out first, hits promoted.

An answer is everything filed under a name, also when that is nothing. The same turn stands in
several answers (it has several names) and is weighed once.
"""

from collections import OrderedDict

from thoughtline.memories import Memory

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

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def turns(self) -> int:
        """How many turns are held."""
        return len(self._held)

    def get(self, key: Key) -> tuple[Memory, ...] | None:
        """The answer, which is now the youngest; None when it is not known."""
        answer = self._known.get(key)
        if answer is not None:
            self._known.move_to_end(key)
        return answer

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


def _weight(memory: Memory) -> int:
    return OVERHEAD + sum(len(thought.raw) + len(thought.text) for thought in memory.thoughts)

"""A cache of complete answers to look-ups: least recently used out first.

An answer is everything that is filed under a key, also when that is nothing: half an answer could
hide that two conversations look alike. The same entry is part of several answers (it has several
keys) and is counted once. An answer that was read while something was written under its key may
lack that, so it is not cached: see `reading`.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from sys import getsizeof

from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.stores.base import Batch

CacheKey = tuple[str, bytes]
"""Tenant and look-up key."""

ENTRY_SIZE = 1_200
"""Bytes that an index entry costs beside its thoughts."""

THOUGHT_SIZE = 300
"""Bytes that a thought costs beside its texts."""

ANSWER_SIZE = 300
"""Bytes that an answer costs beside its entries, also when it is empty."""


def cache_keys(batch: Batch) -> list[CacheKey]:
    """Return the keys under which the entries of a batch are found."""
    return [(batch.tenant, key) for entry in batch.index for key in entry.keys]


class AnswerCache:
    """Answers by tenant and key, within limits of turns and of bytes."""

    def __init__(self, entries: int, size: int) -> None:
        self._limits = (entries, size)
        self._answers: OrderedDict[CacheKey, tuple[IndexEntry, ...]] = OrderedDict()
        self._uses: dict[int, int] = {}  # id of an entry → how many answers hold it
        self._turns: dict[str, IndexEntry] = {}  # by turn, one of those that answers hold
        self._size = 0
        self._reserved = 0  # bytes of the limit that are taken by something else
        self._readings = 0  # look-ups in the store that are running
        self._written: set[CacheKey] = set()  # keys that were written meanwhile
        self.version = 0  # rises with every `clear`

    def __bool__(self) -> bool:
        return bool(self._answers)

    @property
    def size(self) -> int:
        """About how many bytes of memory the answers take."""
        return self._size + ANSWER_SIZE * len(self._answers)

    @property
    def turns(self) -> int:
        """How many turns are cached."""
        return len(self._turns)

    def entries(self) -> Iterable[IndexEntry]:
        """Return one entry of each turn that is cached."""
        return self._turns.values()

    def find(
        self, tenant: str, keys: Sequence[bytes]
    ) -> tuple[dict[bytes, Sequence[IndexEntry]], list[bytes]]:
        """Return what is filed under these keys, and the keys whose answer is not cached."""
        found: dict[bytes, Sequence[IndexEntry]] = {}
        missing: list[bytes] = []
        for key in keys:
            cache_key = (tenant, key)
            answer = self._answers.get(cache_key)
            if answer is None:
                missing.append(key)
                continue
            self._answers.move_to_end(cache_key)
            if answer:
                found[key] = answer
        return found, missing

    def note_write(self, batch: Batch) -> None:
        """Note that a batch is being written, or was: running look-ups may not see it."""
        if self._readings:
            self._written.update(cache_keys(batch))

    def add(self, batch: Batch) -> None:
        """Add the entries of a batch to the answers that are cached under their keys."""
        for entry in batch.index:
            for key in entry.keys:
                answer = self._answers.get((batch.tenant, key))
                if answer is not None:
                    self._put_first((batch.tenant, key), entry, answer)

    def bound(self, reserved: int) -> None:
        """Evict until the limits hold; `reserved` bytes are used elsewhere."""
        self._reserved = reserved
        self._evict()

    def reading(self) -> "AnswerCache":
        """Note what is written during a look-up in the store, inside of a `with` block."""
        return self

    def __enter__(self) -> None:
        self._readings += 1

    def __exit__(self, *_: object) -> None:
        self._readings -= 1
        if not self._readings:
            self._written.clear()

    def written(self, tenant: str, keys: Iterable[bytes]) -> list[bytes]:
        """Return which of the keys were written while look-ups were running."""
        if not self._written:
            return []
        return [key for key in keys if (tenant, key) in self._written]

    def put(
        self,
        tenant: str,
        keys: Iterable[bytes],
        answer: Mapping[bytes, Sequence[IndexEntry]],
    ) -> None:
        """Cache what the store answered, but for the keys that were written since."""
        for key in keys:
            name = (tenant, key)
            if name not in self._written:
                self._put(name, answer.get(key, ()))
        self._evict()

    def clear(self) -> None:
        """Drop all answers, and those that are being read."""
        self._answers.clear()
        self._uses.clear()
        self._turns.clear()
        self._size = 0
        self.version += 1

    def _put(self, key: CacheKey, answer: Sequence[IndexEntry]) -> None:
        before = self._answers.pop(key, ())
        if not answer:
            self._answers[key] = ()
        else:
            shared = tuple([self._shared(entry) for entry in answer])
            self._answers[key] = shared
            for entry in shared:
                self._hold(entry)
        if before:
            self._release(before)  # last: an entry that stays is not counted twice

    def _put_first(self, key: CacheKey, entry: IndexEntry, answer: tuple[IndexEntry, ...]) -> None:
        """Put an entry before those of an answer: what stays is not counted again."""
        rest = tuple([old for old in answer if old.turn != entry.turn][: MAX_CANDIDATES - 1])
        gone = answer[len(rest) :] if answer[: len(rest)] == rest else None
        if gone is None:
            self._put(key, (entry, *rest))
            return
        entry = self._shared(entry)
        self._hold(entry)
        self._answers[key] = (entry, *rest)
        self._answers.move_to_end(key)
        self._release(gone)

    def _hold(self, entry: IndexEntry) -> None:
        number = id(entry)
        count = self._uses.get(number, 0)
        self._uses[number] = count + 1
        if not count:
            self._size += entry_size(entry)

    def _shared(self, entry: IndexEntry) -> IndexEntry:
        """Return the equal entry that is cached under another key, or this one."""
        known = self._turns.setdefault(entry.turn, entry)
        if known is entry or known == entry:
            return known
        self._turns[entry.turn] = entry
        return entry

    def _release(self, answer: tuple[IndexEntry, ...]) -> None:
        for entry in answer:
            number = id(entry)
            count = self._uses[number] - 1
            if count:
                self._uses[number] = count
            else:
                del self._uses[number]
                if self._turns.get(entry.turn) is entry:
                    del self._turns[entry.turn]
                self._size -= entry_size(entry)

    def _evict(self) -> None:
        """Drop the least recently used answers until the limits hold."""
        entries, size = self._limits
        while (answers := len(self._answers)) and (
            len(self._turns) > entries
            or self._size + ANSWER_SIZE * answers + self._reserved > size
            or answers > entries * 8
        ):
            self._release(self._answers.pop(next(iter(self._answers))))


def merged(new: Sequence[IndexEntry], old: Sequence[IndexEntry]) -> list[IndexEntry]:
    """Return what was found and what was filed since: the last filed first, each turn once."""
    turns = [entry.turn for entry in new]  # mostly one
    rest = [entry for entry in old if entry.turn not in turns]
    return [*reversed(new), *rest][:MAX_CANDIDATES]


def entry_size(entry: IndexEntry) -> int:
    """Return about how many bytes of memory an entry takes."""
    size = ENTRY_SIZE
    for thought in entry.thoughts:
        size += THOUGHT_SIZE + getsizeof(thought.raw) + getsizeof(thought.text)
    return size

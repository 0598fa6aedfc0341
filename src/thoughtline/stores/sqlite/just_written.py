"""The index entries that this process has just written: the next look-up needs no file.

The next request of a conversation looks for the turn before, which was written a moment ago. What
is filed under its keys is known, where the look-up before the write found nothing under them: one
entry, or those written since. It holds until another process writes, or until this one deletes,
erases, quarantines or files again; then the file is asked. A sealed file is always asked.

The writer's thread adds, event loops look: what was added is filed by the first that does.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter

from msgspec import Struct

from thoughtline.log.index import MAX_CANDIDATES, IndexEntry
from thoughtline.stores.answer_cache import ENTRY_SIZE, entry_size
from thoughtline.stores.row import STARTED, Row
from thoughtline.stores.sqlite.inserts import InsertBatch

MAX_TURNS = 256
MAX_BYTES = 1 << 20
"""How much is held: the turns that were written last."""

Key = tuple[str, bytes]
"""Tenant and look-up key."""

_type = attrgetter("type")


class _Written(Struct, frozen=True):
    """A row that was written."""

    tenant: str
    session: str
    turn: str
    entry: IndexEntry | None  # None: none is filed with it
    whole: bool  # the entry is all that a look-up finds of the turn
    refuses: bool  # it says that thoughts were refused
    size: int  # bytes of memory, about


class _Group(Struct, frozen=True):
    """What a transaction has written, and what was there before it."""

    inserts: Sequence[InsertBatch]
    names: set[Key]  # keys that had entries
    quarantined: set[str]  # turns that were refused
    size: int  # bytes of memory, about


class JustWritten:
    """Complete answers to look-ups, by tenant and key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._added: deque[_Group] = deque()  # not filed yet
        self._added_size = 0
        self._answers: dict[Key, Sequence[IndexEntry]] = {}
        self._turns: OrderedDict[tuple[str, str], tuple[Sequence[Key], int]] = OrderedDict()
        self._size = 0
        self._changes = 0  # of other processes, when these were written

    def add(
        self, inserts: Sequence[InsertBatch], changes: int, names: set[Key], quarantined: set[str]
    ) -> None:
        """Add what a transaction has written.

        `names` are the keys that had entries before, `quarantined` the turns that were
        refused before.
        """
        size = 0
        for insert in inserts:
            for row in insert.rows:
                size += ENTRY_SIZE + len(row.thoughts) + len(row.said)
        with self._lock:
            if changes != self._changes:
                self._clear()
                self._changes = changes
            self._added.append(_Group(inserts, names, quarantined, size))
            self._added_size += size
            while len(self._added) > MAX_TURNS or self._added_size > MAX_BYTES:
                self._added_size -= self._added.popleft().size
                self._clear_answers()  # they lack what was dropped

    def _file_added(self) -> None:
        for group in self._added:
            for insert in group.inserts:
                for row in insert.rows:
                    self._add(_written(insert, row, group.quarantined), group.names)
        self._added.clear()
        self._added_size = 0
        while self._turns and (len(self._turns) > MAX_TURNS or self._size > MAX_BYTES):
            self._drop(next(iter(self._turns)))

    def _add(self, row: _Written, names: set[Key]) -> None:
        turn = (row.session, row.turn)
        if row.refuses:
            self._clear_answers()
        elif turn in self._turns:
            names.update(self._drop(turn))  # more of the turn: the file puts it together
        elif row.entry is not None:
            self._file(row, row.entry, names)

    def _file(self, row: _Written, entry: IndexEntry, names: set[Key]) -> None:
        keys = list(zip(repeat(row.tenant), entry.keys))
        if not row.whole:  # the file puts it together, also for what is filed under its keys later
            names.update(keys)
            for key in keys:
                self._answers.pop(key, None)
            return
        for key in keys:
            if key in self._answers:
                self._answers[key] = (entry, *self._answers[key])[:MAX_CANDIDATES]
            elif key not in names:
                self._answers[key] = (entry,)
        self._turns[row.session, row.turn] = (keys, row.size)
        self._size += row.size

    def _drop(self, turn: tuple[str, str]) -> Sequence[Key]:
        """Drop what is filed under the keys of a turn; returns the keys."""
        keys, size = self._turns.pop(turn)
        self._size -= size
        for key in keys:
            self._answers.pop(key, None)
        return keys

    def find(
        self, tenant: str, keys: Iterable[bytes], changes: int
    ) -> tuple[dict[bytes, Sequence[IndexEntry]], list[bytes]]:
        """Return what is filed under these keys, and the keys that the file has to be asked for."""
        found: dict[bytes, Sequence[IndexEntry]] = {}
        missing: list[bytes] = []
        with self._lock:
            if self._added:
                self._file_added()
            answers: Mapping[Key, Sequence[IndexEntry]] = (
                self._answers if changes == self._changes else {}
            )
            for key in keys:
                answer = answers.get((tenant, key))
                if answer is None:
                    missing.append(key)
                else:
                    found[key] = list(answer)
        return found, missing

    def clear(self) -> None:
        """Forget everything: something is deleted, changed or filed again."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._added.clear()
        self._added_size = 0
        self._clear_answers()

    def _clear_answers(self) -> None:
        self._answers.clear()
        self._turns.clear()
        self._size = 0


def _written(insert: InsertBatch, row: Row, quarantined: set[str]) -> _Written:
    batch, entry = insert.batch, row.entry
    whole = entry is not None and row.turn not in quarantined and _is_whole(row, entry, insert)
    refuses = "quarantined" in map(_type, row.references)
    size = ENTRY_SIZE if entry is None else entry_size(entry)
    return _Written(batch.tenant, batch.session, row.turn, entry, whole, refuses, size)


def _is_whole(row: Row, entry: IndexEntry, insert: InsertBatch) -> bool:
    """Whether the turn starts in this row, with all the thoughts that its entry has."""
    if not row.kinds & STARTED:
        return False
    thoughts = row.reasoning
    if len(insert.rows) > 1:
        thoughts = sum([other.reasoning for other in insert.rows if other.turn == row.turn])
    return thoughts == len(entry.thoughts)

"""A batch that waits for a store that does not answer, and which of them are written next."""

import sys
from collections.abc import Collection, Iterable
from itertools import count, islice

from msgspec import Struct

from thoughtline.stores.answer_cache import CacheKey, cache_keys, entry_size
from thoughtline.stores.base import Batch
from thoughtline.stores.saver import SavedBatch

MAX_BATCHES = 64
MAX_BYTES = 4 << 20
"""What is written at once, at most; one batch may be larger."""

LOOKED_AT = 4 * MAX_BATCHES
"""How many batches are looked at for those that can be written at once."""

DRAFT_SIZE = 500
"""Bytes that a draft costs beside its data."""

_numbers = count()


class WaitingBatch(Struct, eq=False):
    """A batch that waits, in memory, in a file, or in both."""

    number: int
    size: int
    keys: list[CacheKey]
    session: str
    tenant: str
    parents: dict[str, str]  # turn → the turn that it continues
    held: float  # queued at (wall clock)
    batch: Batch | None = None
    saved: SavedBatch | None = None
    adopted: bool = False  # from another process, which may have written it


def describe(batch: Batch) -> WaitingBatch:
    """Return what is known of a batch that waits, without the batch."""
    size, keys = batch_size(batch), cache_keys(batch)
    parents = {entry.turn: entry.parent for entry in batch.index}
    return WaitingBatch(
        next(_numbers), size, keys, batch.session, batch.tenant, parents, batch.held
    )


def batch_size(batch: Batch) -> int:
    """Return about how many bytes of memory a batch takes."""
    data = sum([DRAFT_SIZE + sys.getsizeof(draft.data) for draft in batch.drafts])
    return data + sum([entry_size(entry) for entry in batch.index])


def next_to_write(
    waiting: Collection[WaitingBatch], refused: Collection[str] = ()
) -> list[WaitingBatch]:
    """Return what can be written at once of batches that wait, in order: one of each session.

    A store that cannot take one batch may take the next. Of two that belong to one session, the
    second is written when the first one is. Those of sessions that are refused come last, in the
    order in which they are given.
    """
    others = _at_once(item for item in waiting if item.session not in refused)
    if others or not refused:
        return others
    first: dict[str, WaitingBatch] = {}
    for item in waiting:
        first.setdefault(item.session, item)
    return _at_once(first[session] for session in refused if session in first)


def _at_once(waiting: Iterable[WaitingBatch]) -> list[WaitingBatch]:
    found: dict[str, WaitingBatch] = {}
    size = 0
    for item in islice(waiting, LOOKED_AT):
        if item.session in found:
            continue
        size += item.size
        if found and (size > MAX_BYTES or len(found) == MAX_BATCHES):
            break
        found[item.session] = item
    return list(found.values())

"""What was deleted lately, for batches that wait in another process meanwhile.

A deletion does not reach them: they are in that process's memory, or in its spill file. So it is
noted in a file beside the store, for its owner alone, and whoever writes a batch that had to wait
takes out of it what was deleted since. A store that several machines share notes it by itself.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from thoughtline.stores import rules
from thoughtline.stores.base import Batch, EntryFilter

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows: nothing waits in a file there)
    fcntl = None  # type: ignore[assignment]

PURGE, FORGET, ERASE = "purge", "forget", "erase"
KEPT = 30 * 86_400.0
"""Seconds for which a deletion is remembered: longer than any batch should wait."""


class NotedDeletion(Struct, frozen=True, array_like=True):
    """What was deleted: whole sessions, or thoughts that match a filter."""

    kind: str
    which: EntryFilter  # of a purge only its session and tenant
    at: float = 0.0

    def applied(self, batch: Batch) -> Batch | None:
        """Return what is left of a batch; None: nothing."""
        which = self.which
        if self.kind == FORGET:
            return rules.forget_in_batch(batch, which)[0]
        if self.kind == ERASE:
            return rules.erase_in_batch(batch, which)[0]
        meant = which.session in {None, batch.session} and which.tenant in {None, batch.tenant}
        return None if meant else batch


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(NotedDeletion).decode


class DeletionFile:
    """The deletions of all processes that have one store, in a file beside it."""

    def __init__(self, store: Path) -> None:
        self._path = store.with_name(f"{store.name}-deletions")

    def note(self, deletion: NotedDeletion) -> None:
        """Write a deletion down, and forget those of long ago; raises `OSError`."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(fd, "r+b") as file:
            if fcntl is not None:
                fcntl.flock(fd, fcntl.LOCK_EX)
            recent = [one for one in _read(file.read()) if one.at >= deletion.at - KEPT]
            file.seek(0)
            file.write(b"".join(_encode(one) + b"\n" for one in (*recent, deletion)))
            file.truncate()

    def since(self, moment: float) -> list[NotedDeletion]:
        """Return what was deleted since then, in order; raises `OSError`."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        return [deletion for deletion in _read(data) if deletion.at >= moment]


def _read(data: bytes) -> list[NotedDeletion]:
    """Return the deletions that can be read: a line may be cut."""
    found: list[NotedDeletion] = []
    for line in data.splitlines():
        with suppress(msgspec.MsgspecError):
            found.append(_decode(line))
    return found

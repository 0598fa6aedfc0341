"""The header of SQLite's WAL index: whether anything was committed, without asking SQLite.

The processes that have a file open share the index of its write-ahead log, `…-shm`, in memory. Its
header is rewritten by every commit of any process. While it reads the same, nothing was
committed: that costs a comparison of some bytes, where `PRAGMA data_version` costs a transaction
with four system calls. The header is only compared; what it means is SQLite's business.

A process that closes any descriptor of a file loses all locks that it has on it: those of SQLite
protect the log. So a descriptor that is opened here stays open until the index was deleted, which
SQLite does when it needs it no more.
"""

import mmap
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SIZE = 48
"""Bytes of the header."""
_BOTH = slice(0, 2 * _SIZE)
"""It stands there twice, and is read so: half a change is noticed."""
_VERSIONS = ((3007000).to_bytes(4, "little"), (3007000).to_bytes(4, "big"))
"""What it begins with: any other is not understood."""


class _Mapped(NamedTuple):
    """An index that was opened."""

    descriptor: int
    memory: mmap.mmap  # has a descriptor of its own


_lock = threading.Lock()
_mapped: dict[tuple[int, int], _Mapped] = {}  # by device and inode


class WalIndex:
    """The shared index of a database file that is open."""

    def __init__(self, file: Path) -> None:
        self._memory: mmap.mmap | bytes = b""
        with suppress(OSError, ValueError):  # there is none, or it cannot be mapped
            self._memory = _map(file.with_name(file.name + "-shm"))

    def header(self) -> bytes | None:
        """Return the header; None while it changes, and where there is none that is understood."""
        both = self._memory[_BOTH]
        whole = both[:_SIZE] == both[_SIZE:] and both.startswith(_VERSIONS)
        return both if whole else None

    def reads(self, header: bytes | None) -> bool:
        """Whether this header is still there."""
        return self._memory[_BOTH] == header


def _map(path: Path) -> mmap.mmap:
    """Map an index, once for all who ask."""
    with _lock:
        found = path.stat()
        place = found.st_dev, found.st_ino
        if place not in _mapped:
            descriptor = os.open(path, os.O_RDONLY)
            memory = mmap.mmap(descriptor, 2 * _SIZE, access=mmap.ACCESS_READ)
            _mapped[place] = _Mapped(descriptor, memory)
        return _mapped[place].memory


def unmap_deleted() -> None:
    """Close the indexes that SQLite has deleted."""
    with _lock:
        for place, one in list(_mapped.items()):
            with suppress(OSError):  # a program that closes all descriptors has closed this one
                found = os.fstat(one.descriptor)
                if (found.st_dev, found.st_ino) != place:
                    continue  # and has opened something else under its number
                if not found.st_nlink:
                    del _mapped[place]
                    os.close(one.descriptor)

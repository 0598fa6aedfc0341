"""Files beside a store for the batches that it could not take: they survive the process.

A file has one batch per line, after a checksum, and is only appended to. Its owner holds a lock on
it; when the process has died, the next one that opens the store adopts the file. A line that was
cut or damaged is skipped and counted. The file is for its owner alone, since thoughts are private;
a process that has keys seals each line, with a master key, whose id stands before it.
A line survives the death of the process, not a power cut: it is not flushed to the disk.
"""

import base64
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from thoughtline.errors import SealError
from thoughtline.stores.base import Batch

if TYPE_CHECKING:
    from thoughtline.stores.sealing.keychain import Keychain

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows: what waits is in memory only)
    fcntl = None  # type: ignore[assignment]

_decoder = msgspec.json.Decoder(Batch)
_CHECKSUM = 9  # characters, with the space after it
_BLANK = b"-"  # begins a line whose batch was erased
_SEALED = b"@"  # begins, after the checksum, a batch that is sealed


class Line(NamedTuple):
    """Where a batch is in its file."""

    offset: int
    length: int


class SpillFile:
    """A file of batches, locked by this process."""

    def __init__(self, path: Path, fd: int, keychain: "Keychain | None" = None) -> None:
        self.path = path
        self._keychain = keychain
        self.damaged = 0  # lines that cannot be read
        self._fd = fd
        self._end = os.fstat(fd).st_size

    @classmethod
    def create(cls, store: Path, keychain: "Keychain | None" = None) -> "SpillFile":
        """Create a file beside a store."""
        if fcntl is None:
            raise OSError("this system has no locks for a file to keep them in")
        while True:
            path = store.with_name(f"{store.name}-spill-{time.time_ns():020}")
            try:
                return cls(path, _open_new(path), keychain)
            except FileExistsError:
                continue

    def append(self, batch: Batch) -> Line:
        """Write a batch at the end; raises `OSError` and leaves no half of it."""
        line = _encode(batch, self._keychain)
        try:
            _write(self._fd, line, self._end)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise
        place = Line(self._end, len(line))
        self._end += len(line)
        return place

    def read(self, line: Line) -> Batch:
        """Return a batch that was here already; raises `ValueError` when its line is damaged."""
        text = os.pread(self._fd, line.length, line.offset)
        try:
            return _decode(text, self._keychain)
        except SealError as error:  # the key is there: it was altered since
            raise ValueError(str(error)) from error

    def scan(self) -> Iterator[tuple[Line, Batch]]:
        """Yield the batches that can be read, in order; raises `SealError` if a key is missing."""
        offset = 0
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            for text in file:
                line = Line(offset, len(text))
                offset += len(text)
                if text.startswith(_BLANK):
                    continue
                try:
                    batch = _decode(text, self._keychain)
                except ValueError:
                    self.damaged += 1
                    continue
                yield line, batch

    def replace(self, line: Line, batch: Batch | None) -> Line:
        """Overwrite a batch with another one, or with nothing; returns where that is.

        It stays in its place if it fits there.
        """
        text = _encode(batch, self._keychain, line.length) if batch is not None else b""
        if batch is not None and len(text) > line.length:
            new = self.append(batch)
            self.replace(line, None)
            return new
        _write(self._fd, text or _BLANK * (line.length - 1) + b"\n", line.offset)
        return line

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Leave the file to the process that opens the store next."""
        fd, self._fd = self._fd, -1
        os.close(fd)


def adopt(store: Path, keychain: "Keychain | None" = None) -> list[SpillFile]:
    """Return the files that dead processes have left beside a store, the oldest first."""
    files: list[SpillFile] = []
    if fcntl is None:
        return files
    for path in sorted(store.parent.glob(f"{store.name}-spill-" + "[0-9]" * 20)):
        fd = os.open(path, os.O_RDWR)
        if _lock(fd) and os.fstat(fd).st_nlink:
            files.append(SpillFile(path, fd, keychain))
        else:
            os.close(fd)
    return files


def count_waiting(store: Path) -> int:
    """Return how many batches wait in files beside a store."""
    count = 0
    for path in store.parent.glob(f"{store.name}-spill-" + "[0-9]" * 20):
        with suppress(OSError), path.open("rb") as file:
            count += sum(not line.startswith(_BLANK) for line in file)
    return count


def _open_new(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    if not _lock(fd):  # somebody took it for one that was left
        os.close(fd)
        raise FileExistsError(path)
    return fd


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _write(fd: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written


def sealed_with(store: Path) -> set[str]:
    """Return the ids of the keys that lines of files beside a store are sealed with."""
    ids: set[str] = set()
    for path in store.parent.glob(f"{store.name}-spill-" + "[0-9]" * 20):
        with suppress(OSError), path.open("rb") as file:
            lines = (line[_CHECKSUM:] for line in file if not line.startswith(_BLANK))
            ids |= {_key_id(line) for line in lines if line.startswith(_SEALED)}
    return ids


def _encode(batch: Batch, keychain: "Keychain | None", length: int = 0) -> bytes:
    """Return the line of a batch, filled up to a length."""
    text = msgspec.json.encode(batch)
    if keychain is not None and keychain.seals:
        id, sealed = keychain.seal_line(text)
        text = b"%b%b %b" % (_SEALED, id.encode(), base64.b64encode(sealed))
    text = text.ljust(length - _CHECKSUM - 1)
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _decode(line: bytes, keychain: "Keychain | None") -> Batch:
    text = line[_CHECKSUM:-1]
    if line[-1:] != b"\n" or line[:_CHECKSUM] != b"%08x " % zlib.crc32(text):
        raise ValueError("a line of the file is cut or damaged")
    if text.startswith(_SEALED):
        id = _key_id(text)
        if keychain is None:
            raise SealError(
                f"turns that wait beside the store are sealed with the key {id}; set `store.keys`"
            )
        text = keychain.open_line(id, base64.b64decode(text[len(id) + 2 :]))
    return _decoder.decode(text)


def _key_id(text: bytes) -> str:
    return text[len(_SEALED) :].partition(b" ")[0].decode()

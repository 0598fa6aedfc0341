"""Reads the ring from where `store.keys` says, and writes it where that is a file.

A command prints the ring, so that a key service or a vault needs no library here. A new key is
put at the end of a file.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from thoughtline.errors import SealError, StoreError
from thoughtline.stores.sealing.ring import KeyRing, MasterKey
from thoughtline.stores.secret_sources import is_source, read_source

try:
    import fcntl
except ImportError:  # pragma: no cover (Windows)
    fcntl = None  # type: ignore[assignment]

_HEAD = """\
# Master keys of a Thoughtline store, one ID:KEY per line.
# Whoever has them can read what is stored; without them nobody can, you included.
# Keep a copy elsewhere, and not beside the backups of the store.
"""


def read_ring(source: str, env: Mapping[str, str]) -> KeyRing:
    """Read the ring that a source names; raises `SealError`, which never quotes a key."""
    try:
        text = read_source(source, env).decode()
        return KeyRing.parse(text)
    except UnicodeDecodeError:
        raise SealError(f"`store.keys` ({source}): that is not text") from None
    except StoreError as error:
        named = source if is_source(source) else "what it says"  # which may be a key itself
        raise SealError(f"`store.keys` ({named}): {error}") from None


def key_file(source: str) -> Path | None:
    """Return the file of a source; None for another kind."""
    return Path(source.removeprefix("file:").strip()) if source.startswith("file:") else None


def add_key(path: Path, key: MasterKey) -> None:
    """Add a key to a file, which is made for this user alone if it is not there."""
    with _alone(path):
        before = path.read_text("utf-8") if path.exists() else _HEAD
        if not before.endswith("\n"):
            before += "\n"
        _replace(path, f"{before}{key.line()}\n")


def remove_key(path: Path, id: str) -> None:
    """Take a key out of a file; what else stands there stays."""
    word = re.compile(rf"(?<!\S){re.escape(id)}:\S+[^\S\n]*")
    with _alone(path):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        _replace(path, "".join(word.sub("", line) for line in lines))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let nobody else change a file meanwhile: of two keys that are added at once, none is lost."""
    if fcntl is None:
        yield
        return
    try:
        folder = os.open(path.resolve().parent, os.O_RDONLY)
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        os.fsync(folder)  # or a power cut could bring the older file back
    finally:
        os.close(folder)


def _replace(path: Path, text: str) -> None:
    """Replace a file as a whole, so that nobody ever reads half of it.

    Whose it is, and which group may read it, stays: it may be that of a service.
    """
    path = path.resolve()
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            if path.exists() and os.name == "posix":
                before = path.stat()
                with suppress(PermissionError):
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                    os.fchmod(file.fileno(), before.st_mode & 0o640)
        draft.replace(path)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> SealError:
    return SealError(
        f"the key file {path} cannot be written ({error.strerror or error}); see that this user "
        "may write there"
    )

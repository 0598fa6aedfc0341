"""The secret behind keyed hashes: 32 random bytes in a file that only its user may read.

Tenants and accounts are known by hashes under this key, so that nobody who sees the store can try
credentials against it. It is made once and must stay: under another key, nothing that is stored
would be found again. It lies beside the SQLite file, else in the user's data folder.
"""

import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from thoughtline.errors import SettingsError
from thoughtline.settings.sources import user_folder

SIZE = 32
NAME = "thoughtline.secret"


def place(store_url: str, env: Mapping[str, str]) -> Path | None:
    """Where the secret of this store lies; None for one that keeps nothing."""
    address = store_url.partition("?")[0]
    if address.startswith("memory:"):
        return None
    path = address.removeprefix("sqlite:///")
    if path != address:
        return Path(path).with_suffix(".secret")
    return user_folder("data", env) / NAME


def secret(path: Path | None) -> bytes:
    """The secret in this file, which is made if it is not there; without a file, a fresh one."""
    if path is None:
        return secrets.token_bytes(SIZE)
    try:
        if not path.exists():
            _make(path)
        _close(path)
        found = path.read_bytes()
    except OSError as error:
        raise SettingsError(
            f"the secret {path} cannot be read or made ({error.strerror or error}); see that this "
            "user may write there, or choose another place with `store.url`"
        ) from error
    if len(found) != SIZE:
        raise SettingsError(
            f"the secret {path} has {len(found)} bytes, expected {SIZE}; put back the file that "
            "belongs there, or remove it to begin anew (what is stored will not be found again)"
        )
    return found


def _make(path: Path) -> None:
    """Write it whole, or find that another process was faster."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # 0600, as it is made
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        _put(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)


def _put(made: Path, path: Path) -> None:
    try:
        os.link(made, path)
    except FileExistsError:
        return
    except OSError:  # a disk without links
        made.rename(path)


def _close(path: Path) -> None:
    """A secret that others may read (a copy, a restored backup) is none."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        with suppress(PermissionError):
            path.chmod(0o600)

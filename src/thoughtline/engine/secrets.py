"""The secret behind keyed hashes: 32 random bytes in a file that only its user may read.

Tenants and accounts are known by hashes under this key, so that nobody who sees the store can try
credentials against it. It is made once and must stay: under another key, nothing that is stored
would be found again. It lies beside the SQLite file. Machines that share a store share the secret:
it comes from where `store.secret` says, and is never made up.
"""

import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from thoughtline.engine.folders import store_file, user_folder
from thoughtline.errors import SettingsError, StoreError
from thoughtline.stores import is_shared
from thoughtline.stores.secret_sources import read_source

SIZE = 32
NAME = "thoughtline.secret"
VARIABLE = "THOUGHTLINE_STORE__SECRET"
"""The variable of the setting `store.secret`, for programs that read no settings."""


class CredentialHash:
    """Hashes credentials with a secret key, for names of tenants and accounts."""

    def __init__(self, secret: bytes) -> None:
        self._keyed = blake2b(key=secret[:64], digest_size=16)
        self._named = blake2b(key=secret[:64], digest_size=16, person=b"identity")

    def __call__(self, credential: str) -> str:
        """The keyed hash of a credential; empty for no credential."""
        if not credential:
            return ""
        made = self._keyed.copy()
        made.update(credential.encode())
        return made.hexdigest()

    def identity(self, *parts: str) -> str:
        """The keyed hash of what names an account; no credential has the same."""
        made = self._named.copy()
        for part in parts:
            data = part.encode()
            made.update(b"%d " % len(data))
            made.update(data)
        return made.hexdigest()


def store_secret(store_url: str, env: Mapping[str, str], source: str = "") -> bytes:
    """The secret of a store: from its source, else a file that is made on first use.

    A store that keeps nothing has a fresh one. Raises `SettingsError` for a shared store without a
    source: each machine would make up its own, and none would find what another wrote.
    """
    source = source or env.get(VARIABLE, "")
    if source and not store_url.startswith("memory:"):
        return _given_secret(source, env)
    if is_shared(store_url):
        raise SettingsError(
            "a store that machines share needs a secret that they share: set `store.secret` to "
            "env:NAME, file:PATH or exec:COMMAND, which give 64 hexadecimal digits (`openssl rand "
            "-hex 32`), the same on every machine"
        )
    return secret(place(store_url, env))


def fingerprint(secret: bytes) -> bytes:
    """What shows that two secrets are the same, and nothing else about them."""
    return blake2b(key=secret[:64], digest_size=16, person=b"fingerprint").digest()


def _given_secret(source: str, env: Mapping[str, str]) -> bytes:
    try:
        found = read_source(source, env)
    except StoreError as error:
        raise SettingsError(f"`store.secret`: {error}") from error
    if len(found) == SIZE:  # the file of a SQLite store
        return found
    try:
        made = bytes.fromhex(found.decode().strip())
    except ValueError:
        made = b""
    if len(made) != SIZE:
        raise SettingsError(
            f"`store.secret` ({source.partition(':')[0]}) gives {len(found)} bytes that are no "
            "secret; expected 64 hexadecimal digits, as `openssl rand -hex 32` prints them, or the "
            "32 bytes of a SQLite store's .secret file"
        )
    return made


def place(store_url: str, env: Mapping[str, str]) -> Path | None:
    """Where the secret of this store lies; None for one that keeps nothing."""
    if store_url.startswith("memory:"):
        return None
    file = store_file(store_url)
    return file.with_suffix(".secret") if file else user_folder("data", env) / NAME


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
            f"the secret file {path} cannot be read or created ({error.strerror or error}); see "
            "that this user may write there, or keep the store in another folder"
        ) from error
    if len(found) != SIZE:
        raise SettingsError(
            f"the secret file {path} has {len(found)} bytes, expected {SIZE}; put back the "
            "file that belongs there, or remove it to start again (what is stored is lost then)"
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

"""Under which name a credential is known: a keyed hash, never the credential.

The key is a secret of 32 bytes in a file beside the SQLite file, or in the user's data folder: the
same file that a gateway on this store uses, so that both know an account by the same name. It is
made on first use and readable by its user alone. A store that keeps nothing has a fresh one.
"""

import os
import secrets
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from thoughtline.errors import SettingsError
from thoughtline.settings.sources import user_folder

SIZE = 32
NAME = "thoughtline.secret"


def fingerprint(secret: bytes, credential: str) -> str:
    """The keyed hash of a credential; nothing for no credential."""
    if not credential:
        return ""
    return blake2b(credential.encode(), key=secret[:64], digest_size=16).hexdigest()


def secret(store_url: str, env: Mapping[str, str]) -> bytes:
    """The secret of a store; raises `SettingsError` where it can be neither read nor made."""
    address = store_url.partition("?")[0]
    if address.startswith("memory:"):
        return secrets.token_bytes(SIZE)
    path = address.removeprefix("sqlite:///")
    file = Path(path).with_suffix(".secret") if path != address else _shared(env)
    try:
        found = file.read_bytes() if file.exists() else _made(file)
    except OSError as error:
        raise SettingsError(
            f"the secret {file} cannot be read or made ({error.strerror or error}); see that this "
            "user may write there, or give one with `secret=`"
        ) from error
    if len(found) != SIZE:
        raise SettingsError(
            f"the secret {file} has {len(found)} bytes, expected {SIZE}; put back the file that "
            "belongs there, or remove it to begin anew"
        )
    return found


def _shared(env: Mapping[str, str]) -> Path:
    return user_folder("data", env) / NAME


def _made(file: Path) -> bytes:
    """A new secret; if another process was faster, its own counts."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    draft.touch(mode=0o600)
    draft.write_bytes(secrets.token_bytes(SIZE))
    try:
        os.link(draft, file)  # whole or not at all, and never over another one
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return file.read_bytes()

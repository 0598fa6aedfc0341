"""Where the ring is read from: `file:PATH`, `env:NAME` or `exec:COMMAND`.

A command prints the ring, so that a key service or a vault needs no library of ours; it is run
without a shell. Only a file is ever written: a new key is put at its end.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from thoughtline.errors import SealError
from thoughtline.stores.sealing import EXPECTED, is_source
from thoughtline.stores.sealing.ring import KeyRing, MasterKey

COMMAND_SECONDS = 30.0
_HEAD = """\
# Master keys of a Thoughtline store, one ID:KEY per line.
# Whoever has them can read what is stored; without them nobody can, you included.
# Keep a copy elsewhere, and not beside the backups of the store.
"""


def read_ring(source: str, env: Mapping[str, str]) -> KeyRing:
    """Read the ring that a source names; raises `SealError`, which never quotes a key."""
    if not is_source(source):
        raise SealError(f"`store.keys` does not say where the keys are; {EXPECTED}")
    kind, _, rest = source.partition(":")
    rest = rest.strip()
    match kind:
        case "file":
            text = _read_file(Path(rest))
        case "env":
            text = env.get(rest, "")
            if not text.strip():
                raise SealError(
                    f"the keys are to be read from the variable {rest}, which is not set; set it, "
                    "or change `store.keys`"
                )
        case _:
            text = _run(rest)
    try:
        return KeyRing.parse(text)
    except SealError as error:
        raise SealError(f"`store.keys` ({source}): {error}") from None


def key_file(source: str) -> Path | None:
    """Return the file of a source; None for another kind."""
    return Path(source.removeprefix("file:").strip()) if source.startswith("file:") else None


def add_key(path: Path, key: MasterKey) -> None:
    """Add a key to a file, which is made for this user alone if it is not there."""
    before = path.read_text("utf-8") if path.exists() else _HEAD
    if not before.endswith("\n"):
        before += "\n"
    _replace(path, f"{before}{key.line()}\n")


def remove_key(path: Path, id: str) -> None:
    """Take a key out of a file; what else stands there stays."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    _replace(
        path, "".join(re.sub(rf"(?<!\S){re.escape(id)}:\S+[^\S\n]*", "", line) for line in lines)
    )


def _replace(path: Path, text: str) -> None:
    """Replace a file as a whole, so that nobody ever reads half of it."""
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise SealError(
            f"the key file {path} cannot be written ({error.strerror or error}); see that this "
            "user may write there"
        ) from error


def _read_file(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise SealError(
            f"the key file {path} is not there; put it back, or correct `store.keys`. Without it "
            "nothing that is sealed can be read"
        ) from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise SealError(f"the key file {path} cannot be read ({reason})") from error
    if os.name == "posix" and path.stat().st_mode & 0o077:
        with suppress(PermissionError):  # a copy, a restored backup
            path.chmod(0o600)
    return text


def _run(command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 (the operator's own command)
            shlex.split(command),
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            why = f"ended with {done.returncode}" + (f" ({said[-1][:200]})" if said else "")
            raise SealError(f"the command of `store.keys` {why}; it has to print the ring")
        return done.stdout.decode()
    except subprocess.TimeoutExpired:
        raise SealError(
            f"the command of `store.keys` gave no answer within {COMMAND_SECONDS:g} s"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SealError(f"the command of `store.keys` cannot be run ({reason})") from error

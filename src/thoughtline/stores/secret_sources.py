"""Reads a secret from where a setting says: `file:PATH`, `env:NAME` or `exec:COMMAND`.

A command prints the secret, so that a vault needs no library of ours; it is run without a shell.
"""

import os
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from thoughtline.errors import StoreError

KINDS = ("file:", "env:", "exec:")
EXPECTED = "expected file:PATH, env:NAME or exec:COMMAND"
COMMAND_SECONDS = 30.0


def is_source(text: str) -> bool:
    """Whether a text says where a secret is."""
    return any(text.startswith(kind) and text.removeprefix(kind).strip() for kind in KINDS)


def read_source(source: str, env: Mapping[str, str]) -> bytes:
    """Return what is there; raises `StoreError`, which never quotes it."""
    if not is_source(source):
        raise StoreError(f"it does not say where the secret is; {EXPECTED}")
    kind, _, rest = source.partition(":")
    rest = rest.strip()
    if kind == "file":
        return _read_file(Path(rest))
    if kind == "env":
        if not env.get(rest, "").strip():
            raise StoreError(f"the variable {rest} is not set")
        return env[rest].encode()
    return _run(rest)


def _read_file(path: Path) -> bytes:
    try:
        found = path.read_bytes()
        if os.name == "posix" and path.stat().st_mode & 0o077:
            with suppress(PermissionError):  # a copy, a restored backup
                path.chmod(0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error})") from error
    return found


def _run(command: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 (the operator's own command)
            shlex.split(command),
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise StoreError(f"the command gave no answer within {COMMAND_SECONDS:g} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"the command cannot be run ({reason})") from error
    if done.returncode:
        raise StoreError(f"the command ended with {done.returncode}; it has to print the secret")
    return done.stdout

"""Reads a secret from where a setting says: `file:PATH`, `env:NAME` or `exec:COMMAND`.

A command prints the secret, so that a vault needs no library here; it is run without a shell.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from thoughtline.errors import StoreError

KINDS = ("file:", "env:", "exec:")
EXPECTED = "expected file:PATH, env:NAME or exec:COMMAND"
COMMAND_SECONDS = 30.0
MAX_BYTES = 1 << 20
"""What a command may print."""


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
        # A copy or a restored backup; whoever let only a group read it has meant that.
        if os.name == "posix" and path.stat().st_mode & 0o007:
            with suppress(OSError):  # somebody else's, or on a disk that is only read
                path.chmod(0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error})") from error
    return found


def _run(command: str) -> bytes:
    try:
        with subprocess.Popen(  # noqa: S603 (the operator's own command)
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # what it complains about goes where ours does
            start_new_session=True,
        ) as running:
            try:
                found = _first_bytes(running, time.monotonic() + COMMAND_SECONDS)
            finally:
                _end(running)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"the command cannot be run ({reason})") from error
    if running.returncode:
        raise StoreError(f"the command ended with {running.returncode}; it has to print the secret")
    return found


def _first_bytes(running: "subprocess.Popen[bytes]", until: float) -> bytes:
    """Return what a command prints, once it has ended and if that is not too much."""
    assert running.stdout is not None  # noqa: S101 (it is a pipe)
    os.set_blocking(running.stdout.fileno(), False)
    found = b""
    while time.monotonic() < until:
        some: bytes | None = running.stdout.read(MAX_BYTES + 1 - len(found))
        found += some or b""
        if len(found) > MAX_BYTES:
            raise StoreError(
                f"the command prints more than {MAX_BYTES >> 10} KB, which is not a secret"
            )
        if some == b"":  # the end
            with suppress(subprocess.TimeoutExpired):
                running.wait(max(until - time.monotonic(), 0.0))
                return found
        if not some:
            time.sleep(0.005)
    raise StoreError(f"the command gave no answer within {COMMAND_SECONDS:g} s")


def _end(running: "subprocess.Popen[bytes]") -> None:
    """End a command that still runs, with what it has started."""
    if running.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, signal.SIGKILL)

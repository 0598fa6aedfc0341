"""The gateway in the background: one for each port of a user, with a file that is also its lock.

The lock is the system's and is held by the gateway's supervisor. Whatever ends that, the lock is
free again: a file that was left behind is never taken for a gateway, nor another process for it.
It is handed on from the command that starts the gateway, so two that do so at once get the same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from thoughtline.cli.local_gateway import ask
from thoughtline.engine.folders import user_folder
from thoughtline.errors import SettingsError, WireError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

START_SECONDS = 30.0
KEPT_LOGS = 3
"""Full logs that are put aside; older ones are deleted."""
_PAUSE = 0.05


class GatewayState(Struct, frozen=True, kw_only=True):
    """What a supervisor says about its gateway."""

    url: str = ""  # empty: it does not listen yet
    pid: int = 0  # of the supervisor
    version: str = ""
    started: float = 0.0
    store: str = ""
    trouble: str = ""  # why its store did not answer when it started
    error: str = ""  # what it said before it ended, where it could not start


class BackgroundGateway:
    """The one for a port; port 0 has one as well, at whichever port was free."""

    def __init__(self, port: int, env: Mapping[str, str]) -> None:
        folder = user_folder("state", env)
        self.file = folder / f"gateway-{port}.json"
        self.log = folder / f"gateway-{port}.log"

    def state(self) -> GatewayState | None:
        """What runs, or is about to; None: nothing."""
        return self._read() if self._is_locked() else None

    def ensure(self, arguments: Sequence[str] = ()) -> tuple[GatewayState, bool]:
        """The gateway that runs, and whether it was started now, with these arguments of `serve`.

        Raises `WireError` where it does not start.
        """
        until, started = time.monotonic() + START_SECONDS, False
        while (left := until - time.monotonic()) > 0:
            started = started or self._start(arguments)
            state = self._read()
            if state.url and ask(f"{state.url}/health", timeout=left) is not None:
                return state, started
            if started and not self._is_locked():
                break
            time.sleep(_PAUSE)
        why = "ended at once" if started and not self._is_locked() else "was not ready in time"
        raise WireError(
            f"the gateway {why}; `thoughtline doctor` says what is wrong. "
            f"It said:\n{self._read().error or f'(see {self.log})'}"
        )

    def stop(self, state: GatewayState, seconds: float) -> bool:
        """End it, open streams first; whether it ended by itself within this time."""
        until = time.monotonic() + seconds
        with suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        while self._is_locked() and time.monotonic() < until:
            time.sleep(_PAUSE)
        if not self._is_locked():
            return True
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(state.pid), signal.SIGKILL)
        return False

    def _start(self, arguments: Sequence[str]) -> bool:
        """Start a supervisor, which holds the lock from now on; False: somebody has it already."""
        if fcntl is None:
            raise SettingsError(
                "this system has no locks as a gateway in the background needs them; "
                "run `thoughtline serve` in a window of its own"
            )
        self._make_folder()
        lock = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(lock, 0)
            command = [sys.executable, "-m", "thoughtline.cli.supervisor", str(lock)]
            subprocess.run(  # noqa: S603 (ourselves)
                [*command, str(self.log), *arguments],
                check=True,
                pass_fds=(lock,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # neither Ctrl-C nor a closed terminal is for it
            )
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True

    def _make_folder(self) -> None:
        folder = self.file.parent
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"{folder}, where the state of a gateway in the background belongs, cannot be made "
                f"({error.strerror or error}); name another folder in XDG_STATE_HOME"
            ) from error

    def _is_locked(self) -> bool:
        try:
            file = os.open(self.file, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def _read(self) -> GatewayState:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=GatewayState)
        except (FileNotFoundError, msgspec.DecodeError):
            return GatewayState()  # it is just starting


def other_gateways(env: Mapping[str, str], port: int) -> list[GatewayState]:
    """Those of this user that run in the background for other ports."""
    own = BackgroundGateway(port, env).file
    found = []
    for file in sorted(user_folder("state", env).glob("gateway-*.json")):
        number = file.stem.partition("-")[2]
        if file != own and number.isdecimal():
            state = BackgroundGateway(int(number), env).state()
            found += [state] if state else []
    return found


def write_state(lock: int, state: GatewayState) -> None:
    """Say what runs, to all who look into the file of this lock."""
    text = msgspec.json.encode(state)
    os.ftruncate(lock, 0)
    os.pwrite(lock, text, 0)


def log_files(log: Path) -> list[Path]:
    """The log with the ones that were put aside, the oldest first."""
    kept = [log.with_name(f"{log.name}.{number}") for number in range(KEPT_LOGS, 0, -1)]
    return [file for file in [*kept, log] if file.exists()]

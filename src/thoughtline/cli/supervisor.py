"""Supervises the gateway in the background: keeps its log, and starts it again if it crashes.

It is a process of its own that does nothing else. The gateway ends with it, because its standard
input is closed then, also by `kill -9`.

    python -m thoughtline.cli.supervisor LOCK LOG [ARGUMENTS OF SERVE]
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import thoughtline
from thoughtline.cli.background import KEPT_LOGS, GatewayState, write_state

SUPERVISED = "THOUGHTLINE_INTERNAL_SUPERVISED"
"""The variable that tells a gateway to end when its standard input does."""
MAX_LOG = 5 << 20
"""Bytes of a log before it is put aside."""
CRASHES = 5
"""Crashes within a minute after which the gateway is not started again."""
_ASKED = (0, -signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 130)
"""How a gateway ends that was asked to."""
_TAIL = 2000


class LogFile:
    """A file for lines; a full one is put aside, and the oldest of those deleted."""

    def __init__(self, path: Path, max_bytes: int = MAX_LOG) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def write(self, line: bytes) -> None:
        """Add a line; one that the disk does not take is lost, and nothing else is."""
        try:
            if self._path.exists() and self._path.stat().st_size + len(line) > self._max_bytes:
                self._rotate()
            self._path.touch(0o600)
            with self._path.open("ab") as file:
                file.write(line)
        except OSError:
            return

    def _rotate(self) -> None:
        for number in range(KEPT_LOGS, 0, -1):
            newer = self._numbered(number - 1) if number > 1 else self._path
            if newer.exists():
                newer.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class Supervisor:
    """One gateway, for as long as nobody ends it."""

    def __init__(self, lock: int, log: LogFile, command: Sequence[str]) -> None:
        self._lock = lock
        self._log = log
        self._command = list(command)
        self._state = GatewayState(pid=os.getpid(), started=time.time())
        self._tail: deque[bytes] = deque(maxlen=40)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> int:
        """Returns when the gateway has ended for good; the exit code."""
        crashes: deque[float] = deque(maxlen=CRASHES)
        while True:
            code = self._run_once()
            if self._stopping or code in _ASKED:
                return 0
            if not self._state.url:
                said = b"".join(self._tail).decode("utf-8", "replace").strip()
                write_state(self._lock, GatewayState(error=said[-_TAIL:]))
                return 1
            crashes.append(time.monotonic())
            if len(crashes) == CRASHES and crashes[-1] - crashes[0] < 60:
                self._say("the gateway crashed too often and is not started again", code)
                return 1
            self._say("the gateway crashed and is started again", code)

    def _run_once(self) -> int:
        with subprocess.Popen(  # noqa: S603 (ourselves)
            self._command,
            env={**os.environ, SUPERVISED: "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as self._process:
            if self._stopping:  # asked before there was a process to ask
                self._process.terminate()
            for line in self._process.stdout or ():
                self._log.write(line)
                if not self._state.url:
                    self._tail.append(line)
                    self._announce(line)
            return self._process.wait()

    def _announce(self, line: bytes) -> None:
        """Say where the gateway listens, once it does; started again, it listens there, too."""
        try:
            said = json.loads(line)
            self._state = GatewayState(
                url=said["url"],
                pid=self._state.pid,
                version=thoughtline.__version__,
                started=self._state.started,
                store=said["store"],
                trouble=said.get("trouble", ""),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return
        self._command += ["--port", self._state.url.rpartition(":")[2]]
        write_state(self._lock, self._state)

    def _say(self, event: str, code: int) -> None:
        line = {"time": _now(), "level": "error", "event": event, "exit_code": code}
        self._log.write(json.dumps(line).encode() + b"\n")

    def stop(self, number: int, _: object) -> None:
        """End the gateway, and then this; a handler of signals."""
        self._stopping = True
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def main(arguments: Sequence[str]) -> int:
    """Supervise in a process that has nothing to do any more with the one that started it."""
    lock, log, *flags = arguments
    if os.fork():
        os._exit(0)
    command = [sys.executable, "-m", "thoughtline", "serve", "--json", *flags]
    supervisor = Supervisor(int(lock), LogFile(Path(log)), command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.stop)
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Command-line programs from npm, each run in a home and a folder of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from support.waiting import until

HERE = Path(__file__).parent / "node"
MODULES = Path(os.environ.get("E2E_NODE_MODULES", HERE / "node_modules"))


class Program:
    """One program, run without a terminal; what it remembers lasts as long as this object."""

    def __init__(self, name, tmp_path, **env):
        self._command = MODULES / ".bin" / name
        if not self._command.exists():
            pytest.skip(f"{name} is not installed; `make clients` installs it")
        self.home, self.folder = tmp_path / "home", tmp_path / "work"
        self.home.mkdir()
        self.folder.mkdir()
        path = f"{MODULES / '.bin'}{os.pathsep}{os.environ['PATH']}"  # its own version of node
        self.env = {**os.environ, "HOME": str(self.home), "PATH": path, **env}

    def __call__(self, *arguments):
        """What it prints; it must not fail."""
        with self._started(arguments) as process:
            try:
                printed, said = process.communicate(timeout=120)
            finally:
                process.kill()
        assert process.returncode == 0, printed[-2000:] + said[-2000:]
        return printed

    def until(self, happened, *arguments):
        """Run it until something has happened, and kill it then."""
        with self._started(arguments) as process:
            until(lambda: happened() or process.poll() is not None)
            process.kill()
            process.communicate(timeout=60)
        assert happened()

    def _started(self, arguments):
        return subprocess.Popen(
            [str(self._command), *arguments],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

"""Commands in a home of their own, and the gateways that they leave in the background."""

import json
import subprocess
import sys
from pathlib import Path

from thoughtline.agents.simulated import STRICT
from thoughtline.cli.background import BackgroundGateway


class Home:
    """A user's home, a folder to work in, and a PATH with what the test puts there."""

    def __init__(self, folder, port):
        self.bin, self.path, self.here = folder / "bin", folder / "home", folder / "here"
        for made in (self.bin, self.path, self.here):
            made.mkdir()
        self.env = {
            "HOME": str(self.path),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "THOUGHTLINE_PORT": str(port),
            "LANG": "C.UTF-8",
            STRICT: "1",
        }
        self._processes = []

    def start(self, *arguments, env=None, **streams):
        """Start a command, and do not wait for its end."""
        process = subprocess.Popen(
            [sys.executable, "-m", "thoughtline", *arguments],
            cwd=self.here,
            env={**self.env, **(env or {})},
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **streams,
            },
            text=True,
        )
        self._processes.append(process)
        return process

    def run(self, *arguments, env=None):
        """A command's exit code, and what it wrote to its two outputs."""
        return done(self.start(*arguments, env=env))

    def status(self):
        """What `thoughtline status` knows."""
        return json.loads(self.run("status", "--json")[1])

    def background(self):
        return BackgroundGateway(int(self.env["THOUGHTLINE_PORT"]), self.env)

    def program(self, name, text):
        """Put a program on the PATH."""
        file = self.bin / name
        file.write_text(f"#!{sys.executable}\n{text}", "utf-8")
        file.chmod(0o755)

    def close(self):
        """End all that was started here."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if (state := self.background().state()) is not None:
            self.background().stop(state, 60)


def done(process):
    """A process's exit code, and what it wrote, once it has ended."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def children(parent):
    """The processes that a process has started."""
    found = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = one.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(one.parent.name))
    return found

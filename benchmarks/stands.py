"""What is measured: processes on this machine, each in front of the same stand-in for a provider.

The gateway, of this checkout or of another, has a SQLite file of its own; nginx is a bare
`proxy_pass`, and `bare_proxy` the same for Python. LiteLLM's proxy and Portkey's gateway are found
through `THOUGHTLINE_BENCH_LITELLM` and `THOUGHTLINE_BENCH_PORTKEY`, in `.venv-litellm`, or on the
path. What is not installed is left out.
"""

import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from thoughtline.stores.sealing.ring import new_key
from thoughtline.stores.sealing.sources import add_key


class Stand(NamedTuple):
    """Who is measured, and where."""

    port: int
    pid: int
    path: str
    headers: tuple[str, ...] = ()  # that each of its requests needs
    slow: bool = False  # it is asked less


def build() -> str:
    """Say which Python runs all of it, and whether it was built with profile-guided optimisation.

    That makes a difference of a tenth. Distributions that optimise by hand do not say so.
    """
    config = sysconfig.get_config_vars()
    if "--enable-optimizations" in str(config.get("CONFIG_ARGS")):
        how = "built with profile-guided optimisation"
    elif config.get("PGO_PROF_USE_FLAG"):
        how = "built without profile-guided optimisation"
    else:
        how = "a distribution's build"
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{version} on {platform.machine()}, {how}"


def cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children have used, in all their threads.

    The scheduler's own count, to the nanosecond: ticks pass by whoever sleeps most of the time.
    """
    total = 0
    for process in [str(pid), *_children(pid)]:
        for thread in Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # it has ended
                total += int(thread.read_text().split()[0])
    return total / 1e9


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def entry(pid: int) -> float:
    """Resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def process(*command: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process for the length of a block."""
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith("THOUGHTLINE_")} | (env or {}),
    )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()


def wait(port: int, seconds: float = 30) -> None:
    """Until somebody listens."""
    for _ in range(int(seconds * 20)):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nobody listens on port {port}")


@contextlib.contextmanager
def gateway(
    upstream: int,
    store: Path | None = None,
    *,
    checkout: Path | None = None,
    sealed: bool = False,
    url: str = "",
    program: Sequence[str] = ("-m", "thoughtline"),
    under: Sequence[str] = (),
    env: Mapping[str, str] = {},
) -> Iterator[Stand]:
    """A gateway with a SQLite store of its own, or with this one; `sealed`: with keys.

    `url` is that of another store, one in PostgreSQL.
    `checkout` is the folder of another version's source; it runs with the same Python and packages.
    `program` is what Python runs in place of the command line, `under` what runs Python.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings, shared = Path(folder) / "thoughtline.toml", bool(url)
        url = url or f"sqlite:///{store or Path(folder) / 't.db'}"
        settings.write_text(
            f'[upstreams.bench]\nbase_url = "http://127.0.0.1:{upstream}"\npolicy = "deepseek"\n'
            'dialects = ["chat"]\n'
            f'[store]\nurl = "{url}"\nretention = "0"\n'
            + ('secret = "file:secret"\n' if shared else "")
            + ('keys = "file:ring.keys"\n' if sealed else "")
            + '[log]\nlevel = "error"\n'
        )
        settings.with_name("secret").write_text("5e" * 32)
        if sealed:
            add_key(settings.with_name("ring.keys"), new_key())
        command = [
            *under,
            sys.executable,
            *program,
            "serve",
            "--port",
            "0",
            "--json",
            "--config",
            str(settings),
        ]
        source = {"PYTHONPATH": str(checkout / "src")} if checkout else {}
        with process(*command, env={**source, **env}) as running:
            assert running.stdout
            port = int(json.loads(running.stdout.readline())["url"].rpartition(":")[2])
            wait(port)
            yield Stand(port, running.pid, "/u/bench/v1/chat/completions")


@contextlib.contextmanager
def nginx(upstream: int) -> Iterator[Stand | None]:
    """The same for nginx's proxy_pass; None where there is no nginx."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        yield None
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n"
            "events {{ worker_connections 4096; }}\n".format()
            + "http { access_log off; client_body_temp_path /tmp; proxy_temp_path /tmp; fastcgi_temp_path /tmp;"
            " uwsgi_temp_path /tmp; scgi_temp_path /tmp; client_max_body_size 64m;"
            f" upstream u {{ server 127.0.0.1:{upstream}; keepalive 128; }}"
            f" server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://u; proxy_http_version 1.1;"
            ' proxy_set_header Connection ""; proxy_buffering off; client_body_buffer_size 2m; } } }'
        )
        with process(program, "-p", folder, "-c", f"{folder}/nginx.conf") as running:
            wait(port)
            yield Stand(port, running.pid, "/v1/chat/completions")


@contextlib.contextmanager
def bare(upstream: int) -> Iterator[Stand]:
    """The same for the bare protocol in Python."""
    with process(sys.executable, "-m", "benchmarks.bare_proxy", str(upstream)) as running:
        assert running.stdout
        yield Stand(int(running.stdout.readline()), running.pid, "/v1/chat/completions")


@contextlib.contextmanager
def litellm(upstream: int) -> Iterator[Stand | None]:
    """The same for LiteLLM's proxy, one worker and no database."""
    named = os.environ.get("THOUGHTLINE_BENCH_LITELLM", ".venv-litellm/bin/litellm")
    program = shutil.which(named) or shutil.which("litellm")
    if program is None:
        yield None
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        served = {
            "model_name": "deepseek-v4-pro",
            "litellm_params": {
                "model": "openai/deepseek-v4-pro",
                "api_base": f"http://127.0.0.1:{upstream}/v1",
                "api_key": "k",
            },
        }
        config = Path(folder, "config.yaml")
        config.write_text(json.dumps({"model_list": [served]}))  # JSON is YAML
        command = [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
        alone = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}  # on loopback
        with process(*command, env={"LITELLM_LOG": "ERROR", "PYTHONPATH": "", **alone}) as running:
            try:
                wait(port, 90)
            except RuntimeError as error:
                print(f"LiteLLM does not start: {error}", file=sys.stderr)
                yield None
                return
            time.sleep(2)
            yield Stand(port, running.pid, "/v1/chat/completions", slow=True)


@contextlib.contextmanager
def portkey(upstream: int) -> Iterator[Stand | None]:
    """The same for Portkey's gateway, which learns from headers where requests go."""
    named = os.environ.get("THOUGHTLINE_BENCH_PORTKEY", "portkey-gateway")
    program = shutil.which(named)
    if program is None:
        yield None
        return
    port = free_port()
    with process(program, f"--port={port}", "--headless") as running:
        try:
            wait(port)
        except RuntimeError as error:
            print(f"Portkey does not start: {error}", file=sys.stderr)
            yield None
            return
        where = (
            "x-portkey-provider: openai",
            f"x-portkey-custom-host: http://127.0.0.1:{upstream}/v1",
        )
        yield Stand(port, running.pid, "/v1/chat/completions", where, slow=True)

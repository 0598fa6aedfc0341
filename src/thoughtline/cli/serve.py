"""`thoughtline serve`: the gateway, until Ctrl-C.

Works with no configuration at all. One process by default; with `--workers` several share the
store's file. Says where it listens and what to set in a client, and ends gracefully: streams
finish, turns are written.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from thoughtline.cli import simulated
from thoughtline.errors import ThoughtlineError
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.build import build
from thoughtline.inspector import inspector
from thoughtline.settings import Settings, load, refuse_exposure
from thoughtline.wires.http import HttpWire

FLAGS = "THOUGHTLINE_INTERNAL_FLAGS"
"""How the flags reach the workers: as JSON, in their environment."""

MEETING = "THOUGHTLINE_INTERNAL_MEETING"
"""And where they find one another: a folder of their own."""

_HELP = """Run the gateway.

Point a client's base URL at it, and no thought is lost. Without any configuration it listens on
loopback, keeps sessions in a SQLite file in your data folder, and sends each client's own key on.

\b
    thoughtline serve
    export OPENAI_BASE_URL=http://127.0.0.1:7337/u/deepseek/v1
    export ANTHROPIC_BASE_URL=http://127.0.0.1:7337/u/anthropic

\b
Try it offline, with a model named sim/…:
    curl http://127.0.0.1:7337/v1/chat/completions -H 'content-type: application/json' \\
      -d '{"model": "sim/deepseek", "messages": [{"role": "user", "content": "hi"}]}'

`thoughtline init` writes a commented settings file, `thoughtline doctor` checks it.
"""


@click.command("serve", help=_HELP, short_help="Run the gateway.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 takes any free one.  [default: 7337]")
@click.option("--config", type=click.Path(), help="Settings file instead of ./thoughtline.toml.")
@click.option("--store", "store_url", metavar="URL", help="Where sessions live: sqlite:///….")
@click.option("--workers", type=int, help="Processes that serve.  [default: 1]")
@click.option("--strict/--lenient", default=None, help="Answer 409 instead of a placeholder.")
@click.option("--allow-remote", is_flag=True, default=None, help="Listen elsewhere without keys.")
@click.option("--log-level", help="debug, info, warning or error.")
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as JSON.")
def serve(*, as_json: bool, **flags: Any) -> None:
    """Run until Ctrl-C."""
    try:
        settings = load(flags, os.environ, Path.cwd())
        refuse_exposure(settings)
        listener = _listen(settings)
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error
    port = listener.getsockname()[1]
    _announce(settings, port, as_json=as_json)
    flags["port"] = port
    os.environ[FLAGS] = json.dumps(
        {name: value for name, value in flags.items() if value is not None}
    )
    try:
        with contextlib.suppress(KeyboardInterrupt):  # handed on by the server when it has ended
            _run(settings, listener)
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error


def application() -> Gateway:
    """What each process serves."""
    flags: Mapping[str, Any] = json.loads(os.environ.get(FLAGS, "{}"))
    meeting = os.environ.get(MEETING)
    env = {name: value for name, value in os.environ.items() if name not in (FLAGS, MEETING)}
    settings = load(flags, env, Path.cwd())
    _follow()
    gateway = build(
        settings,
        wire=simulated.SimWire(HttpWire()),
        simulated=lambda model: simulated.upstream(model, settings.replay.overrides),
        models=simulated.models(),
        pages=partial(inspector, meeting=Path(meeting) if meeting else None),
    )
    gc.collect()
    gc.freeze()  # what is here now stays: nobody needs to look at it again
    gc.set_threshold(50_000, 20, 50)  # a request leaves hardly any cycles behind
    sys.setswitchinterval(0.02)  # the writer's thread has its turn when the loop waits, not before
    return gateway


def _follow() -> None:
    """A worker ends when its supervisor does, in whatever way, and gives the port back."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def wait() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="follow", daemon=True).start()


def _listen(settings: Settings) -> socket.socket:
    """Take the port now, so that a taken one is a sentence and not a stack trace."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)  # whoever comes before the rooms are open waits
    except OSError as error:
        listener.close()
        raise ThoughtlineError(
            f"cannot listen on {host}:{port} ({error.strerror or error}); "
            "another gateway may be running: choose another `--port`"
        ) from error
    listener.set_inheritable(True)  # the workers' too
    return listener


def _run(settings: Settings, listener: socket.socket) -> None:
    import uvicorn

    from thoughtline.cli.heads import Bounded

    server = settings.server
    config = uvicorn.Config(
        "thoughtline.cli.serve:application",
        factory=True,
        workers=server.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nobody here asks who is behind a proxy
        limit_concurrency=server.max_connections,
        http=Bounded,
        h11_max_incomplete_event_size=server.max_header_bytes,
        ws_max_size=server.max_body_bytes,
        timeout_keep_alive=75,  # a client that uses a connection again should find it open
        timeout_graceful_shutdown=int(server.shutdown_grace) + 5,
        lifespan="on",
    )
    if server.workers > 1:
        from uvicorn.supervisors import Multiprocess

        with _meeting():
            Multiprocess(config, sockets=[listener]).run()
        return
    uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def _meeting() -> Iterator[None]:
    """A folder for the sockets of the workers, where there are such sockets."""
    if not hasattr(socket, "AF_UNIX"):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="thoughtline-", ignore_cleanup_errors=True) as folder:
        os.environ[MEETING] = folder
        yield


def _announce(settings: Settings, port: int, *, as_json: bool) -> None:
    host = settings.server.host
    listening = _url(host, port)
    url = _url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104 (told apart)
    if as_json:
        click.echo(json.dumps({"url": url, "store": settings.store.url, "pid": os.getpid()}))
        return
    ready = [name for name, upstream in settings.upstreams.items() if upstream.key]
    keyless = "none, each client sends its own"
    if settings.access.clients:
        keyless = "none; clients show theirs to this gateway only, so set the providers' here"
    click.echo(f"""
  Thoughtline is listening on {listening}

  In a client, set one of:
    OPENAI_BASE_URL={url}/u/deepseek/v1      (any upstream's name: deepseek, kimi, openai, …)
    ANTHROPIC_BASE_URL={url}/u/anthropic
    GOOGLE_GEMINI_BASE_URL={url}/u/gemini

  Offline: any model named sim/… (sim/deepseek, sim/claude, sim/openai, sim/gemini)
  Keys of its own: {", ".join(ready) or keyless}
  Sessions: {settings.store.url}
  Look at them: {url}/inspect
  Ctrl-C stops it; open streams finish first.
""")


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

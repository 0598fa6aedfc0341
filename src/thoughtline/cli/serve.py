"""`thoughtline serve`: the gateway, in one process or with several workers over one store."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from thoughtline.cli.store_options import config_option
from thoughtline.errors import SealError, SettingsError, StoreError

if TYPE_CHECKING:
    from thoughtline.gateway.app import Gateway
    from thoughtline.gateway.settings import Settings

FLAGS = "THOUGHTLINE_INTERNAL_FLAGS"
"""The variable that hands the flags to the workers, as JSON."""

SOCKET_FOLDER = "THOUGHTLINE_INTERNAL_SOCKETS"
"""The variable that names the folder with the workers' sockets."""


def serve_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What says where and how the gateway runs, the same for all that start one."""
    for option in reversed(
        (
            click.option("--host", help="Address to listen on.  [default: 127.0.0.1]"),
            click.option(
                "--port",
                type=int,
                help="Port to listen on; 0 takes any free one.  [default: 7337]",
            ),
            config_option,
            click.option(
                "--store", "store_url", metavar="URL", help="Where sessions live: sqlite:///…."
            ),
            click.option("--workers", type=int, help="Processes that serve.  [default: 1]"),
            click.option(
                "--strict/--lenient", default=None, help="Answer 409 if a thought is lost."
            ),
            click.option(
                "--allow-remote", is_flag=True, default=None, help="Listen anywhere without keys."
            ),
            click.option("--log-level", help="debug, info, warning or error."),
        )
    ):
        command = option(command)
    return command


@click.command("serve")
@serve_options
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def serve(*, as_json: bool, **flags: Any) -> None:
    """Run the gateway.

    Point a client's base URL at it, and no thought is lost. Without any configuration it listens on
    loopback, keeps sessions in a SQLite file in your data folder, and sends each client's own key
    on.

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
    from thoughtline.gateway.settings import load, refuse_exposure

    settings = load(flags, os.environ, Path.cwd())
    refuse_exposure(settings)
    listener = _listen(settings)
    port = listener.getsockname()[1]
    _announce(settings, port, trouble=_store_trouble(settings), as_json=as_json)
    flags["port"] = port
    os.environ[FLAGS] = json.dumps(
        {name: value for name, value in flags.items() if value is not None}
    )
    _end_with_input()
    with contextlib.suppress(KeyboardInterrupt):  # handed on by the server when it has ended
        _run(settings, listener)


def application() -> Gateway:
    """The gateway that each process serves."""
    import gc
    import sys

    from thoughtline.gateway.settings import load

    flags: Mapping[str, Any] = json.loads(os.environ.get(FLAGS, "{}"))
    folder = os.environ.get(SOCKET_FOLDER)
    settings = load(flags, os.environ, Path.cwd())
    _end_with_supervisor()
    gateway = with_simulators(settings, socket_folder=Path(folder) if folder else None)
    gc.collect()
    gc.freeze()  # what was made at start lives on: the collector can skip it
    gc.set_threshold(50_000, 20, 50)  # a request leaves hardly any cycles behind
    sys.setswitchinterval(0.02)  # the writer's thread has its turn when the loop waits, not before
    return gateway


def with_simulators(settings: Settings, *, socket_folder: Path | None = None) -> Gateway:
    """A gateway with the inspector's pages, and with the simulated providers as `sim/…` models."""
    from functools import partial

    from thoughtline.agents import simulated
    from thoughtline.gateway.build import build
    from thoughtline.inspector import inspector

    wire = simulated.assistants()
    return build(
        settings,
        simulated=lambda model: simulated.upstream(model, settings.replay.overrides, wire),
        models=simulated.models(),
        pages=partial(inspector, socket_folder=socket_folder),
    )


def _end_with_supervisor() -> None:
    """End this worker when its supervisor ends, however it ends, so that the port is free again."""
    import multiprocessing
    import signal
    import threading

    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def wait() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="supervisor", daemon=True).start()


def _end_with_input() -> None:
    """In the background, end when the supervisor does: it holds the other end of our input."""
    import signal
    import threading

    from thoughtline.cli.supervisor import SUPERVISED

    if not os.environ.pop(SUPERVISED, ""):
        return

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="supervisor", daemon=True).start()


def _listen(settings: Settings) -> socket.socket:
    """Bind the port now, so that a taken one is a sentence and not a stack trace."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)  # clients that connect before the start is complete wait
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}:{port} ({error.strerror or error}); if another gateway is "
            "running there, use that one (`thoughtline status`), or choose another `--port`"
        ) from error
    listener.set_inheritable(True)  # so that workers can use it
    return listener


def _store_trouble(settings: Settings) -> str:
    """Make the store's folder and secret, and read from it; why it does not answer, else empty.

    A store that is down does not stop the gateway, but its user should know. Raises
    `SettingsError` where nothing would ever be kept.
    """
    import asyncio

    from thoughtline.engine.folders import make_store_folder
    from thoughtline.engine.secrets import fingerprint, store_secret
    from thoughtline.errors import SecretMismatch
    from thoughtline.gateway.settings import mask
    from thoughtline.stores import open_store
    from thoughtline.stores.sealing import refuse_lost, vault_of

    if settings.store.record == "off":
        return ""

    async def read() -> None:
        mark = fingerprint(secret)
        keychain = settings.store.keychain(os.environ)
        store = open_store(
            settings.store.url,
            fingerprint=mark,
            upgrade=settings.store.migrate,
            keychain=keychain,
        )
        try:
            await store.sessions(limit=1)
            if keychain is not None and not settings.store.url.startswith("memory:"):
                await refuse_lost(vault_of(store), keychain.ring)
        finally:
            await store.close()

    make_store_folder(settings.store.url)
    secret = store_secret(settings.store.url, os.environ, settings.store.secret)
    try:
        asyncio.run(read())
    except (SecretMismatch, SealError) as error:  # nothing would ever be kept or found
        raise SettingsError(str(error)) from error
    except StoreError as error:
        return mask(str(error))
    return ""


def _run(settings: Settings, listener: socket.socket) -> None:
    from functools import partial

    import uvicorn

    from thoughtline.gateway.server.listener import GatewayServer, GatewayWorkers
    from thoughtline.gateway.server.protocol import HttpProtocol
    from thoughtline.gateway.server.websocket_protocol import WebSocketProtocol

    server = settings.server
    config = uvicorn.Config(
        "thoughtline.cli.serve:application",
        factory=True,
        workers=server.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # the client's address is not taken from headers
        limit_concurrency=server.max_connections,
        http=cast("type[HttpProtocol]", partial(HttpProtocol, body_timeout=server.body_timeout)),
        ws=WebSocketProtocol,
        ws_per_message_deflate=False,  # a small frame could unpack to a large one
        h11_max_incomplete_event_size=server.max_header_bytes,
        ws_max_size=server.max_body_bytes,
        timeout_keep_alive=75,  # a client that uses a connection again should find it open
        timeout_graceful_shutdown=int(server.shutdown_grace) + 5,
        lifespan="on",
    )
    if server.workers > 1:
        with _socket_folder():
            GatewayWorkers(config, sockets=[listener]).run()
        return
    GatewayServer(config).run(sockets=[listener])


@contextlib.contextmanager
def _socket_folder() -> Iterator[None]:
    """Make a folder for the workers' Unix sockets, where the system has them."""
    if not hasattr(socket, "AF_UNIX"):
        yield
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="thoughtline-", ignore_cleanup_errors=True) as folder:
        os.environ[SOCKET_FOLDER] = folder
        yield


def _announce(settings: Settings, port: int, *, trouble: str = "", as_json: bool) -> None:
    """Say where the gateway listens and what to do next, once its store has answered."""
    from thoughtline.gateway.settings import mask

    host = settings.server.host
    listening = _url(host, port)
    url = _url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)  # noqa: S104 (compared, not bound)
    if as_json:
        said = {"url": url, "store": mask(settings.store.url), "pid": os.getpid()}
        click.echo(json.dumps(said | ({"trouble": trouble} if trouble else {})))
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
  Sessions: {mask(settings.store.url)}
  Ctrl-C stops it; open streams finish first.
  Look at what happens: {url}/inspect
""")
    if trouble:
        warning = "The store does not answer. Requests go through; what is new is held in memory"
        click.echo(
            f"  {click.style(f'{warning} until it does.', fg='red')}\n  {trouble}\n", err=True
        )


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

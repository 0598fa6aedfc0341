"""`thoughtline start`, `stop`, `status` and `logs`: the gateway in the background."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.serve import serve_options
from thoughtline.cli.store_options import config_option, json_option

if TYPE_CHECKING:
    from thoughtline.cli.background import BackgroundGateway
    from thoughtline.gateway.settings import Settings

NOT_RUNNING = 3
"""The exit code of `status` where no gateway runs, as services have it."""
_MORE_SECONDS = 10.0
_PAUSE = 0.2


def _which(command: Any) -> Any:
    """`--port` and `--config`: which gateway is meant."""
    port = click.option("--port", type=int, help="The port that it was started for.")
    return port(config_option(command))


@click.command("start")
@serve_options
@json_option
def start(*, as_json: bool, **flags: Any) -> None:
    """Start the gateway in the background.

    It runs until `thoughtline stop`, or until you log out where the system ends what a user has
    left running. If it crashes it is started again. Its settings and options are those of
    `thoughtline serve`; what it says goes to a log of its own, which `thoughtline logs` shows.

    \b
        thoughtline start
        thoughtline status
        thoughtline logs --follow
        thoughtline stop

    To have it start with the machine, use a unit of systemd or launchd; the four commands work
    beside it. A gateway that runs already is left alone.
    """
    from thoughtline.cli.launch_gateway import ensure_gateway
    from thoughtline.gateway.settings import refuse_exposure

    settings, _ = _gateway(flags)
    refuse_exposure(settings)
    running = ensure_gateway(settings, _arguments(flags))
    if as_json:
        click.echo(json.dumps(_status(settings)))
        return
    how = "runs in the background" if running.started else "runs already"
    click.echo(f"Thoughtline {how} at {running.url}")
    if running.state and running.state.trouble:
        trouble = f"Its store does not answer: {running.state.trouble}"
        click.echo(click.style(trouble, fg="red"), err=True)
    click.echo(f"Look at what happens: {running.url}/inspect")
    if running.started:
        click.echo("thoughtline status, logs and stop are for it.")


def _arguments(flags: dict[str, Any]) -> list[str]:
    """Flags as arguments of `serve`."""
    found = []
    for name, value in flags.items():
        option = f"--{name.removesuffix('_url').replace('_', '-')}"
        if name == "strict" and value is not None:
            found.append("--strict" if value else "--lenient")
        elif value is True:
            found.append(option)
        elif value is not None:
            found += [option, str(value)]
    return found


@click.command("stop")
@_which
def stop(**flags: Any) -> None:
    """Stop the gateway in the background, once open streams have ended.

    Tools that talk through it lose their connection, and go on when it runs again.
    """
    from thoughtline.cli.local_gateway import NAME, address, who_answers

    settings, background = _gateway(flags)
    state = background.state()
    if state is None:
        url = address(settings.server.host, settings.server.port)
        if who_answers(url) == NAME:
            raise click.ClickException(
                f"the gateway at {url} was not started by `thoughtline start` or `launch`; it runs "
                "in a terminal or as a service, and is ended there "
                "(systemctl --user stop thoughtline)"
            )
        click.echo("No gateway runs in the background.")
        return
    if background.stop(state, settings.server.shutdown_grace + _MORE_SECONDS):
        click.echo(f"Stopped the gateway at {state.url}")
    else:
        click.echo(f"The gateway at {state.url} did not end in time, and was killed.")


@click.command("status")
@_which
@json_option
def status(*, as_json: bool, **flags: Any) -> None:
    """Say whether a gateway runs, where, since when, and whether it is well.

    The exit code is 0 if one runs, and 3 if none does.
    """
    from thoughtline.cli.background import other_gateways

    settings, _ = _gateway(flags)
    found = _status(settings)
    others = other_gateways(os.environ, settings.server.port)
    if as_json:
        click.echo(json.dumps({**found, "others": [other.url for other in others]}))
    else:
        for line in _lines(found):
            click.echo(line)
        for other in others:
            click.echo(f"Another one runs in the background at {other.url} (pid {other.pid})")
    if not found["running"]:
        raise SystemExit(NOT_RUNNING)


def _status(settings: Settings) -> dict[str, Any]:
    """What is known about the gateway that these settings describe."""
    from thoughtline.cli.background import BackgroundGateway, GatewayState
    from thoughtline.cli.local_gateway import NAME, address, ask, who_answers

    background = BackgroundGateway(settings.server.port, os.environ)
    state = background.state()
    said = state or GatewayState(url=address(settings.server.host, settings.server.port))
    answers = who_answers(said.url) == NAME if said.url else False
    token = settings.access.admin_token.reveal()
    ready = (ask(f"{said.url}/ready", token) if answers else None) or {}
    version = (ask(f"{said.url}/version") if answers else None) or {}
    return {
        "running": answers or state is not None,
        "background": state is not None,
        "url": said.url,
        "pid": said.pid or None,
        "version": version.get("version") or said.version or None,
        "started": said.started or None,
        "ready": ready.get("status") or ("starting" if state else None),
        "reasons": ready.get("reasons", []),
        "store": said.store or None,
        "log": str(background.log) if state else None,
    }


def _lines(found: dict[str, Any]) -> list[str]:
    if not found["running"]:
        return ["No gateway runs. Start one with `thoughtline start`."]
    from thoughtline.cli.rendering import ago

    where = f"in the background, pid {found['pid']}"
    if not found["background"]:
        where = "in a terminal or as a service"
    lines = [f"Thoughtline {found['version']} runs at {found['url'] or '…'} ({where})"]
    rows = [
        ("state", "; ".join([found["ready"] or "it does not answer", *found["reasons"]])),
        ("since", ago(found["started"]) if found["started"] else ""),
        ("sessions", found["store"] or ""),
        ("log", found["log"] or ""),
        ("page", f"{found['url']}/inspect" if found["url"] else ""),
    ]
    return lines + [f"  {name:9} {text}" for name, text in rows if text]


@click.command("logs")
@_which
@click.option("--lines", "-n", type=click.IntRange(min=0), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Go on, until Ctrl-C.")
def logs(*, lines: int, follow: bool, **flags: Any) -> None:
    """Show what the gateway in the background has said.

    One line of JSON for each event. A log is put aside when it is full, and the last three of those
    are kept.
    """
    from thoughtline.cli.background import log_files

    _, background = _gateway(flags)
    files = log_files(background.log)
    if not files:
        raise click.ClickException(
            f"there is no log: no gateway has run in the background ({background.log}). "
            "A service has its own: journalctl --user --unit thoughtline"
        )
    last = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    at = background.log.stat() if background.log.exists() else None
    _write(b"".join(last[len(last) - lines :] if lines else []))
    if follow:
        _follow(background.log, at)


def _follow(log: Path, at: os.stat_result | None) -> None:
    """Write what is added, also behind a change of files."""
    place = at.st_size if at else 0
    known = at.st_ino if at else 0
    while True:
        now = log.stat() if log.exists() else None
        if now is not None and now.st_ino != known:
            aside = log.with_name(f"{log.name}.1")
            if known and aside.exists():
                _write(_from(aside, place))
            known, place = now.st_ino, 0
        if now is not None and now.st_size > place:
            added = _from(log, place)
            place += len(added)
            _write(added)
        time.sleep(_PAUSE)


def _from(file: Path, place: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(place)
        return stream.read()


def _write(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def _gateway(flags: dict[str, Any]) -> tuple[Settings, BackgroundGateway]:
    from thoughtline.cli.background import BackgroundGateway
    from thoughtline.gateway.settings import load

    settings = load(flags, os.environ, Path.cwd())
    return settings, BackgroundGateway(settings.server.port, os.environ)

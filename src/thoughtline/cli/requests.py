"""`thoughtline requests`: what the page's start lists, for a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from thoughtline.cli.store_options import config_option, json_option

if TYPE_CHECKING:
    from thoughtline.gateway.settings import Settings

_COLOURS = {"failed": "red", "refused": "red", "running": "cyan", "passed": "bright_black"}


@click.command("requests")
@click.option("--failed", is_flag=True, help="Only those that got no answer of a model.")
@click.option("--session", metavar="ID", help="Only of this session.")
@click.option(
    "--limit",
    type=click.IntRange(min=1, max=200),
    metavar="NUMBER",
    default=20,
    show_default=True,
    help="How many at most.",
)
@click.option("--port", type=int, help="The port of the gateway to ask.")
@config_option
@json_option
def requests(
    *,
    failed: bool,
    session: str | None,
    limit: int,
    port: int | None,
    config: str | None,
    as_json: bool,
) -> None:
    """List requests, the newest first: answered, refused, failed and running.

    As the page lists them at its start, from the gateway that runs. Those that failed come with the
    reason, in the provider's own words or the gateway's, and with what to do about it.

    \b
        thoughtline requests
        thoughtline requests --failed
        thoughtline requests --json | jq -r '.[] | [.at, .model, .outcome] | @tsv'
    """
    from thoughtline.gateway.settings import load

    settings = load({"config": config, "port": port}, os.environ, Path.cwd())
    query = {"limit": limit, "has": "failed" if failed else None, "session": session}
    rows = _ask(settings, {name: value for name, value in query.items() if value})
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for line in request_lines(rows, head=sys.stdout.isatty()):
        click.echo(line)
    if not rows:
        click.echo("No request failed." if failed else "No requests yet.")


def _ask(settings: Settings, query: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that the gateway's page has."""
    from thoughtline.cli.background import BackgroundGateway
    from thoughtline.cli.local_gateway import address, ask

    server, token = settings.server, settings.access.admin_token.reveal()
    state = BackgroundGateway(server.port, os.environ).state()
    url = state.url if state is not None else address(server.host, server.port)
    page = ask(f"{url}/api/requests?{urlencode(query)}", token, timeout=30)
    if page is None:
        raise click.ClickException(f"no gateway answers at {url}; `thoughtline start` starts it")
    if "requests" not in page:
        raise click.ClickException(
            f"the gateway at {url} does not tell: {json.dumps(page)[:300]}; "
            "set THOUGHTLINE_ADMIN_TOKEN to what it has"
        )
    found: list[dict[str, Any]] = page["requests"]
    return found


def request_lines(rows: Sequence[Mapping[str, Any]], *, head: bool) -> Iterator[str]:
    """Requests in columns; under one that failed, why and what to do."""
    from thoughtline.cli.rendering import ago, brief

    names = [brief(_model(row), 40) for row in rows]
    width = max(map(len, names), default=0)
    if head and rows:
        line = f"{'when':>12}  {'outcome':<13}  {'model':<{width}}  {'took':>7}"
        yield click.style(f"{line}  tokens, thoughts, title", dim=True)
    for row, name in zip(rows, names, strict=True):
        said = f"refused {row['status']}" if row["outcome"] == "refused" else row["outcome"]
        outcome = click.style(f"{said:<13}", fg=_COLOURS.get(row["outcome"]))
        took = "" if row.get("seconds") is None else f"{row['seconds']:.1f} s"
        about = "  ".join(part for part in (_tokens(row), _thoughts(row), _what(row)) if part)
        when = click.style(f"{ago(row['at']):>12}", dim=True)
        yield f"{when}  {outcome}  {name:<{width}}  {took:>7}  {about}"
        if row["outcome"] in ("failed", "refused"):
            why = (row.get("reason"), row.get("advice"))
            yield from (f"{'':14}{brief(text)}" for text in why if text)


def _model(row: Mapping[str, Any]) -> str:
    where = row.get("upstream") or row.get("provider") or ""
    return "/".join(part for part in (where, row.get("model") or "") if part) or "-"


def _tokens(row: Mapping[str, Any]) -> str:
    usage = row.get("usage") or {}
    counted = [usage.get("input"), usage.get("output")]
    return "" if None in counted else f"{counted[0]:,} in, {counted[1]:,} out"


def _thoughts(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{word}={count}" for word, count in (row.get("replay") or {}).items())


def _what(row: Mapping[str, Any]) -> str:
    from thoughtline.cli.rendering import brief

    title = row.get("title") or f"{row.get('method', '')} {row.get('path', '')}"
    return brief(title, 60)

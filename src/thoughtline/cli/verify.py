"""`thoughtline verify`: hold a provider's policy row against the provider itself, with your key.

A handful of small requests, their number said beforehand; a table or JSON afterwards. The questions
and verdicts are in `thoughtline.verifying`; `--upstream sim:NAME` asks a simulated provider instead
of a real one, in this process.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from thoughtline.library.providers import Provider
    from thoughtline.verifying import Report, Row

_HELP = """Check a provider's policy row against the provider.

Holds a short conversation with your key, then sends its history again with one thing changed each
time: a thought missing, empty, altered, under another key. Says what was accepted, what was
refused, and where that differs from what Thoughtline assumes. Costs a few cents at most.

\b
    thoughtline verify --upstream deepseek --model deepseek-v4-pro
    thoughtline verify --upstream mine --base-url http://127.0.0.1:8000/v1 --model glm-4.7
    thoughtline verify --upstream sim:kimi

With --write, what differs is kept in your config folder, and `thoughtline serve` and `chat` go by
it from then on; `thoughtline doctor` mentions it.

Ends with 1 when something differs, with 2 when nothing could be tested.
"""


@click.command("verify", help=_HELP, short_help="Check a policy row against its provider.")
@click.option("--upstream", required=True, metavar="NAME", help="A known provider, or sim:NAME.")
@click.option("--model", default="", metavar="MODEL", help="Which model to ask.")
@click.option("--other-model", default="", metavar="MODEL", help="Try seals on this one, too.")
@click.option("--base-url", default="", metavar="URL", help="Where it is, if elsewhere.")
@click.option("--dialect", default="", metavar="NAME", help="chat, responses, messages, gemini.")
@click.option("--policy", default="", metavar="NAME", help="The row, if not the usual one.")
@click.option("--key-env", default="", metavar="VAR", help="Variable that holds the key.")
@click.option("--set", "members", multiple=True, metavar="NAME=JSON", help="Request member.")
@click.option("--yes", is_flag=True, help="Do not ask before starting.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")
@click.option(
    "--write",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Keep what differs where the settings read it, or in a file for `replay.policies`.",
)
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    *,
    upstream: str,
    yes: bool,
    as_json: bool,
    write: str | None,
    members: tuple[str, ...],
    **said: str,
) -> None:
    """Ask, and say what came of it."""
    from thoughtline.errors import ThoughtlineError
    from thoughtline.library.providers import endpoint
    from thoughtline.verifying import estimate

    provider = _provider(upstream, said, _members(members))
    try:
        target = endpoint(provider, os.environ)
        most = estimate(target.target.policy, target.dialect.name, said["other_model"])
    except ThoughtlineError as error:
        raise click.ClickException(str(error)) from error
    simulated = upstream.startswith("sim:")
    told = f"About {most} small requests to {target.target.origin.endpoint} ({provider.model})."
    click.echo(told, err=True)
    if not (yes or simulated) and sys.stdin.isatty():
        click.confirm("Go on?", abort=True, err=True)
    report = asyncio.run(_run(provider, said["other_model"]))
    if as_json:
        click.echo(json.dumps({**msgspec.to_builtins(report), "differs": report.differs}))
    else:
        _show(report)
    if report.problem:
        ctx.exit(2)
    if write is not None:
        _write(report, Path(write) if write else _usual())
    ctx.exit(1 if report.differs else 0)


def _usual() -> Path:
    from thoughtline.settings.loading import POLICIES
    from thoughtline.settings.sources import user_folder

    return user_folder("config", os.environ) / POLICIES


def _write(report: "Report", file: Path) -> None:
    """Beside what is written there about other endpoints and models."""
    from thoughtline.verifying.reports import toml

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = file.read_text("utf-8") if file.exists() else ""
        file.write_text(toml(report, before), "utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"Written to {file}.", err=True)


def _members(pairs: tuple[str, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            made[name] = json.loads(value)
        except ValueError as error:
            raise click.BadParameter(f"not JSON: {pair}", param_hint="--set") from error
    return made


def _provider(upstream: str, said: dict[str, str], options: dict[str, Any]) -> "Provider":
    from thoughtline.library.providers import Provider

    if upstream.startswith("sim:"):
        return _simulated(upstream.removeprefix("sim:"), said, options)
    if not said["model"]:
        raise click.BadParameter("which model?", param_hint="--model")
    key = ""
    if said["key_env"]:
        key = os.environ.get(said["key_env"], "").strip()
        if not key:
            raise click.BadParameter(f"{said['key_env']} is not set", param_hint="--key-env")
    return Provider(
        upstream,
        model=said["model"],
        key=key,
        base_url=said["base_url"],
        dialect=said["dialect"],
        policy=said["policy"],
        options=options,
    )


def _simulated(name: str, said: dict[str, str], options: dict[str, Any]) -> "Provider":
    from thoughtline.cli.conversation import FIELDS, POLICIES
    from thoughtline.library.providers import Provider
    from thoughtline.testing import simulator

    try:
        sim = simulator(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--upstream") from error
    usual = "gemini" if name.startswith("gemini") else POLICIES.get(name, name)
    return Provider(
        name,
        model=said["model"] or sim.models()[0],
        key="any",
        base_url=f"sim://{name}",
        dialect=sim.dialect,
        policy=said["policy"] or usual,
        options={**FIELDS.get(name, {}), **options},
    )


async def _run(provider: "Provider", other: str) -> "Report":
    from msgspec.structs import replace

    from thoughtline.cli.simulated import SimWire
    from thoughtline.clock import SystemClock
    from thoughtline.library.providers import endpoint
    from thoughtline.verifying import verify as ask
    from thoughtline.verifying.running import options
    from thoughtline.wires.http import HttpWire

    target = endpoint(provider, os.environ)
    provider = replace(provider, options={**options(target), **provider.options})
    target = endpoint(provider, os.environ)
    elsewhere = endpoint(replace(provider, model=other), os.environ) if other else None
    wire = SimWire(HttpWire())
    try:
        return await ask(target, wire, SystemClock(), elsewhere=elsewhere)
    finally:
        await wire.close()


# -- for people ----------------------------------------------------------------------------------

_COLOURS = {"as assumed": "green", "differs": "red", "unknown": "yellow"}


def _show(report: "Report") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    console.print(
        f"\n[bold]{report.policy}[/bold] {report.dialect} [dim]{escape(report.model)}[/dim]\n"
    )
    if report.problem:
        console.print(f"[red]Nothing could be tested.[/red] {escape(report.problem)}\n")
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("what", "field", "expected", "observed", "verdict"):
        table.add_column(title)
    for row in report.rows:
        table.add_row(*_cells(row))
    console.print(table)
    for row in report.rows:
        if row.words and row.verdict != "as assumed":
            console.print(
                f"  [dim]{escape(row.asks)}:[/dim] {escape(' '.join(row.words.split())[:300])}"
            )
    for name, value in {**report.findings, **report.override}.items():
        console.print(f"  [bold]{name}[/bold] observed: {escape(str(value))}")
    console.print(f"\n[dim]{report.requests} requests.[/dim]\n")


def _cells(row: "Row") -> tuple[str, ...]:
    from rich.markup import escape

    colour = _COLOURS[row.verdict.value]
    verdict = f"[{colour}]{row.verdict.value}[/{colour}]"
    return escape(row.asks), row.field, row.expected.value, row.observed.value, verdict

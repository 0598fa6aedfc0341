"""`thoughtline verify`: the checks of `thoughtline.verify` with a user's key, and their report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from thoughtline.cli.chat import key_in
from thoughtline.errors import ThoughtlineError

if TYPE_CHECKING:
    from thoughtline.agents.provider import Provider
    from thoughtline.verify.report import CheckResult, VerifyReport


class NotTested(click.ClickException):
    """Nothing could be tested, or its result could not be written."""

    exit_code = 3


@click.command("verify")
@click.option("--upstream", required=True, metavar="NAME", help="A known provider, or sim:NAME.")
@click.option("--model", default="", metavar="MODEL", help="Which model to ask.")
@click.option(
    "--other-model", default="", metavar="MODEL", help="Also try sealed thoughts with this one."
)
@click.option("--base-url", default="", metavar="URL", help="Base URL, if it is another one.")
@click.option("--dialect", default="", metavar="NAME", help="chat, responses, messages, gemini.")
@click.option("--policy", default="", metavar="NAME", help="Policy row, if not the usual one.")
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
    **given: str,
) -> None:
    """Check a provider's policy row against the provider.

    Holds a short conversation with your key, then sends its history again with one thing changed
    each time: a thought missing, empty, altered, under another key. Says what was accepted, what
    was refused, and where that differs from what Thoughtline assumes. Costs a few cents at most.

    \b
        thoughtline verify --upstream deepseek --model deepseek-v4-pro
        thoughtline verify --upstream mine --base-url http://127.0.0.1:8000/v1 --model glm-4.7
        thoughtline verify --upstream sim:kimi

    With --write, what differs is kept in your config folder, and `thoughtline serve` and `chat` go
    by it from then on; `thoughtline doctor` mentions it.

    Ends with 0 when nothing differs, with 1 when something does, with 2 when the command line is
    wrong, and with 3 when nothing could be tested: no key, no connection, another answer than a
    model's, or you said no.
    """
    try:
        provider = _provider(upstream, given, _members(members))
        report = _verify(provider, given["other_model"], ask=not (yes or upstream[:4] == "sim:"))
    except (OSError, ThoughtlineError) as error:
        raise NotTested(str(error)) from error
    if as_json:
        import msgspec

        click.echo(json.dumps({**msgspec.to_builtins(report), "differs": report.differs}))
    else:
        _show(report)
    if report.problem:
        ctx.exit(NotTested.exit_code)
    if write is not None:
        from thoughtline.engine.folders import user_folder
        from thoughtline.gateway.settings.loading import POLICIES

        usual = user_folder("config", os.environ) / POLICIES
        _write(report, Path(write) if write else usual)
    ctx.exit(1 if report.differs else 0)


def _write(report: VerifyReport, file: Path) -> None:
    """Write the overrides; rows of the file about other endpoints and models stay."""
    from thoughtline.verify.report import toml

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        before = file.read_text("utf-8") if file.exists() else ""
        file.write_text(toml(report, before), "utf-8")
    except OSError as error:
        raise NotTested(f"cannot write {file}: {error.strerror}") from error
    click.echo(f"Written to {file}.", err=True)


def _verify(provider: Provider, other_model: str, *, ask: bool) -> VerifyReport:
    """Say what it takes, ask if that is all right, and do it."""
    import asyncio

    from thoughtline.agents.provider import resolve
    from thoughtline.verify.checks import estimate

    target = resolve(provider, os.environ)
    estimated = estimate(target.target.policy, target.dialect.name, other_model)
    notice = (
        f"About {estimated} small requests to {target.target.origin.endpoint} ({provider.model})."
    )
    click.echo(notice, err=True)
    if ask and sys.stdin.isatty() and not click.confirm("Go on?", err=True):
        raise NotTested("nothing was tested")
    return asyncio.run(_run(provider, other_model))


def _members(pairs: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            options[name] = json.loads(value)
        except ValueError as error:
            raise click.BadParameter(f"{pair!r} is not NAME=JSON", param_hint="--set") from error
    return options


def _provider(upstream: str, given: dict[str, str], options: dict[str, Any]) -> Provider:
    from thoughtline.agents import simulated
    from thoughtline.agents.provider import Provider

    if upstream.startswith("sim:"):
        name, model = upstream.removeprefix("sim:"), given["model"]
        try:
            return simulated.provider(
                name, model, options=options, policy=given["policy"], key="any"
            )
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--upstream") from error
    provider = Provider(  # one that nobody knows is said before a model is asked for
        upstream,
        model=given["model"] or "?",
        key=key_in(given["key_env"]),
        base_url=given["base_url"],
        dialect=given["dialect"],
        policy=given["policy"],
        options=options,
    )
    if not given["model"]:
        raise click.UsageError("name the model to ask with --model")
    return provider


async def _run(provider: Provider, other: str) -> VerifyReport:
    from msgspec.structs import replace

    from thoughtline.agents import simulated
    from thoughtline.agents.provider import resolve
    from thoughtline.clock import SystemClock
    from thoughtline.verify.verifier import options
    from thoughtline.verify.verifier import verify as ask

    target = resolve(provider, os.environ)
    provider = replace(provider, options={**options(target), **provider.options})
    target = resolve(provider, os.environ)
    elsewhere = resolve(replace(provider, model=other), os.environ) if other else None
    wire = simulated.wire_to(provider)
    try:
        return await ask(target, wire, SystemClock(), elsewhere=elsewhere)
    finally:
        await wire.close()


# -- for people ----------------------------------------------------------------------------------

_COLOURS = {"as assumed": "green", "differs": "red", "unknown": "yellow"}


def _show(report: VerifyReport) -> None:
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


def _cells(row: CheckResult) -> tuple[str, ...]:
    from rich.markup import escape

    colour = _COLOURS[row.verdict.value]
    verdict = f"[{colour}]{row.verdict.value}[/{colour}]"
    return escape(row.asks), row.field, row.expected.value, row.observed.value, verdict

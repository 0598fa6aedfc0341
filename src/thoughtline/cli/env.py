"""`thoughtline env`: what a tool needs, as lines for a shell."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from thoughtline.cli.launch_tools import complete, find_tool, tool_names
from thoughtline.cli.store_options import config_option
from thoughtline.errors import did_you_mean

if TYPE_CHECKING:
    from thoughtline.cli.launch_plan import LaunchPlan

SHELLS = ("sh", "fish", "powershell")
effort_option = click.option(
    "--effort",
    default="",
    metavar="EFFORT",
    help="How hard to think, whatever the tool asks for: none, low, medium, high, max, …",
)


def _powershell(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_LINES: Mapping[str, tuple[Callable[[str], str], str, str, str]] = {
    "sh": (shlex.quote, "export {}={}", 'export {}="${{{}}}"', "unset {}"),
    "fish": (_fish, "set -gx {} {}", 'set -gx {} "${}"', "set -e {}"),
    "powershell": (
        _powershell,
        "$env:{} = {}",
        "$env:{} = $env:{}",
        "Remove-Item Env:{} -ErrorAction Ignore",
    ),
}
"""Shell → how it quotes, sets a variable, copies one and forgets one."""


def shell_lines(plan: LaunchPlan, shell: str) -> list[str]:
    """The plan's variables as lines for a shell. Keys of providers are named, not shown."""
    quote, literal, copy, forget = _LINES[shell]
    lines = [literal.format(name, quote(value)) for name, value in plan.variables.items()]
    lines += [copy.format(name, source) for name, source in plan.references.items()]
    return lines + [forget.format(name) for name in plan.unset]


def unknown_tool(name: str) -> click.UsageError:
    """The error for a tool that has no row."""
    hint = did_you_mean(name, tool_names(), f"known are: {', '.join(tool_names())}")
    return click.UsageError(
        f"there is no tool {name!r}; {hint} "
        "Any other program works by its base URL: `thoughtline serve --help` shows how"
    )


@click.command("env")
@click.argument("name", metavar="NAME", shell_complete=complete)
@click.option("--model", default="", metavar="UPSTREAM/MODEL", help="The model to talk with.")
@effort_option
@click.option(
    "--shell",
    type=click.Choice(SHELLS),
    help="For which shell.  [default: powershell on Windows, else sh]",
)
@config_option
def env(*, name: str, model: str, effort: str, shell: str | None, config: str | None) -> None:
    """Print what points a tool at the gateway, as lines for a shell.

    \b
        eval "$(thoughtline env claude --model deepseek/deepseek-v4-pro)"
        thoughtline env qwen --model kimi/kimi-k3 --shell fish | source

    Starts nothing and changes nothing; the gateway has to run when the tool does (`thoughtline
    start`). What is
    no variable, such as arguments, is printed as a comment.
    """
    tool = find_tool(name)
    if tool is None:
        raise unknown_tool(name)
    from pathlib import Path

    from thoughtline.cli.launch_plan import make_plan
    from thoughtline.cli.local_gateway import address
    from thoughtline.gateway.settings import load

    settings = load({"config": config}, os.environ, Path.cwd())
    url = address(settings.server.host, settings.server.port)
    plan = make_plan(tool, model, settings, os.environ, url, effort=effort)
    shell = shell or ("powershell" if sys.platform == "win32" else "sh")
    for line in [*shell_lines(plan, shell), *comments(plan)]:
        click.echo(line)
    if plan.missing_key:  # beside what a shell evaluates
        missing = " or ".join(plan.missing_key)
        click.echo(f"no key for {plan.chosen.upstream} was found: set {missing}", err=True)


def comments(plan: LaunchPlan) -> list[str]:
    """What is no variable, as comments that every shell takes."""
    lines = []
    if plan.arguments:
        lines.append(f"# start it as: {shlex.join([plan.tool.executable, *plan.arguments])}")
    if plan.config_file:
        again = f"thoughtline launch {plan.tool.name} --model {plan.chosen.name} --print"
        lines.append(f"# it also needs an entry in {plan.config_file}: {again}")
    return lines

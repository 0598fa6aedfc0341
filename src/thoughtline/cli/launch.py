"""`thoughtline launch`: a coding tool, pointed at the gateway for one run."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from thoughtline.cli.env import effort_option, shell_lines, unknown_tool
from thoughtline.cli.launch_tools import TOOLS, LaunchTool, complete, find_tool
from thoughtline.cli.store_options import config_option

if TYPE_CHECKING:
    from thoughtline.cli.launch_gateway import LaunchGateway
    from thoughtline.cli.launch_plan import LaunchPlan
    from thoughtline.gateway.settings import Settings

NOT_INSTALLED = 127
"""The exit code for a program that is not there, as shells have it."""

_SHOWN = "***"


class LaunchCommand(click.Command):
    """Says where a tool's own options belong."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; an option that is not known here may be the tool's."""
        try:
            return super().parse_args(ctx, list(args))
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            raise click.UsageError(
                f"there is no option {error.option_name!r}; options of the tool come after --, "
                "as in: thoughtline launch claude -- -p hi",
                ctx,
            ) from None


@click.command(
    "launch", cls=LaunchCommand, epilog=f"Tools: {', '.join(tool.name for tool in TOOLS)}."
)
@click.argument("name", metavar="NAME", required=False, shell_complete=complete)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option("--model", default="", metavar="UPSTREAM/MODEL", help="The model to talk with.")
@effort_option
@config_option
@click.option("--print", "only_print", is_flag=True, help="Show what would be set; do nothing.")
@click.option("--restore", is_flag=True, help="Take back what was written to the tool's own file.")
def launch(
    *,
    name: str | None,
    arguments: tuple[str, ...],
    model: str,
    effort: str,
    config: str | None,
    only_print: bool,
    restore: bool,
) -> None:
    """Run a coding tool through the gateway.

    \b
        thoughtline launch claude
        thoughtline launch claude --model deepseek/deepseek-v4-pro
        thoughtline launch codex --model kimi/kimi-k3 -- exec "say hi"
        thoughtline launch opencode --model sim/deepseek    (offline, no key)

    Without NAME, lists the tools; without --model, on a terminal, asks which one of those that
    `thoughtline models` lists. Starts the gateway if none runs; it stays, for the next tool and for
    looking at what happened, until `thoughtline stop`. The tool gets its settings as variables or
    arguments, for this run only. Where it reads them from a file alone (Gemini CLI, pi), they are
    put there with a backup and taken back at the end; if the run was cut off, --restore does that.
    The exit code is the tool's own.
    """
    if name is None:
        _list_tools()
        return
    tool = find_tool(name)
    if tool is None:
        raise unknown_tool(name)
    if restore:
        _restore(tool)
    elif only_print:
        _print(_Wish(tool, model, effort, config), arguments)
    else:
        raise SystemExit(_launch(_Wish(tool, model, effort, config), arguments))


def _list_tools() -> None:
    width = max(len(tool.name) for tool in TOOLS)
    for tool in TOOLS:
        here = "" if shutil.which(tool.executable) else f"   not installed: {tool.install}"
        click.echo(f"{tool.name:{width}}  {tool.title}{here}")


# -- what is set ---------------------------------------------------------------------------------


class _Wish(NamedTuple):
    """What the command line says."""

    tool: LaunchTool
    model: str
    effort: str
    config: str | None

    def settings(self) -> Settings:
        from pathlib import Path

        from thoughtline.gateway.settings import load

        return load({"config": self.config}, os.environ, Path.cwd())

    def plan(self, settings: Settings, url: str) -> LaunchPlan:
        from thoughtline.cli.launch_plan import make_plan

        return make_plan(self.tool, self.model, settings, os.environ, url, effort=self.effort)


def _print(wish: _Wish, arguments: tuple[str, ...]) -> None:
    from msgspec.structs import replace

    from thoughtline.cli.launch_config import with_entry
    from thoughtline.cli.launch_plan import NO_KEY
    from thoughtline.cli.local_gateway import address

    tool, settings = wish.tool, wish.settings()
    plan = wish.plan(settings, address(settings.server.host, settings.server.port))
    if settings.access.clients:
        keys = {client.key.reveal() for client in settings.access.clients.values()} - {NO_KEY}
        hidden = {n: _SHOWN if v in keys else v for n, v in plan.variables.items()}
        plan = replace(plan, variables=hidden)
    for line in shell_lines(plan, "sh"):
        click.echo(line)
    if tool.config and plan.config_file:
        click.echo(f"# {plan.config_file}:")
        click.echo(with_entry(plan.config_file, tool.config.path, plan.config_value))
    click.echo(shlex.join([tool.executable, *plan.arguments, *arguments]))


def _restore(tool: LaunchTool) -> None:
    from thoughtline.cli.launch_config import restore_entry
    from thoughtline.cli.launch_plan import config_file

    file = config_file(tool, os.environ)
    if tool.config is None or file is None:
        click.echo(f"{tool.title} has no file that is written; there is nothing to take back.")
    elif restore_entry(file, tool.config.path, tool.config.value):
        click.echo(f"{file} is as it was before.")
    else:
        click.echo(f"{file} has nothing of Thoughtline in it; there is nothing to take back.")


# -- the run -------------------------------------------------------------------------------------


def _launch(wish: _Wish, arguments: tuple[str, ...]) -> int:
    from thoughtline.cli.launch_gateway import ensure_gateway
    from thoughtline.gateway.settings import mask

    tool = wish.tool
    executable = shutil.which(tool.executable)
    if executable is None:
        click.echo(
            f"Error: there is no {tool.executable!r} on your PATH; "
            f"it comes with\n    {tool.install}",
            err=True,
        )
        return NOT_INSTALLED
    settings = wish.settings()
    if not wish.model and not arguments and sys.stdin.isatty() and sys.stderr.isatty():
        wish = wish._replace(model=_pick_model(tool, settings))
    _refuse_without_key(wish.plan(settings, ""), settings)
    _end_on_signal()
    running = ensure_gateway(settings, ["--config", wish.config] if wish.config else [])
    plan = wish.plan(settings, running.url)
    _say_before(plan, running, mask(settings.store.url))
    running.begin()
    with _config(plan):
        code = _run([executable, *plan.arguments, *arguments], plan)
    _say_after(running)
    return code


def _pick_model(tool: LaunchTool, settings: Settings) -> str:
    """Ask which model is wanted; empty: the tool's own."""
    from thoughtline.cli.askable_models import askable, model_line
    from thoughtline.providers.known_providers import SIMULATED

    ready = [one for one in askable(settings) if one.ready and one.models]
    if any(one.key for one in ready):  # else there are simulated ones, which need none
        ready = [one for one in ready if one.name != SIMULATED]
    known = [model for one in ready for model in one.models]
    width = max(len(model.name) for model in known)
    own = [f"{tool.title}'s own models"] if tool.home and not tool.default else []
    lines = own + [model_line(model, width) for model in known]
    names = ["" for _ in own] + [model.name for model in known]
    for number, line in enumerate(lines, 1):
        click.echo(f"{number:3}  {line}", err=True)
    first = names.index(tool.default) + 1 if tool.default in names else 1
    while True:
        asked = "Which one? A number, or any other UPSTREAM/MODEL"
        chosen: str = click.prompt(asked, default=str(first), err=True).strip()
        if not chosen.isdecimal():
            return chosen
        if 1 <= int(chosen) <= len(names):
            return names[int(chosen) - 1]
        click.echo(f"Choose one of 1 to {len(names)}.", err=True)


def _refuse_without_key(plan: LaunchPlan, settings: Settings) -> None:
    """A gateway that is still to be started will have no other keys than those found here."""
    from thoughtline.cli.background import BackgroundGateway
    from thoughtline.cli.launch_gateway import runs_elsewhere

    if not plan.missing_key or runs_elsewhere(settings):
        return
    if BackgroundGateway(settings.server.port, os.environ).state() is None:
        raise click.ClickException(
            f"no key for {plan.chosen.upstream} was found; set {' or '.join(plan.missing_key)}, "
            "or try it offline with --model sim/deepseek"
        )


def _say_before(plan: LaunchPlan, running: LaunchGateway, store: str) -> None:
    import thoughtline

    chosen, state = plan.chosen, running.state
    where = "started, and stays" if running.started else "running already"
    what = f"{chosen.model} at {chosen.upstream}" if chosen.model else chosen.upstream
    _say(f"{plan.tool.title} → {running.url} ({where}) → {what}")
    if plan.missing_key:
        _say(f"no key in {' or '.join(plan.missing_key)}: the running gateway must have its own")
    if state is not None and state.store != store:
        _say(f"it was started with other settings, and keeps sessions in {state.store}")
    if state is not None and state.version != thoughtline.__version__:
        _say(f"it is of version {state.version}; `thoughtline stop` makes room for the new one")


@contextlib.contextmanager
def _config(plan: LaunchPlan) -> Iterator[None]:
    """The entry in the tool's own file, as long as the tool runs."""
    from thoughtline.cli.launch_config import backup_of, restore_entry, write_entry

    file, entry = plan.config_file, plan.tool.config
    if file is None or entry is None:
        yield
        return
    try:
        if write_entry(file, entry.path, plan.config_value):
            _say(f"changed {file} for this run; as it was: {backup_of(file).name}")
        yield
    finally:
        restore_entry(file, entry.path, entry.value)


def _run(command: list[str], plan: LaunchPlan) -> int:
    """Run the tool in the foreground; its exit code, as a shell would give it."""
    process = subprocess.Popen(command, env=plan.environment(os.environ))  # noqa: S603 (the user's own)

    def pass_on(number: int, _: object) -> None:
        if process.poll() is None:
            process.send_signal(number)

    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches the tool by itself
    terminate = signal.signal(signal.SIGTERM, pass_on)
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, terminate)
    return 128 - code if code < 0 else code


def _end_on_signal() -> None:
    """End by a signal as by Ctrl-C, so that neither gateway nor entry is left behind."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):  # a closed terminal
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)


def _say_after(running: LaunchGateway) -> None:
    kept = running.kept()
    page = f"{running.url}/inspect"
    if kept is None:
        _say(f"what was kept is at {page}")
        return
    failed = running.failed() if kept.sessions else running.failed_at_last()
    if failed:
        count = "1 request" if len(failed) == 1 else f"{len(failed)} requests"
        _say(f"{count} failed, the last one with {failed[0]}")
    if not kept.sessions:
        reached = "nothing was kept" if failed else "no request reached the gateway"
        _say(f"{reached}; what happened is at {page}")
        return
    plural = "" if kept.thoughts == 1 else "s"
    sessions = "1 session" if len(kept.sessions) == 1 else f"{len(kept.sessions)} sessions"
    why = ": the model was not asked to think, or did not; --effort high asks it"
    why = "" if kept.thoughts else why
    _say(f"{kept.thoughts} thought{plural} kept, in {sessions}{why}")
    _say(f"look: thoughtline show {kept.sessions[0]}, or {page}#/sessions/{kept.sessions[0]}")


def _say(text: str) -> None:
    """Speak beside what the tool prints."""
    click.echo(click.style(f"thoughtline: {text}", dim=True), err=True)

"""The command line. The module of a command is imported when it is called."""

import importlib
import keyword
from typing import Any

import click

import thoughtline
from thoughtline.errors import ThoughtlineError, did_you_mean

COMMANDS = {
    "serve": "Run the gateway.",
    "start": "Start the gateway in the background.",
    "stop": "Stop the gateway in the background.",
    "status": "Say whether the gateway runs, and how it is.",
    "logs": "Show what the gateway in the background has said.",
    "launch": "Run Claude Code, Codex, Gemini CLI, opencode, … through the gateway.",
    "models": "List what can be asked for here, by provider.",
    "env": "Print what points a tool at the gateway, for a shell.",
    "demo": "Show what gets lost without Thoughtline, and kept with it.",
    "sim": "Serve strict simulated providers.",
    "init": "Write a commented settings file.",
    "doctor": "Say what is configured, reachable and wrong.",
    "verify": "Check a policy row against its provider.",
    "chat": "Talk with a model, with or without tools.",
    "requests": "List requests: answered, refused, failed and running.",
    "sessions": "List sessions.",
    "show": "Show a session as a conversation.",
    "tail": "Show events as they are written.",
    "fork": "Go on from any turn, in a new session.",
    "export": "Write a session as lines of JSON.",
    "import": "Read sessions from lines of JSON.",
    "delete": "Delete sessions.",
    "cache": "Show or clear what can be put back.",
    "erase": "Erase thoughts from the log, for good.",
    "index": "Check or rebuild the look-up index.",
    "store": "Bring a store up to date, copy it, back it up, look through it.",
    "keys": "Make, list and change the keys that seal a store.",
}
"""Name → one line of help; the module of the same name holds the command."""

_MODULES = {
    **dict.fromkeys(("show", "tail", "fork", "export", "import"), "sessions"),
    **dict.fromkeys(("stop", "status", "logs"), "start"),
    "delete": "deletion",
    "erase": "cache",
}
"""Commands that share a module."""


class CommandGroup(click.Group):
    """Imports a command only when it is called, so that `--help` is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order people meet them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error that a user can do something about is not a stack trace.

        Ctrl-C ends every command with 130, as shells expect.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader closed the pipe: click ends quietly
        except (KeyboardInterrupt, click.Abort):
            click.echo(err=True)
            raise SystemExit(130) from None
        except (OSError, ThoughtlineError) as error:
            raise click.ClickException(str(error)) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a misspelt one gets a suggestion."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS, "`thoughtline --help` lists them")
            ctx.fail(f"there is no command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"thoughtline.cli.{_MODULES.get(cmd_name, cmd_name)}")
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(module, name)
        command.short_help = COMMANDS[cmd_name]
        return command


# \b keeps click from filling a paragraph.
_HELP = """Keep a model's reasoning alive from turn to turn.

\b
Start here:
    thoughtline serve    the gateway; then point a client's base URL at it
    thoughtline launch   Claude Code, Codex and others, pointed at the gateway for you
    thoughtline demo     a client that strips thoughts, without and with Thoughtline
    thoughtline sim      strict simulated providers, to test your own client with
    thoughtline chat     a conversation that is kept, with a simulated or a real model
"""


@click.group(
    cls=CommandGroup,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(thoughtline.__version__, prog_name="thoughtline")
def main() -> None:
    """The command line."""

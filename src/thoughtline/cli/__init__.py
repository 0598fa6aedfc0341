"""The command line. Each command is a module of its own, imported when it is called."""

import importlib
import keyword
from typing import Any

import click

import thoughtline

COMMANDS = {
    "serve": "Run the gateway.",
    "demo": "Show what gets lost without Thoughtline, and kept with it.",
    "sim": "Serve strict simulated providers.",
    "init": "Write a commented settings file.",
    "doctor": "Say what is configured, reachable and wrong.",
    "verify": "Check a policy row against its provider.",
    "chat": "Talk with a model, with or without tools.",
    "sessions": "List sessions.",
    "show": "Show a session as a conversation.",
    "tail": "Show events as they are written.",
    "fork": "Go on from any turn, in a new session.",
    "export": "Write a session as lines of JSON.",
    "import": "Read sessions from lines of JSON.",
}
"""Name → one line of help; the module of the same name holds the command (`import_`: `import`)."""


class Commands(click.Group):
    """A group that imports a command only when it is needed: `--help` stays instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order people meet them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a full disk or a folder that is not ours is a sentence, too."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # whoever read has enough: click ends quietly
        except OSError as error:
            raise click.ClickException(str(error)) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        module = importlib.import_module(f"thoughtline.cli.{name}")
        command: click.Command = getattr(module, name)
        return command


# \b keeps click from filling a paragraph.
_HELP = """Keep a model's reasoning alive from turn to turn.

\b
Start here:
    thoughtline serve    the gateway; then point a client's base URL at it
    thoughtline demo     a client that strips thoughts, without and with Thoughtline
    thoughtline sim      strict simulated providers, to test your own client with
    thoughtline chat     a conversation that is kept, with a simulated or a real model
"""


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(thoughtline.__version__, prog_name="thoughtline")
def main() -> None:
    """The command line."""

"""Parts of the reference that are made from the code: settings, providers, commands.

A page holds each part between two marks; `refresh` puts the part of today there and leaves the rest
alone. `make docs` writes the pages, and a test fails when they drift.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from thoughtline.cli import COMMANDS, main
from thoughtline.settings.providers import PROVIDERS
from thoughtline.settings.schema import ANY, KEYS, TITLES, Key, dotted
from thoughtline.settings.sources import PREFIX, SHORT
from thoughtline.settings.templates import default
from thoughtline.settings.values import short

WIDTH = 90
_PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PLACEHOLDERS = {"headers": "HEADER", "endpoints": "DIALECT"}


def refresh(text: str) -> str:
    """A page with its parts as the code has them."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _path(key: Key) -> str:
    """A key's path with something readable for what a person chooses."""
    return dotted(
        _PLACEHOLDERS.get(before, "NAME") if name == ANY else name
        for before, name in zip(("", *key.path), key.path, strict=False)
    )


def settings() -> str:
    """A table for every table of the file."""
    parts = []
    for name, title in TITLES.items():
        rows = [
            (f"`{_path(key)}`", short(key), _default(key), key.about)
            for key in KEYS
            if key.path[0] == name
        ]
        table = _table(("key", "kind", "default", "meaning"), rows)
        parts.append(f"### [{name}]\n\n{title}\n\n{table}\n")
    return "\n" + "\n".join(parts)


def _default(key: Key) -> str:
    chosen = key.path[-1] == ANY or (ANY in key.path and key.path[-1] in ("key", "base_url"))
    return "" if chosen else f"`{default(key)}`"


def names() -> str:
    """The short names of flags and variables."""
    rows = [(f"`{PREFIX}{short.upper()}`", f"`{dotted(path)}`") for short, path in SHORT.items()]
    return "\n" + _table(("variable", "same as"), rows) + "\n"


def providers() -> str:
    """Which providers are known."""
    rows = [
        (
            f"`{provider.name}`",
            f"`{provider.base_url}`",
            ", ".join(f"`{key}`" for key in provider.keys),
            ", ".join(f"`{model}`" for model in provider.models)
            + (" (with a key)" if provider.host else ""),
        )
        for provider in PROVIDERS
    ]
    return "\n" + _table(("name", "address", "key from", "models"), rows) + "\n"


def commands() -> str:
    """What `--help` says, command by command."""
    parts = [_help(main, "thoughtline")]
    context = click.Context(main, info_name="thoughtline")
    for name in COMMANDS:
        command = main.get_command(context, name)
        if command is not None:
            parts.append(f"## {name}\n\n{_help(command, name, context)}")
    return "\n" + "\n".join(parts)


def _help(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    return f"```text\n{command.get_help(context)}\n```\n"


PARTS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "names": names,
    "providers": providers,
    "commands": commands,
}
"""What a mark may name."""


def rewrite(folder: Path) -> list[Path]:
    """Refresh every page under a folder; returns those that changed."""
    changed = []
    for page in sorted(folder.rglob("*.md")):
        text = page.read_text("utf-8")
        if (fresh := refresh(text)) != text:
            page.write_text(fresh, "utf-8")
            changed.append(page)
    return changed


if __name__ == "__main__":
    for page in rewrite(Path(sys.argv[1])):
        click.echo(page)

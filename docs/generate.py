"""Generates the parts of the reference that come from the code: settings, commands, library.

A page holds each part between two marks; `refresh` replaces what is between them and leaves the
rest alone. `make docs` writes the pages, and a test fails when they drift.
"""

import inspect
import re
import runpy
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from thoughtline.cli import main
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import OutputFormat, RequestParams, ToolChoice, ToolSpec
from thoughtline.gateway.settings.keys import ANY, KEYS, TITLES, Key, dotted
from thoughtline.gateway.settings.sources import PREFIX, SHORT
from thoughtline.gateway.settings.values import default
from thoughtline.log.capabilities import Capabilities
from thoughtline.providers.known_providers import PROVIDERS

_PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PLACEHOLDERS = {"headers": "HEADER", "endpoints": "DIALECT"}


def refresh(text: str) -> str:
    """A page with its generated parts brought up to date."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", text)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _path(key: Key) -> str:
    """A key's path with a readable placeholder for a name that the user chooses."""
    return dotted(
        _PLACEHOLDERS.get(before, "NAME") if name == ANY else name
        for before, name in zip(("", *key.path), key.path, strict=False)
    )


def settings() -> str:
    """A table for every table of the file."""
    parts = []
    for name, title in TITLES.items():
        rows = [
            (f"`{_path(key)}`", _kind(key), _default(key), key.about)
            for key in KEYS
            if key.path[0] == name
        ]
        table = _table(("key", "kind", "default", "meaning"), rows)
        parts.append(f"### [{name}]\n\n{title}\n\n{table}\n")
    return "\n" + "\n".join(parts)


def _kind(key: Key) -> str:
    """What a key takes, in a word or two."""
    kind: str = key.kind
    if key.kind == "bool":
        kind = "true or false"
    elif key.kind == "choice":
        kind = f"{', '.join(key.choices[:-1])} or {key.choices[-1]}"
    elif key.kind == "number" and key.bounds.le is not None:
        kind = f"{key.bounds.ge} to {key.bounds.le}"
    return f"{kind} or none" if key.optional else kind


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
            + (" (with a key)" if provider.host and provider.models else ""),
        )
        for provider in PROVIDERS
    ]
    return "\n" + _table(("name", "address", "key from", "models"), rows) + "\n"


_ASKED = RequestParams(
    effort="high",
    max_tokens=1000,
    temperature=0.5,
    top_p=0.5,
    top_k=5,
    seed=7,
    frequency_penalty=0.5,
    presence_penalty=0.5,
    stop=("END",),
    output_format=OutputFormat(schema={"type": "object"}),
    verbosity="low",
    parallel_calls=False,
    tools=(ToolSpec(name="run"),),
    tool_choice=ToolChoice(mode="auto"),
)
"""A request that asks for everything."""
_ASKED_NAMES = {"parallel_calls": "parallel_tool_calls", "output_format": "structured output"}
_NOT_ASKED = frozenset({"tools", "model", "stream", "system", "inputs", "left", "refused"})


def translation() -> str:
    """What each dialect's providers can be told, as the code has it."""
    names = [
        name
        for name in RequestParams.__struct_fields__
        if name not in _NOT_ASKED and not name.startswith("wants_")
    ]
    left = {
        name: dialect.param_fields(_ASKED, Capabilities()).left
        for name, dialect in DIALECTS.items()
    }
    rows = [
        (
            _ASKED_NAMES.get(name, name),
            *("left" if _ASKED_NAMES.get(name, name) in left[d] else "yes" for d in DIALECTS),
        )
        for name in names
    ]
    head = ("asked for", *(f"to {name}" for name in DIALECTS))
    return "\n" + _table(head, rows) + "\n"


_TOLD = runpy.run_path(str(Path(__file__).with_name("generate_answers.py")))


def answers() -> str:
    """Where clients of other dialects find what an answer says."""
    head = ("said", "by", *(f"to {name}" for name in DIALECTS))
    return "\n" + _table(head, _TOLD["answers"]()) + "\n"


def errors() -> str:
    """What clients of other dialects are told of an error."""
    head = ("what happened", "status", *(f"to {name}" for name in DIALECTS))
    return "\n" + _table(head, _TOLD["errors"]()) + "\n"


TOPICS: Mapping[str, tuple[str, ...]] = {
    "Run the gateway": ("serve", "start", "stop", "status", "logs", "init", "doctor"),
    "Use it": ("launch", "env", "models", "chat"),
    "Look at what happened": ("requests", "sessions", "show", "tail"),
    "Change what is stored": ("fork", "export", "import", "delete", "cache", "erase"),
    "Keep a store": ("store", "index", "keys"),
    "Try providers": ("demo", "sim", "verify"),
}
"""Every command, below what a person wants to do."""
_EVERYWHERE = frozenset({"--config PATH", "--store URL", "--json", "--yes"})
"""Options that the page's beginning explains."""


def commands() -> str:
    """The commands by topic: what each does, how it is called, and its own options."""
    context = click.Context(main, info_name="thoughtline")
    parts: list[str] = []
    shown: dict[str, _Options] = {}
    for topic, names in TOPICS.items():
        parts.append(f"## {topic}\n")
        for name in names:
            command = main.get_command(context, name)
            if command is None:
                raise LookupError(name)
            parts.append(f"### {name}\n\n{_command(command, f'thoughtline {name}', shown)}")
            if isinstance(command, click.Group):
                parts += [
                    _command(one, f"thoughtline {name} {own}", shown, called=True)
                    for own, one in command.commands.items()
                ]
    return "\n" + "\n".join(parts)


_Options = Sequence[tuple[str, str]]
_EXIT = re.compile(r"\b(?:Ends with|exit code)\b")


def _command(
    command: click.Command, name: str, shown: dict[str, _Options], *, called: bool = False
) -> str:
    """Its first paragraph, exit codes, examples, and options that no earlier one has explained."""
    first, *more = inspect.cleandoc(command.help or "").split("\n\n")
    context = click.Context(command, info_name=name)
    arguments = " ".join(piece for piece in command.collect_usage_pieces(context)[1:] if piece)
    usage = f"`{f'{name} {arguments}'.strip()}`: " if called or arguments else ""
    text = [usage + " ".join(first.split())]
    text += [
        _example(part) if part.startswith("\b") else " ".join(part.split())
        for part in more
        if part.startswith("\b") or part.endswith(":") or _EXIT.search(part)
    ]
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    records = [one.get_help_record(context) for one in options]
    own = [one for one in records if one and one[0] not in _EVERYWHERE and "--help" not in one[0]]
    same = next((other for other, known in shown.items() if own and set(own) <= set(known)), "")
    shown[name] = own
    if same:
        text.append(f"Options: as for `{same}`." if set(own) == set(shown[same]) else "")
    if own and not (same and set(own) == set(shown[same])):
        text.append(_table(("option", "meaning"), [(f"`{one}`", about) for one, about in own]))
    return "\n\n".join(filter(None, text)) + "\n"


def _example(part: str) -> str:
    lines = textwrap.dedent(part.removeprefix("\b\n")).splitlines()
    return "\n".join(["```text", *(line.rstrip() for line in lines), "```"])


library: Callable[[], str] = runpy.run_path(str(Path(__file__).with_name("generate_library.py")))[
    "library"
]
"""The reference of the library."""

PARTS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "names": names,
    "providers": providers,
    "commands": commands,
    "library": library,
    "translation": translation,
    "answers": answers,
    "errors": errors,
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

"""Generates the reference of the library from its public names and their docstrings."""

import ast
import enum
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

import thoughtline

SECTIONS: dict[str, tuple[str, ...]] = {
    "Sessions": ("open", "Log", "Chat", "Run", "Answer", "Session", "SessionSummary"),
    "Providers": ("Provider",),
    "Tools": ("tool", "Tool", "Ask", "Verdict"),
    "What a run tells": (
        "Event",
        "TextDelta",
        "ReasoningDelta",
        "ReasoningStart",
        "ReasoningEnd",
        "ToolCallDelta",
        "Keepalive",
        "Outcome",
        "Usage",
    ),
    "What a turn is made of": (
        "Turn",
        "Text",
        "Thought",
        "Call",
        "Result",
        "Decision",
        "Blob",
        "Origin",
        "Timing",
    ),
    "What was put back": ("ReplayDecision", "Action", "MatchLevel"),
}
"""The names of `import thoughtline`, errors aside, in the order people meet them."""

MODULES = ("thoughtline.agents.ui", "thoughtline.transports", "thoughtline.testing")
"""Other modules that people may import from."""

_INTERNAL = frozenset({"account", "endpoint", "socket", "wire", "over"})
"""Public methods that the library itself needs."""


def library() -> str:
    """The reference: every public name with what it takes, what it has and what it does."""
    parts = []
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(thoughtline, name)) for name in names]
    parts.append(f"## Errors\n\n{_errors()}\n")
    parts += [_module(name) for name in MODULES]
    return "\n" + "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    lines = [f"### {name}\n"]
    if inspect.isfunction(thing):
        lines += [_code(f"thoughtline.{name}{_signature(thing)}"), _text(thing)]
        return "\n".join(lines)
    lines.append(_text(thing))
    if issubclass(thing, enum.Enum):
        lines.append("Values: " + ", ".join(f"`{one.value}`" for one in thing) + ".\n")
        return "\n".join(lines)
    if fields := list(_fields(thing)):
        rows = [f"| `{name}` | `{_cell(kind)}` | {about} |" for name, kind, about in fields]
        lines.append("\n".join(["| field | type | meaning |", "|---|---|---|", *rows]) + "\n")
    for member, value in _members(thing):
        lines.append(_member(member, value))
    return "\n".join(lines)


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"**`.{name}`** {_text(value)}"
    function = value.__func__ if isinstance(value, classmethod) else value
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    return f"{_code(f'{prefix}{name}{_signature(function)}')}\n{_text(function)}"


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, in the order they are written."""
    for name, value in vars(cls).items():
        if name.startswith("_") or name in _INTERNAL:
            continue
        if isinstance(value, property | classmethod) or inspect.isfunction(value):
            yield name, value


def _fields(cls: type) -> Iterator[tuple[str, str, str]]:
    """The fields of a struct with their types, defaults and the comments beside them."""
    if not issubclass(cls, msgspec.Struct):
        return
    for owner in reversed(cls.__mro__):
        if owner is msgspec.Struct or not issubclass(owner, msgspec.Struct):
            continue
        source = textwrap.dedent(inspect.getsource(owner))
        lines = source.splitlines()
        for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                about = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
                kind = ast.unparse(node.annotation)
                default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
                yield node.target.id, kind + default, _cell(about)


def _signature(function: Any) -> str:
    """A signature as it is written, without `self`, one parameter a line if it is long."""
    source = textwrap.dedent(inspect.getsource(function))
    node = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    arguments = node.args
    arguments.args = [one for one in arguments.args if one.arg not in ("self", "cls")]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    returns = returns.replace("'", "")
    flat = f"({ast.unparse(arguments)}){returns}"
    if len(flat) <= 80:
        return flat
    pieces = re.split(r", (?![^\[(]*[\])])", ast.unparse(arguments))
    return "(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){returns}"


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"


def _text(thing: Any) -> str:
    """A docstring, with its arguments as a list."""
    about, _, arguments = (inspect.getdoc(thing) or "").partition("\nArgs:\n")
    text = about.strip() + "\n"
    if arguments:
        entries = re.split(r"\n(?=    \w+: )", "\n" + arguments.rstrip())
        words = [" ".join(entry.split()) for entry in entries if entry.strip()]
        items = [f"- `{name}`: {said}" for name, _, said in map(_pair, words)]
        text += "\n" + "\n".join(items) + "\n"
    return text


def _pair(entry: str) -> tuple[str, str, str]:
    return entry.partition(": ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip()


def _errors() -> str:
    """The public errors as a tree."""
    public = {
        getattr(thoughtline, name)
        for name in thoughtline.__all__
        if inspect.isclass(getattr(thoughtline, name))
        and issubclass(getattr(thoughtline, name), Exception)
    }

    def lines(cls: type, depth: int) -> Iterator[str]:
        others = [base.__name__ for base in cls.__bases__ if base.__module__ == "builtins"]
        also = f" (also a `{others[0]}`)" if others and others[0] != "Exception" else ""
        yield f"{'  ' * depth}- `{cls.__name__}`{also}: {(cls.__doc__ or '').strip()}"
        derived: list[type] = cls.__subclasses__()
        below = [one for one in derived if one in public]
        for one in sorted(below, key=lambda one: one.__name__):
            yield from lines(one, depth + 1)

    return "\n".join(lines(thoughtline.ThoughtlineError, 0))


def _module(name: str) -> str:
    module = importlib.import_module(name)
    rows = []
    for public in module.__all__:
        value = getattr(module, public)
        callable_ = inspect.isfunction(value) or inspect.isclass(value)
        about = (inspect.getdoc(value) or "").split("\n\n")[0] if callable_ else "A value."
        rows.append(f"| `{public}` | {_cell(' '.join(about.split()))} |")
    about = (inspect.getdoc(module) or "").split("\n\n")[0]
    table = "\n".join(["| name | what it is |", "|---|---|", *rows])
    return f"## {name}\n\n{about}\n\n{table}\n"

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
        return "\n".join([*lines, _function(f"thoughtline.{name}", thing)])
    lines.append(f"{(inspect.getdoc(thing) or '').strip()}\n")
    if issubclass(thing, enum.Enum):
        lines.append("Values: " + ", ".join(f"`{one.value}`" for one in thing) + ".\n")
        return "\n".join(lines)
    if fields := list(_fields(thing)):
        lines.append(_code("\n".join(_joined(fields))))
    members = [_member(member, value) for member, value in _members(thing)]
    # A list first: what takes a line for each parameter stands for itself, below.
    lines += [member for member in members if member.startswith("- ")]
    lines += [f"\n{member.strip()}" for member in members if not member.startswith("- ")]
    return "\n".join(lines) + "\n" * bool(members)


def _joined(fields: list[str]) -> Iterator[str]:
    """The fields in their order; neighbours that need no comment share a line."""
    line = ""
    for field in fields:
        commented = "  # " in field
        if line and (commented or len(line) + len(field) > 88):
            yield line
            line = ""
        if commented:
            yield field
        else:
            line = f"{line}, {field}" if line else field
    if line:
        yield line


def _member(name: str, value: Any) -> str:
    if isinstance(value, property):
        return f"- `.{name}`: {_first(inspect.getdoc(value) or '')}"
    return _function(name, value.__func__ if isinstance(value, classmethod) else value)


def _function(name: str, function: Any) -> str:
    """A call with what it does: in one paragraph, or with a line for each parameter."""
    prefix = "await " if inspect.iscoroutinefunction(function) else ""
    about, _, arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    explained = dict(_arguments(arguments))
    if not explained:
        return f"- `{prefix}{name}{_signature(function)}`: {_first(about)}"
    return f"{_first(about)}\n\n{_code(prefix + name + _lines(function, explained))}"


def _first(text: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(text.strip().split("\n\n")[0].split())


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    """The names and meanings of a docstring's `Args:`."""
    for entry in re.split(r"\n(?=    \w+: )", "\n" + text.rstrip()):
        if entry.strip():
            name, _, about = " ".join(entry.split()).partition(": ")
            yield name, about


def _lines(function: Any, explained: dict[str, str]) -> str:
    """A signature with one parameter a line, and its meaning beside it."""
    node = _definition(function)
    lines, elsewhere = list[str](), dict[str, list[str]]()
    for piece in re.split(r", (?![^\[(]*[\])])", ast.unparse(node.args)):
        name = re.split(r"[:=]", piece)[0].strip()
        about = explained.get(name, "").removesuffix(".")
        if about.startswith("as for"):
            elsewhere.setdefault(about.partition(":")[0], []).append(name)
        else:
            lines.append(f"    {piece},  # {about}" if about else f"    {piece},")
    lines += [f"    {', '.join(names)},  # {about}" for about, names in elsewhere.items()]
    return "(\n" + "\n".join(lines) + f"\n){_returns(node)}"


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, in the order they are written."""
    for name, value in vars(cls).items():
        if name.startswith("_") or name in _INTERNAL:
            continue
        if isinstance(value, property | classmethod) or inspect.isfunction(value):
            yield name, value


def _fields(cls: type) -> Iterator[str]:
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
                yield f"{node.target.id}: {kind}{default}" + (f"  # {about}" if about else "")


def _signature(function: Any) -> str:
    """A signature as it is written, without `self`."""
    node = _definition(function)
    return f"({ast.unparse(node.args)}){_returns(node)}"


def _definition(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef:
    source = textwrap.dedent(inspect.getsource(function))
    node = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    node.args.args = [one for one in node.args.args if one.arg not in ("self", "cls")]
    return node


def _returns(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return returns.replace("'", "")


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"


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

"""What a tool takes, as JSON Schema, read from a plain Python signature and its docstring.

Types are msgspec's: builtins, `Literal`, enums, dataclasses, `TypedDict`, structs, and anything in
`Annotated[…, Meta(description=…)]`; paths, too. A class that can describe itself
(`model_json_schema`) and read itself (`model_validate`) takes part without being known here. What a
docstring says under `Args:` describes the parameters. Schemas are written without references where
that is possible, since not every provider follows them.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta, Struct

from thoughtline.errors import ThoughtlineError

Schema = dict[str, Any]
_PRIMITIVES = (str, int, float, bool, type(None))
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_REF = "#/$defs/"
_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?: ?\([^)]*\))?: *(.*)")
_SECTION = re.compile(r"[A-Z]\w*(?: \w+)?:$")


class Signature(Struct, frozen=True, kw_only=True):
    """What a function takes."""

    arguments: type[Struct]  # one field a parameter
    schema: Schema
    description: str
    open: bool = False  # takes any other keyword, too


def signature(function: Callable[..., Any], name: str) -> Signature:
    """Read a function's signature; raises for one that cannot be called by keywords."""
    hints = _hints(function, name)
    about, described = documentation(inspect.getdoc(_plain(function)) or "")
    fields: list[tuple[str, Any, Any]] = []
    takes_more = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_more = True
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ThoughtlineError(
                f"tool {name!r}: {str(parameter)!r} cannot be given by name; "
                "a tool's parameters are named ones"
            )
        hint = _described(hints.get(parameter.name, Any), described.get(parameter.name, ""))
        fields.append((parameter.name, hint, _default(parameter)))
    arguments = msgspec.defstruct(
        "arguments", fields, kw_only=True, forbid_unknown_fields=not takes_more
    )
    return Signature(
        arguments=arguments, schema=_schema(arguments, name), description=about, open=takes_more
    )


def _plain(function: Callable[..., Any]) -> Any:
    """The function itself, behind a partial application or an object that can be called."""
    if isinstance(function, partial):
        return _plain(function.func)
    named = inspect.isroutine(function) or inspect.isclass(function)
    return function if named else type(function).__call__


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(_plain(function), include_extras=True)
    except (NameError, TypeError) as error:
        raise ThoughtlineError(
            f"tool {name!r}: its annotations cannot be read: {error}; "
            "types have to be known where the function is defined"
        ) from error


def _described(hint: Any, text: str) -> Any:
    for note in getattr(hint, "__metadata__", ()):
        if isinstance(note, str):
            text = note
        elif isinstance(note, Meta) and note.description:
            return hint
    return Annotated[hint, Meta(description=text)] if text else hint


def _default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if default is parameter.empty:
        return msgspec.NODEFAULT
    if isinstance(default, _PRIMITIVES):
        return default
    return msgspec.field(default_factory=lambda: default)


# -- docstrings ----------------------------------------------------------------------------------


def documentation(text: str) -> tuple[str, dict[str, str]]:
    """A docstring's words about the function, and about each parameter under `Args:`."""
    about: list[str] = []
    described: dict[str, str] = {}
    section, indent, last = "", 0, ""
    for line in text.splitlines():
        words, depth = line.strip(), len(line) - len(line.lstrip())
        if depth == 0 and _SECTION.fullmatch(words):
            section, indent, last = words, 0, ""
        elif section in ("Args:", "Arguments:", "Parameters:") and words:
            indent = indent or depth
            found = _ARGUMENT.fullmatch(words) if depth == indent else None
            if found:
                last = found[1]
                described[last] = found[2]
            elif last:
                described[last] = f"{described[last]} {words}".strip()
        elif not section:
            about.append(words)
    return "\n".join(about).strip(), described


# -- schemas -------------------------------------------------------------------------------------


def _schema(arguments: type[Struct], name: str) -> Schema:
    try:
        made = msgspec.json.schema(arguments, schema_hook=_hook)
    except (TypeError, NotImplementedError) as error:
        which = str(error).rpartition("\n")[2]  # before it: advice to those who use msgspec
        raise ThoughtlineError(
            f"tool {name!r}: no schema can be made of its parameters: {which}; use plain types, "
            "dataclasses, TypedDicts or Pydantic's models, or give a JSON Schema as `parameters`"
        ) from error
    schema = inlined(made)
    for noise in ("title", "additionalProperties"):
        schema.pop(noise, None)
    return schema


def _hook(kind: type) -> Schema:
    """The schema of a class that describes itself, or of a path."""
    if kind in (Path, PurePath):
        return {"type": "string"}
    describe = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError(f"{kind!r} has no JSON Schema")
    return inlined(describe())


def read_as(kind: type, value: Any) -> Any:
    """A value as a class that reads itself, or as a path."""
    if kind in (Path, PurePath):
        if not isinstance(value, str) or "\0" in value:
            raise ValueError("Expected a path as a string")
        return kind(value)
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{kind!r} cannot be read")
    try:
        return validate(value)
    except Exception as error:  # whatever that library raises
        raise ValueError(str(error)) from error


def inlined(schema: Mapping[str, Any]) -> Schema:
    """The same schema with every reference replaced by what it refers to, unless that is endless.

    An enumeration gets its type besides: some providers insist on it.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    endless: dict[str, None] = {}

    def walk(node: Any, inside: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [walk(element, inside) for element in node]
        if not isinstance(node, dict):
            return node
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.removeprefix(_REF) in definitions:
            name = ref.removeprefix(_REF)
            if name in inside:
                endless[name] = None
                return node
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return walk({**definitions[name], **rest}, inside | {name})
        return _typed({key: walk(value, inside) for key, value in node.items() if key != "$defs"})

    made: Schema = walk(dict(schema), frozenset())
    kept: Schema = {}
    while left := [name for name in endless if name not in kept]:
        kept |= {name: walk(definitions[name], frozenset(definitions)) for name in left}
    return made | {"$defs": kept} if kept else made


def _typed(node: Schema) -> Schema:
    choices = node.get("enum")
    if not isinstance(choices, list) or "type" in node:
        return node
    kinds = {_TYPES.get(type(choice)) for choice in choices}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, **node} if kind else node

"""Makes a JSON Schema of a Python function's signature and docstring.

Types are msgspec's: builtins, `Literal`, enums, dataclasses, `TypedDict`, structs, and anything in
`Annotated[…, Meta(description=…)]`; paths, too; and any class with `model_json_schema` and
`model_validate`, such as Pydantic's models. What a docstring says under `Args:` describes the
parameters. Schemas have no references where that is possible: not every provider follows them.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta, Struct

from thoughtline.errors import ToolError

Schema = dict[str, Any]
_PRIMITIVES = (str, int, float, bool, type(None))
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_REF = "#/$defs/"
_ARGUMENT = re.compile(r"\*{0,2}(\w+)(?: ?\([^)]*\))?: *(.*)")
_SECTION = re.compile(r"[A-Z]\w*(?: \w+)?:$")


class Signature(Struct, frozen=True, kw_only=True):
    """A function's parameters and description, read by `signature`."""

    arguments: type[Struct]  # one field per parameter
    schema: Schema
    description: str
    takes_any: bool = False  # has `**keywords`: takes arguments that the schema does not name


def signature(function: Callable[..., Any], name: str) -> Signature:
    """Read a function's signature; raises for one that cannot be called with keywords alone."""
    hints = _hints(function, name)
    about, described = documentation(inspect.getdoc(_plain(function)) or "")
    fields: list[tuple[str, Any, Any]] = []
    takes_any = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ToolError(
                f"tool {name!r}: {str(parameter)!r} cannot be given by name; "
                "every parameter of a tool needs a name"
            )
        hint = _described(hints.get(parameter.name, Any), described.get(parameter.name, ""))
        fields.append((parameter.name, hint, _default(parameter)))
    arguments = msgspec.defstruct(
        "arguments", fields, kw_only=True, forbid_unknown_fields=not takes_any
    )
    return Signature(
        arguments=arguments, schema=_schema(arguments, name), description=about, takes_any=takes_any
    )


def _plain(function: Callable[..., Any]) -> Any:
    """The function behind a `functools.partial` or an object with `__call__`."""
    if isinstance(function, partial):
        return _plain(function.func)
    named = inspect.isroutine(function) or inspect.isclass(function)
    return function if named else type(function).__call__


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(_plain(function), include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolError(
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
    """Split a docstring into the function's description and those of its parameters (`Args:`)."""
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
        described = msgspec.json.schema(arguments, schema_hook=_schema_hook)
    except (TypeError, NotImplementedError) as error:
        which = str(error).rpartition("\n")[2]  # the lines before are advice about msgspec
        raise ToolError(
            f"tool {name!r}: no schema can be made of its parameters: {which}; use plain types, "
            "dataclasses, TypedDicts or Pydantic's models, or give a JSON Schema as `parameters`"
        ) from error
    schema = inline_refs(described)
    for noise in ("title", "additionalProperties"):
        schema.pop(noise, None)
    return schema


def _schema_hook(kind: type) -> Schema:
    """The schema of a path, or of a class with `model_json_schema`."""
    if kind in (Path, PurePath):
        return {"type": "string"}
    describe = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError(f"{kind!r} has no JSON Schema")
    return inline_refs(describe())


def convert_as(kind: type, value: Any) -> Any:
    """Read a value as a path, or as a class with `model_validate`."""
    if kind in (Path, PurePath):
        if not isinstance(value, str) or "\0" in value:
            raise ValueError("Expected a path as a string")
        return kind(value)
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{kind!r} cannot be read")
    try:
        return validate(value)
    except Exception as error:  # each library raises its own
        raise ValueError(str(error)) from error


def inline_refs(schema: Mapping[str, Any]) -> Schema:
    """Replace every reference in a schema by its definition, except recursive ones.

    An enumeration without a type gets one: some providers insist on it.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    recursive: dict[str, None] = {}

    def inline(node: Any, inside: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [inline(element, inside) for element in node]
        if not isinstance(node, dict):
            return node
        ref = node.get("$ref")
        if isinstance(ref, str) and ref.removeprefix(_REF) in definitions:
            name = ref.removeprefix(_REF)
            if name in inside:
                recursive[name] = None
                return node
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return inline({**definitions[name], **rest}, inside | {name})
        return _with_type(
            {key: inline(value, inside) for key, value in node.items() if key != "$defs"}
        )

    result: Schema = inline(dict(schema), frozenset())
    remaining: Schema = {}
    while missing := [name for name in recursive if name not in remaining]:
        remaining |= {name: inline(definitions[name], frozenset(definitions)) for name in missing}
    return result | {"$defs": remaining} if remaining else result


def _with_type(node: Schema) -> Schema:
    choices = node.get("enum")
    if not isinstance(choices, list) or "type" in node:
        return node
    kinds = {_TYPES.get(type(choice)) for choice in choices}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": kind, **node} if kind else node

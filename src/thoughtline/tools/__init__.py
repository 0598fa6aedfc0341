"""Tools: plain typed Python functions that a model may call.

    @tool(timeout=10)
    async def read_file(path: str) -> str:
        "Read a text file."

Any function will do without the decorator, too; its name, signature and docstring are the tool's.
`schemas` reads the signature; `running` calls a tool and makes a result of whatever happens;
`permissions` are asked before. The room above is the library's turn loop.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

import msgspec
from msgspec import Struct

from thoughtline.dialects.base import Tool as Declared
from thoughtline.errors import ThoughtlineError
from thoughtline.tools.permissions import Ask, Permission, Verdict
from thoughtline.tools.schemas import Schema, Signature, inlined, read_as, signature

__all__ = ["Ask", "Permission", "Tool", "Toolbox", "Verdict", "tool"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Tool(Struct, frozen=True, kw_only=True):
    """A function with what a model has to know about it. Made by `tool`."""

    name: str
    function: Callable[..., Any]  # plain or async
    description: str = ""
    parameters: Schema = {}
    timeout: float | None = None  # seconds; None: the chat's own limit
    signature: Signature | None = None  # None: the parameters were given
    model: Any = None  # a class that reads the arguments as one object

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Call the function as it is, as code that is no model does."""
        return self.function(*positional, **named)

    @property
    def declared(self) -> Declared:
        """What a provider is told."""
        return Declared(
            name=self.name, description=self.description, parameters=dict(self.parameters)
        )

    def read(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What to call the function with; raises `ValueError` for arguments that do not fit."""
        try:
            given = msgspec.json.decode(text) if text.strip() else {}
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ValueError(f"the arguments are not a JSON object but {text[:80]}")
        if self.model is not None:
            return (read_as(self.model, given),), {}
        if self.signature is None:
            return (), given
        try:
            read = msgspec.convert(given, self.signature.arguments, strict=False, dec_hook=read_as)
        except msgspec.ValidationError as error:
            takes = ", ".join(self.signature.arguments.__struct_fields__) or "nothing"
            raise ValueError(f"{error}; {self.name!r} takes {takes}") from error
        named = {name: getattr(read, name) for name in self.signature.arguments.__struct_fields__}
        more = {key: value for key, value in given.items() if key not in named}
        return (), named | more if self.signature.open else named


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    function: None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = None,
    parameters: Any = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = None,
    parameters: Any = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, plain or async.

    Args:
        function: what to call. Without it this is a decorator.
        name: instead of the function's own.
        description: instead of the first words of its docstring.
        timeout: seconds it may take.
        parameters: instead of its signature: a JSON Schema, whose arguments are passed on as they
            are, or a class with `model_json_schema` and `model_validate`, which gets them as one.
    """

    def make(function: Callable[..., Any]) -> Tool:
        called = name or getattr(function, "__name__", type(function).__name__)
        if not _NAME.fullmatch(called):
            raise ThoughtlineError(
                f"{called!r} is no name for a tool: letters, digits, - and _, at most 64; "
                'give it one with tool(name="…")'
            )
        read = signature(function, called) if parameters is None else None
        about = description or (read.description if read else (function.__doc__ or "").strip())
        describes = getattr(parameters, "model_json_schema", None)
        schema = read.schema if read else inlined(describes() if describes else parameters)
        return Tool(
            name=called,
            function=function,
            description=about,
            parameters=schema,
            timeout=timeout,
            signature=read,
            model=parameters if describes else None,
        )

    return make if function is None else make(function)


class Toolbox(Mapping[str, Tool]):
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            made = given if isinstance(given, Tool) else tool(given)
            if made.name in self._tools:
                raise ThoughtlineError(f"two tools are called {made.name!r}; rename one of them")
            self._tools[made.name] = made

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204 (of Mapping)
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """What a provider is told."""
        return tuple(made.declared for made in self._tools.values())

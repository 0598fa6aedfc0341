"""Tools, and a toolbox that holds them by name.

A tool is a Python function with the name, description and JSON Schema that a model is given.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from thoughtline.agents.tools.schemas import Schema, Signature, convert_as, inline_refs, signature
from thoughtline.dialects.params import ToolSpec
from thoughtline.errors import ToolError

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Tool(Struct, frozen=True, kw_only=True):
    """A function, and how it is described to a model. Made by `tool`."""

    name: str
    function: Callable[..., Any]  # plain or async
    description: str = ""
    parameters: Schema = {}
    timeout: float | None = None  # seconds; None: the chat's own
    signature: Signature | None = None  # None: `parameters` were given
    model: Any = None  # a class that validates the arguments, such as a Pydantic model

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Call the function directly, without reading arguments."""
        return self.function(*positional, **named)

    @property
    def declared(self) -> ToolSpec:
        """The tool as a dialect writes it into a request."""
        return ToolSpec(
            name=self.name, description=self.description, parameters=dict(self.parameters)
        )

    def read(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Read a call's arguments into positional and keyword arguments of the function.

        Raises `ValueError` for arguments that are not JSON or do not fit the signature.
        """
        try:
            given = msgspec.json.decode(text) if text.strip() else {}
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ValueError(f"the arguments are not JSON: {error}") from error
        if not isinstance(given, dict):
            raise ValueError(f"the arguments are not a JSON object but {text[:80]}")
        if self.model is not None:
            return (convert_as(self.model, given),), {}
        if self.signature is None:
            return (), given
        try:
            read = msgspec.convert(
                given, self.signature.arguments, strict=False, dec_hook=convert_as
            )
        except msgspec.ValidationError as error:
            takes = ", ".join(self.signature.arguments.__struct_fields__) or "nothing"
            raise ValueError(f"{error}; {self.name!r} takes {takes}") from error
        named = asdict(read)
        others = {key: value for key, value in given.items() if key not in named}
        return (), named | others if self.signature.takes_any else named


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
        function: what to call. Without it, `tool` returns a decorator.
        name: instead of the function's own.
        description: instead of the beginning of its docstring.
        timeout: seconds that a call may take.
        parameters: instead of the function's signature. Either a JSON Schema: the function gets
            the arguments as they are. Or a class with `model_json_schema` and `model_validate`:
            the function gets one object of it.
    """

    def make(function: Callable[..., Any]) -> Tool:
        tool_name = name or getattr(function, "__name__", type(function).__name__)
        if not _NAME.fullmatch(tool_name):
            raise ToolError(
                f"{tool_name!r} cannot be the name of a tool: it has at most 64 letters, digits, - "
                'and _; give it another one with tool(name="…")'
            )
        read = signature(function, tool_name) if parameters is None else None
        text = description or (read.description if read else (function.__doc__ or "").strip())
        describe = getattr(parameters, "model_json_schema", None)
        schema = read.schema if read else inline_refs(describe() if describe else parameters)
        return Tool(
            name=tool_name,
            function=function,
            description=text,
            parameters=schema,
            timeout=timeout,
            signature=read,
            model=parameters if describe else None,
        )

    return make if function is None else make(function)


class Toolbox(Mapping[str, Tool]):
    """The tools of a chat, by name."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            added = given if isinstance(given, Tool) else tool(given)
            if added.name in self._tools:
                raise ToolError(f"two tools are called {added.name!r}; rename one of them")
            self._tools[added.name] = added

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204 (of Mapping)
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def declared(self) -> tuple[ToolSpec, ...]:
        """The tools as a dialect writes them into a request."""
        return tuple(tool.declared for tool in self._tools.values())

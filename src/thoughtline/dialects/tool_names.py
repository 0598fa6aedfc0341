"""The tools of a client as plain functions, and their calls back as the client's own.

Only one dialect has tools that take free text, tools in namespaces and a search for tools. A
provider without them is told of functions with flat names; `ToolNames` is built once for a request
and used in both directions, so that they cannot disagree.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.free_text import free_text
from thoughtline.dialects.params import ToolSpec
from thoughtline.log.parts import Call, ToolKind

MAX_NAME = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""A name that every provider takes: some clients have dots and colons in theirs."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool should be able to do."},
        "limit": {"type": "integer", "description": "How many tools to list at most."},
    },
    "required": ["query"],
}


class ToolNames:
    """The functions that a provider is told of, for the tools that a client declared."""

    def __init__(self, tools: Iterable[ToolSpec]) -> None:
        self.functions: list[ToolSpec] = []
        self._by_flat: dict[str, ToolSpec] = {}
        self._flat: dict[tuple[str, str], str] = {}
        for tool in tools:
            self._add(tool)

    def _add(self, tool: ToolSpec) -> None:
        known = (tool.namespace, tool.name)
        if known in self._flat:
            return  # declared twice: the first one counts
        flat = self._unique(_flat_name(*known))
        self._flat[known] = flat
        self._by_flat[flat] = tool
        self.functions.append(_as_function(tool, flat))

    def _unique(self, flat: str) -> str:
        while flat in self._by_flat:
            flat = _shortened(flat, MAX_NAME - 1)
        return flat

    def flat(self, name: str, namespace: str = "") -> str:
        """The name under which the provider knows a tool, declared or not."""
        return self._flat.get((namespace, name)) or _flat_name(namespace, name)

    def chosen(self, name: str) -> str:
        """The name under which the provider knows a tool of a choice, which tells no namespace."""
        if ("", name) in self._flat:
            return self._flat["", name]
        return next((flat for (_, own), flat in self._flat.items() if own == name), name)

    def declared(self, flat: str) -> ToolSpec:
        """The tool as the client declared it; one that nobody declared is a function."""
        return self._by_flat.get(flat) or ToolSpec(name=flat)

    def to_provider(self, call: Call) -> Call:
        """A call as the provider would have made it."""
        arguments = call.arguments
        if call.kind is ToolKind.CUSTOM:
            arguments = splice.dumps({"input": arguments}).decode()
        return replace(
            call,
            name=self.flat(call.name, call.namespace),
            namespace="",
            arguments=arguments,
            kind=ToolKind.FUNCTION,
            raw="",
        )

    @property
    def renamed(self) -> dict[str, tuple[str, str, str]]:
        """The tools that the client knows otherwise than its provider: kind, namespace, name."""
        plain = ToolKind.FUNCTION
        return {
            flat: (tool.kind.value, tool.namespace, tool.name)
            for flat, tool in self._by_flat.items()
            if tool.kind is not plain or tool.name != flat
        }

    def to_client(self, call: Call) -> Call:
        """A provider's call as the client knows the tool."""
        return client_call(call, self.renamed)


def client_call(call: Call, renamed: Mapping[str, tuple[str, str, str]]) -> Call:
    """A provider's call as a client knows it; `renamed` as `ToolNames` has it."""
    if call.name not in renamed:
        return call
    kind, namespace, name = renamed[call.name]
    custom = kind == ToolKind.CUSTOM
    return replace(
        call,
        name=name,
        namespace=namespace,
        arguments=free_text(call.arguments) if custom else call.arguments,
        kind=ToolKind(kind),
    )


def _flat_name(namespace: str, name: str) -> str:
    joined = f"{namespace.removesuffix('__')}__{name}" if namespace else name
    return joined if _PLAIN.fullmatch(joined) else _shortened(joined, MAX_NAME)


def _shortened(name: str, most: int) -> str:
    """The beginning of a name in letters that every provider takes, and a digest of all of it."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_UNFIT.sub('_', name[: most - 9])}_{digest}"


def _as_function(tool: ToolSpec, flat: str) -> ToolSpec:
    function = ToolSpec(
        name=flat, description=tool.description, parameters=tool.parameters, strict=tool.strict
    )
    if tool.kind is ToolKind.CUSTOM:
        about = tool.description
        if tool.grammar:
            about += f"\n\nThe input must match this grammar:\n{tool.grammar}"
        text = {"type": "string", "description": "The tool's input, as it is."}
        schema = {"type": "object", "properties": {"input": text}, "required": ["input"]}
        return replace(function, description=about, parameters=schema, strict=None)
    if tool.kind is ToolKind.SEARCH:
        return replace(function, parameters=tool.parameters or _SEARCH, strict=None)
    return function

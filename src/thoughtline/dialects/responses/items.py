"""Items of a Responses conversation, for requests, patches and streams alike.

One function per question, so that capture and look-up can never disagree: an item's type, its
side, the part that it is. Items with a `call_id` are calls, whatever their type; items of unknown
types are blobs of their side. Nothing here fails on wrong types.
"""

from enum import Enum
from typing import Any

from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.content import blob, content_parts, joined_text
from thoughtline.dialects.thoughts import make_thought
from thoughtline.dialects.values import without_empty
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json
from thoughtline.log.parts import Blob, Call, Carrier, Part, Result, Text, Thought, ToolKind

ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The types of calls of a client's own tools, and the member with their arguments."""

_LETTERS = {"reasoning": "t", "message": "x"} | dict.fromkeys(ARGUMENTS, "c")
_PREFIXES = {"rs_": "t", "msg_": "x", "fc_": "c", "ctc_": "c"}
_INPUT_TYPES = frozenset({"mcp_approval_response"})
CONTROLS = frozenset({"compaction_trigger", "configuration_update", "additional_tools"})
"""Types of items that say nothing: they ask the server for something, or set it."""
_NOISE = frozenset({"type", "id", "call_id", "status", "name", "caller"})


class Side(Enum):
    """Whose item it is: the model's (output), the client's (input) or nobody's."""

    INPUT = "input"
    OUTPUT = "output"
    NEITHER = "neither"


def item_type(item: Any) -> str:
    """Return an item's type; a role implies `message`, a lone id `item_reference`."""
    if not isinstance(item, dict):
        return ""
    type = item.get("type")
    if isinstance(type, str):
        return type
    if "role" in item:
        return "message"
    return "item_reference" if isinstance(item.get("id"), str) and len(item) <= 2 else ""


def side(item: Any) -> Side:
    """Return whether an item belongs to an output, to an input, or to no turn at all."""
    what = item_type(item)
    if what == "message":
        role = item.get("role")
        if role == "assistant":
            return Side.OUTPUT
        return Side.NEITHER if role in ("system", "developer") else Side.INPUT
    if what in CONTROLS:
        return Side.NEITHER
    if not what or what in _INPUT_TYPES or what.endswith("_call_output"):
        return Side.INPUT
    if what == "tool_search_output" and item.get("execution") == "client":
        return Side.INPUT
    return Side.OUTPUT


def string_member(item: dict[str, Any], key: str) -> str:
    """Return a member that should be a string; empty where it is not."""
    value = item.get(key)
    return value if isinstance(value, str) else ""


def shape_letter(item: Any) -> str:
    """An output's item as a letter of `turns.outline`; a reference is what its id says."""
    what = item_type(item)
    if what == "item_reference":
        id = string_member(item, "id")
        return next((named for prefix, named in _PREFIXES.items() if id.startswith(prefix)), "b")
    if what in _LETTERS:
        return _LETTERS[what]
    return "c" if what.endswith("_call") and string_member(item, "call_id") else "b"


def output_part(item: Any, raw: str = "") -> Thought | Text | Call | Blob:
    """Return the part that an output's item is; `raw` is its JSON text, where that is kept."""
    what = item_type(item)
    if what == "item_reference":
        return make_thought(Carrier.REFERENCE, item, raw or None)
    match shape_letter(item):
        case "t":
            return make_thought(Carrier.ITEM, item, raw or None)
        case "x":
            content = item.get("content")
            return Text(
                text=_message_text(content),
                id=string_member(item, "id"),
                phase=string_member(item, "phase"),
                raw=raw,
                refused=isinstance(content, list) and is_refusal(content),
            )
        case "c":
            return _call(item, what, raw)
    if what.startswith("compaction") and (seal := string_member(item, "encrypted_content")):
        return Blob(kind=what, digest=keys.string_digest(seal), raw=raw, sealed=True)
    return replace(blob(what or "unknown", item), raw=raw)


def is_refusal(content: Any) -> bool:
    """Return whether all that a message says is that the model will not answer."""
    types = [element.get("type") for element in content if isinstance(element, dict)]
    return bool(types) and all(type == "refusal" for type in types)


def _message_text(content: Any) -> str:
    """Return a message's text; annotations and the like are in `raw` only."""
    texts: list[str] = []
    for element in content if isinstance(content, list) else [content]:
        if isinstance(element, str):
            texts.append(element)
        elif isinstance(element, dict):
            texts.append(string_member(element, "text") or string_member(element, "refusal"))
    return "".join(texts)


_KINDS = {"custom_tool_call": ToolKind.CUSTOM, "tool_search_call": ToolKind.SEARCH}


def _call(item: dict[str, Any], what: str, raw: str) -> Call:
    name, arguments = string_member(item, "name"), item.get(ARGUMENTS.get(what, ""))
    if what == "tool_search_call" and isinstance(item.get("arguments"), dict):
        name, arguments = "tool_search", splice.dumps(item["arguments"]).decode()
    elif what in ARGUMENTS:
        if not isinstance(arguments, str):
            arguments = splice.dumps(arguments).decode() if arguments is not None else ""
    else:
        said = {key: value for key, value in item.items() if key not in _NOISE}
        arguments = canonical_json(without_empty(said))
        name = name or what
    return Call(
        name=name,
        arguments=arguments,
        id=string_member(item, "call_id"),
        item=string_member(item, "id"),
        raw=raw,
        kind=_KINDS.get(what, ToolKind.FUNCTION),
        namespace=string_member(item, "namespace"),
    )


def input_parts(item: Any) -> list[Part]:
    """Return the parts of an input's item."""
    what = item_type(item)
    if what == "message" and item.get("role") == "user":
        return content_parts(item.get("content"))
    if not what.endswith("_call_output"):
        return [blob("unknown" if what == "message" else what or "unknown", item)]
    answer = item.get("output")
    plain = isinstance(answer, str) and what.removesuffix("_output") in ARGUMENTS
    return [
        Result(
            content=joined_text(answer),
            call=string_member(item, "call_id"),
            # A picture, a screen or a shell's exit code: its text is not enough.
            raw="" if plain else splice.dumps(item).decode(),
        )
    ]

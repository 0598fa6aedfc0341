"""Writes inputs, outputs and tools as they stand in a new Responses request."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Raw

from thoughtline.dialects import splice
from thoughtline.dialects.media import as_url
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.responses.items import ARGUMENTS, item_type, string_member
from thoughtline.errors import Unreadable
from thoughtline.log.parts import Blob, Call, Carrier, Note, Part, Result, Text, Thought


def written_input(parts: Sequence[Part], call_types: Mapping[str, str]) -> list[Any]:
    """Return the items of an input."""
    items: list[Any] = []
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            items.append(_written_result(part, call_types))
        elif isinstance(part, Text):
            content.append({"type": "input_text", "text": part.text})
        elif isinstance(part, Blob) and (written := _written_media(part)) is not None:
            content.append(written)
        elif isinstance(part, Note):
            items += _written_message(content)
            items.append({"role": "developer", "content": part.text})
            content = []
    return items + _written_message(content)


def _written_message(content: list[Any]) -> list[Any]:
    if not content:
        return []
    words = all(isinstance(element, dict) and "text" in element for element in content)
    text = "".join(element["text"] for element in content) if words else content
    return [{"role": "user", "content": text}]


def _written_media(part: Blob) -> Any:
    if _raw_type(part.raw).startswith("input_"):
        return _verbatim(part.raw)
    url = as_url(part)
    if not url or part.raw:
        return None
    if part.kind == "image":
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "input_image", "image_url": url} | detail
    member = {"file_data": url, "filename": part.name or "file"} if part.data else {"file_url": url}
    return {"type": "input_file"} | member


def _written_result(part: Result, call_types: Mapping[str, str]) -> Any:
    if _raw_type(part.raw).endswith("_call_output"):
        return _verbatim(part.raw)
    type = call_types.get(part.call, "function_call") + "_output"
    shown = [written for blob in part.media if (written := _written_media(blob)) is not None]
    text = [{"type": "input_text", "text": part.content}] if part.content else []
    output = [*text, *shown] if shown else part.content
    return {"type": type, "call_id": part.call, "output": output}


def written(part: Part, call_types: dict[str, str]) -> list[Any]:
    """Return one item of an output.

    Calls and messages go without their ids, so that servers demand no reasoning item for them.
    """
    if isinstance(part, Thought):
        own = part.carrier in (Carrier.ITEM, Carrier.REFERENCE)
        return [_verbatim(part.raw)] if own else []
    if isinstance(part, Text):
        message = {"type": "message", "role": "assistant", "content": part.text}
        phase = string_member(_loaded(part.raw), "phase")
        return [message | {"phase": phase} if phase else message]
    if isinstance(part, Call):
        return [_written_call(part, call_types)]
    return [_verbatim(part.raw)] if isinstance(part, Blob) and _is_item(_raw_type(part.raw)) else []


def _is_item(type: str) -> bool:
    """Whether a blob is an item of this API: blobs of other dialects have no place here."""
    return type.endswith(("_call", "_output")) or type.startswith(("mcp_", "compaction"))


def _written_call(part: Call, call_types: dict[str, str]) -> Any:
    type = _raw_type(part.raw)
    if type.endswith("_call") and type != "function_call":
        call_types[part.id] = type
        if type not in ARGUMENTS:
            return _verbatim(part.raw)
    else:
        type = "function_call"
    return {
        "type": type,
        "call_id": part.id,
        "name": part.name,
        ARGUMENTS[type]: part.arguments,
    }


def _loaded(raw: str) -> dict[str, Any]:
    try:
        value = splice.loads(raw.encode()) if raw else None
    except (Unreadable, UnicodeEncodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _raw_type(raw: str) -> str:
    """Return the type of a part's item, where the part came from this API."""
    return item_type(_loaded(raw))


def _verbatim(raw: str) -> Raw:
    return Raw(raw.encode())


def written_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the declaration of a tool."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": bool(tool.strict),  # the API's own default refuses schemas with optional members
    }

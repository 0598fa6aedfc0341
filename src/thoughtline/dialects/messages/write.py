"""Writes inputs, outputs and tools as they stand in a new Messages request."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from thoughtline.dialects.content import answered_calls, object_arguments
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.schemas import object_schema
from thoughtline.log.parts import Blob, Call, Carrier, Note, Part, Result, Text, Thought
from thoughtline.log.turns import Turn


def with_call_ids(turn: Turn, number: int) -> Turn:
    """Return the turn with an id on every call: results of this API name their call by id."""
    if all(call.id for call in turn.calls):
        return turn
    output = tuple(
        replace(part, id=f"call_{number}_{place}")
        if isinstance(part, Call) and not part.id
        else part
        for place, part in enumerate(turn.output)
    )
    return replace(turn, output=output)


def written_input(parts: Sequence[Part], before: Sequence[Part]) -> list[Any]:
    """Return the messages of an input, results first: the API demands that."""
    calls = [part.id for part in before if isinstance(part, Call)]
    ids = iter(answered_calls(before, parts))
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            place = next(ids)
            id = part.call if place is None else calls[place]
            block = {"type": "tool_result", "tool_use_id": id, "content": _written_result(part)}
            content.append(block | {"is_error": True} if part.error else block)
    said: list[Part] = [part for part in parts if not isinstance(part, Result)]
    notes: list[Any] = []  # the API takes instructions only behind all that a user says
    while said and isinstance(last := said[-1], Note) and (content or said[:-1]):
        notes.insert(0, {"role": "system", "content": last.text})
        said.pop()
    for part in said:
        if isinstance(part, Text | Note) and part.text:
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, Blob) and (written := _written_media(part)) is not None:
            content.append(written)
    return [{"role": "user", "content": content}, *notes] if content else notes


def _written_result(part: Result) -> Any:
    shown = [written for blob in part.media if (written := _written_media(blob)) is not None]
    if not shown:
        return part.content
    return [*([{"type": "text", "text": part.content}] if part.content else []), *shown]


def _written_media(part: Blob) -> Any:
    """Return a block; None where the part cannot be said here."""
    if part.raw:
        return msgspec.Raw(part.raw)
    source: dict[str, Any] = {"type": "url", "url": part.url}
    if part.data:
        source = {"type": "base64", "media_type": part.mime, "data": part.data}
    elif not part.url:
        return None
    if part.kind == "image":
        return {"type": "image", "source": source}
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source} | title if part.kind == "file" else None


def written_output(parts: Sequence[Part], *, own: bool) -> list[Any]:
    """Return the content of an assistant's message."""
    content: list[Any] = []
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier is Carrier.BLOCK:
                content.append(msgspec.Raw(part.raw))
        elif isinstance(part, Text):
            if part.text:
                content.append({"type": "text", "text": part.text})
        elif isinstance(part, Call):
            input = object_arguments(part.arguments)
            content.append({"type": "tool_use", "id": part.id, "name": part.name, "input": input})
        elif (
            isinstance(part, Blob) and part.raw and own
        ):  # blobs of other dialects have no place here
            content.append(msgspec.Raw(part.raw))
    return content


def written_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the declaration of a tool."""
    schema = object_schema(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


_CACHED = {"cache_control": {"type": "ephemeral"}}


def mark_cached(document: dict[str, Any]) -> None:
    """Ask for the instructions, the tools and the history to be cached, up to their last blocks."""
    if system := document.get("system"):
        document["system"] = [{"type": "text", "text": system, **_CACHED}]
    if tools := document.get("tools"):
        tools[-1] |= _CACHED
    asked = [message["content"] for message in document["messages"] if message["role"] == "user"]
    if asked and isinstance(asked[-1][-1], dict):
        asked[-1][-1] |= _CACHED

"""Writes inputs, outputs and tools as they stand in a new Gemini request."""

from collections.abc import Sequence
from typing import Any

import msgspec

from thoughtline.dialects import splice
from thoughtline.dialects.content import answered_calls, object_arguments
from thoughtline.dialects.gemini.parts import SIGNATURES, set_member
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.schemas import is_openapi
from thoughtline.log.parts import Blob, Call, Carrier, Note, Part, Result, Text, Thought


def written_input(parts: Sequence[Part], before: Sequence[Part]) -> list[Any]:
    """Return the parts of a user's content."""
    calls = [part for part in before if isinstance(part, Call)]
    places = iter(answered_calls(before, parts))
    written: list[Any] = []
    for part in parts:
        if isinstance(part, Result):
            place = next(places)
            name = part.name or (calls[place].name if place is not None else "")
            response: dict[str, Any] = {
                "name": name,
                "response": {"error" if part.error else "result": part.content},
            }
            id = part.call if place is None else calls[place].id
            if shown := [made for blob in part.media if (made := _written_media(blob)) is not None]:
                response["parts"] = shown
            written.append({"functionResponse": {"id": id, **response} if id else response})
        elif isinstance(part, Text | Note) and part.text:  # this API has no instructions in place
            written.append({"text": part.text})
        elif isinstance(part, Blob) and (made := _written_media(part)) is not None:
            written.append(made)
    return written


def _written_media(part: Blob) -> Any:
    """Return a part; None where the blob cannot be said here."""
    if part.raw:
        return msgspec.Raw(part.raw)
    if part.data:
        return {"inlineData": {"mimeType": part.mime, "data": part.data}}
    file = {"fileUri": part.url} | ({"mimeType": part.mime} if part.mime else {})
    return {"fileData": file} if part.url else None


def written_output(parts: Sequence[Part], *, own: bool) -> list[Any]:
    """Return the parts of a model's content."""
    written: list[Any] = []
    pending = ""  # the signature of the next part
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier is Carrier.PART:
                written.append(msgspec.Raw(part.raw))
            elif part.carrier is Carrier.SIGNATURE:
                pending = part.raw
            continue
        raw = _written_part(part, own=own)
        if raw:
            raw = set_member(raw, SIGNATURES[0], pending.encode()) if pending else raw
            written.append(msgspec.Raw(raw))
        pending = ""
    return written


def _written_part(part: Part, *, own: bool) -> bytes:
    if isinstance(part, Text) and part.text:
        return splice.dumps({"text": part.text})
    if isinstance(part, Call):
        call: dict[str, Any] = {"name": part.name, "args": object_arguments(part.arguments)}
        return splice.dumps({"functionCall": {"id": part.id, **call} if part.id else call})
    if isinstance(part, Blob) and own:  # blobs of other dialects have no place here
        return part.raw.encode()
    return b""


def written_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the declaration of a function."""
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if not tool.parameters:
        return declared
    member = "parameters" if is_openapi(tool.parameters) else "parametersJsonSchema"
    return declared | {member: tool.parameters}

"""Writes inputs, outputs and tools as they stand in a new Chat Completions request."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from thoughtline.dialects import splice
from thoughtline.dialects.chat.message import MEMBERS
from thoughtline.dialects.media import as_url
from thoughtline.dialects.params import ToolSpec
from thoughtline.log.parts import Blob, Call, Carrier, Note, Part, Result, Text, Thought


def written_input(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return the messages of an input: results right behind their calls, then everything else."""
    results: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    content: list[Any] = []  # of the user's message that is being written
    for part in parts:
        if isinstance(part, Result):
            results.append({"role": "tool", "tool_call_id": part.call, "content": part.content})
            content += written_result_media(part)
        elif isinstance(part, Text):
            content.append(part.text)
        elif isinstance(part, Blob) and (written := written_media(part)):
            content.append(written)
        elif isinstance(part, Note):
            if content:
                messages.append({"role": "user", "content": _written_content(content)})
            messages.append({"role": "system", "content": part.text})
            content = []
    if content:
        messages.append({"role": "user", "content": _written_content(content)})
    return results + messages


def written_media(part: Blob) -> Any:
    """Return an element of a content list; None where the part cannot be said here."""
    if part.raw:
        return Raw(part.raw)
    url = as_url(part)
    if not url:
        return None
    if part.kind == "image":
        detail = {"detail": "high" if part.detail == "original" else part.detail}
        image = {"url": url} | (detail if part.detail else {})
        return {"type": "image_url", "image_url": image}
    if part.kind == "audio" and part.data:
        form = part.mime.rpartition("/")[2]
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": url}}


def written_result_media(result: Result) -> list[Any]:
    """Return what a tool showed beside its text, for a message behind all results."""
    shown = [written for part in result.media if (written := written_media(part))]
    return [f"What the tool call {result.call} showed:", *shown] if shown else []


def written_output(parts: Sequence[Part]) -> dict[str, Any]:
    """Return an assistant's message."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}  # of the next call
    for part in parts:
        if isinstance(part, Thought):
            if part.carrier in MEMBERS:
                message[part.carrier] = Raw(part.raw)
            elif part.carrier is Carrier.EXTRA_CONTENT:
                extra = {"extra_content": Raw(part.raw)}
            elif part.carrier is Carrier.THINK:
                content.append(splice.loads(part.raw.encode()))
            elif part.carrier is Carrier.CHUNK:
                content.append(Raw(part.raw))
        elif isinstance(part, Text):
            content.append(part.text)
        elif isinstance(part, Blob) and part.raw:
            content.append(Raw(part.raw))
        elif isinstance(part, Call):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function} | extra)
            extra = {}
    if content:
        message["content"] = _written_content(content)
    if calls:
        message["tool_calls"] = calls
    return message


def _written_content(pieces: list[Any]) -> Any:
    """Return a string where that is enough, else a list of parts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in pieces]


def written_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the declaration of a tool."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}

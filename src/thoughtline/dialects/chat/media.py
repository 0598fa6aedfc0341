"""Images and files as parts of a Chat Completions message."""

from typing import Any

from msgspec import Raw

from thoughtline.dialects.media import as_url
from thoughtline.log.parts import Blob, Result


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

"""Content as clients spell it: strings, lists of parts, nothing at all. Shared by the dialects."""

from typing import Any

from thoughtline import keys
from thoughtline.parts import Blob, Part, Text

_NOISE = frozenset({"cache_control", "type", "id", "detail"})
_HINTED = frozenset({"prompt_cache_key", "session_id", "metadata", "client_metadata"})
_DATA = ("url", "data", "file_id", "file_data", "image_url", "fileUri")


def joined(content: Any) -> str:
    """The text of a string or a list of parts; other JSON in a canonical spelling."""
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(_text(element) for element in content)
    return _text(content)


def _text(element: Any) -> str:
    if isinstance(element, str):
        return element
    if isinstance(element, dict):
        if isinstance(element.get("text"), str):
            return str(element["text"])
        element = {key: value for key, value in element.items() if key != "cache_control"}
    return keys.canonical(element)


def texts(content: Any) -> list[Part]:
    """Parts of a user's content: its text, and blobs for everything that is not text."""
    if isinstance(content, str):
        return [Text(text=content)]
    if content is None:
        return []
    parts: list[Part] = []
    for element in content if isinstance(content, list) else [content]:
        if isinstance(element, dict) and isinstance(element.get("text"), str):
            parts.append(Text(text=element["text"]))
        elif isinstance(element, str):
            parts.append(Text(text=element))
        else:
            kind = element.get("type") if isinstance(element, dict) else "unknown"
            parts.append(blob(str(kind or "unknown"), element))
    return parts


def blob(kind: str, value: Any) -> Blob:
    """Anything else that was said, known by its data, so that a picture is the same everywhere."""
    return Blob(kind=kind, digest=keys.digest(_data(value)))


def _data(value: Any) -> Any:
    """The innermost data of a media part: a URL's or a file's own bytes, without the wrapping."""
    if isinstance(value, str):
        return value.partition(";base64,")[2] or value
    if not isinstance(value, dict):
        return value
    bare = {key: inner for key, inner in value.items() if key not in _NOISE}
    for key in _DATA:
        if key in bare:
            return _data(bare[key])
    for key in sorted(bare):
        if isinstance(bare[key], dict):
            return _data(bare[key])
    return bare or value


def hints(document: dict[str, Any]) -> tuple[str, ...]:
    """Session ids that clients leave in a body. They break ties and prove nothing."""
    if _HINTED.isdisjoint(document):
        return ()
    found = [document.get("prompt_cache_key"), document.get("session_id")]
    for holder in (document.get("metadata"), document.get("client_metadata")):
        if isinstance(holder, dict):
            found += [holder.get("session_id"), holder.get("thread_id")]
            user = holder.get("user_id")
            found.append(user if isinstance(user, str) and "session" in user else None)
    return tuple(dict.fromkeys(hint for hint in found if isinstance(hint, str) and hint))


def group(document: dict[str, Any]) -> str:
    """The one of the hints that many conversations may share: what a provider's cache goes by."""
    key = document.get("prompt_cache_key")
    if not key:
        return ""
    others = hints({**document, "prompt_cache_key": None})
    return key if isinstance(key, str) and key not in others else ""

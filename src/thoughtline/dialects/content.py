"""Parts of messages, as the dialects share them: text, blobs, session hints, results of calls."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec.structs import replace

from thoughtline.dialects import splice
from thoughtline.dialects.values import without_empty
from thoughtline.errors import Unreadable
from thoughtline.log import keys
from thoughtline.log.canonical import canonical_json, plain_arguments
from thoughtline.log.parts import Blob, Call, Part, Result, Text

_NOISE = frozenset({"cache_control", "type", "id", "detail", "status", "caller"})
HINTED = frozenset({"prompt_cache_key", "session_id", "metadata", "client_metadata"})
"""Members of a request in which session ids stand."""
_DATA = ("url", "data", "file_id", "file_data", "image_url", "fileUri", "file_uri")
_WRAPPERS = ("source", "inlineData", "inline_data", "fileData")
"""Members in which the data of an image or a file stands beside what is said of it."""
_PROVIDER_ID = 16
"""Letters of an id that its provider made at random, at least: a shorter one may be a counter."""


def joined_text(content: Any) -> str:
    """Return the text of a string or a list of parts; other JSON in its canonical spelling."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join([_text(element) for element in content])
    return "" if content is None else _text(content)


def _text(element: Any) -> str:
    if isinstance(element, str):
        return element
    if isinstance(element, dict):
        if isinstance(element.get("text"), str):
            return str(element["text"])
        element = {key: value for key, value in element.items() if key != "cache_control"}
    return canonical_json(element)


def content_parts(content: Any) -> list[Part]:
    """Return the parts of a user's content: texts, and blobs for everything that is not text."""
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


def blob(kind: str, value: Any, id: str = "") -> Blob:
    """Return a blob known by its id, by its data, or by everything that it says.

    A picture is the same in every dialect. `id` is what the provider calls a block: clients send
    that back in their own types, with members added and left out, but with its id.
    """
    if len(id) >= _PROVIDER_ID:
        return Blob(kind=kind, digest=keys.json_digest([kind, id]))
    return Blob(kind=kind, digest=keys.json_digest(_data(without_empty(value))))


def _data(value: Any) -> Any:
    """Return the data of an image or a file, a URL or bytes; else all that an object says."""
    if isinstance(value, str):
        return value.partition(";base64,")[2] or value
    if not isinstance(value, dict):
        return value
    members = {key: inner for key, inner in value.items() if key not in _NOISE}
    for key in _DATA:
        if key in members:
            return _data(members[key])
    for key in _WRAPPERS if len(members) > 1 else members:
        if isinstance(members.get(key), dict):
            return _data(members[key])
    return members or value


def session_hints(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the session ids that a client put into a body. They break ties and prove nothing."""
    if HINTED.isdisjoint(document):
        return ()
    found = [document.get("prompt_cache_key"), document.get("session_id")]
    for holder in (document.get("metadata"), document.get("client_metadata")):
        if isinstance(holder, dict):
            found += [holder.get("session_id"), holder.get("thread_id")]
            user = holder.get("user_id")
            found.append(user if isinstance(user, str) and "session" in user else None)
    return tuple(dict.fromkeys(hint for hint in found if is_session_id(hint)))


def is_session_id(value: Any) -> TypeGuard[str]:
    """Whether a value names one session: a text that was read as it is.

    A lone surrogate is read as U+FFFD, whichever it was: other sessions may have the same id then.
    """
    return isinstance(value, str) and value != "" and "\ufffd" not in value


def shared_hint(document: dict[str, Any]) -> str:
    """Return the hint that many conversations may share: the key of a provider's prompt cache."""
    key = document.get("prompt_cache_key")
    if not key:
        return ""
    others = session_hints({**document, "prompt_cache_key": None})
    return key if is_session_id(key) and key not in others else ""


def raw_blob(raw: str, make: Callable[[Any], Blob]) -> Blob:
    """Return the blob that is made of a JSON text, also where that is too deep to be read."""
    try:
        found = make(splice.loads(raw.encode()))
    except (Unreadable, RecursionError):
        found = Blob(kind="unknown", digest=keys.string_digest(raw))
    return replace(found, raw=raw)


def answered_calls(output: Sequence[Part], input: Sequence[Part]) -> list[int | None]:
    """Pair results with calls: for each result of an input, the position of its call, if any.

    Positions count the calls of the output before. The id decides; some APIs have none: then it is
    the first open call of that name, and without a name the first open one.
    """
    waiting = dict(enumerate(part for part in output if isinstance(part, Call)))
    found: list[int | None] = []
    for result in (part for part in input if isinstance(part, Result)):
        place = next((i for i, call in waiting.items() if _answers(result, call)), None)
        if place is not None:
            del waiting[place]
        found.append(place)
    return found


def _answers(result: Result, call: Call) -> bool:
    if result.call and call.id:
        return result.call == call.id
    return not result.name or result.name == call.name


def object_arguments(text: str) -> Any:
    """Return a call's arguments as they were emitted; the API takes nothing but an object."""
    text = plain_arguments(text)
    try:
        usable = isinstance(splice.loads(text.encode()), dict)
    except (Unreadable, UnicodeEncodeError):
        usable = False
    return msgspec.Raw(text) if usable else {}


def checked_arguments(text: str) -> msgspec.Raw:
    """Return a call's arguments as they are. Raises `Unreadable` where they are no object.

    None are ever made up: a tool would run without them.
    """
    text = plain_arguments(text) or "{}"
    try:
        value = splice.loads(text.encode())
    except (Unreadable, UnicodeEncodeError):
        value = None
    if not isinstance(value, dict):
        raise Unreadable(f"the arguments of a call are not a JSON object: {text[:200]}")
    return msgspec.Raw(text.encode())


_WHOLE = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|(-?\d+)\.0+(?![\d.eE])', re.DOTALL)


def whole_numbers(arguments: str) -> str:
    """Return a call's arguments with `120000` for `120000.0`: some clients want integers."""
    if ".0" not in arguments:
        return arguments
    return _WHOLE.sub(lambda found: found[1] or found[0], arguments)

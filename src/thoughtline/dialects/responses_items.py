"""What the items of a Responses conversation are, for requests, patches and streams alike.

One function per question, so that capture and look-up can never disagree: what kind an item is,
who said it, which part it is. Items with a `call_id` are calls, whatever their type; types that
are not known are blobs of whoever was speaking. Nothing here fails on wrong types.
"""

from enum import Enum
from typing import Any

from msgspec.structs import replace

from thoughtline import keys, splice
from thoughtline.dialects.content import blob, joined, texts
from thoughtline.dialects.thoughts import thought
from thoughtline.parts import Blob, Call, Carrier, Part, Result, Text, Thought

ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""The two calls that tools of one's own are called with, and where their arguments stand."""

_LETTERS = {"reasoning": "t", "message": "x"} | dict.fromkeys(ARGUMENTS, "c")
_PREFIXES = {"rs_": "t", "msg_": "x", "fc_": "c", "ctc_": "c"}
_ANSWERS = frozenset({"mcp_approval_response"})
_ASIDE = frozenset({"compaction_trigger"})  # asks the server for something, says nothing
_NOISE = frozenset({"type", "id", "call_id", "status", "name"})


class Side(Enum):
    """Who said an item."""

    INPUT = "input"
    OUTPUT = "output"
    NEITHER = "neither"


def kind(item: Any) -> str:
    """An item's type; a role stands in for `message`, a lone id for `item_reference`."""
    if not isinstance(item, dict):
        return ""
    type = item.get("type")
    if isinstance(type, str):
        return type
    if "role" in item:
        return "message"
    return "item_reference" if isinstance(item.get("id"), str) and len(item) <= 2 else ""


def side(item: Any) -> Side:
    """Whether an item belongs to an output, to an input, or to no turn at all."""
    what = kind(item)
    if what == "message":
        role = item.get("role")
        if role == "assistant":
            return Side.OUTPUT
        return Side.NEITHER if role in ("system", "developer") else Side.INPUT
    if what in _ASIDE:
        return Side.NEITHER
    if not what or what in _ANSWERS or what.endswith("_call_output"):
        return Side.INPUT
    if what == "tool_search_output" and item.get("execution") == "client":
        return Side.INPUT
    return Side.OUTPUT


def string(item: dict[str, Any], key: str) -> str:
    """A member that should be a string; empty where it is not."""
    value = item.get(key)
    return value if isinstance(value, str) else ""


def letter(item: Any) -> str:
    """An output's item as a letter of `turns.outline`; a reference is what its id says."""
    what = kind(item)
    if what == "item_reference":
        id = string(item, "id")
        return next((named for prefix, named in _PREFIXES.items() if id.startswith(prefix)), "b")
    if what in _LETTERS:
        return _LETTERS[what]
    return "c" if what.endswith("_call") and string(item, "call_id") else "b"


def said(item: Any, raw: str = "") -> Thought | Text | Call | Blob:
    """The part that an output's item is; `raw` is its exact JSON text, where that is to be kept."""
    what = kind(item)
    if what == "item_reference":
        return thought(Carrier.REFERENCE, item, raw or None)
    match letter(item):
        case "t":
            return thought(Carrier.ITEM, item, raw or None)
        case "x":
            return Text(
                text=_words(item.get("content")),
                id=string(item, "id"),
                phase=string(item, "phase"),
                raw=raw,
            )
        case "c":
            return _call(item, what, raw)
    if what.startswith("compaction") and (seal := string(item, "encrypted_content")):
        return Blob(kind=what, digest=keys.seal(seal), raw=raw, sealed=True)
    return replace(blob(what or "unknown", item), raw=raw)


def _words(content: Any) -> str:
    """A message's text; what else it has is for the eye only, and in `raw`."""
    words: list[str] = []
    for element in content if isinstance(content, list) else [content]:
        if isinstance(element, str):
            words.append(element)
        elif isinstance(element, dict):
            words.append(string(element, "text") or string(element, "refusal"))
    return "".join(words)


def _call(item: dict[str, Any], what: str, raw: str) -> Call:
    if key := ARGUMENTS.get(what):
        arguments = item.get(key)
        if not isinstance(arguments, str):
            arguments = splice.dumps(arguments).decode() if arguments is not None else ""
    else:
        arguments = keys.canonical({k: v for k, v in item.items() if k not in _NOISE})
    return Call(
        name=string(item, "name") or ("" if key else what),
        arguments=arguments,
        id=string(item, "call_id"),
        item=string(item, "id"),
        raw=raw,
    )


def heard(item: Any) -> list[Part]:
    """The parts of an input's item."""
    what = kind(item)
    if what == "message" and item.get("role") == "user":
        return texts(item.get("content"))
    if not what.endswith("_call_output"):
        return [blob("unknown" if what == "message" else what or "unknown", item)]
    answer = item.get("output")
    plain = isinstance(answer, str) and what.removesuffix("_output") in ARGUMENTS
    return [
        Result(
            content=joined(answer),
            call=string(item, "call_id"),
            # A picture, a screen or a shell's exit code: more than its text has to be kept.
            raw="" if plain else splice.dumps(item).decode(),
        )
    ]

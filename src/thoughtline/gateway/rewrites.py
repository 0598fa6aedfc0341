"""Last changes of a finished body, for endpoints with wishes of their own. Pure, bytes to bytes.

Each one edits only what it must and gives back the very same object where there is nothing to do,
so that what was not touched keeps its bytes. Which endpoint wants which is in `learned`; when to
try one is in `treatments`.
"""

import re
from collections.abc import Callable, Container
from hashlib import blake2b
from typing import Any

from thoughtline import splice
from thoughtline.dialects.chat_message import MEMBERS
from thoughtline.dialects.responses_items import ARGUMENTS, Side, kind, side
from thoughtline.splice import Edit, Span

_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def listed(body: bytes, key: str) -> list[tuple[Span, Any]]:
    """The elements of a top-level list, each with its place; none where there is no such list."""
    place = splice.members(body).get(key)
    if place is None or body[place.value : place.value + 1] != b"[":
        return []
    spans = splice.elements(body, place)
    return [(span, splice.loads(body[span.value : span.end])) for span in spans]


def without(body: bytes, gone: Callable[[int, Any], bool]) -> bytes:
    """A Responses body without some of its items."""
    found = listed(body, "input")
    cut = [span for index, (span, item) in enumerate(found) if gone(index, item)]
    return splice.apply(body, splice.cut(cut, [span for span, _ in found]))


def bared(body: bytes) -> bytes:
    """A Chat body whose messages do not name a key for thoughts and then say `null`."""
    edits: list[Edit] = []
    for span, message in listed(body, "messages") if b"null" in body else ():
        if isinstance(message, dict):
            gone = {str(key): None for key in MEMBERS if message.get(key, "") is None}
            edits += splice.revise(span, splice.members(body, span), gone) if gone else []
    return splice.apply(body, edits) if edits else body


# -- tool call ids -------------------------------------------------------------------------------


def nine_characters(body: bytes) -> bytes:
    """A Chat body whose tool call ids are nine letters or digits, the same for the same id."""
    found = listed(body, "messages")
    ids = [id for _, message in found for id in _ids(message)]
    taken = {id for id in ids if _NINE.fullmatch(id)}
    names: dict[str, str] = {}
    for id in ids:
        if id not in taken and id not in names:
            names[id] = _nine(id, taken | set(names.values()))
    if not names:
        return body
    edits: list[Edit] = []
    for span, message in found:
        if any(id in names for id in _ids(message)):
            edits += _renamed(body, span, names)
    return splice.apply(body, edits)


def _ids(message: Any) -> list[str]:
    if not isinstance(message, dict):
        return []
    calls = message.get("tool_calls")
    holders = [call for call in (calls if isinstance(calls, list) else ()) if _object(call)]
    found = [call.get("id") for call in holders]
    found.append(message.get("tool_call_id"))
    return [id for id in found if isinstance(id, str)]


def _object(value: Any) -> bool:
    return isinstance(value, dict)


def _nine(id: str, taken: Container[str]) -> str:
    """Nine characters made from an id: the same in every request, and nobody else's in this one."""
    for salt in range(256):
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16, salt=bytes([salt]))
        number = int.from_bytes(digest.digest(), "big")
        name = ""
        for _ in range(9):
            number, digit = divmod(number, len(_DIGITS))
            name += _DIGITS[digit]
        if name not in taken:
            return name
    raise AssertionError("256 digests of one id are taken")


def _renamed(body: bytes, span: Span, names: dict[str, str]) -> list[Edit]:
    has = splice.members(body, span)
    edits = _set(body, has.get("tool_call_id"), names)
    calls = has.get("tool_calls")
    if calls is not None and body[calls.value : calls.value + 1] == b"[":
        for call in splice.elements(body, calls):
            if body[call.value : call.value + 1] == b"{":
                edits += _set(body, splice.members(body, call).get("id"), names)
    return edits


def _set(body: bytes, place: Span | None, names: dict[str, str]) -> list[Edit]:
    if place is None:
        return []
    id = splice.loads(body[place.value : place.end])
    if not isinstance(id, str) or id not in names:
        return []
    return [(place.value, place.end, splice.dumps(names[id]))]


# -- items of the Responses API ------------------------------------------------------------------


def nameless(body: bytes) -> bytes:
    """A Responses body whose sealed thoughts, and what they led to, bear no ids."""
    edits: list[Edit] = []
    for span, item in listed(body, "input"):
        sealed = kind(item) == "reasoning" and item.get("encrypted_content")
        led = kind(item) in ARGUMENTS or (kind(item) == "message" and side(item) is Side.OUTPUT)
        if (sealed or led) and "id" in item:
            has = splice.members(body, span)
            edits += splice.cut([has["id"]], has.values())
    return splice.apply(body, edits)


def unrepeated(body: bytes) -> bytes:
    """A Responses body in which no item stands twice; the first one stays."""
    seen: set[str] = set()

    def again(_index: int, item: Any) -> bool:
        id = item.get("id") if isinstance(item, dict) else None
        if not isinstance(id, str) or not id:
            return False
        known = id in seen
        seen.add(id)
        return known

    return without(body, again)


def summarised(body: bytes) -> bytes:
    """A Responses body whose reasoning items all have a summary, if only an empty one."""
    edits: list[Edit] = []
    for span, item in listed(body, "input"):
        if kind(item) == "reasoning" and "summary" not in item:
            has = splice.members(body, span)
            edits += splice.revise(span, has, {"summary": b"[]"})
    return splice.apply(body, edits)


def uncompacted(body: bytes) -> bytes:
    """A Responses body without compaction items."""
    return without(body, lambda _, item: kind(item) == "compaction")


# -- thinking switched off in a Messages body ----------------------------------------------------


def unclearing(body: bytes) -> bytes:
    """A Messages body that, without thinking, does not ask to clear it (claude-code#11971)."""
    if b'"disabled"' not in body:
        return body
    top = splice.members(body)
    switch, place = top.get("thinking"), top.get("context_management")
    if switch is None or place is None:
        return body
    thinking = splice.loads(body[switch.value : switch.end])
    if not isinstance(thinking, dict) or thinking.get("type") != "disabled":
        return body
    asked = splice.loads(body[place.value : place.end])
    edits = asked.get("edits") if isinstance(asked, dict) else None
    if not isinstance(edits, list):
        return body
    kept = [edit for edit in edits if not _clears(edit)]
    if len(kept) == len(edits):
        return body
    raw = splice.dumps({**asked, "edits": kept}) if kept or len(asked) > 1 else None
    return splice.apply(
        body, splice.revise(Span(0, 0, body.rindex(b"}") + 1), top, {"context_management": raw})
    )


def _clears(edit: Any) -> bool:
    return isinstance(edit, dict) and str(edit.get("type", "")).startswith("clear_thinking")

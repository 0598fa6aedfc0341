"""Last edits of a finished Chat Completions body, for endpoints with demands of their own.

Each one edits only what it must and gives back the very same object where there is nothing to do,
so that everything else keeps its bytes.
"""

import re
from collections.abc import Container
from hashlib import blake2b
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Rewrites
from thoughtline.dialects.chat.message import MEMBERS
from thoughtline.dialects.splice import Edit, Span

_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def strip_null_reasoning(body: bytes) -> bytes:
    """Remove keys for thoughts that hold `null`: some endpoints refuse them."""
    edits: list[Edit] = []
    for span, message in splice.top_level_list(body, "messages") if b"null" in body else ():
        if isinstance(message, dict):
            gone = {str(key): None for key in MEMBERS if message.get(key, "") is None}
            edits += splice.revise(span, splice.members(body, span), gone) if gone else []
    return splice.apply(body, edits) if edits else body


def short_call_ids(body: bytes) -> bytes:
    """Replace tool call ids by nine letters or digits, always the same for the same id."""
    found = splice.top_level_list(body, "messages")
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
    """Return nine characters made from an id: the same in every request, unique in this one."""
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


REWRITES = Rewrites(strip_null_reasoning=strip_null_reasoning, short_call_ids=short_call_ids)

"""The texts of an output as they stand in a body, and the body without some of them.

Some clients write the thought of another provider as a text in front of the answer: a block of its
own, or the beginning of the content where that is one string.
"""

from collections.abc import Collection, Mapping
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import Dialect, Request
from thoughtline.dialects.splice import Edit, Span
from thoughtline.dialects.surrogates import json_string

_TEXT_TYPES = ("text", "output_text", None)


def output_texts(
    dialect: Dialect, request: Request, turns: Collection[int]
) -> dict[int, list[str]]:
    """Return the texts of these turns' outputs, one for each block. Raises `Unreadable`."""
    texts: dict[int, list[str]] = {turn: [] for turn in turns}
    for turn in turns:
        for _, value in _contents(dialect, request, turn):
            values = value if isinstance(value, list) else [value]
            texts[turn] += [text for one in values if (text := _text(one))]
    return texts


def without_texts(
    dialect: Dialect, request: Request, texts: Mapping[int, Collection[str]]
) -> bytes:
    """Return the body without these texts of these turns' outputs. Raises `Unreadable`.

    A text is a whole block, or what a content string begins with. An element of which nothing is
    left goes altogether.
    """
    body = request.body
    edits: list[Edit] = []
    emptied: list[Span] = []
    elements = splice.layout(body, dialect.history_member).elements
    for turn, gone in texts.items():
        for index, value in _contents(dialect, request, turn):
            place = splice.members(body, elements[index])[dialect.content_member]
            if isinstance(value, list):
                spans = splice.elements(body, place)
                cut = [s for one, s in zip(value, spans, strict=True) if _text(one) in gone]
                if len(cut) == len(spans):
                    emptied.append(elements[index])
                elif cut:
                    edits += splice.cut(cut, spans)
            elif isinstance(value, str):
                rest = _without_beginning(value, gone)
                if rest != value:
                    edits.append((place.value, place.end, json_string(rest)))
    if emptied:
        edits += splice.cut(emptied, elements)
    return splice.apply(body, edits)


def _contents(dialect: Dialect, request: Request, turn: int) -> list[tuple[int, Any]]:
    """Return the contents of a turn's output, each with the position of its element."""
    body = request.body
    elements = splice.layout(body, dialect.history_member).elements
    found: list[tuple[int, Any]] = []
    anchors = request.anchors[turn]
    for index in anchors if isinstance(anchors, tuple) else (anchors,):
        has = splice.members(body, elements[index]) if index >= 0 else {}
        if place := has.get(dialect.content_member):
            found.append((index, splice.loads(body[place.value : place.end])))
    return found


def _text(block: Any) -> str:
    """Return the text of a block; empty for anything else, and for a thought."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or block.get("thought") or block.get("type") not in _TEXT_TYPES:
        return ""
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _without_beginning(value: str, gone: Collection[str]) -> str:
    """Return a string without those of the texts that it begins with, one after the other."""
    while begun := next((one for one in gone if one and value.startswith(one)), ""):
        if begun == value:
            return value
        value = value[len(begun) :]
    return value

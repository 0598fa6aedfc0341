"""Puts thoughts into a Chat Completions body and touches only the messages concerned.

Each carrier has its place: a member of the message, the beginning of `content`, a chunk inside it,
or a member of a tool call. The thoughts of a revision replace those that the message had; equal
ones keep their bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.base import PlacedThought, Request, Revision
from thoughtline.dialects.chat.inline import join, pieces, split
from thoughtline.dialects.chat.message import (
    MEMBERS,
    NAMES,
    element_text,
    is_thinking_chunk,
    name_and_arguments,
)
from thoughtline.dialects.splice import Edit, Span
from thoughtline.dialects.thoughts import same_json
from thoughtline.log.parts import Carrier


def edits(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> list[Edit]:
    """Return the edits that revise these outputs; see `Dialect.edits`."""
    body = request.body
    layout = splice.layout(body, "messages")
    edits = splice.set_members(body, layout.members, fields) if fields else []
    messages = layout.elements if revisions else []
    for revision in revisions:
        anchor = request.anchors[revision.turn]
        if anchor >= 0:
            had = bool(request.turns[revision.turn].thoughts)
            edits += _message(body, messages[anchor], revision.thoughts, had=had)
    return edits


def _may_hold_thoughts(there: bytes) -> bool:
    """Whether a JSON text may hold a thought of any kind; an escape could hide its key."""
    return (
        b"reasoning" in there or b"think" in there or b"extra_content" in there or b"\\u" in there
    )


def _message(
    body: bytes, span: Span, thoughts: Sequence[PlacedThought], *, had: bool
) -> list[Edit]:
    """Return the edits of one message; `had`: it has thoughts."""
    if not had and (added := _more_members(thoughts)):
        there = body[span.value : span.end]
        may_have = b"reasoning" in there or b"\\u" in there  # an escape could hide a key
        if not may_have or NAMES.keys().isdisjoint(splice.names(there)):
            return [(span.end - 1, span.end - 1, added)]  # the usual case: nothing to look for
    has = splice.members(body, span)
    changes: dict[str, bytes | None] = dict.fromkeys(MEMBERS)
    for placed in thoughts:
        if placed.carrier in MEMBERS:
            changes[placed.carrier] = placed.raw.encode()
    for key in MEMBERS:
        if (raw := changes[key]) is not None and key in has and _same(_raw(body, has[key]), raw):
            del changes[key]
    content = _content(_raw(body, has["content"]) if "content" in has else b"null", thoughts)
    if content is not None:
        changes["content"] = content
    return splice.revise(span, has, changes) + _calls(body, has.get("tool_calls"), thoughts)


def _more_members(thoughts: Sequence[PlacedThought]) -> bytes:
    """Return thoughts as further members of a message, which has a role; nothing if one is none."""
    members: dict[str, str] = {}
    for placed in thoughts:
        carrier = placed.carrier
        if carrier not in MEMBERS:
            return b""
        members[carrier] = f',"{carrier}":{placed.raw}'
    return "".join(members.values()).encode()


def _raw(body: bytes, span: Span) -> bytes:
    return body[span.value : span.end]


def _same(there: bytes, raw: bytes) -> bool:
    return there == raw or same_json(there.decode(), raw.decode())


# -- inside the content --------------------------------------------------------------------------


def _content(there: bytes, thoughts: Sequence[PlacedThought]) -> bytes | None:
    """Return the new content, or None where it is right as it is."""
    inline = [p for p in thoughts if p.carrier is Carrier.THINK]
    chunks = [p for p in thoughts if p.carrier is Carrier.CHUNK]
    if not inline and not chunks and not _may_hold_thoughts(there):
        return None  # the usual case: no thought inside, and none to go there
    value = splice.loads(there)
    if isinstance(value, list):
        return _list(there, value, inline, chunks)
    if value is not None and not isinstance(value, str):
        return None  # nothing that a thought could stand in
    text = value or ""
    if chunks:
        own = [_element(_with_inline(there, text, inline))] if text else []
        before = [p.raw.encode() for p in chunks if p.place.kind == "text"]
        after = [p.raw.encode() for p in chunks if p.place.kind != "text"]
        return b"[" + b",".join(before + own + after) + b"]"
    new = _with_inline(there, text, inline)
    return None if new is there else new


def _with_inline(there: bytes, text: str, thoughts: Sequence[PlacedThought]) -> bytes:
    """Return a text's JSON with just these thoughts in it; the rest keeps its spelling."""
    if len(thoughts) > 1:
        new = _interleaved(text, thoughts)
        return there if new == text else splice.dumps(new)
    inline = "".join(_inline_text(placed) for placed in thoughts)
    had, rest = split(text)
    if not inline:  # inline thoughts further on go with the first one
        rest = "\n\n".join(own for _, own in pieces(text) if own) if had else rest
    if had == inline:
        return there
    if inline and not had and rest and not rest[0].isspace():
        return splice.dumps(inline)[:-1] + there[1:]
    return splice.dumps(join(inline, rest))


def _interleaved(text: str, thoughts: Sequence[PlacedThought]) -> str:
    """Return the text with the first thought in front, and each other before what it led to.

    Where a client joined two texts, a thought stands before the joined one.
    """
    texts = [own for _, own in pieces(text, anywhere=True) if own]
    slots: dict[int, list[str]] = {}
    for nth, placed in enumerate(thoughts):
        at = max(0, _slot(placed, len(texts) - 1)) if nth else 0
        slots.setdefault(at, []).append(_inline_text(placed))
    new: list[str] = []
    for nth, own in enumerate([*texts, ""]):  # whitespace around a thought is its own
        new += slots.get(nth, ())
        after = own.lstrip() if nth in slots else own
        new.append(after.rstrip() if nth + 1 in slots else after)
    return "".join(new)


def _inline_text(placed: PlacedThought) -> str:
    """Return the text of an inline thought, with its tags."""
    return str(splice.loads(placed.raw.encode()))


def _element(text: bytes) -> bytes:
    return b'{"type":"text","text":' + text + b"}"


def _list(
    there: bytes,
    values: list[Any],
    inline: Sequence[PlacedThought],
    chunks: Sequence[PlacedThought],
) -> bytes | None:
    """Return the new content list: chunks before their text, inline thoughts in the first text."""
    spans = splice.elements(there, Span(0, 0, len(there)))
    texts = [element_text(value) for value in values]
    last = sum(bool(text and split(text)[1]) for text in texts) - 1
    # A text that is no longer there is part of the last one.
    waiting = [(p.raw.encode(), _slot(p, last)) for p in chunks]
    made: list[bytes] = []
    nth = 0
    for value, text, span in zip(values, texts, spans, strict=True):
        old = _raw(there, span)
        if is_thinking_chunk(value):
            if waiting and _same(old, waiting[0][0]):
                made.append(old)
                waiting.pop(0)
            continue
        if text is not None and split(text)[1]:
            while waiting and waiting[0][1] <= nth:
                made.append(waiting.pop(0)[0])
            nth += 1
        if text is not None:
            old, inline = _text_element(old, value, text, inline), ()
        made.append(old)
    if inline:
        made.insert(0, _element(splice.dumps("".join(map(_inline_text, inline)))))
    made += [raw for raw, _ in waiting]
    if made == [_raw(there, span) for span in spans]:
        return None
    return b"[" + b",".join(made) + b"]"


def _slot(placed: PlacedThought, last: int) -> int:
    """Return the number of the text that a chunk stands before; after the last it is the end."""
    return min(placed.place.nth, last) if placed.place.kind == "text" else last + 1


def _text_element(old: bytes, value: Any, text: str, inline: Sequence[PlacedThought]) -> bytes:
    """Return an element that is text with just these thoughts in it."""
    if isinstance(value, str):
        return _with_inline(old, text, inline)
    has = splice.members(old)
    edit = splice.put(
        Span(0, 0, len(old)), "text", _with_inline(_raw(old, has["text"]), text, inline), has
    )
    return splice.apply(old, [edit])


# -- on the calls --------------------------------------------------------------------------------


def _calls(body: bytes, place: Span | None, thoughts: Sequence[PlacedThought]) -> list[Edit]:
    if place is None or body[place.value : place.value + 1] != b"[":
        return []
    extras = {
        p.place.nth: p.raw.encode()
        for p in thoughts
        if p.carrier is Carrier.EXTRA_CONTENT and p.place.kind == "call"
    }
    if not extras and not _may_hold_thoughts(_raw(body, place)):
        return []
    edits: list[Edit] = []
    nth = 0
    for span in splice.elements(body, place):
        if name_and_arguments(splice.loads(_raw(body, span))) is None:
            continue
        has = splice.members(body, span)
        raw, old = extras.get(nth), has.get("extra_content")
        if raw is None or old is None or not _same(_raw(body, old), raw):
            edits += splice.revise(span, has, {"extra_content": raw})
        nth += 1
    return edits

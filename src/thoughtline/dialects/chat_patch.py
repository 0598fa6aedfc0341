"""Putting thoughts into a Chat Completions body, touching only the messages concerned.

Each carrier has its place: a member of the message, the front of `content`, a chunk inside it, or
a member of a tool call. Whatever thoughts the message had before are replaced by those of the
revision; equal ones keep their bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Placed, Request, Revision
from thoughtline.dialects.chat_message import MEMBERS, NAMES, called, is_chunk, text_of
from thoughtline.dialects.inline import join, pieces, split
from thoughtline.dialects.thoughts import same
from thoughtline.parts import Carrier
from thoughtline.splice import Edit, Span


def patch(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> bytes:
    """The body with these outputs revised; see `Dialect.patch`."""
    if not revisions and not fields:
        return request.body
    body = request.body
    top = splice.members(body)
    edits = top_level.edits(body, top, fields) if fields else []
    messages = splice.elements(body, top["messages"]) if revisions else []
    for revision in revisions:
        anchor = request.anchors[revision.turn]
        if anchor >= 0:
            had = bool(request.turns[revision.turn].thoughts)
            edits += _message(body, messages[anchor], revision.thoughts, had=had)
    return splice.apply(body, edits)


def _traces(there: bytes) -> bool:
    """Whether there may be a thought of any kind in this text; an escape could hide its key."""
    return (
        b"reasoning" in there or b"think" in there or b"extra_content" in there or b"\\u" in there
    )


def _message(body: bytes, span: Span, thoughts: Sequence[Placed], *, had: bool) -> list[Edit]:
    """The edits of one message; `had`: there are thoughts in it."""
    if not had and _beside(thoughts) and NAMES.keys().isdisjoint(splice.names(_at(body, span))):
        return [_added(span, thoughts)]  # the usual case: nothing to look for
    has = splice.members(body, span)
    changes: dict[str, bytes | None] = dict.fromkeys(MEMBERS)
    for placed in thoughts:
        if placed.carrier in MEMBERS:
            changes[placed.carrier] = placed.raw.encode()
    for key in MEMBERS:
        if (raw := changes[key]) is not None and key in has and _same(_at(body, has[key]), raw):
            del changes[key]
    content = _content(_at(body, has["content"]) if "content" in has else b"null", thoughts)
    if content is not None:
        changes["content"] = content
    return splice.revise(span, has, changes) + _calls(body, has.get("tool_calls"), thoughts)


def _beside(thoughts: Sequence[Placed]) -> bool:
    """Whether there are any, and all of them are members of the message."""
    for placed in thoughts:
        if placed.carrier not in MEMBERS:
            return False
    return bool(thoughts)


def _added(span: Span, thoughts: Sequence[Placed]) -> Edit:
    """Thoughts as the last members of a message, which has others: at least its role."""
    members = {placed.carrier: placed.raw for placed in thoughts}
    made = "".join([',"' + key + '":' + raw for key, raw in members.items()])
    return (span.end - 1, span.end - 1, made.encode())


def _at(body: bytes, span: Span) -> bytes:
    return body[span.value : span.end]


def _same(there: bytes, raw: bytes) -> bool:
    return there == raw or same(there.decode(), raw.decode())


# -- inside the content --------------------------------------------------------------------------


def _content(there: bytes, thoughts: Sequence[Placed]) -> bytes | None:
    """The new content, or None where it is right as it is."""
    inline = [p for p in thoughts if p.carrier is Carrier.THINK]
    chunks = [p for p in thoughts if p.carrier is Carrier.CHUNK]
    if not inline and not chunks and not _traces(there):
        return None  # the usual case: no thought inside, and none to go there
    value = splice.loads(there)
    if isinstance(value, list):
        return _list(there, value, inline, chunks)
    if value is not None and not isinstance(value, str):
        return None  # nothing that a thought could stand in
    text = value or ""
    if chunks:
        said = [_element(_inlined(there, text, inline))] if text else []
        before = [p.raw.encode() for p in chunks if p.place.kind == "text"]
        behind = [p.raw.encode() for p in chunks if p.place.kind != "text"]
        return b"[" + b",".join(before + said + behind) + b"]"
    made = _inlined(there, text, inline)
    return None if made is there else made


def _inlined(there: bytes, text: str, thoughts: Sequence[Placed]) -> bytes:
    """A text's JSON with just these thoughts in it; the rest keeps its spelling if it can."""
    if len(thoughts) > 1:
        made = _interleaved(text, thoughts)
        return there if made == text else splice.dumps(made)
    inline = "".join(_word(placed) for placed in thoughts)
    had, rest = split(text)
    if not inline:  # those between the words go with the one in front
        rest = "\n\n".join(said for _, said in pieces(text) if said) if had else rest
    if had == inline:
        return there
    if inline and not had and rest and not rest[0].isspace():
        return splice.dumps(inline)[:-1] + there[1:]
    return splice.dumps(join(inline, rest))


def _interleaved(text: str, thoughts: Sequence[Placed]) -> str:
    """The words with these thoughts between them: the first in front, each before what it led to.

    Words that are no longer apart are as good as the last of them: what led there comes before.
    """
    said = [words for _, words in pieces(text, anywhere=True) if words]
    slots: dict[int, list[str]] = {}
    for nth, placed in enumerate(thoughts):
        at = max(0, _slot(placed, len(said) - 1)) if nth else 0
        slots.setdefault(at, []).append(_word(placed))
    made: list[str] = []
    for nth, words in enumerate([*said, ""]):  # whitespace around a thought is its own
        made += slots.get(nth, ())
        after = words.lstrip() if nth in slots else words
        made.append(after.rstrip() if nth + 1 in slots else after)
    return "".join(made)


def _word(placed: Placed) -> str:
    """The text of an inline thought, with its tags."""
    return str(splice.loads(placed.raw.encode()))


def _element(text: bytes) -> bytes:
    return b'{"type":"text","text":' + text + b"}"


def _list(
    there: bytes, values: list[Any], inline: Sequence[Placed], chunks: Sequence[Placed]
) -> bytes | None:
    """A content list: chunks stand before the text they led to, inline ones inside the first."""
    spans = splice.elements(there, Span(0, 0, len(there)))
    texts = [text_of(value) for value in values]
    last = sum(bool(text and split(text)[1]) for text in texts) - 1
    # A text that is no longer there is part of the last one.
    waiting = [(p.raw.encode(), _slot(p, last)) for p in chunks]
    made: list[bytes] = []
    nth = 0
    for value, text, span in zip(values, texts, spans, strict=True):
        old = _at(there, span)
        if is_chunk(value):
            if waiting and _same(old, waiting[0][0]):
                made.append(old)
                waiting.pop(0)
            continue
        if text is not None and split(text)[1]:
            while waiting and waiting[0][1] <= nth:
                made.append(waiting.pop(0)[0])
            nth += 1
        if text is not None:
            old, inline = _said(old, value, text, inline), ()
        made.append(old)
    if inline:
        made.insert(0, _element(splice.dumps("".join(map(_word, inline)))))
    made += [raw for raw, _ in waiting]
    if made == [_at(there, span) for span in spans]:
        return None
    return b"[" + b",".join(made) + b"]"


def _slot(placed: Placed, last: int) -> int:
    """The number of the text that a chunk stands before; one more than the last is the end."""
    return min(placed.place.nth, last) if placed.place.kind == "text" else last + 1


def _said(old: bytes, value: Any, text: str, inline: Sequence[Placed]) -> bytes:
    """An element that is text, with just these thoughts in it."""
    if isinstance(value, str):
        return _inlined(old, text, inline)
    has = splice.members(old)
    edit = splice.put(
        Span(0, 0, len(old)), "text", _inlined(_at(old, has["text"]), text, inline), has
    )
    return splice.apply(old, [edit])


# -- on the calls --------------------------------------------------------------------------------


def _calls(body: bytes, place: Span | None, thoughts: Sequence[Placed]) -> list[Edit]:
    if place is None or body[place.value : place.value + 1] != b"[":
        return []
    riding = {
        p.place.nth: p.raw.encode()
        for p in thoughts
        if p.carrier is Carrier.EXTRA_CONTENT and p.place.kind == "call"
    }
    if not riding and not _traces(_at(body, place)):
        return []
    edits: list[Edit] = []
    nth = 0
    for span in splice.elements(body, place):
        if called(splice.loads(_at(body, span))) is None:
            continue
        has = splice.members(body, span)
        raw, old = riding.get(nth), has.get("extra_content")
        if raw is None or old is None or not _same(_at(body, old), raw):
            edits += splice.revise(span, has, {"extra_content": raw})
        nth += 1
    return edits

"""Putting thoughts into a Chat Completions body, touching only the messages concerned.

Each carrier has its place: a member of the message, the front of `content`, a chunk inside it, or
a member of a tool call. Whatever thoughts the message had before are replaced by those of the
revision; equal ones keep their bytes.
"""

from collections.abc import Mapping, Sequence

from thoughtline import splice
from thoughtline.dialects import fields as top_level
from thoughtline.dialects.base import Placed, Request, Revision
from thoughtline.dialects.inline import split
from thoughtline.parts import Carrier
from thoughtline.splice import Edit, Span

MEMBERS = (
    Carrier.REASONING_CONTENT,
    Carrier.REASONING,
    Carrier.REASONING_DETAILS,
    Carrier.REASONING_TEXT,
    Carrier.REASONING_OPAQUE,
)
"""Carriers that are members of the message itself, under their own names."""


def patch(
    request: Request, revisions: Sequence[Revision], fields: Mapping[str, bytes | None]
) -> bytes:
    """The body with these outputs revised; see `Dialect.patch`."""
    if not revisions and not fields:
        return request.body
    body = request.body
    top = splice.members(body)
    edits = top_level.edits(body, top, fields)
    if revisions:
        messages = splice.elements(body, top["messages"])
        for revision in revisions:
            edits += _message(body, messages[request.anchors[revision.turn]], revision.thoughts)
    return splice.apply(body, edits)


def _message(body: bytes, span: Span, thoughts: Sequence[Placed]) -> list[Edit]:
    has = splice.members(body, span)
    wanted = {p.carrier: p.raw for p in thoughts if p.carrier in MEMBERS}
    gone = [has[key] for key in MEMBERS if key in has and key not in wanted]
    edits = splice.cut(gone, has.values())
    for key, raw in wanted.items():
        if key not in has or not _same(body, has[key], raw):
            edits.append(splice.put(span, key, raw.encode(), has))
    return edits + _content(body, span, has, thoughts) + _calls(body, has, thoughts)


def _same(body: bytes, span: Span, raw: str) -> bool:
    there = body[span.value : span.end]
    return there == raw.encode() or splice.loads(there) == splice.loads(raw.encode())


def _content(
    body: bytes, span: Span, has: dict[str, Span], thoughts: Sequence[Placed]
) -> list[Edit]:
    inline = "".join(splice.loads(p.raw.encode()) for p in thoughts if p.carrier is Carrier.THINK)
    chunks = [p for p in thoughts if p.carrier is Carrier.CHUNK]
    place = has.get("content")
    there = body[place.value : place.end] if place else b"null"
    if there[:1] == b"[" and place:
        return _list(body, place, inline, chunks)
    text = splice.loads(there)
    if text is not None and not isinstance(text, str):
        return []
    had, rest = split(text or "")
    if chunks:
        before = [p.raw.encode() for p in chunks if p.place.kind == "text"]
        behind = [p.raw.encode() for p in chunks if p.place.kind != "text"]
        if rest:
            before.append(b'{"type":"text","text":' + splice.dumps(rest) + b"}")
        pieces = b",".join(before + behind)
        return [splice.put(span, "content", b"[" + pieces + b"]", has)]
    if had == inline:
        return []
    return [splice.put(span, "content", splice.dumps(inline + rest), has)]


def _list(body: bytes, place: Span, inline: str, chunks: Sequence[Placed]) -> list[Edit]:
    """A content list: chunks stand before the text they led to, inline thought inside the first."""
    values = splice.loads(body[place.value : place.end])
    spans = splice.elements(body, place)
    kept: list[bytes] = []
    texts = 0
    changed = False
    waiting = list(chunks)
    for value, span in zip(values, spans, strict=True):
        raw = body[span.value : span.end]
        text = value.get("text") if isinstance(value, dict) else None
        if isinstance(value, dict) and value.get("type") == "thinking":
            if waiting and _same(body, span, waiting[0].raw):
                waiting.pop(0)
                kept.append(raw)
            else:
                changed = True
            continue
        if isinstance(text, str):
            while waiting and waiting[0].place.kind == "text" and waiting[0].place.nth <= texts:
                kept.append(waiting.pop(0).raw.encode())
                changed = True
            had, rest = split(text)
            wish = inline if texts == 0 else ""
            if had != wish:
                raw = splice.dumps(value | {"text": wish + rest})
                changed = True
            texts += 1
        kept.append(raw)
    if inline and not texts:
        kept.insert(0, splice.dumps({"type": "text", "text": inline}))
        changed = True
    if waiting:
        kept += [p.raw.encode() for p in waiting]
        changed = True
    if not changed:
        return []
    return [(place.value, place.end, b"[" + b",".join(kept) + b"]")]


def _calls(body: bytes, has: dict[str, Span], thoughts: Sequence[Placed]) -> list[Edit]:
    riding = {p.place.nth: p.raw for p in thoughts if p.carrier is Carrier.EXTRA_CONTENT}
    place = has.get("tool_calls")
    if place is None or body[place.value : place.value + 1] != b"[":
        return []
    edits: list[Edit] = []
    for index, span in enumerate(splice.elements(body, place)):
        if body[span.value : span.value + 1] != b"{":
            continue
        members = splice.members(body, span)
        raw = riding.get(index)
        old = members.get("extra_content")
        if raw is None and old:
            edits += splice.cut([old], members.values())
        elif raw is not None and not (old and _same(body, old, raw)):
            edits.append(splice.put(span, "extra_content", raw.encode(), members))
    return edits

"""Links of a Gemini answer: its grounding, and where it repeats a source to the letter.

Passages are counted in bytes of what the answer says. Each event of a stream numbers its links by
itself, and may say again what one before said.
"""

from collections.abc import Sequence
from typing import Any

from thoughtline.dialects.citations import measured, read_citation
from thoughtline.dialects.gemini.parts import member
from thoughtline.dialects.values import mapping, sequence
from thoughtline.log.events import Citation

_CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes of UTF-8 that begin no character."""
_SOURCES = ("web", "retrievedContext", "maps")

Passage = tuple[Any, Any, Any, Any]
"""A link, and the bytes that it stands behind: from, to, and what they say."""


def passages(candidate: dict[str, Any]) -> list[Passage]:
    """Return the links of a candidate, each as an object with an address and maybe a title."""
    grounding = mapping(member(candidate, "groundingMetadata"))
    sources = [_source(one) for one in sequence(member(grounding, "groundingChunks"))]
    found: list[Passage] = []
    used: set[int] = set()
    for support in sequence(member(grounding, "groundingSupports")):
        segment = member(support, "segment")
        place = (*_bytes(segment), member(segment, "text"))
        for index in sequence(member(support, "groundingChunkIndices")):
            if type(index) is int and 0 <= index < len(sources):
                found.append((sources[index], *place))
                used.add(index)
    found += [(one, None, None, "") for at, one in enumerate(sources) if at not in used]
    copied = mapping(member(candidate, "citationMetadata"))
    for one in sequence(member(copied, "citationSources") or member(copied, "citations")):
        found.append((mapping(one), *_bytes(one), ""))
    return found


def _bytes(place: Any) -> tuple[Any, Any]:
    """Return where a passage begins, which is left out where it is 0, and where it ends."""
    return member(place, "startIndex") or 0, member(place, "endIndex")


def _source(chunk: Any) -> dict[str, Any]:
    return next((said for key in _SOURCES if (said := mapping(member(chunk, key)))), {})


def located(found: Sequence[Passage], text: str) -> list[Citation]:
    """Return links with their passages in characters of a text."""
    data = text.encode("utf-8", "replace")
    there = [_is_there(data, *place) for _, *place in found]
    offsets = (at for ok, (_, *place, _) in zip(there, found, strict=True) if ok for at in place)
    before = measured(data, offsets, _characters)
    links: list[Citation] = []
    for ok, (source, start, end, _) in zip(there, found, strict=True):
        span = (before[start], before[end]) if ok else ()
        links += read_citation(*map(source.get, ("uri", "title", "text")), *span)
    return links


def _is_there(data: bytes, start: Any, end: Any, words: Any) -> bool:
    """Whether a passage is one of the answer, and says there what it is said to say."""
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(data):
        return False
    return not words or data[start:end].decode("utf-8", "replace") == words


def _characters(data: bytes) -> int:
    return len(data.translate(None, _CONTINUATION))


def grounding(citations: Sequence[Citation], text: str) -> dict[str, Any]:
    """Return the metadata that says these links of a text."""
    places = {link.url: at for at, link in enumerate({one.url: one for one in citations}.values())}
    titles = {link.url: link.title for link in citations}
    offsets = (at for one in citations for at in (one.start or 0, one.end))
    before = measured(text, offsets, lambda piece: len(piece.encode("utf-8", "replace")))
    supports = [
        {
            "segment": {
                "startIndex": before[link.start or 0],
                "endIndex": before[link.end],
                "text": text[link.start : link.end],
            },
            "groundingChunkIndices": [places[link.url]],
        }
        for link in citations
        if link.end > (link.start or 0)
    ]
    chunks = [{"web": {"uri": url, "title": titles[url]}} for url in places]
    return {"groundingChunks": chunks, "groundingSupports": supports}

"""Links of a Responses answer: annotations of the texts in its messages."""

from typing import Any

from thoughtline.dialects.citations import read_citation
from thoughtline.dialects.values import mapping, sequence, string
from thoughtline.log.events import Citation


def annotated(content: Any, base: int) -> list[Citation]:
    """Return the links in a message's content; `base`: the characters that were said before it."""
    found: list[Citation] = []
    for part in map(mapping, sequence(content)):
        for one in map(mapping, sequence(part.get("annotations"))):
            found += read_citation(
                one.get("url"),
                one.get("title"),
                start=one.get("start_index"),
                end=one.get("end_index"),
                base=base,
            )
        base += len(string(part.get("text")))
    return found


def annotation(citation: Citation, base: int) -> dict[str, Any]:
    """Return a link as an annotation of a text that begins at this offset."""
    return {
        "type": "url_citation",
        "start_index": (citation.start or 0) - base,
        "end_index": citation.end - base,
        "url": citation.url,
        "title": citation.title,
    }

"""Links of a Messages answer: citations of its text blocks, which hold for all of a block.

The API wants a value of its own beside each link, and checks it when it comes back. In the links
of another provider a mark stands there, by which they are known again and taken out.
"""

from typing import Any

from thoughtline.dialects import splice
from thoughtline.dialects.citations import MARK, read_citation
from thoughtline.dialects.splice import Edit, Span
from thoughtline.dialects.values import mapping
from thoughtline.log.events import Citation

_LOCATION = "web_search_result_location"
_INDEX = MARK.decode()


def cited(citation: Any, start: int, end: int) -> list[Citation]:
    """Return the link of a citation of a block with these characters; documents have none."""
    said = mapping(citation)
    url = said.get("url") or said.get("source")
    return read_citation(url, said.get("title"), said.get("cited_text"), start, end)


def citation_block(citation: Citation) -> dict[str, Any]:
    """Return a link as a citation."""
    return {
        "type": _LOCATION,
        "cited_text": citation.quote,
        "url": citation.url,
        "title": citation.title,
        "encrypted_index": _INDEX,
    }


def drop_foreign_citations(body: bytes) -> bytes:
    """Remove the links of other providers' answers, which this API has not made."""
    edits: list[Edit] = []
    for span, message in splice.top_level_list(body, "messages"):
        content = mapping(message).get("content")
        if not isinstance(content, list) or not any(map(_foreign, content)):
            continue
        spans = splice.elements(body, splice.members(body, span)["content"])
        for place, block in zip(spans, content, strict=True):
            if _foreign(block):
                edits += _without(body, place, block["citations"])
    return splice.apply(body, edits)


def _foreign(block: Any) -> bool:
    citations = mapping(block).get("citations")
    return isinstance(citations, list) and any(map(_marked, citations))


def _marked(citation: Any) -> bool:
    return mapping(citation).get("encrypted_index") == _INDEX


def _without(body: bytes, block: Span, citations: list[Any]) -> list[Edit]:
    kept = [one for one in citations if not _marked(one)]
    raw = splice.dumps(kept) if kept else None
    return splice.revise(block, splice.members(body, block), {"citations": raw})

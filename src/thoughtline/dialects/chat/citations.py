"""Links of a Chat Completions answer: annotations of its message, and lists beside it."""

from typing import Any

from thoughtline.dialects.citations import read_citation
from thoughtline.dialects.values import mapping, sequence, string
from thoughtline.log.events import Citation


def annotated(annotations: Any) -> list[Citation]:
    """Return the links in a message's annotations."""
    found: list[Citation] = []
    for one in map(mapping, sequence(annotations)):
        link = mapping(one.get("url_citation")) or one
        found += read_citation(
            *map(link.get, ("url", "title", "content", "start_index", "end_index"))
        )
    return found


def listed(citations: Any, results: Any) -> list[Citation]:
    """Return the links of a whole answer (Perplexity, xAI): addresses, maybe with their titles."""
    titles = {string(one.get("url")): one.get("title") for one in map(mapping, sequence(results))}
    urls = [string(one) or string(mapping(one).get("url")) for one in sequence(citations)]
    return [link for url in urls for link in read_citation(url, titles.get(url))]


def annotation(citation: Citation) -> dict[str, Any]:
    """Return a link as an annotation."""
    link = {"start_index": citation.start or 0, "end_index": citation.end, "url": citation.url}
    link["title"] = citation.title
    if citation.quote:
        link["content"] = citation.quote
    return {"type": "url_citation", "url_citation": link}

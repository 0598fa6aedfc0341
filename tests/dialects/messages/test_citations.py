"""Links in the shape of the Messages API, and those that are not its own."""

import json

from thoughtline.dialects.messages.citations import (
    citation_block,
    cited,
    drop_foreign_citations,
)
from thoughtline.log.events import Citation

OWN = {
    "type": "web_search_result_location",
    "cited_text": "It says.",
    "url": "http://a",
    "title": "A",
    "encrypted_index": "Eo8BCioIAhgBIiQyYjQ0OWJmZi1lNm..",
}


def test_links_of_searches():
    result = {"type": "search_result_location", "source": "http://b", "title": "B"}
    assert cited(OWN, 3, 9) == [Citation("http://a", "A", "It says.", 3, 9)]
    assert cited(result | {"cited_text": "So."}, 3, 9) == [Citation("http://b", "B", "So.", 3, 9)]


def test_documents_have_no_address():
    document = {"type": "char_location", "document_index": 0, "document_title": "A", "title": None}
    assert cited(document, 0, 5) == cited(None, 0, 5) == []


def test_a_citation_is_read_as_it_is_written():
    citation = Citation("http://a", "A", "It says.", 3, 9)
    assert cited(citation_block(citation), 3, 9) == [citation]


def history(*citations):
    text = {"type": "text", "text": "It is so.", "citations": [*citations]}
    return [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, text]},
        {"role": "user", "content": "Well?"},
    ]


def test_links_of_another_provider_are_taken_out_and_nothing_else():
    foreign = citation_block(Citation("http://b"))
    for separators in ((",", ":"), (", ", ": ")):

        def body(messages, separators=separators):
            return json.dumps({"model": "m", "messages": messages}, separators=separators).encode()

        kept = drop_foreign_citations(body(history(OWN, foreign)))
        assert json.loads(kept)["messages"] == history(OWN)
        gone = json.loads(drop_foreign_citations(body(history(foreign))))["messages"]
        assert gone[1]["content"][1] == {"type": "text", "text": "It is so."}
        own = body(history(OWN))
        assert drop_foreign_citations(own) is own


def test_a_mark_that_stands_elsewhere_is_left():
    foreign = citation_block(Citation("http://b"))
    said = {"role": "user", "content": foreign["encrypted_index"]}
    body = json.dumps({"messages": [said, None, {"role": "user", "content": ["a"]}]}).encode()
    assert drop_foreign_citations(body) == body

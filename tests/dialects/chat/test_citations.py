"""Links in the shapes of OpenAI, OpenRouter, Perplexity and xAI."""

from thoughtline.dialects.chat.citations import annotated, annotation, listed
from thoughtline.log.events import Citation


def test_annotations_of_openai_and_openrouter():
    openai = {"url": "http://a", "title": "A", "start_index": 3, "end_index": 9}
    openrouter = {"url": "http://b", "title": "B", "content": "It says.", "start_index": 0}
    said = [
        {"type": "url_citation", "url_citation": openai},
        {"type": "url_citation", "url_citation": openrouter | {"end_index": 0}},
        {"type": "file", "file": {"name": "a.pdf"}},
        None,
    ]
    assert annotated(said) == [
        Citation("http://a", "A", "", 3, 9),
        Citation("http://b", "B", "It says."),
    ]
    assert annotated(None) == annotated("no list") == []


def test_annotations_that_are_flat():
    flat = {"type": "url_citation", "url": "http://a", "title": "A"}
    assert annotated([flat]) == [Citation("http://a", "A")]


def test_lists_beside_the_message():
    results = [{"title": "B", "url": "http://b", "date": "2026-01-01", "snippet": "…"}]
    assert listed(["http://a", "http://b"], results) == [
        Citation("http://a"),
        Citation("http://b", "B"),
    ]
    assert listed(["http://a"], None) == [Citation("http://a")]
    assert listed("http://a", []) == listed(None, results) == []


def test_an_annotation_is_read_as_it_is_written():
    for citation in (Citation("http://a", "A", "It says.", 3, 9), Citation("http://a", "A")):
        assert annotated([annotation(citation)]) == [citation]

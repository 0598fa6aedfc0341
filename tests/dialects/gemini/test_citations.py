"""Links in the shapes of Google's search, and of what is repeated to the letter."""

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.gemini.citations import grounding, located, passages
from thoughtline.log.events import Citation

TEXT = "Größe zählt. Mehr nicht."
FIRST = "Größe zählt."


def grounded(*supports, chunks=("a", "b")):
    sources = [{"web": {"uri": f"http://{name}", "title": name}} for name in chunks]
    found = {"groundingChunks": sources, "groundingSupports": [*supports]}
    return {"groundingMetadata": {"webSearchQueries": ["size"], **found}}


def support(*indices, **segment):
    return {"segment": segment, "groundingChunkIndices": [*indices], "confidenceScores": [0.9]}


def test_passages_are_counted_in_bytes_of_what_is_said():
    end = len(FIRST.encode())
    said = grounded(support(0, endIndex=end, text=FIRST), support(1, startIndex=end + 1))
    assert located(passages(said), TEXT) == [
        Citation("http://a", "a", "", 0, len(FIRST)),
        Citation("http://b", "b"),
    ]


def test_a_passage_that_says_something_else_is_not_known():
    """Offsets that count from the beginning of a part, or of a chunk, point elsewhere."""
    said = grounded(support(0, startIndex=2, endIndex=6, text=FIRST), chunks=("a",))
    assert located(passages(said), TEXT) == [Citation("http://a", "a")]


def test_sources_that_stand_behind_no_passage_are_links_of_the_answer():
    assert located(passages(grounded()), TEXT) == [
        Citation("http://a", "a"),
        Citation("http://b", "b"),
    ]


def test_maps_documents_and_snake_case():
    chunks = [
        {"maps": {"uri": "http://m", "title": "M", "place_id": "p"}},
        {"retrieved_context": {"uri": "gs://d", "title": "D", "text": "It says."}},
        {"retrieved_context": {"title": "no address"}},
        None,
    ]
    said = {"grounding_metadata": {"grounding_chunks": chunks}}
    assert located(passages(said), TEXT) == [
        Citation("http://m", "M"),
        Citation("gs://d", "D", "It says."),
    ]


def test_what_is_repeated_to_the_letter():
    copied = {"startIndex": 1, "endIndex": 3, "uri": "http://c", "license": "mit"}
    for key in ("citationSources", "citations"):
        said = {"citationMetadata": {key: [copied]}}
        assert located(passages(said), "abcdef") == [Citation("http://c", "", "", 1, 3)]


def test_odd_values_are_no_links():
    for odd in (5, [], {"groundingChunks": 5}, {"groundingSupports": [5, {"segment": 5}]}):
        assert passages({"groundingMetadata": odd, "citationMetadata": odd}) == []
    far = support(7, -1, "0", True, endIndex="9")
    assert located(passages(grounded(far, chunks=("a",))), TEXT) == [Citation("http://a", "a")]


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=4))
def test_what_is_written_is_read_again(text, spans):
    spans = [(start, min(start + size, len(text))) for start, size in spans if start < len(text)]
    links = [Citation(f"http://{at}", f"{at}", "", *span) for at, span in enumerate(spans)]
    assert located(passages({"groundingMetadata": grounding(links, text)}), text) == links

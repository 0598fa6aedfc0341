"""Links in the shape of OpenAI's Responses API."""

from thoughtline.dialects.responses.citations import annotated, annotation
from thoughtline.log.events import Citation


def part(text, *annotations):
    return {"type": "output_text", "text": text, "annotations": [*annotations]}


def test_annotations_count_from_their_own_text():
    link = {"type": "url_citation", "url": "http://a", "title": "A"}
    first = part("See it. ", link | {"start_index": 0, "end_index": 4})
    second = part("And it.", link | {"start_index": 4, "end_index": 6})
    assert annotated([first, second], base=10) == [
        Citation("http://a", "A", "", 10, 14),
        Citation("http://a", "A", "", 22, 24),
    ]


def test_files_have_no_address():
    cited = {"type": "file_citation", "file_id": "file-1", "filename": "a.pdf", "index": 3}
    made = {"type": "container_file_citation", "container_id": "c", "file_id": "f"}
    assert annotated([part("See.", cited, made)], base=0) == []
    assert annotated("no list", base=0) == annotated(None, base=0) == []


def test_an_annotation_is_read_as_it_is_written():
    citation = Citation("http://a", "A", "", 13, 19)
    assert annotated([part("x" * 20, annotation(citation, 10))], base=10) == [citation]

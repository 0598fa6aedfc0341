"""What the dialects share of links."""

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.dialects.citations import measured, read_citation
from thoughtline.log.events import Citation


def test_a_link_needs_an_address():
    assert read_citation(None, "A title") == []
    assert read_citation("", "A title") == []
    assert read_citation(["http://a"]) == []
    assert read_citation("http://a", None, 5) == [Citation("http://a")]


def test_a_passage_that_is_empty_or_of_another_type_is_not_known():
    for start, end in ((0, 0), (5, 3), (-1, 3), (None, 3), ("0", "3"), (True, 3)):
        assert read_citation("http://a", start=start, end=end) == [Citation("http://a")]
    assert read_citation("http://a", start=0, end=3, base=7) == [
        Citation("http://a", start=7, end=10)
    ]


def test_half_a_letter_in_a_title_is_replaced():
    assert read_citation("http://a", "\ud800") == [Citation("http://a", "\ufffd")]


@given(st.text(max_size=40), st.lists(st.integers(0, 50), max_size=8))
def test_offsets_in_another_unit_are_those_of_the_text_before(text, offsets):
    found = measured(text, offsets, lambda piece: len(piece.encode()))
    assert found == {at: len(text[:at].encode()) for at in offsets}

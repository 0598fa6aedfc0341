"""Events that are alike but for one text are told as two; anything else is left as it came."""

import pytest

from thoughtline.dialects.alike import shape_of, shortened
from thoughtline.dialects.chat.chunks import only_text

EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
SHAPE = shape_of(EVENT % b"so", only_text)


def arrivals(texts):
    return [item for at, text in enumerate(texts, 1) for item in (at, EVENT % text)]


def test_many_are_told_as_the_first_and_the_rest():
    told = shortened(arrivals([b"a", b" b", " é".encode(), b" d"]), SHAPE)
    assert told == [1, EVENT % b"a", 4, EVENT % " b é d".encode()]


def test_events_that_came_together_are_told_with_the_others():
    pieces = [1, EVENT % b"a" + EVENT % b"b", 2, EVENT % b"c"]
    assert shortened(pieces, SHAPE) == [1, EVENT % b"a", 2, EVENT % b"bc"]


@pytest.mark.parametrize(
    "odd", [b"", b'\\"', b"\\n", b"a\nb", b"\n\n", b"<", b"\xc3", b'x","finish_reason":"stop']
)
def test_a_text_that_may_mean_more_than_itself_is_left_as_it_came(odd):
    assert shortened(arrivals([b"a", b"b", odd, b"c"]), SHAPE) is None


def test_halves_of_a_letter_are_not_joined():
    assert shortened(arrivals([b"a", b"\xc3", b"\xa9", b"c"]), SHAPE) is None


def test_an_event_that_begins_in_one_piece_and_ends_in_another_has_no_one_time():
    first = EVENT % b"a"
    pieces = [1, first[:30], 2, first[30:], 3, EVENT % b"b", 4, EVENT % b"c"]
    assert shortened(pieces, SHAPE) is None


@pytest.mark.parametrize("text", [b"c", b"id", b"content"])
def test_words_that_stand_elsewhere_in_an_event_are_not_taken_for_its_text(text):
    assert shape_of(EVENT % text, only_text) is None


@pytest.mark.parametrize(
    "event",
    [
        b"data: [DONE]\n\n",
        b": keep-alive\n\n",
        b"data: {}\n\n",
        EVENT % b"a" * 2,
        (EVENT % b"a").replace(b"\n", b"\r\n"),
        (EVENT % b"a").replace(b'"delta"', b'"finish_reason":"stop","delta"'),
        (EVENT % b"a").replace(b'"index":0', b'"index":1'),
        (EVENT % b"a").replace(b'"id":"c"', b'"usage":{"total_tokens":1}'),
        (EVENT % b"a").replace(b'"content"', b'"reasoning_opaque"'),
        (EVENT % b"a").replace(b'{"content"', b'{"reasoning":"b","content"'),
    ],
)
def test_an_event_that_says_more_than_a_text_has_no_shape(event):
    assert shape_of(event, only_text) is None

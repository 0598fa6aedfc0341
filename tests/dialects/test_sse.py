from hypothesis import example, given
from hypothesis import strategies as st

from support.splits import CUTS, bytewise, pieces
from thoughtline.dialects.sse import SseEvent, SseParser


def read(chunks, end=True):
    splitter = SseParser()
    events = [event for chunk in chunks for event in splitter.feed(chunk)]
    return events + (splitter.finish() if end else [])


def reference(stream, end=True):
    """The parsing rules of the HTML standard, line by line, as plainly as can be."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, name, data = [], "", []
    lines = text.split(b"\n")
    for line in [*lines, b""] if end else lines[:-1]:
        if not line:
            if data:
                events.append(SseEvent(name, b"\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return events


LINES = st.sampled_from(
    [
        b"",
        b"",
        b"data: {}",
        b"data:x",
        b"data",
        b"data:  y",
        b"event: ping",
        b"event:a",
        b"event",
        b": comment",
        b":",
        b"id: 1",
        b"retry: 5",
        b"unknown: z",
        b"data: \xe2\x80\xa8 \xc2\x85",
        b"\x0b\x0c",
        b"data: a: b",
    ]
)
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
STREAMS = st.lists(st.tuples(LINES, ENDS), max_size=20).map(
    lambda lines: b"".join(line + end for line, end in lines)
) | st.lists(st.sampled_from([b"data: ", b"\n", b"\r", b"event: ", b"x", b":"]), max_size=25).map(
    b"".join
)


@given(STREAMS, CUTS)
@example(b"data: x\r\n\n", [])
@example(b"\n\ndata: x\n\n", [1])
@example(b"\r\r\n\ndata: x\n\r\n", [])
@example(b"event: a\ndata: ", [])
def test_any_split_gives_what_the_standard_says(stream, cuts):
    expected = reference(stream)
    assert read([stream]) == expected
    assert read(bytewise(stream)) == expected
    assert read(pieces(stream, cuts)) == expected


@given(STREAMS, CUTS)
@example(b"data: 1\n\ndata: 2\n\n", [17])
def test_no_event_waits_for_more_than_its_blank_line(stream, cuts):
    for chunks in (pieces(stream, cuts), bytewise(stream)):
        splitter, fed, told = SseParser(), b"", []
        for chunk in chunks:
            fed += chunk
            told += splitter.feed(chunk)
            assert told == reference(fed, end=False)


@given(STREAMS, CUTS)
def test_data_alone_is_the_same_data(stream, cuts):
    named, bare = SseParser(), SseParser()
    for chunk in pieces(stream, cuts):
        assert [event.data for event in named.feed(chunk)] == bare.feed_data(chunk)
    assert named.finish() == bare.finish()


@given(st.binary(max_size=80), CUTS)
def test_garbage_is_split_the_same_way_everywhere(stream, cuts):
    assert read([stream]) == read(bytewise(stream)) == read(pieces(stream, cuts))


def test_an_event_is_told_when_its_blank_line_is_there():
    splitter = SseParser()
    assert splitter.feed(b"event: ping\ndata: 1\n") == []
    assert splitter.feed(b"\nda") == [SseEvent("ping", b"1")]
    assert splitter.feed(b"ta: 2\n\ndata: 3\n\n") == [SseEvent("", b"2"), SseEvent("", b"3")]


def test_after_a_carriage_return_the_line_has_ended():
    splitter = SseParser()
    assert splitter.feed(b"data: 1\r\r") == [SseEvent("", b"1")]
    assert splitter.feed(b"\n") == []  # belongs to the CR
    assert splitter.feed(b"data: 2\r\n\r") == [SseEvent("", b"2")]


def test_line_separators_of_unicode_are_not_line_ends():
    data = '{"text":"a\u2028b\u2029c\u0085d"}'.encode()
    assert read([b"data: " + data + b"\n\n"]) == [SseEvent("", data)]


def test_a_stream_that_ends_early_leaves_its_last_event():
    assert read([b"data: 1\n\ndata: [DONE]"]) == [SseEvent("", b"1"), SseEvent("", b"[DONE]")]
    assert read([b"data: 1\n\ndata: [DONE]"], end=False) == [SseEvent("", b"1")]
    splitter = SseParser()
    splitter.feed(b"data: 1")
    assert len(splitter.finish()) == 1
    assert splitter.finish() == []


def test_a_long_event_in_small_reads_is_joined_once():
    """1 MB over 20,000 lines and reads: held in pieces, not copied with every one of them."""
    splitter = SseParser()
    line = b"data: " + b"x" * 43 + b"\n"
    for _ in range(20_000):
        assert splitter.feed(line) == []
    assert len(splitter._pieces) == 20_000
    (event,) = splitter.feed(b"\n")
    assert len(event.data) == 20_000 * 44 - 1

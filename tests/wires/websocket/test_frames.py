"""Frames are read as far as a wire needs them, whatever a server sends."""

import json

import pytest

from thoughtline.wires.websocket import frames


def frame(**members):
    return frames.read(json.dumps(members).encode())


def test_items_and_responses_keep_their_exact_text():
    data = (
        b'{"type":"response.output_item.done", "output_index":1,"item":{"n": 1.0 ,"t":"\\u00e9"}}'
    )
    read = frames.read(data)
    assert (read.data, read.type, read.fields.output_index) == (
        data,
        "response.output_item.done",
        1,
    )
    assert read.item == b'{"n": 1.0 ,"t":"\\u00e9"}'


@pytest.mark.parametrize(
    ("data", "item"),
    [
        (b'{"type":"x","item":{"t":"\\ud83d"},"stream_id":"s"}', b'{"t":"\\ud83d"}'),
        (b'{"type":"x","item":{"t":1},"stream_id":"s","output_index":"one"}', b'{"t":1}'),
    ],
)
def test_what_a_strict_decoder_refuses_is_read_too(data, item):
    read = frames.read(data)
    assert (read.readable, read.type, read.stream_id, read.item) == (True, "x", "s", item)


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'"text"', b"\xff"])
def test_what_cannot_be_read_is_handed_on(data):
    read = frames.read(data)
    assert (read.data, read.readable, read.type, read.terminal) == (data, False, "", False)


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({"status": 429, "error": {"code": "slow"}}, 429, "slow"),
        ({"error": {"status": 400, "code": "bad"}}, 400, "bad"),
        ({"code": "flat", "message": "as in server-sent events"}, 500, "flat"),
        ({"status": True, "error": "words"}, 500, ""),
    ],
)
def test_an_error_has_a_status_and_a_code(members, status, code):
    read = frame(type="error", **members)
    assert (read.status, read.code, read.terminal, read.precedes_output) == (
        status,
        code,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"code": "invalid_stream_id"}, True),
        ({"code": frames.STREAM_LIMIT}, True),
        ({"code": "unknown_parameter", "param": "stream_id"}, True),
        ({"code": "unknown_parameter", "param": "model"}, False),
    ],
)
def test_a_server_without_streams_is_recognised(error, refused):
    assert frame(type="error", error=error).refuses_stream is refused


@pytest.mark.parametrize(
    ("type", "before"),
    [
        ("response.created", True),
        ("response.in_progress", True),
        ("codex.rate_limits", True),
        ("response.output_item.added", False),
        ("error", False),
    ],
)
def test_announcements_come_before_the_output(type, before):
    assert frame(type=type).precedes_output is before

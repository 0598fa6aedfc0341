"""Events of the Responses API, in whichever frame they come."""

import json

import pytest

from support.reader_contract import checked
from support.recordings import responses as rec
from support.responses_items import STREAMS, play, reader
from thoughtline.log.events import (
    Outcome,
    TextDelta,
)


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "responses-cut.sse"])
def test_websocket_messages_say_the_same(name):
    body = rec.read(name).replace(b"\r\n", b"\n")
    one = reader()
    told = []
    for line in body.split(b"\n"):
        if line.startswith(b"data: "):
            told += one.event(line.removeprefix(b"data: "))
    assert checked(told + one.close(reason="hung up")) == play([body])


def frames(*pairs):
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in pairs)


def test_the_name_of_an_event_stands_in_for_its_type():
    stream = b'event: response.output_text.delta\ndata: {"delta":"a"}\n\n'
    assert play([stream])[0] == TextDelta("a")


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "x", "message": "No.", "param": None},
        {"type": "error", "status": 400, "error": {"code": "x", "message": "No."}},
        {"type": "response.failed", "response": {"error": {"code": "x", "message": "No."}}},
    ],
)
def test_errors_flat_and_wrapped(error):
    (ended,) = play([frames(error)])
    assert (ended.outcome, ended.reason) == (Outcome.FAILED, "No.")

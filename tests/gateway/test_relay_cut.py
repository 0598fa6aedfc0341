"""Who leaves whom: a client before its answer is there, an upstream in the middle of its words."""

import json

import httpx2
import pytest

from support.breaking_upstream import ASKED, answered, upstream
from support.gateway_server import running
from support.waiting import until

SAID = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("cut", [0, 9, len(SAID) - 1])
def test_a_stream_that_is_cut_ends_with_an_event_of_its_own(cut):
    piece = SAID + SAID[:cut]
    with upstream(STREAM + b"%x\r\n%s\r\n" % (len(piece), piece)) as ups, running(ups) as gateway:
        body = json.dumps({**ASKED, "stream": True})
        said = httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", content=body).content
    assert said.startswith(piece)
    last = said.strip().split(b"\n\n")[-1]
    error = json.loads(last.strip().removeprefix(b"data: "))["error"]
    assert error["code"] == "upstream_broke_off"


def test_an_answer_that_is_cut_before_the_client_has_any_of_it_is_an_error():
    answer = answered({"content": "x" * 1000})
    with upstream(answer[:-20]) as ups, running(ups) as gateway:
        said = httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED)
        assert said.status_code == 502
        assert said.json()["error"]["code"] == "upstream_broke_off"
        until(lambda: gateway.notes.records)
        assert gateway.notes.records == [(502, "the connection was closed")]


def test_an_answer_that_is_cut_is_cut_and_logged_as_such(caplog):
    answer = answered({"content": "x" * 2_000_000})
    with upstream(answer[:-20]) as ups, running(ups) as gateway:
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED)
        until(lambda: gateway.notes.records)
        assert gateway.notes.records == [(200, "the connection was closed")]
    assert "Traceback" not in caplog.text

"""Who leaves whom: a client before its answer is there, an upstream in the middle of its words."""

import contextlib
import json
import socket
import threading
import time

import httpx2
import pytest

from gateways import running
from thoughtline.gateway.proxy import Options
from thoughtline.gateway.upstreams import Upstream

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SAID = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def answered(message):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


@contextlib.contextmanager
def upstream(answer, go=None):
    """Answers each connection with these bytes, once it may `go`, and hangs up."""

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                with peer, contextlib.suppress(OSError):
                    peer.recv(1 << 16)
                    if go is not None:
                        go.wait(10)
                    peer.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield [Upstream(name="u", base_url=url, policy="deepseek")]


def until(true):
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


@pytest.mark.parametrize(
    ("finish", "ended"), [(True, (200, "")), (False, (499, "the client left"))]
)
def test_an_answer_that_had_not_begun_is_kept_or_not(finish, ended):
    """Without a stream, the head comes with the words: a client leaves before either."""
    go = threading.Event()
    options = Options(finish_on_disconnect=finish)
    with upstream(answered({"content": "x", "reasoning_content": "t"}), go) as ups:  # noqa: SIM117
        with running(ups, options=options) as gateway:
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED, timeout=0.4)
            if not finish:
                until(lambda: gateway.notes.walks)
            go.set()
            until(lambda: gateway.notes.walks)
            assert gateway.notes.walks == [ended]
            assert gateway.proxy.present.count == 0


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
        until(lambda: gateway.notes.walks)
        assert gateway.notes.walks == [(502, "the connection was closed")]


def test_an_answer_that_is_cut_is_cut_and_logged_as_such(caplog):
    answer = answered({"content": "x" * 2_000_000})
    with upstream(answer[:-20]) as ups, running(ups) as gateway:
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.post(f"{gateway.url}/u/u/v1/chat/completions", json=ASKED)
        until(lambda: gateway.notes.walks)
        assert gateway.notes.walks == [(200, "the connection was closed")]
    assert "Traceback" not in caplog.text

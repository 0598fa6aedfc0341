"""Bodies and answers with very many elements: they pass, unread, and the answer says so."""

import gzip
import json
import threading

import httpx2
import pytest
from websockets.asyncio.client import connect

from support.breaking_upstream import upstream
from support.gateway_server import running
from thoughtline.engine import exchange as exchanges
from thoughtline.gateway.http_caller import HttpCaller
from thoughtline.testing.floods import ANSWERS, REQUESTS, STREAMS, flood, stream

SIZE = 500_000
PATHS = {
    "chat": "/u/u/v1/chat/completions",
    "messages": "/u/u/v1/messages",
    "responses": "/u/u/v1/responses",
    "gemini": "/u/u/v1beta/models/m:generateContent",
}
SMALL = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"model": "m", "input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def answered(body, kind=b"application/json"):
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


@pytest.mark.parametrize("dialect", REQUESTS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_request_that_is_too_complex_passes_unread(dialect, packed):
    (place, *_) = REQUESTS[dialect].values()
    body = flood(place, "empty objects", SIZE)
    headers = {"content-encoding": "gzip"} if packed else {}
    sent = gzip.compress(body) if packed else body
    with upstream(answered(b'{"ok":1}')) as ups, running(ups) as gateway:
        reply = httpx2.post(gateway.url + PATHS[dialect], content=sent, headers=headers)
    assert (reply.status_code, reply.json()) == (200, {"ok": 1})
    assert reply.headers["x-thoughtline-replay"] == "passed=too_complex"


@pytest.mark.parametrize("dialect", ANSWERS)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_is_too_complex_passes_and_is_not_captured(dialect, streamed):
    (place, *_) = ANSWERS[dialect].values()
    body, kind = flood(place, "objects", SIZE), b"application/json"
    if streamed:
        body, kind = stream(STREAMS[dialect], "objects", SIZE, each=SIZE), b"text/event-stream"
    asked = SMALL[dialect] | ({"stream": True} if streamed else {})
    with upstream(answered(body, kind)) as ups, running(ups) as gateway:
        reply = httpx2.post(gateway.url + PATHS[dialect], json=asked)
        assert reply.content == body
    assert "not captured" in str(gateway.notes.records)


def test_a_bomb_is_refused():
    bomb = gzip.compress(b'{"messages":[' + b"0," * 10_000_000 + b"0]}")
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        reply = httpx2.post(
            gateway.url + PATHS["chat"], content=bomb, headers={"content-encoding": "gzip"}
        )
    assert reply.status_code == 413
    assert "times its size" in reply.json()["error"]["message"]


def test_a_heavy_request_is_read_and_decided_beside_the_event_loop(monkeypatch):
    threads = {}

    def noting(name, function):
        def called(*arguments, **more):
            threads[name] = threading.current_thread().name
            return function(*arguments, **more)

        return called

    monkeypatch.setattr(exchanges, "decide", noting("decide", exchanges.decide))
    monkeypatch.setattr(exchanges, "path_of", noting("path", exchanges.path_of))
    read = noting("read", HttpCaller._request)
    monkeypatch.setattr(HttpCaller, "_request", read)
    many = {"model": "m", "messages": [{"role": "user", "content": "a" * 60}] * 9000}
    with upstream(answered(b'{"choices":[]}')) as ups, running(ups) as gateway:
        url = gateway.url + PATHS["chat"]
        assert httpx2.post(url, content=json.dumps(many).encode(), timeout=60).status_code == 200
        assert {name.partition("_")[0] for name in threads.values()} == {"thoughtline-heavy"}
        assert httpx2.post(url, json=SMALL["chat"]).status_code == 200
        assert "thoughtline-heavy" not in str(threads)


async def test_a_frame_that_is_too_complex_is_refused():
    """It cannot pass unread: what goes upstream is written from it."""
    with upstream(answered(b"{}")) as ups, running(ups) as gateway:
        url = f"ws://127.0.0.1:{gateway.port}/u/u/v1/responses"
        async with connect(url, max_size=None) as socket:
            frame = flood('{"type":"response.create","model":"m","input":[%]}', "numbers", SIZE)
            await socket.send(frame.decode())
            said = json.loads(await socket.recv())
    assert (said["status"], said["error"]["code"]) == (413, "request_too_large")

"""Heads of requests: small ones are served, large ones are refused before they fill memory."""

import pickle
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from thoughtline.cli.heads import Bounded

LIMIT = 10_000
START = b"GET /x HTTP/1.1\r\nhost: localhost\r\n"


async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"served"})


@pytest.fixture(scope="module")
def port():
    config = uvicorn.Config(
        app,
        port=0,
        log_level="critical",
        lifespan="off",
        http=Bounded,
        h11_max_incomplete_event_size=LIMIT,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(10)


@contextmanager
def dialled(port):
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.settimeout(10)
        yield peer


def test_what_is_small_is_served_again_and_again(port):
    with dialled(port) as peer:
        for _ in range(3):  # each head is counted by itself
            peer.sendall(START + b"x-a: " + b"a" * (LIMIT - 200) + b"\r\n\r\n")
            assert b"served" in peer.recv(1 << 16)
        peer.sendall(START + b"content-length: 50000\r\n\r\n" + b"b" * 50_000)  # a body is no head
        assert b"served" in peer.recv(1 << 16)


@pytest.mark.parametrize(
    "head",
    [
        START + b"x-a: " + b"a" * LIMIT + b"\r\n\r\n",
        START + b"".join(b"x-%d: %s\r\n" % (n, b"a" * 500) for n in range(30)) + b"\r\n",
        b"GET /" + b"a" * LIMIT + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
)
def test_what_is_large_is_refused_with_words(port, head):
    with dialled(port) as peer:
        peer.sendall(head)
        answer = peer.recv(1 << 16)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"server.max_header_bytes" in answer


def test_a_head_that_never_ends_is_cut_off(port):
    with dialled(port) as peer:
        peer.sendall(START)
        time.sleep(0.05)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _go_on(peer)


def _go_on(peer):
    for _ in range(2_000):
        peer.sendall(b"x-a: " + b"a" * 1000 + b"\r\n")
        time.sleep(0.001)


def test_what_is_no_http_is_refused_as_before(port):
    with dialled(port) as peer:
        peer.sendall(b"\x00\x01\r\n\r\n")
        assert peer.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_workers_can_be_told_of_it():
    assert pickle.loads(pickle.dumps(Bounded)) is Bounded

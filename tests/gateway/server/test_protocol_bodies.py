"""Bodies that trickle or never end, trailers without end, hosts: bounded, and answered with words."""

import contextlib
import json
import logging
import socket
import threading

import pytest

from support.http_server import answer, dialled, everything, served
from support.waiting import eventually, listens, until
from thoughtline.gateway.server.protocol import BODY_TIMEOUT, MIN_PROGRESS

LIMIT = 10_000
POST = b"POST /x HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


async def app(scope, receive, send):
    """Reads all of a body, or, under `/early`, nothing of it."""
    size, more = 0, scope["path"] != "/early"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    said = b"served %d" % size
    head = [(b"content-length", b"%d" % len(said))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": said})


@pytest.fixture(scope="module")
def server():
    with served(app, h11_max_incomplete_event_size=LIMIT) as server:
        yield server


@pytest.fixture(scope="module")
def port(server):
    return server.port


@pytest.fixture(scope="module")
def still():
    """A server whose clock stands still."""
    with served(app, still=True, h11_max_incomplete_event_size=LIMIT) as server:
        yield server


def _error(peer):
    status, fields, body = answer(peer)
    assert fields["connection"] == "close"
    code = json.loads(body)["error"]["code"]
    assert fields["x-thoughtline-replay"] == f"refused={code}"
    return status, code


def _sent_until_cut_off(peer, piece, between=lambda: None):
    """Sends a piece again and again until the connection is closed; how many bytes that took."""
    sent = 0
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while sent < 1 << 30:
            peer.sendall(piece)
            sent += len(piece)
            between()
    return sent


@pytest.mark.parametrize(
    "trailer",
    [b"x-a: " + b"a" * 1000 + b"\r\n", b"a" * 1000],
    ids=["endless trailers", "one endless value"],
)
@pytest.mark.parametrize("path", [b"/x", b"/early"])
def test_trailers_without_end_are_cut_off(still, trailer, path):
    with dialled(still.port) as peer:
        peer.sendall(CHUNKED.replace(b"/x", path) + b"1\r\nx\r\n0\r\nx-a: b\r\nx-c: ")
        assert _sent_until_cut_off(peer, trailer, lambda: still.advance(0.5, peer)) < 1 << 17


def test_trailers_with_an_end_are_served(port):
    with dialled(port) as peer:
        for _ in range(2):
            peer.sendall(CHUNKED + b"1\r\nx\r\n0\r\nx-a: " + b"a" * 5000 + b"\r\n\r\n")
            assert answer(peer)[::2] == (200, b"served 1")


def test_trailers_that_are_too_large_are_refused_with_words(server):
    with dialled(server.port) as peer:
        peer.sendall(CHUNKED + b"1\r\nx\r\n0\r\n")
        for _ in range(30):
            peer.sendall(b"x-a: " + b"a" * 500 + b"\r\n")
            server.settle(peer)
        assert _error(peer) == (431, "head_too_large")


@pytest.mark.parametrize(
    "begun",
    [
        POST + b"content-length: 100\r\n\r\n",
        POST + b"content-length: 100\r\n\r\nab",
        CHUNKED + b"1\r\nx\r\n",
        CHUNKED + b"1\r\nx\r\n0\r\nx-a: b\r\n",
    ],
)
def test_a_body_that_stands_still_is_not_waited_for(still, begun):
    with dialled(still.port) as peer:
        peer.sendall(begun)
        until(lambda: still.server_state.tasks)
        still.advance(BODY_TIMEOUT, peer)
        assert _error(peer) == (408, "body_too_slow")


def test_nor_is_one_that_trickles(still):
    with dialled(still.port) as peer:
        peer.sendall(POST + b"content-length: 100000\r\n\r\n")
        # it never stands still for as long as the limit
        assert _sent_until_cut_off(peer, b"a", lambda: still.advance(1, peer)) < 60


def test_one_that_goes_on_may_take_its_time(still):
    """Progress is what counts: this takes several times the limit in all."""
    size = 8 * MIN_PROGRESS
    with dialled(still.port) as peer:
        peer.sendall(POST + b"content-length: %d\r\n\r\n" % size)
        for _ in range(8):
            still.advance(BODY_TIMEOUT / 3, peer)
            peer.sendall(b"a" * MIN_PROGRESS)
        assert answer(peer)[::2] == (200, b"served %d" % size)
        peer.sendall(POST + b"content-length: 2\r\n\r\na")
        still.advance(BODY_TIMEOUT / 3, peer)
        peer.sendall(b"b")
        assert answer(peer)[::2] == (200, b"served 2")


def test_an_application_that_reads_slowly_is_not_its_clients_fault():
    size = 300_000
    go = threading.Event()

    async def slow(scope, receive, send):
        await eventually(go.is_set)
        await app(scope, receive, send)

    with served(slow, still=True) as server, dialled(server.port) as peer:
        peer.sendall(POST + b"content-length: %d\r\n\r\n" % size + b"a" * size)
        until(lambda: server.server_state.tasks and server.line().flow.read_paused)
        for _ in range(4):
            server.advance(BODY_TIMEOUT)
        go.set()
        assert answer(peer)[::2] == (200, b"served %d" % size)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /x HTTP/1.1\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n", 400),
        (b"GET /x HTTP/1.0\r\n\r\n", 200),
        (b"GET /x HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nhost:\r\n\r\n", 200),
    ],
)
def test_a_request_names_one_host(port, head, status):
    with dialled(port) as peer:
        peer.sendall(head)
        got, _, body = answer(peer)
        assert got == status
        if status == 400:
            assert "Host" in json.loads(body)["error"]["message"]


def test_an_answer_before_the_body_is_there_closes_the_connection_and_can_be_read(port):
    """The rest of the body is thrown away for a while, so that no reset overtakes the answer."""
    with dialled(port) as peer:
        peer.sendall(b"POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 40000000\r\n\r\n")
        for _ in range(40):
            peer.sendall(b"a" * 1_000_000)
        status, fields, body = answer(peer)
        assert (status, fields["connection"], body) == (200, "close", b"served 0")
        assert everything(peer) == b""


def test_many_requests_at_once_are_bounded(port):
    with dialled(port) as peer:
        peer.sendall(POST.replace(b"POST", b"GET") + b"\r\n")
        assert answer(peer)[0] == 200
        flood = (POST.replace(b"POST", b"GET") + b"\r\n") * 2000
        assert _sent_until_cut_off(peer, flood) < 64 << 20


@pytest.mark.parametrize("begun", [b"", POST])
def test_a_server_that_stops_answers_a_request_that_is_on_its_way(begun):
    rest = (POST + b"content-length: 0\r\n\r\n").removeprefix(begun)
    with served(app, timeout_graceful_shutdown=40) as server, dialled(server.port) as peer:
        peer.sendall(begun)
        until(lambda: server.server_state.connections)
        server.should_exit = True
        until(lambda: not listens(server.port))
        peer.sendall(rest)
        assert answer(peer)[0] == 200
        assert peer.recv(1) == b""  # and closed


def test_half_a_request_to_a_server_that_stops_is_answered():
    with served(app, timeout_graceful_shutdown=40) as server, dialled(server.port) as peer:
        peer.sendall(POST + b"content-length: 9\r\n\r\nab")
        until(lambda: server.server_state.tasks)
        server.should_exit = True
        assert _error(peer) == (503, "going_down")


@pytest.mark.parametrize("begun", [POST, POST + b"content-length: 9\r\n\r\n", CHUNKED + b"1\r\n"])
def test_a_server_that_stops_does_not_wait_for_half_a_request(begun, caplog):
    peers = []
    caplog.set_level(logging.DEBUG)
    with served(app, timeout_graceful_shutdown=40) as server:
        for _ in range(50):
            peer = socket.create_connection(("127.0.0.1", server.port))
            peer.sendall(begun)
            peers.append(peer)
        until(lambda: len(server.server_state.connections) >= 50)
        for peer in peers:
            server.settle(peer)
        server.should_exit = True
        for peer in peers:
            peer.settimeout(60)
            everything(peer)
            peer.close()
    assert not server.server_state.tasks
    assert not [record for record in caplog.records if record.exc_info]

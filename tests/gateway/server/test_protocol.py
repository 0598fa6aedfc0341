"""Heads of requests: small ones are served, large ones are refused before they fill memory."""

import asyncio
import json
import pickle
import re
import threading
from math import inf

import pytest

from support.http_server import answer, dialled, everything, served
from support.waiting import eventually, until
from thoughtline.gateway.server.protocol import BODY_TIMEOUT, HEAD_TIMEOUT, HttpProtocol

LIMIT = 10_000
START = b"GET /x HTTP/1.1\r\nhost: localhost\r\n"


async def app(scope, receive, send):
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    said = b"served %d" % size
    if scope["path"] == "/headers":
        said = b", ".join(name for name, _ in scope["headers"])
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
    assert b"\r\nx-thoughtline-replay: refused=head_too_large\r\n" in answer


def test_a_head_that_never_ends_is_cut_off(server):
    with dialled(server.port) as peer:
        peer.sendall(START)
        server.settle(peer)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            _go_on(peer, server)


def _go_on(peer, server):
    for _ in range(2_000):
        peer.sendall(b"x-a: " + b"a" * 1000 + b"\r\n")
        server.settle(peer)


def test_a_body_that_comes_with_the_end_of_a_head_is_no_head(server):
    with dialled(server.port) as peer:
        peer.sendall(START)
        server.settle(peer)
        peer.sendall(b"content-length: 70000\r\n\r\n" + BODY)
        assert answer(peer)[::2] == (200, b"served 70000")


@pytest.mark.parametrize("head", [b"\x00\x01\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n"])
def test_what_is_no_http_is_refused_with_words(port, head):
    with dialled(port) as peer:
        peer.sendall(head)
        status, fields, body = answer(peer)
    assert (status, fields["content-type"]) == (400, "application/json")
    assert json.loads(body)["error"]["code"] == "bad_request"
    assert fields["x-thoughtline-replay"] == "refused=bad_request"


H2C = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
"""What Java's HttpClient sends with its first request, and `curl --http2`."""
BODY = b"x" * 70_000


@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize(
    "framed",
    [
        b"content-length: 70000\r\n\r\n" + BODY,
        b"transfer-encoding: chunked\r\n\r\n11170\r\n" + BODY + b"\r\n0\r\n\r\n",
    ],
)
def test_an_offer_of_another_protocol_is_passed_over_and_the_body_is_not(server, framed, pause):
    with dialled(server.port) as peer:
        for _ in range(2):
            peer.sendall(b"POST /x HTTP/1.1\r\nhost: a\r\n" + H2C)
            head, _, body = framed.partition(b"\r\n\r\n")
            peer.sendall(head + b"\r\n\r\n")
            for piece in (body[:10], body[10:60_000], body[60_000:]) if pause else (body,):
                server.settle(peer)
                peer.sendall(piece)
            assert answer(peer)[::2] == (200, b"served 70000")
        peer.sendall(START + H2C + b"\r\n")
        assert answer(peer)[::2] == (200, b"served 0")
        peer.sendall(START + b"content-length: 3\r\n\r\nabc")
        assert answer(peer)[::2] == (200, b"served 3")


def test_a_head_that_does_not_come_is_not_waited_for():
    with served(app, still=True, timeout_keep_alive=2 * HEAD_TIMEOUT) as server:
        port = server.port
        for begun in (b"", START):
            with dialled(port) as peer:
                peer.sendall(begun)
                until(lambda: server.server_state.connections)
                server.advance(HEAD_TIMEOUT, peer)
                status, fields, body = answer(peer)
            assert (status, json.loads(body)["error"]["code"]) == (408, "head_too_slow")
            assert fields["x-thoughtline-replay"] == "refused=head_too_slow"
        with dialled(port) as peer:  # the second one on a connection that was fine
            peer.sendall(START + b"\r\n")
            assert answer(peer)[0] == 200
            server.advance(HEAD_TIMEOUT, peer)
            peer.sendall(START)
            server.advance(HEAD_TIMEOUT, peer)
            assert answer(peer)[0] == 408
        with dialled(port) as peer:  # a body may take longer
            peer.sendall(START + b"content-length: 2\r\n\r\na")
            server.advance(BODY_TIMEOUT * 0.6, peer)
            peer.sendall(b"b")
            assert answer(peer)[::2] == (200, b"served 2")


@pytest.mark.parametrize(
    ("path", "place"),
    [(b"/v1/messages", ("error", "message")), (b"/v1/chat/completions", ("error", "message"))],
)
def test_where_it_is_crowded_the_answer_has_the_shape_of_its_dialect(path, place):
    asked = b"POST " + path + b" HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}"
    with (
        served(app, limit_concurrency=2) as server,
        dialled(server.port),
        dialled(server.port) as peer,
    ):
        peer.sendall(asked)
        status, fields, body = answer(peer)
    assert (status, fields["content-type"], fields["retry-after"]) == (503, "application/json", "1")
    assert fields["x-thoughtline-replay"] == "refused=too_many_connections"
    said = json.loads(body)
    assert "server.max_connections" in said[place[0]][place[1]]
    assert ("type" in said) == (path == b"/v1/messages")


def test_a_connection_that_rests_for_long_is_closed_without_a_word():
    with served(app, still=True, timeout_keep_alive=5) as server, dialled(server.port) as peer:
        for _ in range(4):  # longer than it may rest, but it does not rest
            peer.sendall(START + b"content-length: 2\r\n\r\na")
            server.advance(3, peer)
            peer.sendall(b"b")
            assert answer(peer)[0] == 200
        server.advance(5, peer)
        assert everything(peer) == b""


def test_patience_costs_one_timer_and_not_one_per_request():
    """A request moves the deadline; the timer stays where it is, and looks."""
    with served(app, timeout_keep_alive=20) as server, dialled(server.port) as peer:
        timers = []
        for _ in range(5):
            peer.sendall(START + b"\r\n")
            assert answer(peer)[0] == 200
            (line,) = server.server_state.connections
            timers.append(answered(line)[1])
        assert len(set(timers)) == 1


def answered(line):
    """The deadline and the timer of a connection, once the next request may come."""

    async def look():
        await eventually(lambda: line._deadline != inf)
        return line._deadline, line._timer

    return asyncio.run_coroutine_threadsafe(look(), line.loop).result(60)


def test_requests_that_come_together_are_answered_in_their_order(port):
    asked = [START + b"content-length: %d\r\n\r\n" % n + b"x" * n for n in (3, 0, 70_000, 1)]
    with dialled(port) as peer:
        peer.sendall(b"".join(asked))
        got = b""
        while got.count(b"served") < 4:
            got += peer.recv(1 << 16)
    assert re.findall(rb"served \d+", got) == [
        b"served 3",
        b"served 0",
        b"served 70000",
        b"served 1",
    ]


def test_a_body_that_comes_with_the_beginning_of_a_head_is_no_head(server):
    first = START + b"content-length: 70000\r\n\r\n" + BODY
    with dialled(server.port) as peer:
        peer.sendall(first + START)
        assert answer(peer)[2] == b"served 70000"
        for field in (b"x-a: b\r\n", b"x-c: d\r\n", b"\r\n"):
            server.settle(peer)
            peer.sendall(field)
        assert answer(peer)[2] == b"served 0"
        peer.sendall(first + START + b"x-a: " + b"a" * LIMIT)
        assert answer(peer)[2] == b"served 70000"
        peer.sendall(b"\r\n\r\n")
        assert answer(peer)[0] == 431


def test_what_comes_after_the_body_is_no_header(port):
    with dialled(port) as peer:
        peer.sendall(
            b"POST /headers HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            b"1\r\nx\r\n0\r\nauthorization: Bearer other\r\n\r\n"
        )
        assert answer(peer)[2] == b"host, transfer-encoding"


@pytest.mark.parametrize(
    ("url", "scope"),
    [
        (b"/a/b?c=d?e", ("/a/b", b"/a/b", b"c=d?e")),
        (b"/a%20b%2Fc", ("/a b/c", b"/a%20b%2Fc", b"")),
        (b"/", ("/", b"/", b"")),
        (b"//a?", ("//a", b"//a", b"")),
        (b"/a?b#c", ("/a", b"/a", b"b")),
        (b"/a#b?c", ("/a", b"/a", b"")),
        (b"http://elsewhere:80/a?b", ("/a", b"/a", b"b")),
        (b"*", ("*", b"*", b"")),
    ],
)
def test_what_is_asked_for_is_taken_apart(url, scope):
    async def told(asked, receive, send):
        got = repr((asked["path"], asked["raw_path"], asked["query_string"])).encode()
        head = [(b"content-length", b"%d" % len(got))]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": got})

    with served(told) as server, dialled(server.port) as peer:
        peer.sendall(b"OPTIONS " + url + b" HTTP/1.1\r\nhost: a\r\n\r\n")
        assert answer(peer)[::2] == (200, repr(scope).encode())


@pytest.mark.parametrize("url", [b"/\xc3\xa4", b"http://elsewhere", b"elsewhere"])
def test_what_cannot_be_asked_for_is_refused(port, url):
    with dialled(port) as peer:
        peer.sendall(b"GET " + url + b" HTTP/1.1\r\nhost: a\r\n\r\n")
        assert answer(peer)[0] == 400


def test_words_of_refusal_do_not_stand_in_another_answer():
    go = threading.Event()

    async def slow(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        go.set()
        await receive()
        assert (await receive())["type"] == "http.disconnect"

    with served(slow) as server:
        with dialled(server.port) as peer:
            peer.sendall(START + b"\r\n")
            assert go.wait(60)
            peer.sendall(b"\x00 what is this")
            assert b"HTTP/1.1 400" not in everything(peer)
        with dialled(server.port) as peer:  # here nothing was said yet
            peer.sendall(START + b"\r\n\x00 what is this")
            assert answer(peer)[0] == 400
            assert everything(peer) == b""


def test_workers_can_be_told_of_it():
    assert pickle.loads(pickle.dumps(HttpProtocol)) is HttpProtocol

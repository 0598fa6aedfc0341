"""Clients that stop sending before they have their answer: half-closed ones get it, others left."""

import asyncio
import socket
import threading

import pytest

from support.http_server import answer, dialled, everything, served
from support.waiting import eventually

GET = b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Slow:
    """Answers when it may, and notes who left."""

    def __init__(self):
        self.asked, self.go, self.left = threading.Event(), threading.Event(), threading.Event()
        self.go_on = self.go

    async def __call__(self, scope, receive, send):
        await receive()
        self.asked.set()
        leaving = asyncio.ensure_future(receive())
        await eventually(lambda: self.go.is_set() or leaving.done())
        if leaving.done():
            self.left.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece, may in ((b"one ", self.go), (b"two", self.go_on)):
            await eventually(may.is_set)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        leaving.cancel()


@pytest.mark.parametrize("early", [False, True])
def test_a_half_closed_client_gets_its_answer(early):
    slow = Slow()
    slow.go_on = threading.Event()
    if early:
        slow.go.set()
    with served(slow, still=True) as server, dialled(server.port) as peer:
        peer.sendall(GET)
        peer.shutdown(socket.SHUT_WR)
        assert slow.asked.wait(60)
        server.advance(0.3, peer)  # it is looked for
        slow.go.set()
        got = b""
        while b"one " not in got:
            got += peer.recv(1 << 16)
        server.advance(1.0, peer)
        slow.go_on.set()
        got += everything(peer)
        assert b"HTTP/1.1 200" in got
        assert got.endswith(b"0\r\n\r\n")
        assert not slow.left.is_set()


def test_so_does_one_that_has_asked_twice():
    slow = Slow()
    slow.go.set()
    with served(slow) as server, dialled(server.port) as peer:
        peer.sendall(GET + GET)
        peer.shutdown(socket.SHUT_WR)
        assert everything(peer).count(b"HTTP/1.1 200") == 2


def test_one_of_http_1_0_sees_nothing_but_its_answer():
    slow = Slow()
    with served(slow, still=True) as server, dialled(server.port) as peer:
        peer.sendall(b"GET /x HTTP/1.0\r\n\r\n")
        peer.shutdown(socket.SHUT_WR)
        assert slow.asked.wait(60)
        server.advance(0.3, peer)
        slow.go.set()
        assert everything(peer).startswith(b"HTTP/1.1 200")


def test_one_that_leaves_is_noticed():
    slow = Slow()
    with served(slow) as server:
        with dialled(server.port) as peer:
            peer.sendall(GET)
            assert slow.asked.wait(60)
        assert slow.left.wait(60)


def test_half_a_request_is_none():
    slow = Slow()
    with served(slow) as server, dialled(server.port) as peer:
        peer.sendall(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab")
        peer.shutdown(socket.SHUT_WR)
        assert everything(peer) == b""


def test_a_keep_alive_client_that_closes_after_its_answer_is_let_go():
    slow = Slow()
    slow.go.set()
    with served(slow) as server, dialled(server.port) as peer:
        peer.sendall(GET)
        assert answer(peer)[0] == 200
        peer.shutdown(socket.SHUT_WR)
        assert everything(peer) == b""

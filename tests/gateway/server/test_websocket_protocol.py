"""WebSocket frames that are many and tiny: parsed a slice at a time, and bounded."""

import functools
import struct
import threading

import pytest
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from support.http_server import dialled, everything, sent_until, served
from support.waiting import eventually
from thoughtline.gateway.server.protocol import HttpProtocol
from thoughtline.gateway.server.websocket_protocol import (
    MAX_TINY_FRAGMENTS,
    MIN_FRAGMENT,
    SLICE,
    WebSocketProtocol,
)

HANDSHAKE = (
    b"GET /x HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
TEXT, CONT, CLOSE, PING = 1, 0, 8, 9


def frame(opcode, data=b"", *, fin=True):
    """A client's frame, with a mask that changes nothing."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([fin << 7 | opcode]) + size + b"\0\0\0\0" + data


class Echo:
    """Says how long each message was."""

    def __init__(self):
        self.go = threading.Event()
        self.go.set()

    async def __call__(self, scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await eventually(self.go.is_set)
        while (message := await receive())["type"] != "websocket.disconnect":
            await send({"type": "websocket.send", "text": f"<{len(message['text'])}>"})


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def server(echo):
    with served(echo, ws=WebSocketProtocol) as server:
        yield server


@pytest.fixture
def peer(server):
    with dialled(server.port) as peer:
        yield shaken(peer)


def shaken(peer):
    """The connection, after its handshake."""
    peer.sendall(HANDSHAKE)
    got = b""
    while b"\r\n\r\n" not in got:
        got += peer.recv(1 << 16)
    return peer


def test_a_connection_may_be_silent_for_longer_than_a_body(echo):
    """The head's own timeout went on after the upgrade: each connection was cut off by it."""
    protocol = functools.partial(HttpProtocol, body_timeout=0.02)
    with (
        served(echo, still=True, http=protocol, ws=WebSocketProtocol) as server,
        dialled(server.port) as peer,
    ):
        shaken(peer)
        for _ in range(10):
            server.advance(0.02, peer)
            peer.sendall(frame(TEXT, b"hi"))
            assert peer.recv(1 << 16) == b"\x81\x03<2>"


def _until(peer, wanted):
    got = b""
    while wanted not in got:
        more = peer.recv(1 << 16)
        assert more, got[-100:]
        got += more
    return got


def test_a_flood_of_frames_is_parsed_a_slice_at_a_time(peer, monkeypatch):
    pieces = []
    whole = WebSocketsSansIOProtocol.data_received

    def counted(self, data):
        pieces.append(len(data))
        whole(self, data)

    monkeypatch.setattr(WebSocketsSansIOProtocol, "data_received", counted)
    flood = frame(PING) * 20_000
    sending = threading.Thread(target=lambda: peer.sendall(flood + frame(TEXT, b"abc")))
    sending.start()
    _until(peer, b"<3>")
    sending.join()
    assert max(pieces) <= SLICE
    assert sum(pieces) == len(flood) + 9


def test_messages_wait_until_the_last_one_was_taken(peer, echo):
    peer.sendall(frame(TEXT, b"a") * 3000)
    assert _until(peer, b"").count(b"<1>") <= 3000
    peer.sendall(frame(TEXT, b"ab"))
    _until(peer, b"<2>")


def test_a_message_in_very_many_tiny_fragments_ends_the_connection(peer):
    tiny = frame(TEXT, b"a", fin=False) + frame(CONT, b"a", fin=False) * (MAX_TINY_FRAGMENTS + 100)
    peer.sendall(tiny)
    got = everything(peer)
    assert struct.pack("!H", 1008) in got
    assert b"fragments" in got


def test_one_in_many_fragments_of_some_size_does_not(peer):
    piece = b"a" * MIN_FRAGMENT
    many = 4 * MAX_TINY_FRAGMENTS
    peer.sendall(frame(TEXT, piece, fin=False) + frame(CONT, piece, fin=False) * many)
    peer.sendall(frame(CONT, b"", fin=True))
    _until(peer, b"<%d>" % (len(piece) * (many + 1)))
    for _ in range(3):  # each message is counted by itself
        tiny = frame(CONT, b"a", fin=False) * (MAX_TINY_FRAGMENTS - 2)
        peer.sendall(frame(TEXT, b"a", fin=False) + tiny + frame(CONT))
        _until(peer, b"<%d>" % (MAX_TINY_FRAGMENTS - 1))


def test_a_client_that_does_not_read_is_not_read_from(server, peer):
    """Its pings would otherwise be answered into memory."""
    pings = frame(PING, b"a" * 100) * 3_000_000
    assert sent_until(lambda: not server.line().writable.is_set(), peer, pings) < len(pings)

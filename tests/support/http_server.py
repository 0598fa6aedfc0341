"""An ASGI application behind the gateway's own protocol, on a real socket, and a client of it."""

import contextlib
import socket
import threading
import time

import uvicorn

from thoughtline.gateway.server.protocol import HttpProtocol


@contextlib.contextmanager
def served(app, **more):
    """Serve it on a port of its own; yields the server, which knows its `port`."""
    config = uvicorn.Config(
        app, port=0, log_level="critical", lifespan="off", **{"http": HttpProtocol, **more}
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    server.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(20)


@contextlib.contextmanager
def dialled(port):
    """A connection to it."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.settimeout(60)
        yield peer


def answer(peer, *, bare=False):
    """One whole answer: status, headers, body."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(peer)
    head, _, body = got.partition(b"\r\n\r\n")
    status, *fields = head.decode().split("\r\n")
    fields = dict(field.lower().split(": ", 1) for field in fields)
    if "transfer-encoding" in fields:
        while not body.endswith(b"0\r\n\r\n"):
            body += _more(peer)
        body = _unchunked(body)
    while not bare and len(body) < int(fields.get("content-length", 0)):
        body += _more(peer)
    return int(status.split()[1]), fields, body


def _more(peer):
    more = peer.recv(1 << 16)
    if not more:
        raise EOFError("the connection ended")
    return more


def _unchunked(body):
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return whole


def everything(peer):
    """All bytes until the connection ends."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while more := peer.recv(1 << 16):
            got += more
    return got


def until(true):
    """Wait until it is."""
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()

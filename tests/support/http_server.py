"""An ASGI application behind the gateway's own protocol, on a real socket, and a client of it."""

import asyncio
import contextlib
import socket
import threading

import uvicorn

from support.loop_clock import settled, stopped
from support.waiting import LIMIT, delivered, until
from thoughtline.gateway.server.protocol import HttpProtocol


class Server(uvicorn.Server):
    """A server in a thread of its own."""

    async def startup(self, sockets=None):
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def settle(self, peer):
        """Wait until it has read what was sent so far, by itself, and whoever is ready has run."""
        until(lambda: delivered(peer))
        self._do(settled())

    def advance(self, seconds, peer=None):
        """Let time pass, where its clock stands still, once it has read what this one sent."""
        if peer is not None:
            self.settle(peer)
        self._do(self.clock.advance(seconds))

    def line(self):
        """Its only connection."""
        (line,) = self.server_state.connections
        return line

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LIMIT)


@contextlib.contextmanager
def served(app, *, still=False, **more):
    """Serve it on a port of its own; where it is `still`, time passes there when it is told to."""
    kind = {"loop": "asyncio"} if still else {}  # the other one's clock cannot be stopped
    config = uvicorn.Config(
        app, port=0, log_level="critical", lifespan="off", **{"http": HttpProtocol, **kind, **more}
    )
    server = Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    server.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with stopped(server.loop) if still else contextlib.nullcontext() as server.clock:
            yield server
    finally:
        server.should_exit = True
        thread.join(LIMIT)


@contextlib.contextmanager
def dialled(port):
    """A connection to it."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.settimeout(60)
        yield peer


def sent_until(stuck, peer, data):
    """Send until the server takes no more, and is `stuck`; how many bytes it took."""
    sent, data = 0, memoryview(data)
    peer.setblocking(False)

    def full():
        nonlocal sent
        with contextlib.suppress(BlockingIOError):
            while sent < len(data):
                sent += peer.send(data[sent:])
        return sent == len(data) or stuck()

    until(full)
    peer.settimeout(LIMIT)
    return sent


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

"""Servers for tests of HTTP wires: one that answers byte by byte as told, and a real proxy."""

import asyncio
import ssl
import subprocess
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from support.loop_clock import settled
from support.waiting import delivered, eventually
from thoughtline.wires.base import Outbound

APART = object()
"""A step between two pieces: what comes before it is read by itself."""

SILENCE = object()
"""A step after which nothing comes."""


async def taken(writer):
    """Wait until a client in this loop has read all that was sent to it."""
    await writer.drain()
    await eventually(lambda: delivered(writer.get_extra_info("socket")))
    await settled()


class Server:
    """Plays one script per request; remembers what it was sent and on which connection."""

    def __init__(self, *scripts):
        self.scripts = list(scripts)
        self.requests = []
        self.connections = 0
        self.gone = asyncio.Event()  # a client hung up
        self.silent = asyncio.Semaphore(0)  # how often it has fallen silent
        self.stuck = False  # our answer is not taken off us
        self._tasks = set()

    async def serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = [x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")]
                body = await reader.readexactly(int(size[0].split(b":")[1])) if size else b""
                self.requests.append((self.connections, head, body))
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                for step in script:
                    if step is None:
                        return
                    if step is SILENCE:
                        self.silent.release()
                        await asyncio.Event().wait()
                    if step is APART:
                        await taken(writer)
                        continue
                    writer.write(step)
                    await settled()
                    self.stuck |= writer.transport.get_write_buffer_size() > 0
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone.set()
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self, **options):
        async with listening(self.serve, self._tasks, **options) as port:
            yield port


@asynccontextmanager
async def listening(serve, tasks, **options):
    """A server on a port of its own; its connections end with it."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Proxy:
    """An HTTP proxy: tunnels for `CONNECT`, and passes requests with absolute URLs on.

    Each connection of a client is joined to one of its own; where that cannot be opened, or where
    the proxy is told to die, the client's is closed without a word.
    """

    def __init__(self, *, login=b"", status=200, dies=False, silent=False):
        self.login, self.status, self.dies, self.silent = login, status, dies, silent
        self.established = b"HTTP/1.1 200 Connection established\r\n\r\n"
        self.heads = []  # of all requests to the proxy itself
        self.connections = 0
        self._tasks = set()

    async def serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        self.connections += 1
        upstream = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                if self.silent:
                    await asyncio.Event().wait()
                if self.dies:
                    return
                if refused := self._refused(head):
                    writer.write(b"HTTP/1.1 %d No\r\ncontent-length: 2\r\n\r\nno" % refused)
                    continue
                method, target, _ = head.split(b"\r\n")[0].split(b" ")
                if method == b"CONNECT":
                    host, _, port = target.decode().rpartition(":")
                    upstream = await self._join(writer, host, int(port))
                    writer.write(self.established)
                    await pump(reader, upstream)
                    return
                parts = urlsplit(target.decode())
                upstream = upstream or await self._join(writer, parts.hostname, parts.port)
                path = parts._replace(scheme="", netloc="").geturl() or "/"
                upstream.write(head.replace(target, path.encode(), 1))
                size = [x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")]
                if size:
                    upstream.write(await reader.readexactly(int(size[0].split(b":")[1])))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            if upstream is not None:
                upstream.close()

    def _refused(self, head):
        wrong = self.login and b"proxy-authorization: " + self.login not in head
        return 407 if wrong else self.status if self.status != 200 else 0

    async def _join(self, writer, host, port):
        back, upstream = await asyncio.open_connection(host, port)
        self._tasks.add(asyncio.ensure_future(pump(back, writer)))
        return upstream

    @asynccontextmanager
    async def running(self, **options):
        async with listening(self.serve, self._tasks, **options) as port:
            yield port


async def pump(reader, writer):
    """Pass bytes on until they end, no faster than they are taken."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-one: 1\r\nX-One: 2\r\n\r\nabcd"


async def fetch(wire, url, method="POST", body=b"{}", headers=()):
    outbound = Outbound(method=method, url=url, headers=list(headers), body=body)
    async with wire.send(outbound) as inbound:
        got = b"".join([chunk async for chunk in inbound.chunks()])
        return inbound.status, list(inbound.headers), got


def certified(folder):
    """A key and a certificate of its own making for localhost."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    made = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {key} -out {certificate}"
    named = "-days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*made.split(), *named.split()], check=True, capture_output=True)
    return key, certificate


def tls_server(folder):
    """A server's TLS context with a certificate of its own making, and the certificate's path."""
    key, certificate = certified(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate

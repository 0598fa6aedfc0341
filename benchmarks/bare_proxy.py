"""The floor of the language: the least that a Python proxy can do that reads and changes requests.

One `asyncio.Protocol` on each side, uvloop, and an upstream connection for each client's. The body
is decoded as JSON, gets one member and is encoded again; answers are forwarded as they come, and
searched for a thought. There is no pool, no log, no limit and no error handling.

Run as a process: `python -m benchmarks.bare_proxy UPSTREAM_PORT` prints its port.
"""

import asyncio
import re
import sys

import msgspec
import uvloop

LENGTH = re.compile(rb"(\r\ncontent-length: *)(\d+)", re.IGNORECASE)
THOUGHT = re.compile(rb'"reasoning_content": *"')


class Upstream(asyncio.Protocol):
    """The connection to the upstream: what comes is searched and forwarded."""

    def __init__(self, client: asyncio.Transport) -> None:
        self.client = client
        self.thoughts = 0

    def data_received(self, data: bytes) -> None:
        self.client.write(data)
        if THOUGHT.search(data) is not None:
            self.thoughts += 1


class Client(asyncio.Protocol):
    """The connection of one client: each request is changed and sent on."""

    transport: asyncio.Transport
    upstream: asyncio.Transport | None = None

    def __init__(self, port: int) -> None:
        self.port = port
        self.buffer = b""
        self.pieces: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        if self.upstream is not None:
            self.upstream.abort()

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self.buffer = self.buffer or data
        end = self.buffer.find(b"\r\n\r\n") + 4
        length = LENGTH.search(self.buffer, 0, end)
        assert end > 3
        assert length is not None
        size = int(length[2])
        if sum(map(len, self.pieces)) < end + size:
            return
        whole = b"".join(self.pieces)
        self.buffer, self.pieces = b"", []
        body = changed(whole[end:])
        head = LENGTH.sub(rb"\g<1>%d" % len(body), whole[:end])
        if self.upstream is None:
            asyncio.ensure_future(self.connect(head + body))
        else:
            self.upstream.write(head + body)

    async def connect(self, request: bytes) -> None:
        """Open the connection to the upstream, and send the first request."""
        loop = asyncio.get_running_loop()
        self.upstream, _ = await loop.create_connection(
            lambda: Upstream(self.transport), "127.0.0.1", self.port
        )
        self.upstream.write(request)


def changed(body: bytes) -> bytes:
    """The body with a thought in its last message of the model."""
    document = msgspec.json.decode(body)
    for message in reversed(document["messages"]):
        if message["role"] == "assistant":
            message["reasoning_content"] = "The user wants the file mended."
            break
    return msgspec.json.encode(document)


async def main(upstream: int) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Client(upstream), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))

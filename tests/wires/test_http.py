"""The HTTP wires, held to one contract against a server that answers byte by byte as told."""

import asyncio
import re
import shutil
import socket
import threading

import pytest
import uvloop

from support.waiting import eventually
from thoughtline.errors import WireError
from thoughtline.wires import http_connection
from thoughtline.wires.base import Outbound, read_up_to
from thoughtline.wires.http import HttpWire
from wires.http_servers import APART, PLAIN, Proxy, Server, fetch, tls_server


@pytest.fixture(params=["direct", "proxied"])
async def wires(request, monkeypatch):
    """Wires that go directly, and wires that go through a proxy."""
    if request.param == "direct":
        yield HttpWire
        return
    async with Proxy().running() as port:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        yield HttpWire


def status_of(answer):
    found = [int(code) for code in re.findall(rb"HTTP/1.. (\d+)", answer)]
    return next(code for code in found if code >= 200)


async def exchange(wires, script, **request):
    server, wire = Server(script), wires()
    async with server.running() as port:
        try:
            return server, await fetch(wire, f"http://127.0.0.1:{port}/p?q=%2F", **request)
        finally:
            await wire.close()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ((PLAIN,), b"abcd"),
        (tuple(bytes([one]) for one in PLAIN), b"abcd"),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n",), b"abcd"),
        ((b"HTTP/1.1 200 OK\r\n\r\nab", APART, b"cd", None), b"abcd"),
        ((b"HTTP/1.0 200 OK\r\n\r\nabcd", None), b"abcd"),
        ((b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabcd", None), b"abcd"),
        ((b"HTTP/1.1 100 Continue\r\n\r\n", APART, PLAIN), b"abcd"),
        ((b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + PLAIN,), b"abcd"),
        ((b"HTTP/1.1 204 No Content\r\n\r\n",), b""),
        ((b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",), b""),
        ((b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b",), b"\x1f\x8b"),
    ],
)  # fmt: skip
async def test_an_answer_comes_as_it_is(wires, answer, body):
    _, (status, _, got) = await exchange(wires, answer)
    assert (got, status) == (
        body,
        status_of(b"".join(piece for piece in answer if isinstance(piece, bytes))),
    )


async def test_headers_come_as_they_are(wires):
    _, (_, headers, _) = await exchange(wires, (PLAIN,))
    assert headers == [("content-length", "4"), ("x-one", "1"), ("x-one", "2")]


async def test_what_comes_after_a_body_is_no_header():
    chunked = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx-end: 1\r\n\r\n"
    )
    server, wire = Server((chunked,)), HttpWire()
    async with server.running() as port:
        _, headers, body = await fetch(wire, f"http://127.0.0.1:{port}/")
        await wire.close()
    assert (headers, body) == ([("transfer-encoding", "chunked")], b"ab")


@pytest.mark.parametrize("more", [b"", b"what nobody wants"])
async def test_an_answer_to_head_has_no_body(wires, more):
    script = (b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n" + more,)
    _, (status, _, got) = await exchange(wires, script, method="HEAD", body=b"")
    assert (status, got) == (200, b"")


async def test_nothing_is_added_to_a_request(wires):
    sent = [("content-type", "application/json"), ("X-Twice", "a"), ("X-Twice", "b")]
    server, _ = await exchange(wires, (PLAIN,), body=b'{"a":1}', headers=sent)
    _, head, body = server.requests[0]
    first, *lines = head.decode().strip().split("\r\n")
    assert first == "POST /p?q=%2F HTTP/1.1"
    assert body == b'{"a":1}'
    names = sorted(line.partition(":")[0].lower() for line in lines)
    assert names == ["content-length", "content-type", "host", "x-twice", "x-twice"]


@pytest.mark.parametrize("name", ["host", "Host"])
async def test_a_host_of_its_own_is_the_only_one(wires, name):
    server, _ = await exchange(wires, (PLAIN,), headers=[(name, "front.test")])
    lines = server.requests[0][1].lower().split(b"\r\n")
    assert [line for line in lines if line.startswith(b"host:")] == [b"host: front.test"]


async def test_a_header_cannot_break_out_of_its_line(wires):
    with pytest.raises(WireError):
        await exchange(wires, (PLAIN,), headers=[("x-a", "b\r\nx-c: d")])


@pytest.mark.parametrize(
    "script",
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab", None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nab", None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", None),
        (None,),
        (b"no such thing\r\n\r\n",),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",),
    ],
)
async def test_half_an_answer_is_an_error(wires, script):
    with pytest.raises(WireError):
        await exchange(wires, script)


async def test_another_protocol_is_not_gone_on_in():
    offer = b"HTTP/1.1 %b\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
    with pytest.raises(WireError, match="another protocol"):
        await exchange(HttpWire, (offer % b"101 Switching Protocols" + b"\r\n\x00\x01",))
    offered = (offer % b"200 OK" + b"content-length: 4\r\n\r\nabcd",)  # a mere offer: Apache's
    assert (await exchange(HttpWire, offered))[1][2] == b"abcd"


async def test_connections_are_used_again(wires):
    server, wire = Server((PLAIN,)), wires()
    async with server.running() as port:
        for _ in range(3):
            await fetch(wire, f"http://127.0.0.1:{port}/")
        await asyncio.gather(*(fetch(wire, f"http://127.0.0.1:{port}/") for _ in range(2)))
        await wire.close()
    assert server.connections <= 3 < len(server.requests)


async def test_answers_of_every_kind_follow_one_another():
    scripts = [
        (PLAIN,),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\n",),  # of what is not sent
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nefgh\r\n0\r\nx-end: 1\r\n\r\n",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n",),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", APART, PLAIN),
    ]
    server, wire = Server(*scripts), HttpWire()
    async with server.running() as port:
        got = [await fetch(wire, f"http://127.0.0.1:{port}/") for _ in scripts]
        await wire.close()
    assert [body for _, _, body in got] == [b"abcd", b"", b"efgh", b"", b"abcd"]
    assert got[-1][:2] == got[0][:2]
    assert server.connections == 1


@pytest.mark.parametrize(
    "script",
    [
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na",),
        (PLAIN, None),
        (PLAIN + b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",),  # who asked for that?
    ],
)
async def test_what_is_over_is_not_used_again(wires, script):
    server, wire, loop = Server(script), wires(), asyncio.get_running_loop()

    def over():
        return not any(one.reusable(loop) for pooled in wire._idle.values() for one in pooled)

    async with server.running() as port:
        for _ in range(2):
            await fetch(wire, f"http://127.0.0.1:{port}/")
            await eventually(over)
        await wire.close()
    assert server.connections == 2


@pytest.mark.parametrize("surplus", [b"H", b"HTTP/1.1 200 OK\r\ncontent-le"])
async def test_nor_what_holds_half_an_answer_more(surplus):
    """What is left over must not be taken for the answer to the next request."""
    server, wire = Server((PLAIN + surplus,)), HttpWire()
    async with server.running() as port:
        for _ in range(2):
            await fetch(wire, f"http://127.0.0.1:{port}/")
        await wire.close()
    assert server.connections == 2


async def test_only_what_may_be_said_twice_is_said_twice(wires):
    """The upstream closes a kept connection at the moment of use, without a word."""
    server, wire = Server((PLAIN,), (None,), (PLAIN,), (None,), (PLAIN,)), wires()
    async with server.running() as port:
        url = f"http://127.0.0.1:{port}/"
        await fetch(wire, url)
        assert (await fetch(wire, url, method="GET", body=b""))[2] == b"abcd"
        with pytest.raises(WireError):
            await fetch(wire, url)
        await wire.close()
    assert len(server.requests) == 4


def hang_up_after_each(listener, gone):
    """Answers one request on each connection, then closes it; in a thread, whatever the loop does."""
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        with line:
            line.recv(65536)
            line.sendall(PLAIN)
        gone.release()


async def test_a_connection_that_ended_while_the_loop_was_busy_is_not_used(monkeypatch):
    monkeypatch.setattr(http_connection, "IDLE_BEFORE_CHECK", 0.0)
    gone = threading.Semaphore(0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up_after_each, args=(listener, gone), daemon=True).start()
        wire, url = HttpWire(), f"http://127.0.0.1:{listener.getsockname()[1]}/"
        for _ in range(5):
            assert (await fetch(wire, url))[2] == b"abcd"
            assert gone.acquire(timeout=60)  # busy: the loop does not hear of the end
        await wire.close()
        listener.shutdown(socket.SHUT_RDWR)


async def test_who_leaves_early_lets_go_at_once(wires):
    script = (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", APART, b"2\r\ncd\r\n") + (APART, b"2\r\nef\r\n") * 20  # fmt: skip
    server, wire = Server(script), wires()
    async with server.running() as port:
        outbound = Outbound(method="GET", url=f"http://127.0.0.1:{port}/", headers=[])
        async with wire.send(outbound) as inbound:
            async for chunk in inbound.chunks():
                assert chunk == b"ab"
                break
        await server.gone.wait()
        await wire.close()


async def test_a_slow_reader_slows_the_upstream(wires):
    piece = b"x" * (1 << 20)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(piece) * 16)
    server, wire = Server((head, *[piece] * 16)), wires()
    async with server.running() as port:
        outbound = Outbound(method="GET", url=f"http://127.0.0.1:{port}/", headers=[])
        async with wire.send(outbound) as inbound:
            await eventually(lambda: server.stuck)
            got = [chunk async for chunk in inbound.chunks()]
        await wire.close()
    assert sum(map(len, got)) == len(piece) * 16
    assert max(map(len, got)) < 4 * http_connection.MAX_BUFFERED


async def test_what_was_begun_can_be_read_on(wires):
    body = bytes(range(256)) * (1 << 12)
    head = b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\n\r\n" % len(body)
    server, wire = Server((head, body[:10], APART, body[10:])), wires()
    async with server.running() as port:
        outbound = Outbound(method="GET", url=f"http://127.0.0.1:{port}/", headers=[])
        async with wire.send(outbound) as inbound:
            first = await read_up_to(inbound, 1000)
            rest = b"".join([chunk async for chunk in inbound.chunks()])
        await wire.close()
    assert 1000 <= len(first) < len(body)
    assert first + rest == body


async def test_what_comes_can_be_pushed_until_a_piece_is_refused(wires):
    """A sink gets each piece in its callback; what it refuses is read, and nothing overtakes it."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"
    said = [b"ab", b"cd", b"ef", b"gh", b"ij"]
    steps = [step for piece in said for step in (piece, APART)]
    server, wire = Server((head, APART, *steps)), wires()
    pushed, pulled = [], []

    def sink(piece):
        if b"e" in piece:
            return False
        pushed.append(piece)
        return True

    async with server.running() as port:
        outbound = Outbound(method="GET", url=f"http://127.0.0.1:{port}/", headers=[])
        async with wire.send(outbound) as inbound:
            inbound.push(sink)
            async for chunk in inbound.chunks():
                pulled.append(chunk)
                inbound.push(sink)
        assert (await fetch(wire, f"http://127.0.0.1:{port}/"))[2] == b"".join(said)
        await wire.close()
    assert b"".join(pulled).startswith(b"ef")
    assert b"".join(pushed + pulled).startswith(b"abcd")
    assert sorted(b"".join(pushed + pulled)) == sorted(b"".join(said))
    assert server.connections == 1


async def test_what_waits_to_be_read_is_not_overtaken():
    connection = http_connection.HttpConnection(asyncio.get_running_loop())
    connection._buffer.append(b"first")
    connection.push(lambda piece: True)
    assert connection._sink is None


async def test_a_large_request_arrives_whole(wires):
    server, _ = await exchange(wires, (PLAIN,), body=b"y" * 900_000)
    assert server.requests[0][2] == b"y" * 900_000


async def test_nobody_there(wires):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        wire = wires()
        with pytest.raises(WireError, match=r"cannot reach http://127\.0\.0\.1"):
            await fetch(wire, f"http://127.0.0.1:{one.getsockname()[1]}/x?key=secret")
        await wire.close()


async def test_no_secret_of_a_url_is_told():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        wire, port = HttpWire(), one.getsockname()[1]
        with pytest.raises(
            WireError, match=rf"cannot reach http://127\.0\.0\.1:{port}/x: "
        ) as said:
            await fetch(wire, f"http://me:secret@127.0.0.1:{port}/x?key=secret")
        await wire.close()
    assert "secret" not in str(said.value)


@pytest.mark.parametrize("url", ["ftp://a/b", "http:///x", "nonsense"])
async def test_what_is_no_url(wires, url):
    wire = wires()
    with pytest.raises(WireError):
        await fetch(wire, url)
    await wire.close()


def test_on_another_event_loop():
    """uvloop's transports are of another kind; a wire outlives the loop it was used on."""
    wire = HttpWire()

    async def twice():
        server = Server((PLAIN,))
        async with server.running() as port:
            for _ in range(2):
                assert (await fetch(wire, f"http://127.0.0.1:{port}/"))[2] == b"abcd"
        return server.connections

    assert uvloop.run(twice()) == 1
    assert asyncio.run(twice()) == 1


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed; it makes the certificate"
)
async def test_over_tls(wires, tmp_path, monkeypatch):
    context, certificate = tls_server(tmp_path)
    server, wire = Server((PLAIN,)), wires()
    async with server.running(ssl=context) as port:
        url = f"https://localhost:{port}/"
        with pytest.raises(WireError, match="certificate"):
            await fetch(wires(), url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        for _ in range(2):
            assert (await fetch(wire, url))[2] == b"abcd"
        assert server.connections == 1
        await wire.close()


@pytest.mark.parametrize(
    ("said", "proxied"), [({"no_proxy": "x"}, False), ({"https_proxy": "http://127.0.0.1:9"}, True)]
)
def test_exceptions_alone_make_no_proxy(monkeypatch, said, proxied):
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert (HttpWire().proxies is not None) is proxied

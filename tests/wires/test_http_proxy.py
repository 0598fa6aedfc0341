"""Upstreams behind the HTTP proxies that the environment names, with a real proxy on loopback."""

import asyncio
import shutil
import socket
from base64 import b64encode
from contextlib import asynccontextmanager

import pytest
import uvloop

from support.waiting import eventually
from support.websocket_client import SocketTurnLoop
from thoughtline.errors import WireError
from thoughtline.testing import serving
from thoughtline.wires.base import Outbound, WireTimeouts
from thoughtline.wires.http import HttpWire
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions
from wires.http_servers import PLAIN, SILENCE, Proxy, Server, fetch, tls_server

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed; it makes the certificate"
)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    return tls_server(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def trusted(tls, monkeypatch):
    """The TLS context of a server whose certificate is trusted."""
    context, certificate = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


@asynccontextmanager
async def behind(proxy, monkeypatch, *, variable="HTTPS_PROXY", login="", tls=None):
    """A wire that is built while the environment names this proxy."""
    async with proxy.running(ssl=tls) as port:
        host = f"{login}localhost:{port}"
        monkeypatch.setenv(variable, f"https://{host}" if tls else f"http://{host}")
        wire = HttpWire(timeouts=WireTimeouts(connect=5.0))
        try:
            yield wire
        finally:
            await wire.close()


# -- requests with absolute URLs -----------------------------------------------------------------


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_a_plain_request_goes_to_the_proxy_with_its_whole_url(monkeypatch, variable):
    server, proxy = Server((PLAIN,)), Proxy()
    async with (
        server.running() as port,
        behind(proxy, monkeypatch, variable=variable) as wire,
    ):
        url = f"http://127.0.0.1:{port}/p?q=%2F"
        for _ in range(2):
            assert (await fetch(wire, url))[2] == b"abcd"
    assert proxy.heads[0].startswith(b"POST %b HTTP/1.1\r\nhost: 127.0.0.1:" % url.encode())
    assert server.requests[0][1].startswith(b"POST /p?q=%2F HTTP/1.1")
    assert (proxy.connections, server.connections) == (1, 1)


async def test_a_proxy_may_be_named_without_a_scheme(monkeypatch):
    server, proxy = Server((PLAIN,)), Proxy()
    async with server.running() as port, proxy.running() as at:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{at}")
        wire = HttpWire()
        assert (await fetch(wire, f"http://127.0.0.1:{port}/"))[2] == b"abcd"
        await wire.close()
    assert len(proxy.heads) == 1


async def test_the_scheme_decides_which_proxy_is_taken(monkeypatch, trusted):
    server, plain, tunnels = Server((PLAIN,)), Proxy(), Proxy()
    async with (
        server.running(ssl=trusted) as port,
        plain.running() as at,
        behind(tunnels, monkeypatch) as _,
    ):
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{at}")
        wire = HttpWire()
        assert (await fetch(wire, f"https://localhost:{port}/"))[2] == b"abcd"
        with pytest.raises(WireError):  # TLS is spoken there
            await fetch(wire, f"http://localhost:{port}/")
        await wire.close()
    assert [head.split()[0] for head in tunnels.heads] == [b"CONNECT"]
    assert [head.split()[0] for head in plain.heads] == [b"POST"]


# -- tunnels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls_proxy", [False, True])
async def test_tls_goes_through_a_tunnel(monkeypatch, trusted, tls_proxy):
    """The proxy sees the host's name and nothing of the request; a tunnel is used again."""
    server, proxy = Server((PLAIN,)), Proxy()
    at = trusted if tls_proxy else None
    async with (
        server.running(ssl=trusted) as port,
        behind(proxy, monkeypatch, tls=at) as wire,
    ):
        for _ in range(3):
            answer = await fetch(
                wire, f"https://localhost:{port}/v1?q=1", headers=[("authorization", "Bearer key")]
            )
            assert answer[2] == b"abcd"
    expected = f"CONNECT localhost:{port} HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n"
    assert proxy.heads == [expected.encode()]
    assert server.requests[2][1].startswith(b"POST /v1?q=1 HTTP/1.1")
    assert server.connections == 1


@pytest.mark.parametrize("tls_proxy", [False, True])
@pytest.mark.parametrize("run", [uvloop.run, asyncio.run])
def test_tunnels_on_either_event_loop(monkeypatch, trusted, run, tls_proxy):
    large = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + b"x" * 1_000_000
    server, proxy = Server((large,)), Proxy()
    at = trusted if tls_proxy else None

    async def main():
        async with (
            server.running(ssl=trusted) as port,
            behind(proxy, monkeypatch, tls=at) as wire,
        ):
            for _ in range(2):
                answer = await fetch(wire, f"https://localhost:{port}/", body=b"y" * 500_000)
                assert len(answer[2]) == 1_000_000
        assert (len(proxy.heads), server.connections) == (1, 1)

    run(main())


async def test_a_tunnel_is_never_used_for_another_target(monkeypatch, trusted):
    one, two, plain, proxy = Server((PLAIN,)), Server((PLAIN,)), Server((PLAIN,)), Proxy()
    async with (
        one.running(ssl=trusted) as first,
        two.running(ssl=trusted) as second,
        plain.running() as third,
        behind(proxy, monkeypatch, variable="ALL_PROXY") as wire,
    ):
        urls = [f"https://localhost:{first}/", f"https://localhost:{second}/"]
        urls += [f"http://localhost:{third}/", f"http://127.0.0.1:{third}/"]
        for url in urls * 2:
            assert (await fetch(wire, url))[2] == b"abcd"
    assert [len(server.requests) for server in (one, two, plain)] == [2, 2, 4]
    assert [server.connections for server in (one, two, plain)] == [1, 1, 2]
    assert proxy.connections == 4


async def test_a_target_with_another_certificate_is_not_trusted(monkeypatch, tls):
    server, proxy = Server((PLAIN,)), Proxy()
    async with server.running(ssl=tls[0]) as port, behind(proxy, monkeypatch) as wire:
        with pytest.raises(WireError, match=r"through the proxy .*certificate"):
            await fetch(wire, f"https://localhost:{port}/")
    assert server.requests == []


@pytest.mark.parametrize("early", [b"HTTP/1.1 100 Continue\r\n\r\n", b""])
@pytest.mark.parametrize("length", [b"", b"content-length: 0\r\n", b"content-length: 9\r\n"])
async def test_answers_to_connect_have_no_body(monkeypatch, trusted, early, length):
    """Whatever their headers say (RFC 9110, 9.3.6)."""
    server, proxy = Server((PLAIN,)), Proxy()
    proxy.established = early + b"HTTP/1.0 200 OK\r\n" + length + b"\r\n"
    async with server.running(ssl=trusted) as port, behind(proxy, monkeypatch) as wire:
        assert (await fetch(wire, f"https://localhost:{port}/"))[2] == b"abcd"


# -- user name and password ----------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_gets_its_user_name_and_password_and_nobody_else(
    monkeypatch, trusted, scheme
):
    login = b"Basic " + b64encode(b"me@home:a:b/c")
    server, proxy = Server((PLAIN,)), Proxy(login=login)
    async with (
        server.running(ssl=trusted if scheme == "https" else None) as port,
        behind(proxy, monkeypatch, variable="ALL_PROXY", login="me%40home:a%3Ab%2Fc@") as wire,
    ):
        assert (await fetch(wire, f"{scheme}://localhost:{port}/"))[2] == b"abcd"
    assert all(b"proxy-authorization: " + login in head for head in proxy.heads)
    if scheme == "https":
        assert b"proxy-authorization" not in server.requests[0][1]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("login", "advice"),
    [
        ("", r"write them into ALL_PROXY as http://USER:PASSWORD@HOST:PORT"),
        ("me:wrong-secret@", r"the user name and password in ALL_PROXY: correct them"),
    ],
)
async def test_a_proxy_that_wants_a_password_is_an_error_that_says_so(
    monkeypatch, trusted, scheme, login, advice
):
    server, proxy = Server((PLAIN,)), Proxy(login=b"Basic right")
    async with (
        server.running(ssl=trusted) as port,
        behind(proxy, monkeypatch, variable="ALL_PROXY", login=login) as wire,
    ):
        url = f"{scheme}://localhost:{port}/v1?key=secret"
        with pytest.raises(WireError, match=rf"proxy http://localhost:\d+ answered 407.*{advice}"):
            await fetch(wire, url)
        with pytest.raises(WireError) as caught:  # nothing of it is pooled
            await fetch(wire, url)
    assert "secret" not in str(caught.value)
    assert proxy.connections == 2
    assert server.requests == []


# -- proxies that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 502])
async def test_a_tunnel_that_is_refused(monkeypatch, status):
    proxy = Proxy(status=status)
    async with behind(proxy, monkeypatch) as wire:
        with pytest.raises(
            WireError, match=rf"answered {status} to a tunnel to upstream.test:443; .*NO_PROXY"
        ):
            await fetch(wire, "https://upstream.test/v1")


async def test_what_a_proxy_says_about_a_plain_request_is_an_answer(monkeypatch):
    """It cannot be told from what an upstream says."""
    async with behind(Proxy(status=502), monkeypatch, variable="http_proxy") as wire:
        status, _, body = await fetch(wire, "http://upstream.test/v1")
    assert (status, body) == (502, b"no")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_dies(monkeypatch, scheme):
    async with behind(Proxy(dies=True), monkeypatch, variable="ALL_PROXY") as wire:
        with pytest.raises(
            WireError,
            match=rf"cannot reach {scheme}://upstream.test/v1 through the proxy "
            r"http://localhost:\d+ \(named by ALL_PROXY\): the connection was closed; is the proxy",
        ):
            await fetch(wire, f"{scheme}://upstream.test/v1?key=secret")


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_not_there(monkeypatch, scheme):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        monkeypatch.setenv("all_proxy", f"http://me:secret@127.0.0.1:{one.getsockname()[1]}")
        wire = HttpWire()
        with pytest.raises(WireError, match=r"through the proxy http://127\.0\.0\.1:\d+") as caught:
            await fetch(wire, f"{scheme}://upstream.test/v1")
        await wire.close()
    assert "secret" not in str(caught.value)


async def test_a_tunnel_that_broke_is_replaced_where_a_request_may_be_repeated(
    monkeypatch, trusted
):
    server, proxy = Server((PLAIN,), (None,), (PLAIN,), (None,)), Proxy()
    async with server.running(ssl=trusted) as port, behind(proxy, monkeypatch) as wire:
        url = f"https://localhost:{port}/"
        await fetch(wire, url)
        assert (await fetch(wire, url, method="GET", body=b""))[2] == b"abcd"
        with pytest.raises(WireError, match="through the proxy"):
            await fetch(wire, url)
    assert (proxy.connections, len(server.requests)) == (2, 4)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_silent(monkeypatch, scheme, loop_clock):
    proxy = Proxy(silent=True)
    async with proxy.running() as port:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
        wire = HttpWire(timeouts=WireTimeouts(connect=0.2, first_byte=0.3))
        fetching = asyncio.create_task(fetch(wire, f"{scheme}://upstream.test/v1"))
        await eventually(lambda: proxy.heads)
        await loop_clock.advance(0.4)
        with pytest.raises(WireError, match=r"through the proxy .*: timed out"):
            await fetching
        await wire.close()


async def test_an_upstream_that_is_silent_in_its_tunnel(monkeypatch, trusted, loop_clock):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab"
    server, proxy = Server((SILENCE,), (head, SILENCE)), Proxy()
    async with server.running(ssl=trusted) as port, proxy.running() as at:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{at}")
        wire = HttpWire(timeouts=WireTimeouts(first_byte=0.3, idle=0.2))
        fetching = asyncio.create_task(fetch(wire, f"https://localhost:{port}/"))
        await server.silent.acquire()
        await loop_clock.advance(0.4)
        with pytest.raises(WireError, match="timed out"):
            await fetching
        outbound = Outbound(method="GET", url=f"https://localhost:{port}/", headers=[])
        async with wire.send(outbound) as inbound:
            chunks = inbound.chunks()
            assert await anext(chunks) == b"ab"
            following = asyncio.create_task(anext(chunks))
            await loop_clock.advance(0.3)
            with pytest.raises(WireError, match="stalled"):
                await following
        await wire.close()


@pytest.mark.parametrize("url", ["socks5://me:secret@127.0.0.1:1080", "http://", "ftp://x:1"])
async def test_a_proxy_that_cannot_be_used(monkeypatch, url):
    monkeypatch.setenv("ALL_PROXY", url)
    wire = HttpWire()
    with pytest.raises(WireError, match=r"ALL_PROXY cannot be used: .* expected http://") as caught:
        await fetch(wire, "https://upstream.test/v1")
    assert "secret" not in str(caught.value)


# -- exceptions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize(
    ("exceptions", "direct"),
    [
        ("localhost", True),
        ("other.test, localhost", True),
        ("localhost:{port}", True),
        ("*", True),
        ("localhost:1", False),
        ("ocalhost", False),
        ("other.test", False),
    ],
)
async def test_hosts_in_no_proxy_are_reached_directly(monkeypatch, variable, exceptions, direct):
    server, proxy = Server((PLAIN,)), Proxy()
    async with server.running() as port:
        monkeypatch.setenv(variable, exceptions.format(port=port))
        async with behind(proxy, monkeypatch, variable="ALL_PROXY") as wire:
            assert (await fetch(wire, f"http://localhost:{port}/p"))[2] == b"abcd"
    assert len(proxy.heads) == (0 if direct else 1)
    assert server.requests[0][1].startswith(b"POST /p HTTP/1.1")


async def test_an_address_of_ipv6_may_be_excepted(monkeypatch):
    monkeypatch.setenv("no_proxy", "::1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    wire = HttpWire()
    with pytest.raises(WireError) as caught:
        await fetch(wire, "http://[::1]:9/")
    assert "proxy" not in str(caught.value)


async def test_a_proxy_for_something_else_is_none_of_ours(monkeypatch):
    monkeypatch.setenv("ftp_proxy", "http://127.0.0.1:9")
    assert HttpWire().proxies is None


# -- WebSockets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["https_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("exceptions", ["", "127.0.0.1"])
async def test_a_websocket_takes_the_proxy(monkeypatch, variable, exceptions):
    proxy = Proxy()
    with serving("openai") as sims:
        async with proxy.running() as port:
            monkeypatch.setenv(variable, f"http://127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", exceptions)
            wire = ResponsesWire(options=WebSocketOptions(max_attempts=1))
            await SocketTurnLoop(sims.url("openai"), wire).turn()
            await wire.close()
    assert [head.split()[0] for head in proxy.heads] == ([] if exceptions else [b"CONNECT"])


@pytest.mark.parametrize("url", ["socks5://me:secret@127.0.0.1:1080", "ftp://me:secret@x:1"])
async def test_a_proxy_that_a_websocket_cannot_use(monkeypatch, url):
    monkeypatch.setenv("https_proxy", url)
    wire = ResponsesWire(options=WebSocketOptions(max_attempts=1))
    with pytest.raises(WireError, match="proxy that the environment names cannot be used") as said:
        await SocketTurnLoop("http://127.0.0.1:9/v1", wire).turn()
    await wire.close()
    assert "secret" not in str(said.value)

"""A head that a connection repeats is worked out once; whatever differs in it counts at once."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from support.gateway_server import running, upstreams
from support.http_server import answer, dialled, served
from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.client_head import HEAD, ClientHead
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import serving
from thoughtline.wires.base import Outbound

ASKED = (
    b"POST /v1/chat/completions?a=1 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer one\r\n"
)


def post(body, head=ASKED, more=b""):
    return b"%bcontent-length: %d\r\n%b\r\n%b" % (head, len(body), more, body)


@pytest.fixture(scope="module")
def heads():
    """A server that notes the head of each request and answers with its body."""
    noted = []

    async def app(scope, receive, send):
        noted.append(scope[HEAD])
        scope["path"] = "/written"
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    with served(app) as server:
        yield server.port, noted


def test_only_the_length_of_a_body_may_differ(heads):
    port, noted = heads
    noted.clear()
    with dialled(port) as peer:
        for body in (b"{}", b'{"a": 1}', b""):
            peer.sendall(post(body))
            assert answer(peer)[2] == body
    assert noted[1] is noted[2]
    assert noted[0].route == noted[1].route
    with dialled(port) as peer:
        peer.sendall(post(b"{}"))
        answer(peer)
    assert noted[3] is not noted[2]  # another connection


@pytest.mark.parametrize(
    "other",
    [
        post(b"{}", ASKED.replace(b"one", b"two")),
        post(b"{}", ASKED.replace(b"a=1", b"a=2")),
        post(b"{}", ASKED.replace(b"chat/completions", b"embeddings")),
        post(b"{}", ASKED.replace(b"POST", b"PUT")),
        post(b"{}", ASKED.replace(b"authorization", b"x-api-key")),
        post(b"{}", more=b"x-thoughtline-session: s\r\n"),
        ASKED + b"content-type: 2\r\ncontent-length: 2\r\n\r\n{}",
        ASKED + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_anything_else_makes_another_head(heads, other):
    port, noted = heads
    noted.clear()
    with dialled(port) as peer:
        for asked in (post(b"{}"), other, other):
            peer.sendall(asked)
            assert answer(peer)[2] == b"{}"
    assert noted[0] is not noted[1]
    assert (
        noted[1].headers != noted[0].headers
        or noted[1].route != noted[0].route
        or (noted[1].query != noted[0].query or noted[1].method != noted[0].method)
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_head_without_a_length_is_another_one(heads, order):
    port, noted = heads
    noted.clear()
    with dialled(port) as peer:
        for asked in [post(b""), ASKED + b"\r\n"][::order]:
            peer.sendall(asked)
            assert answer(peer)[0] == 200
    assert noted[0] is not noted[1]


def test_requests_that_come_together_keep_their_own_lengths(heads):
    port, _ = heads
    with dialled(port) as peer:
        peer.sendall(b"".join(map(post, (b"{}", b"[1]", b"[12]"))))
        got = b""
        while not got.endswith(b"[12]"):
            got += peer.recv(1 << 16)
    assert [part.rpartition(b"\r\n\r\n")[2] for part in got.split(b"HTTP/1.1 200 OK")][1:] == [
        b"{}",
        b"[1]",
        b"[12]",
    ]


def test_on_one_connection_each_credential_is_a_tenant_of_its_own():
    """The first is remembered with the connection; the second and the first again are not it."""
    said = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
    store = MemoryStore()
    with (
        serving("deepseek") as sims,
        running(upstreams(sims, "deepseek"), store=store) as gateway,
        dialled(gateway.port) as peer,
    ):
        for key in (b"one", b"one", b"two", b"one"):
            peer.sendall(post(json.dumps(said).encode(), ASKED.replace(b"one", key)))
            assert answer(peer)[0] == 200
        tenants = [one.tenant for one in asyncio.run(store.sessions())]
    assert sorted(map(tenants.count, set(tenants))) == [1, 3]


@pytest.mark.parametrize("hosts", [b"", b"host: localhost\r\nhost: localhost\r\n"])
def test_a_head_without_its_one_host_is_refused_behind_others(heads, hosts):
    port, noted = heads
    noted.clear()
    with dialled(port) as peer:
        for _ in range(2):
            peer.sendall(post(b"{}"))
            assert answer(peer)[0] == 200
        peer.sendall(post(b"{}", ASKED.replace(b"host: localhost\r\n", hosts)))
        assert answer(peer)[0] == 400
    assert len(noted) == 2


def test_each_request_that_waits_for_a_word_before_its_body_gets_it(heads):
    port, _ = heads
    waits = b"expect: 100-continue\r\n"
    with dialled(port) as peer:
        for more in (waits, waits, b"", waits):
            asked = post(b"{}", more=more)
            if more:
                peer.sendall(asked[:-2])
                assert answer(peer, bare=True)[0] == 100
                peer.sendall(asked[-2:])
            else:
                peer.sendall(asked)
            assert answer(peer)[::2] == (200, b"{}")


class Choosing:
    """An application that chooses once for each head who answers it."""

    def __init__(self):
        self.asked = 0

    async def __call__(self, scope, receive, send):
        self.asked += 1
        head = scope[HEAD]
        if head.handler is None:
            head.app, head.handler = self, self.answered
        await head.handler(scope, receive, send)

    async def answered(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})


def ask_thrice(app, **more):
    with served(app, proxy_headers=False, **more) as server, dialled(server.port) as peer:
        for head in (ASKED, ASKED, ASKED.replace(b"chat", b"more")):
            peer.sendall(post(b"{}", head))
            yield answer(peer)


def test_whom_the_application_has_chosen_is_asked_without_it():
    app = Choosing()
    told = [body for _, _, body in ask_thrice(app)]
    assert told == [b"/v1/chat/completions", b"/v1/chat/completions", b"/v1/more/completions"]
    assert app.asked == 2


def test_what_stands_before_the_application_sees_every_request():
    app, passed = Choosing(), []

    async def before(scope, receive, send):
        passed.append(scope["path"])
        await app(scope, receive, send)

    assert [status for status, *_ in ask_thrice(before)] == [200, 200, 200]
    assert (len(passed), app.asked) == (3, 3)


def test_too_many_connections_are_refused_also_with_a_head_that_is_known():
    app = Choosing()
    with served(app, proxy_headers=False, limit_concurrency=2) as server:  # noqa: SIM117
        with dialled(server.port) as peer:
            peer.sendall(post(b"{}"))
            told = [answer(peer)[0]]
            with dialled(server.port):
                while told[-1] == 200 and len(told) < 1000:  # until the server knows of both
                    peer.sendall(post(b"{}"))
                    told.append(answer(peer)[0])
    assert told[-1] == 503


def test_on_one_connection_each_model_goes_to_its_own_upstream():
    """Where the last one went is remembered with the connection, and only for that model."""
    names, went = ("deepseek", "kimi"), []
    with (
        serving(*names) as sims,
        running(
            [replace(one, models=(f"{one.name}-*",)) for one in upstreams(sims, *names)]
        ) as gateway,
        dialled(gateway.port) as peer,
    ):
        gateway.notes.replayed = lambda exchange: went.append(exchange.decision.target)
        for model in ("deepseek-v4-pro", "deepseek-v4-pro", "kimi-k2.5", "deepseek-v4-flash"):
            said = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            peer.sendall(post(json.dumps(said).encode()))
            assert answer(peer)[0] == 200
    assert [(there.name, there.origin.model) for there in went] == [
        ("deepseek", "deepseek-v4-pro"),
        ("deepseek", "deepseek-v4-pro"),
        ("kimi", "kimi-k2.5"),
        ("deepseek", "deepseek-v4-flash"),
    ]
    assert went[0] is went[1]


def scope(*headers, path=b"/v1/chat/completions"):
    pairs = [(b"host", b"localhost"), *headers]
    return {"method": "POST", "headers": pairs, "raw_path": path, "query_string": b"key=k&x=1"}


def test_what_goes_upstream_follows_upstream_route_and_body():
    head = ClientHead(scope((b"content-encoding", b"gzip"), (b"x-a", b"1")))
    head.authenticate(Auth(b"secret"))
    one, two = (
        Upstream(name=n, base_url=f"https://{n}.test", key=k) for n, k in (("a", ""), ("b", "own"))
    )
    first = head.outbound(b"1", one, head.route, decompressed=False)
    again = head.outbound(b"22", one, head.route, decompressed=False)
    assert (first.body, again.body) == (b"1", b"22")
    assert again.headers is first.headers
    assert ("content-encoding", "gzip") in first.headers
    plain = head.outbound(b"3", one, head.route, decompressed=True)
    assert ("content-encoding", "gzip") not in plain.headers
    keyed = head.outbound(b"4", two, head.route, decompressed=True)
    assert keyed.url == "https://b.test/v1/chat/completions?x=1"
    assert ("authorization", "Bearer own") in keyed.headers
    assert head.outbound(b"5", one, head.route, decompressed=False) == Outbound(
        method="POST", url=first.url, headers=first.headers, body=b"5"
    )

"""A request and its answer: what an application and a client may expect of the server."""

import asyncio
import io
import logging
import threading
from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from support.http_server import answer, dialled, everything, sent_until, served
from support.waiting import eventually, until
from thoughtline.gateway.server.cycle import MAX_JOINED, RequestCycle
from thoughtline.gateway.server.flow import LazyFlowControl

GET = b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


def start(status=200, **headers):
    pairs = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": pairs}


def body(piece=b"", *, more=False):
    return {"type": "http.response.body", "body": piece, "more_body": more}


def saying(*messages, then=None):
    """An application that says this, whatever it is asked."""

    async def app(scope, receive, send):
        for message in messages:
            await send(message)
        if then is not None:
            raise then

    return app


def told(app, asked=GET):
    """All that a client gets when it asks once, until the connection ends."""
    with served(app, timeout_keep_alive=0.1) as server, dialled(server.port) as peer:
        peer.sendall(asked)
        return everything(peer)


# -- the head, held back -------------------------------------------------------------------------


class Transport:
    """Notes its packets."""

    def __init__(self):
        self.packets = []
        self.closed = self.paused = False

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False

    def write(self, data):
        self.packets.append(data)

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True


@pytest.fixture
async def cycle():
    return new_cycle()


def new_cycle():
    """A request that is here, and its answer is not."""
    transport = Transport()
    connection = SimpleNamespace(
        transport=transport,
        flow=LazyFlowControl(transport),
        loop=asyncio.get_running_loop(),
        response_complete=lambda: None,
    )
    made = RequestCycle(
        connection, head_only=False, keep_alive=True, takes_interim=True, expects_continue=False
    )
    made.feed_eof()
    return made, transport


async def test_a_head_goes_with_its_body(cycle):
    made, transport = cycle
    await made.send(start(content_length=b"4"))
    await made.send(body(b"bo", more=True))
    await made.send(body(b"dy"))
    await asyncio.sleep(0)
    assert transport.packets == [HEAD + b"bo", b"dy"]


async def test_a_head_without_a_body_waits_for_no_one(cycle):
    made, transport = cycle
    await made.send(start(content_length=b"4"))
    assert transport.packets == []
    await asyncio.sleep(0)
    assert transport.packets == [HEAD]
    await made.send(body(b"body"))
    assert transport.packets == [HEAD, b"body"]


async def test_a_large_body_is_not_copied(cycle):
    made, transport = cycle
    large = b"x" * (MAX_JOINED + 1)
    await made.send(start(content_length=b"%d" % len(large)))
    await made.send(body(large))
    assert transport.packets[1] is large


async def test_what_is_held_is_written_before_the_end(cycle):
    made, transport = cycle
    await made.run(saying(start(content_length=b"4")), {})
    assert transport.packets == [HEAD]
    assert transport.closed


async def test_nothing_is_written_to_a_client_that_left(cycle):
    made, transport = cycle
    await made.send(start(content_length=b"4"))
    made.disconnect()
    await asyncio.sleep(0)
    await made.send(body(b"body"))
    assert transport.packets == []


async def test_a_body_that_is_all_here_can_be_taken_at_once(cycle):
    made, _ = cycle
    made._chunks, made._unread = [b"ab", b"c"], True
    assert made.take_body() == b"abc"
    assert made.take_body() is None
    made.disconnect()
    assert (await made.receive())["type"] == "http.disconnect"


@pytest.mark.parametrize("state", [{"_more_body": True}, {"disconnected": True}])
async def test_half_a_body_is_not_taken(cycle, state):
    made, _ = cycle
    made.feed(b"ab")
    for name, value in state.items():
        setattr(made, name, value)
    assert made.take_body() is None


async def test_whoever_asks_is_told_once_that_the_client_left(cycle):
    made, _ = cycle
    told = []
    made.watch(lambda: told.append("too early"))
    made.watch(lambda: told.append("left"))
    made.disconnect()
    assert told == ["left"]
    made.watch(lambda: told.append("had left"))
    assert told == ["left", "had left"]
    made.watch(None)
    made.disconnect()
    assert told == ["left", "had left"]


async def test_who_watches_a_client_has_its_connection_read(cycle):
    made, transport = cycle
    made.feed(b"x" * (HIGH_WATER_LIMIT + 1))
    assert transport.paused
    assert made.take_body()
    made.watch(lambda: None)
    assert not transport.paused


async def test_a_chunk_of_a_stream_can_be_written_at_once(cycle):
    made, transport = cycle
    assert not made.write_now(b"early")  # there is no head yet
    await made.send(start())
    assert made.write_now(b"ab")
    assert made.write_now(b"c")
    made._connection.flow.pause_writing()
    assert not made.write_now(b"slow")
    made._connection.flow.resume_writing()
    made.disconnect()
    assert not made.write_now(b"gone")
    stream = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    assert transport.packets == [stream + b"2\r\nab\r\n", b"1\r\nc\r\n"]


@pytest.mark.parametrize("said", [b"", b"body", b"x" * (MAX_JOINED + 1)])
@pytest.mark.parametrize("length", [True, False])
@pytest.mark.parametrize("status", [200, 204, 404])
async def test_an_answer_at_once_is_the_same_answer(status, length, said):
    said = b"" if status == 204 else said
    head = start(status, X_a=b"1", **({"content_length": b"%d" % len(said)} if length else {}))
    ways = []
    for at_once in (False, True):
        made, transport = new_cycle()
        if at_once:
            await made.send({**head, "body": said})
        else:
            await made.send(head)
            await made.send(body(said))
        ways.append((transport.packets, made.complete, made.started))
        await asyncio.sleep(0)
        assert ways[-1][0] == transport.packets, "nothing follows"
    assert ways[0] == ways[1]
    assert ways[0][0]


async def test_what_has_a_length_is_not_written_at_once(cycle):
    made, transport = cycle
    await made.send(start(content_length=b"4"))
    assert not made.write_now(b"body")
    assert transport.packets == []


# -- answers -------------------------------------------------------------------------------------


def test_an_answer_without_a_length_goes_in_chunks():
    app = saying(start(), body(b"one", more=True), body(more=True), body(b"0123456789abcdef"))
    assert told(app) == (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"3\r\none\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"
    )


def test_names_are_small_and_what_is_the_servers_is_said_by_the_server():
    app = saying(
        start(**{"X-A": b"B", "Transfer-Encoding": b"chunked", "Connection": b"keep-alive"}), body()
    )
    assert told(app) == (
        b"HTTP/1.1 200 OK\r\nx-a: B\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("headers", "head"),
    [
        ({"content_length": b"5"}, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
        ({}, b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
def test_who_asks_for_a_head_gets_no_body(headers, head):
    app = saying(start(**headers), body(b"12", more=True), body(b"345"))
    assert told(app, b"HEAD" + GET[3:] + b"HEAD" + GET[3:]) == head + head


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("headers", [{}, {"content_length": b"5"}])
def test_answers_without_a_body_end_with_their_head(status, headers):
    app = saying(start(status, **headers), body())
    with served(app) as server, dialled(server.port) as peer:
        for _ in range(2):  # and the connection is as good as before
            peer.sendall(GET)
            assert answer(peer, bare=True)[::2] == (status, b"")


@pytest.mark.parametrize(
    ("asked", "headers"),
    [
        (GET[:-2] + b"connection: close\r\n\r\n", {}),
        (GET, {"connection": b"Close"}),
        (GET.replace(b"1.1", b"1.0"), {}),
    ],
)
def test_a_connection_that_ends_with_its_answer_says_so(asked, headers):
    app = saying(start(content_length=b"2", **headers), body(b"ok"))
    with served(app) as server, dialled(server.port) as peer:
        peer.sendall(asked)
        said = everything(peer)
    assert said == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


@pytest.mark.parametrize("evil", [b"a\r\nb: c", b"a\nb", b"a\rb", b"a\x00b", b"a\x7fb"])
@pytest.mark.parametrize("of", ["name", "value"])
def test_no_header_can_begin_another_one(evil, of):
    pair = (evil, b"v") if of == "name" else (b"n", evil)
    head = {"type": "http.response.start", "status": 200, "headers": [pair]}
    assert told(saying(head, body(b"x"))) == b""


def test_what_is_no_control_character_may_stand_in_a_header():
    value = b"\t" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))
    said = told(saying(start(content_length=b"0", x=value), body()))
    assert b"\r\nx: " + value + b"\r\n" in said


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([start(content_length=b"3"), body(b"1234")], b"content-length: 3\r\n\r\n"),
        ([start(content_length=b"3"), body(b"12")], b"content-length: 3\r\n\r\n12"),
        ([start(), body(b"12", more=True)], b"transfer-encoding: chunked\r\n\r\n2\r\n12\r\n"),
        ([start(), start()], b"transfer-encoding: chunked\r\n\r\n"),
    ],
)
def test_an_answer_that_went_wrong_is_cut_off(messages, said):
    assert told(saying(*messages)) == b"HTTP/1.1 200 OK\r\n" + said


@pytest.mark.parametrize(
    "app",
    [
        saying(),
        saying(then=ValueError("no")),
        saying(then=asyncio.CancelledError()),
        saying(body(b"too early")),
    ],
)
def test_who_says_nothing_is_spoken_for(app):
    said = told(app)
    assert said.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert said.endswith(b"connection: close\r\n\r\nInternal Server Error")


def test_what_is_said_after_the_end_is_a_fault_of_the_application_alone():
    faults = []

    async def app(scope, receive, send):
        await saying(start(content_length=b"2"), body(b"ok"))(scope, receive, send)
        try:
            await send(body(b"more"))
        except RuntimeError as error:
            faults.append(str(error))

    with served(app) as server, dialled(server.port) as peer:
        for _ in range(2):
            peer.sendall(GET)
            assert answer(peer)[2] == b"ok"
        until(lambda: not server.server_state.tasks)
    assert faults == ["unexpected ASGI message 'http.response.body': the response is complete"] * 2


# -- requests ------------------------------------------------------------------------------------


def heard(app):
    """Serve an application that notes what it is told; yields the notes too."""
    notes = []

    async def noting(scope, receive, send):
        async def listen():
            notes.append(await receive())
            return notes[-1]

        await app(scope, listen, send)

    return noting, notes


async def echo(scope, receive, send):
    while (await receive())["more_body"]:
        pass
    await saying(start(content_length=b"2"), body(b"ok"))(scope, receive, send)
    await receive()


def test_a_request_comes_in_pieces_and_then_the_news_of_its_end():
    app, notes = heard(echo)
    with served(app) as server, dialled(server.port) as peer:
        peer.sendall(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nab")
        until(lambda: notes)
        peer.sendall(b"cd")
        assert answer(peer)[2] == b"ok"
        until(lambda: len(notes) == 3)
    assert notes == [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"cd", "more_body": False},
        {"type": "http.disconnect"},
    ]


def test_who_asks_before_sending_is_told_to_go_on():
    asked = b"POST /x HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\ncontent-length: 2\r\n\r\n"
    with served(echo) as server, dialled(server.port) as peer:
        peer.sendall(asked)
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b"ab")
        assert answer(peer)[2] == b"ok"
        peer.sendall(GET)  # and that was for one request
        assert answer(peer)[0] == 200
    assert told(saying(start(417, content_length=b"0"), body()), asked).startswith(b"HTTP/1.1 417")


def test_a_client_that_leaves_before_its_request_is_complete():
    app, notes = heard(echo)
    with served(app) as server:
        with dialled(server.port) as peer:
            peer.sendall(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nab")
            until(lambda: notes)
        until(lambda: not server.server_state.tasks)
    assert notes[-1] == {"type": "http.disconnect"}


def test_everybody_who_waits_hears_that_a_client_left():
    asking = threading.Event()
    heard = []

    async def app(scope, receive, send):
        await receive()
        await send(start())
        waiting = [asyncio.ensure_future(receive()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # who gives up does so for itself
        asking.set()
        heard.extend(await asyncio.gather(*waiting[1:]))
        await send(body(b"to nobody"))

    with served(app) as server:
        with dialled(server.port) as peer:
            peer.sendall(GET)
            assert asking.wait(60)
        until(lambda: not server.server_state.tasks)
    assert heard == [{"type": "http.disconnect"}] * 2


def test_who_is_being_answered_is_missed_also_when_more_was_asked():
    asking, left = threading.Event(), threading.Event()

    async def app(scope, receive, send):
        await receive()
        asking.set()
        await receive()
        left.set()

    with served(app) as server:
        with dialled(server.port) as peer:
            peer.sendall(GET + GET)
            assert asking.wait(60)
        assert left.wait(60)
        until(lambda: not server.server_state.tasks)


def test_what_nobody_asks_for_is_not_read():
    go, held = threading.Event(), 32 << 20

    async def app(scope, receive, send):
        await eventually(go.is_set)
        size = 0
        while (message := await receive())["more_body"]:
            size += len(message["body"])
        size += len(message["body"])
        await saying(start(content_length=b"8"), body(b"%d" % size))(scope, receive, send)

    with served(app) as server, dialled(server.port) as peer:
        peer.sendall(b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % held)
        sent = sent_until(lambda: server.line().flow.read_paused, peer, b"x" * held)
        assert sent < held
        go.set()
        peer.sendall(b"x" * (held - sent))
        assert answer(peer)[2] == b"%d" % held


@pytest.mark.parametrize("leaves", [False, True])
def test_who_reads_slowly_is_waited_for(leaves):
    pieces, sent = 600, []

    async def app(scope, receive, send):
        await send(start())
        for _ in range(pieces):
            await send(body(b"x" * (1 << 16), more=True))
            sent.append(1)
        await send(body())

    with served(app) as server:
        with dialled(server.port) as peer:
            peer.sendall(GET)
            peer.recv(1)
            until(lambda: server.line().flow.write_paused)
            assert len(sent) < pieces
            if not leaves:
                got = 1
                while got < pieces << 16:
                    got += len(peer.recv(1 << 20))
        until(lambda: not server.server_state.tasks)  # nobody waits for one who left


# -- the end -------------------------------------------------------------------------------------


def test_a_server_that_ends_lets_answers_end_and_resting_connections_not():
    begun, go = threading.Event(), threading.Event()

    async def app(scope, receive, send):
        await send(start())
        await send(body(b"one", more=True))
        begun.set()
        await eventually(go.is_set)
        await send(body(b"two"))

    with served(app) as server, dialled(server.port) as resting, dialled(server.port) as peer:
        peer.sendall(GET)
        assert begun.wait(60)
        server.should_exit = True
        assert everything(resting) == b""
        go.set()
        assert everything(peer).endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


@pytest.mark.parametrize("status", [200, 299, 599, 600, 799, 999])
async def test_every_status_has_its_line(cycle, status):
    made, transport = cycle
    head = {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]}
    await made.send(head)
    await made.send(body(b""))
    assert b"".join(transport.packets).startswith(b"HTTP/1.1 %d " % status)


async def test_an_accident_is_in_the_log_with_its_place_and_without_its_words(cycle, monkeypatch):
    log = logging.getLogger("uvicorn.error")
    monkeypatch.setattr(log, "isEnabledFor", lambda _: True)  # whatever servers have set before
    monkeypatch.setattr(log, "handlers", [logging.StreamHandler(written := io.StringIO())])
    made, transport = cycle
    error = KeyError("a thought")
    error.__cause__ = ValueError("an answer")
    await made.run(saying(start(content_length=b"4"), then=error), {})
    assert transport.closed
    text = written.getvalue()
    assert "KeyError at test_cycle.py" in text and "raise then" in text
    assert "a thought" not in text and "an answer" not in text

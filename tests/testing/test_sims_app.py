"""The simulators on real sockets: routes, pace, faults, WebSockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from support.clients import TOOLS, ChatClient, audit, counts, message_of
from support.waiting import until
from thoughtline.testing import Pace, Reply, Request, serving, simulator
from thoughtline.testing.sims.chat import ROWS, ChatSimulator

BODY = {"model": "m", "messages": [{"role": "user", "content": "go"}], "tools": TOOLS}


class Wire:
    """One HTTP request, read as slowly as a test likes."""

    def __init__(self, port, method, path, body=None, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        head = {k.replace("_", "-"): v for k, v in headers.items()}
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self.connection.request(method, path, raw, {"authorization": "Bearer k", **head})
        self.response = self.connection.getresponse()

    def reply(self):
        headers = {k.lower(): v for k, v in self.response.getheaders()}
        with contextlib.closing(self.connection):
            return Reply(
                status=self.response.status, headers=headers, chunks=(self.response.read(),)
            )


class Remote:
    """What `ChatClient` needs of a simulator, over a socket."""

    def __init__(self, sims, name):
        self.port, self.name, self.sim = sims.port, name, sims[name]
        self.base_path, self.models = self.sim.base_path, self.sim.models

    def answer(self, request: Request) -> Reply:
        path = f"/{self.name}{request.path}"
        wire = Wire(self.port, request.method, path, request.body, **request.headers)
        return wire.reply()


@pytest.fixture(scope="module")
def sims():
    with serving() as running:
        yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", sorted(set(ROWS) - {"deepseek-r1"}))
def test_every_provider_answers_on_its_own_path(sims, name, stream):
    talk = ChatClient(Remote(sims, name), stream=stream, opening=f"go {stream}")
    reply = talk.run(3)
    assert reply.status == 200
    assert audit(reply)["exact"] > 0
    assert audit(reply) == counts(exact=audit(reply)["exact"])


def test_the_index_and_the_report(sims):
    index = json.loads(Wire(sims.port, "GET", "/").reply().body)
    assert {row["name"] for row in index["providers"]} >= set(ROWS)
    report = json.loads(Wire(sims.port, "GET", "/glm/_sim").reply().body)
    assert report["emitted"] == len(sims["glm"].emitted)
    assert all("exact=" in request["thoughts"] for request in report["requests"])
    nowhere = Wire(sims.port, "GET", "/nobody/v1/models").reply()
    assert nowhere.status == 404
    assert b"no simulated provider is called 'nobody'" in nowhere.body


def test_urls(sims):
    assert sims.url("deepseek") == f"http://127.0.0.1:{sims.port}/deepseek"
    assert sims.url("groq") == f"http://127.0.0.1:{sims.port}/groq/openai/v1"


def test_a_big_body_and_no_credential(sims):
    big = {**BODY, "messages": [{"role": "user", "content": "x" * 3_000_000}]}
    assert Wire(sims.port, "POST", "/glm/v1/chat/completions", big).reply().status == 200
    reply = Wire(sims.port, "POST", "/glm/v1/chat/completions", BODY, authorization="").reply()
    assert reply.status == 401


@pytest.mark.parametrize("split", [None, 0, 1, 7, 4096])
def test_the_pace_changes_no_byte(split):
    sim = simulator("kimi", clock=lambda: 0.0)
    twin = simulator("kimi", clock=lambda: 0.0)
    body = {**BODY, "model": "kimi-k2.6", "stream": True}
    with serving(sim, pace=Pace(0.00001 if split is None else 0, split)) as one:
        got = Wire(one.port, "POST", "/kimi/v1/chat/completions", body).reply()
    want = ChatClient(twin, stream=True, opening="go", key="k").ask()
    assert got.body == want.body
    assert message_of(got) == message_of(want)


def test_a_cut_stream_ends_without_its_end(sims):
    body = {**BODY, "stream": True}
    for fault in ("cut:3", "cut:0"):
        wire = Wire(sims.port, "POST", "/glm/v1/chat/completions", body, x_sim_fault=fault)
        with pytest.raises(http.client.IncompleteRead):
            wire.reply()
    wire = Wire(sims.port, "POST", "/glm/v1/chat/completions", BODY, x_sim_fault="cut:1")
    with pytest.raises(http.client.IncompleteRead):
        wire.reply()


def test_garbage_and_statuses_arrive(sims):
    wire = Wire(sims.port, "POST", "/glm/v1/chat/completions", BODY, x_sim_fault="garbage:1")
    assert b"\xff\xfe" in wire.reply().body
    for status in (429, 500, 503):
        wire = Wire(sims.port, "POST", "/glm/v1/chat/completions", BODY, x_sim_fault=str(status))
        assert wire.reply().status == status


def test_a_stalled_stream_stalls_until_the_server_closes():
    body = {**BODY, "stream": True}
    with serving("glm") as one:
        wire = Wire(one.port, "POST", "/glm/v1/chat/completions", body, x_sim_fault="stall:2")
        first = wire.response.readline()
        assert first.startswith(b"data: ")
        rest = []
        reader = threading.Thread(target=lambda: rest.append(_drain(wire)), daemon=True)
        reader.start()
        assert not rest
    reader.join(timeout=60)
    assert rest
    assert b"[DONE]" not in rest[0]
    wire.connection.close()


def _drain(wire):
    try:
        return wire.response.read()
    except http.client.IncompleteRead as error:
        return error.partial
    except OSError:
        return b"closed"


def test_a_client_that_hangs_up_is_noticed():
    body = {**BODY, "stream": True}
    with serving("glm", pace=Pace(delay=0.05)) as one:
        wire = Wire(one.port, "POST", "/glm/v1/chat/completions", body)
        wire.response.readline()
        wire.response.close()
        wire.connection.close()
        until(lambda: one.aborted)
        assert one.aborted == 1


# WebSockets


class Echoing:
    """A socket that answers each frame twice and closes when told to."""

    close_code = None

    def receive(self, text):
        if text == "bye":
            self.close_code = 4000
        return [text, text.upper()]


class Sockets(ChatSimulator):
    """A chat simulator that also takes WebSockets on one path."""

    def connect(self, request):
        return Echoing() if request.path == "/v1/socket" else self.error(426, "Upgrade Required")


@pytest.fixture(scope="module")
def socket_url():
    with serving(Sockets("sockets", ROWS["glm"]), pace=Pace(delay=0.001)) as one:
        yield f"ws://127.0.0.1:{one.port}"


def test_frames_go_both_ways(socket_url):
    with connect(f"{socket_url}/sockets/v1/socket") as ws:
        for text in ("a", "é😀"):
            ws.send(text)
            assert [ws.recv(timeout=60), ws.recv(timeout=60)] == [text, text.upper()]
        ws.send("bye")
        assert ws.recv(timeout=60) == "bye"
        assert ws.recv(timeout=60) == "BYE"
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)
    assert closed.value.rcvd.code == 4000


def test_binary_frames_are_refused(socket_url):
    with connect(f"{socket_url}/sockets/v1/socket") as ws:
        ws.send(b"a")
        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)
    assert closed.value.rcvd.code == 1003


@pytest.mark.parametrize(("path", "status"), [("/sockets/v1/other", 426), ("/nobody/x", 404)])
def test_an_upgrade_may_be_refused(socket_url, path, status):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"{socket_url}{path}").__enter__()
    assert refused.value.response.status_code == status
    assert b"error" in refused.value.response.body

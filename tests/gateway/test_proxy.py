"""The proxy, over real sockets: bytes untouched, thoughts kept, clients that leave, upstreams that break."""

import asyncio
import gzip
import json
import socket
import threading

import httpx2
import pytest

from support.gateway_server import RecordingObserver, running, upstreams
from support.loop_clock import settled
from support.proxied import KEY, body, recording
from support.waiting import until
from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.options import ProxyOptions
from thoughtline.log.sessions import Session
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Pace, serving

GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def stripped(reply):
    message = reply["choices"][0]["message"]
    return {k: v for k, v in message.items() if k != "reasoning_content"}


def answers(message):
    calls = message.get("tool_calls") or []
    return [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls] or [
        {"role": "user", "content": "go on"}
    ]


def talk(url, exchanges, **more):
    messages = [{"role": "user", "content": "Please mend a.txt"}]
    replies = []
    for _ in range(exchanges):
        reply = httpx2.post(f"{url}/v1/chat/completions", json=body(messages, **more), headers=KEY)
        replies.append(reply)
        if reply.status_code != 200:
            break
        message = stripped(reply.json())
        messages += [message, *answers(message)]
    return replies


def test_without_us_it_is_refused_and_with_us_it_is_not(sims):
    assert talk(sims.root("deepseek"), 6)[-1].status_code == 400
    with running(upstreams(sims, "deepseek")) as gateway:
        replies = talk(f"{gateway.url}/u/deepseek", 8)
    assert [r.status_code for r in replies] == [200] * 8
    assert replies[-1].headers["x-sim-thoughts"].startswith("exact=7; altered=0; missing=0")
    assert (
        replies[-1].headers["x-thoughtline-replay"]
        == "restored=7; missed=0; placeholder=0; dropped=0; corrected=0; exact=0; tied=0"
    )
    assert len({r.headers["x-thoughtline-session"] for r in replies}) == 1
    assert len({r.headers["x-thoughtline-turn"] for r in replies}) == 8


def test_a_single_upstream_needs_no_name(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        assert talk(gateway.url, 2)[-1].status_code == 200


def test_a_response_passes_byte_for_byte(sims):
    for stream in (True, False):
        with running(upstreams(sims, "deepseek")) as gateway:
            sent = body([{"role": "user", "content": "hi"}], stream=stream)
            through = httpx2.post(f"{gateway.url}/v1/chat/completions", json=sent, headers=KEY)
        record = sims["deepseek"].requests[-1]
        assert through.content == record.reply.body
        assert through.headers["x-request-id"] == record.reply.headers["x-request-id"]


def test_a_request_that_needs_nothing_passes_byte_for_byte(sims):
    odd = b'{ "model":"deepseek-v4-pro",\n "messages" : [ {"role":"user","content":"\\u00e9 1.10"} ], "x": 1.10 }'
    with running(upstreams(sims, "deepseek")) as gateway:
        httpx2.post(
            f"{gateway.url}/v1/chat/completions",
            content=odd,
            headers={**KEY, "content-type": "application/json"},
        )
    assert sims["deepseek"].requests[-1].request.body == odd


def test_what_is_no_history_passes_through(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        models = httpx2.get(f"{gateway.url}/u/deepseek/v1/models", headers=KEY)
        unknown = httpx2.post(
            f"{gateway.url}/u/deepseek/v1/embeddings", json={"input": "x"}, headers=KEY
        )
        broken = httpx2.post(
            f"{gateway.url}/u/deepseek/v1/chat/completions", content=b'{"model":', headers=KEY
        )
    assert models.json()["data"]
    assert unknown.status_code == 404
    assert broken.status_code == 400  # the provider's own words
    assert sims["deepseek"].requests[-1].request.body == b'{"model":'


def test_replay_can_be_switched_off(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        reply = httpx2.post(
            f"{gateway.url}/v1/chat/completions",
            json=body([{"role": "user", "content": "hi"}]),
            headers={**KEY, "x-thoughtline-replay": "off"},
        )
    assert "x-thoughtline-turn" not in reply.headers


def test_strict_mode_says_what_is_missing(sims):
    unknown = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "more"},
    ]
    with running(upstreams(sims, "deepseek")) as gateway:
        for extra in ({"x-thoughtline-replay": "strict"},):
            reply = httpx2.post(
                f"{gateway.url}/v1/chat/completions", json=body(unknown), headers={**KEY, **extra}
            )
            assert reply.status_code == 409
            assert reply.json()["error"]["code"] == "thought_missing"
        lenient = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body(unknown), headers=KEY)
    assert lenient.status_code == 200
    assert "placeholder=1" in lenient.headers["x-thoughtline-replay"]


def test_a_packed_request_is_read_and_goes_on_plain_when_it_changed(sims):
    def post(gateway, messages):
        packed = gzip.compress(json.dumps(body(messages)).encode())
        headers = {**KEY, "content-encoding": "gzip", "content-type": "application/json"}
        return httpx2.post(f"{gateway.url}/v1/chat/completions", content=packed, headers=headers)

    messages = [{"role": "user", "content": "packed"}]
    with running(upstreams(sims, "deepseek")) as gateway:
        post(gateway, messages)
        untouched = sims["deepseek"].requests[-1].request
        first = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body(messages), headers=KEY)
        message = stripped(first.json())
        second = post(gateway, [*messages, message, *answers(message)])
        changed = sims["deepseek"].requests[-1].request
    assert untouched.headers["content-encoding"] == "gzip"
    assert second.headers["x-thoughtline-replay"].startswith("restored=1")
    assert "content-encoding" not in changed.headers
    assert json.loads(changed.body)["messages"][1]["reasoning_content"]


def test_an_upstream_that_is_not_there_is_502():
    with running([Upstream(name="gone", base_url="http://127.0.0.1:9")]) as gateway:
        reply = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body([]), headers=KEY)
    assert reply.status_code == 502
    assert "127.0.0.1:9" in reply.json()["error"]["message"]


def test_a_path_reaches_the_upstream_as_it_was_written():
    with recording() as (url, seen), running([Upstream(name="bare", base_url=url)]) as gateway:
        httpx2.get(f"{gateway.url}/u/bare/v1/files/a%2Fb%3Fc%20d%0D%0Ae?q=%2F")
    assert seen[0].split(b"\r\n")[0] == b"GET /v1/files/a%2Fb%3Fc%20d%0D%0Ae?q=%2F HTTP/1.1"


@pytest.mark.parametrize("path", ["v1/models", "chat/completions"])
def test_a_path_cannot_name_another_host(path):
    """`*@host/…` after a base without a path would read as a login, and a key would go there."""
    with recording() as (url, seen), recording() as (elsewhere, taken):
        bare = Upstream(name="bare", base_url=url, key="sk-ours")
        with running([bare]) as gateway:
            place = elsewhere.removeprefix("http://")
            with socket.create_connection(("127.0.0.1", gateway.port)) as peer:
                peer.sendall(
                    f"POST *@{place}/{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{{}}".encode()
                )
                assert peer.recv(1 << 16).startswith(b"HTTP/1.1 200")
    assert (len(seen), taken) == (1, [])


# -- streams -------------------------------------------------------------------------------------


def stream(gateway, headers=None, **more):
    return httpx2.stream(
        "POST",
        f"{gateway.url}/u/deepseek/v1/chat/completions",
        json=body([{"role": "user", "content": "hi"}], stream=True, **more),
        headers={**KEY, **(headers or {})},
        timeout=60,
    )


def test_a_cut_upstream_is_told_in_the_stream_and_logged(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        with stream(gateway, {"x-sim-fault": "cut:4"}) as reply:
            text = reply.read().decode()
            session = reply.headers["x-thoughtline-session"]
        assert '"error"' in text.splitlines()[-2]
        log = asyncio.run(gateway.proxy.store.read(session))
    turn = Session(session).extend(log).turns[0]
    assert turn.outcome == "failed"
    assert turn.reason and "client" not in turn.reason


def test_a_refusal_passes_unchanged(sims):
    with running(upstreams(sims, "deepseek")) as gateway:
        for fault, status in (("500", 500), ("429", 429)):
            reply = httpx2.post(
                f"{gateway.url}/u/deepseek/v1/chat/completions",
                json=body([{"role": "user", "content": "hi"}]),
                headers={**KEY, "x-sim-fault": fault},
            )
            record = sims["deepseek"].requests[-1]
            assert reply.status_code == status
            assert reply.content == record.reply.body


def test_a_client_that_leaves_frees_the_upstream(sims):
    """With the next bytes to it, a keep-alive at the latest; the turn is logged as aborted."""
    pings = ProxyOptions(keepalive=0.1)
    with serving("deepseek") as own, running(upstreams(own, "deepseek"), options=pings) as gateway:
        before = own.aborted
        connection = socket.create_connection(("127.0.0.1", gateway.port))
        sent = json.dumps(body([{"role": "user", "content": "hi"}], stream=True)).encode()
        connection.sendall(
            b"POST /u/deepseek/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer k\r\n"
            b"x-sim-fault: stall\r\ncontent-length: %d\r\n\r\n%s" % (len(sent), sent)
        )
        connection.settimeout(60)
        assert connection.recv(4096)
        connection.close()
        until(lambda: (499, "the client left") in gateway.notes.records)
        until(lambda: own.aborted > before)


class Held:
    """A pace: the first piece at once, and the rest when it may."""

    delay = 0.0

    def __init__(self):
        self.go = threading.Event()

    def pieces(self, chunks):
        yield chunks[0]
        assert self.go.wait(60)
        yield from chunks[1:]


def test_silence_is_filled_with_pings():
    text, pace = "", Held()
    with serving("deepseek", pace=pace) as slow:  # noqa: SIM117
        with running(upstreams(slow, "deepseek"), options=ProxyOptions(keepalive=0.02)) as gateway:
            with stream(gateway) as reply:
                for piece in reply.iter_text():
                    text += piece
                    if text.count(": keep-alive") >= 3:
                        pace.go.set()
    clean = text.replace(": keep-alive\n\n", "")
    assert clean.endswith("data: [DONE]\n\n")
    for event in clean.strip().split("\n\n"):
        assert event.startswith("data: ")


def test_the_end_waits_for_the_commit(sims):
    """When the client has the last event, the turn is in the log; everything before came at once."""

    class Slow(MemoryStore):
        written = False

        async def append(self, batch):
            await settled()  # everybody else goes on
            first = await super().append(batch)
            Slow.written = True
            return first

    with running(upstreams(sims, "deepseek"), store=Slow) as gateway, stream(gateway) as reply:
        seen = b""
        for chunk in reply.iter_raw():
            seen += chunk
            if b"[DONE]" in seen:
                assert Slow.written
                break


def test_a_dead_store_takes_nothing_down(sims):
    from thoughtline.errors import Unavailable
    from thoughtline.stores.cached import CachedStore

    class Dead(MemoryStore):
        async def append(self, batch):
            raise Unavailable("the disk is full")

        async def find(self, tenant, names):
            raise Unavailable("the disk is full")

    with running(
        upstreams(sims, "deepseek"), store=lambda: CachedStore(Dead(), retry=60)
    ) as gateway:
        replies = talk(f"{gateway.url}/u/deepseek", 6)
        assert [r.status_code for r in replies] == [200] * 6
        assert replies[-1].headers["x-sim-thoughts"].startswith("exact=5")  # from memory
        assert gateway.notes.losses


def test_notes_are_an_observer():
    assert {"replayed", "recovered", "ended", "lost"} <= set(dir(RecordingObserver))


@pytest.mark.slow
def test_a_json_array_that_grows_is_not_broken_by_keep_alives():
    """Gemini streams an array unless asked for events; what is no JSON has no place in it."""
    path = "/u/gemini/v1beta/models/gemini-3-pro-preview:streamGenerateContent"
    with serving("gemini", pace=Pace(delay=0.03)) as slow:  # noqa: SIM117
        with running(upstreams(slow, "gemini"), options=ProxyOptions(keepalive=0.001)) as gateway:
            reply = httpx2.post(gateway.url + path, json=GEMINI, headers=KEY, timeout=60)
    assert reply.status_code == 200, reply.text
    assert len(reply.json()) > 1

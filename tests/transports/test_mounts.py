"""The walk without a server: what callers of the transports get, and what becomes of the rest."""

import asyncio
import gc
import json
import logging
import threading

import httpx2
import pytest

from gateways import Notes
from thoughtline.errors import Unavailable
from thoughtline.sessions import Session
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import serving
from thoughtline.transports import AsyncTransport, Transport

TOOLS = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
KEY = {"authorization": "Bearer a-key"}
URL = "https://api.deepseek.com/v1/chat/completions"


@pytest.fixture(scope="module")
def sims():
    with serving("deepseek") as served:
        yield served


def body(messages, **more):
    return {"model": "deepseek-v4-pro", "messages": messages, "tools": TOOLS, **more}


def grown(messages, reply):
    """The history after a reply, as a client writes it that throws thoughts away."""
    message = reply.json()["choices"][0]["message"]
    message.pop("reasoning_content", None)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message.get("tool_calls") or []
    ]
    return [*messages, message, *(results or [{"role": "user", "content": "go on"}])]


def talk(client, url, exchanges, *, opening="Please mend a.txt", headers=KEY):
    messages, replies = [{"role": "user", "content": opening}], []
    for _ in range(exchanges):
        replies.append(client.post(url, json=body(messages), headers=headers))
        if replies[-1].status_code != 200:
            break
        messages = grown(messages, replies[-1])
    return replies


def events(count=3, *, done=True):
    """A stream, event by event."""
    deltas = [{"reasoning_content": "hm"}, *[{"content": str(n)} for n in range(count)]]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    texts = [json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if done else [])
    return [f"data: {text}\n\n".encode() for text in texts]


class Stream(httpx2.AsyncByteStream):
    """A body that a test can look into."""

    def __init__(self, chunks, *, failure=None, gate=None):
        self.chunks, self.failure, self.gate = chunks, failure, gate
        self.given, self.closed = 0, False

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk
            self.given += 1
            if self.gate is not None:
                await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def aclose(self):
        self.closed = True


class Upstream(httpx2.AsyncBaseTransport):
    """An inner transport that says what a test wants."""

    def __init__(self, *answers):
        self.answers, self.requests, self.closed = list(answers), [], False

    async def handle_async_request(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Stream):
            head = {"content-type": "text/event-stream"}
            return httpx2.Response(200, headers=head, stream=answer)
        return answer

    async def aclose(self):
        self.closed = True


def client(inner, store=None, **options):
    mount = AsyncTransport(store or MemoryStore(), inner=inner, **options)
    return httpx2.AsyncClient(transport=mount)


def asked(**more):
    return {"json": body([{"role": "user", "content": "hi"}], **more), "headers": KEY}


async def only_turn(store):
    (summary,) = await store.sessions()
    log = await store.read(summary.session)
    return Session(summary.session).extend(log).turns[0]


# -- thoughts come back ----------------------------------------------------------------------------


def test_without_us_it_is_refused_and_with_us_it_is_not(sims, tmp_path):
    url = sims.url("deepseek") + "/chat/completions"
    with httpx2.Client() as bare:
        assert talk(bare, url, 6, opening="alone")[-1].status_code == 400
    mount = Transport(f"sqlite:///{tmp_path}/thoughts.db", policy="deepseek")
    with httpx2.Client(transport=mount) as kept:
        replies = talk(kept, url, 8)
    assert [reply.status_code for reply in replies] == [200] * 8
    assert replies[-1].headers["x-sim-thoughts"].startswith("exact=7; altered=0; missing=0")
    assert replies[-1].headers["x-thoughtline-replay"].startswith("restored=7; missed=0")


def test_another_process_goes_on_where_this_one_ended(sims, tmp_path):
    """Same file, same secret beside it: the same tenant, and its thoughts."""
    url, messages = sims.url("deepseek") + "/chat/completions", [{"role": "user", "content": "on"}]
    for number in range(4):
        mount = Transport(f"sqlite:///{tmp_path}/thoughts.db", policy="deepseek")
        with httpx2.Client(transport=mount) as restarted:
            reply = restarted.post(url, json=body(messages), headers=KEY)
        assert reply.headers["x-sim-thoughts"].startswith(f"exact={number}; altered=0; missing=0")
        messages = grown(messages, reply)


async def test_the_policy_is_the_hosts():
    inner = Upstream(Stream(events()))
    store = MemoryStore()
    async with client(inner, store) as kept:
        await kept.post(URL, **asked(stream=True))
    turn = await only_turn(store)
    assert (turn.target.provider, turn.target.endpoint) == ("deepseek", "https://api.deepseek.com")


def test_a_policy_that_is_none_is_said_at_once():
    with pytest.raises(ValueError, match="did you mean deepseek"):
        Transport("memory://", policy="deepsek")


async def test_two_credentials_share_nothing_unless_they_are_one_account(sims):
    url = sims.url("deepseek") + "/chat/completions"
    for account, restored in (("", "restored=0"), ("me", "restored=1")):
        mount = AsyncTransport("memory://", policy="deepseek", account=account)
        async with httpx2.AsyncClient(transport=mount) as kept:
            messages = [{"role": "user", "content": f"who {account}"}]
            first = await kept.post(url, json=body(messages), headers=KEY)
            second = await kept.post(
                url,
                json=body(grown(messages, first)),
                headers={"authorization": "Bearer another-key"},
            )
        assert second.headers["x-thoughtline-replay"].startswith(restored)


async def test_strict_is_an_error_instead_of_a_placeholder():
    inner = Upstream(Stream(events()))
    unknown = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    async with client(inner, strict=True) as kept:
        reply = await kept.post(
            URL, json=body([*unknown, {"role": "user", "content": "c"}]), headers=KEY
        )
    assert reply.status_code == 409 and not inner.requests


async def test_a_refused_thought_gets_one_remedy():
    """The healing of the gateway: the provider's words, one change, one retry."""
    words = "Missing `reasoning_content` field in the assistant message at message index 1."
    refusal = httpx2.Response(400, json={"error": {"message": words}})
    inner = Upstream(refusal, Stream(events()))
    unknown = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    sent = body([*unknown, {"role": "user", "content": "c"}])
    async with client(inner, policy="generic") as kept:
        reply = await kept.post("http://127.0.0.1/v1/chat/completions", json=sent, headers=KEY)
    assert reply.status_code == 200
    first, second = (json.loads(request.content)["messages"][1] for request in inner.requests)
    assert "reasoning_content" not in first and "reasoning_content" in second


# -- bytes -----------------------------------------------------------------------------------------


async def test_a_request_that_needs_nothing_goes_on_as_it_is():
    odd = b'{ "model":"deepseek-v4-pro",\n "messages" : [ {"role":"user","content":"1.10"} ] }'
    inner = Upstream(Stream(events()))
    async with client(inner) as kept:
        await kept.post(
            URL + "?a=%2F&b", content=odd, headers={**KEY, "x-own": "kept"}, timeout=7.5
        )
    (sent,) = inner.requests
    assert sent.content == odd
    assert str(sent.url) == URL + "?a=%2F&b"
    assert (sent.headers["x-own"], sent.headers["host"]) == ("kept", "api.deepseek.com")
    assert sent.headers["content-length"] == str(len(odd))
    assert sent.extensions["timeout"]["read"] == 7.5


async def test_chunks_come_as_they_are_and_when_they_are():
    gate = asyncio.Event()
    gate.set()
    stream = Stream(events(), gate=gate)
    async with client(Upstream(stream)) as kept, kept.stream("POST", URL, **asked()) as reply:
        chunks = []
        async for chunk in reply.aiter_raw():
            assert stream.given == len(chunks)  # the next one is not even asked for
            chunks.append(chunk)
    assert chunks == events()


async def test_the_end_waits_for_the_ledger_and_nothing_else_does():
    class Slow(MemoryStore):
        release = asyncio.Event()

        async def append(self, batch):
            await self.release.wait()
            return await super().append(batch)

    store = Slow()
    async with client(Upstream(Stream(events())), store, commit_wait=60) as kept:
        async with kept.stream("POST", URL, **asked(stream=True)) as reply:
            chunks = reply.aiter_raw()
            early = [await anext(chunks) for _ in events()[:-1]]
            last = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0.05)
            assert not last.done()
            store.release.set()
            assert [*early, await last] == events()
        assert (await only_turn(store)).outcome == "completed"


# -- errors, and callers who leave -----------------------------------------------------------------


@pytest.mark.parametrize("error", [httpx2.ConnectError("no route"), httpx2.ReadTimeout("late")])
async def test_what_the_inner_transport_raises_is_raised(error):
    async with client(Upstream(error)) as kept:
        with pytest.raises(type(error)) as caught:
            await kept.post(URL, **asked())
    assert caught.value is error


async def test_a_stream_that_breaks_off_is_raised_and_logged():
    error, store = httpx2.ReadError("broken"), MemoryStore()
    async with (
        client(Upstream(Stream(events()[:2], failure=error)), store) as kept,
        kept.stream("POST", URL, **asked(stream=True)) as reply,
    ):
        chunks = reply.aiter_raw()
        seen = [await anext(chunks), await anext(chunks)]
        with pytest.raises(httpx2.ReadError) as caught:
            await anext(chunks)
    assert caught.value is error and seen == events()[:2]
    assert (await only_turn(store)).outcome == "aborted"


async def test_a_refusal_passes_unchanged():
    refusal = httpx2.Response(
        429, json={"error": {"message": "slow"}}, headers={"retry-after": "9"}
    )
    async with client(Upstream(refusal)) as kept:
        reply = await kept.post(URL, **asked())
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "9")
    assert reply.content == refusal.content


@pytest.mark.parametrize("replay", ["on", "off"])
async def test_a_caller_who_leaves_frees_the_upstream(replay):
    stream, store = Stream(events() * 50, gate=asyncio.Event()), MemoryStore()
    async with client(Upstream(stream), store) as kept:
        sent = asked(stream=True)
        sent["headers"] = {**KEY, "x-thoughtline-replay": replay}
        async with kept.stream("POST", URL, **sent) as reply:
            await anext(reply.aiter_raw())
        assert stream.closed and stream.given <= 1
    if replay == "on":
        assert (await only_turn(store)).outcome == "aborted"


async def test_a_caller_who_is_cancelled_has_left():
    class Never(httpx2.AsyncBaseTransport):
        cancelled = False

        async def handle_async_request(self, request):
            try:
                await asyncio.Event().wait()
            finally:
                Never.cancelled = True

    async with client(Never()) as kept:
        asking = asyncio.ensure_future(kept.post(URL, **asked()))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert Never.cancelled


async def test_closing_lets_go_of_open_responses():
    stream, store, notes = Stream(events() * 50, gate=asyncio.Event()), MemoryStore(), Notes()
    inner = Upstream(stream)
    kept = client(inner, store, observer=notes)
    reply = await kept.send(kept.build_request("POST", URL, **asked(stream=True)), stream=True)
    await anext(reply.aiter_raw())
    await kept.aclose()
    assert stream.closed and inner.closed
    assert (499, "the client left") in notes.walks


async def test_a_dead_store_takes_nothing_down(caplog):
    class Dead(MemoryStore):
        async def append(self, batch):
            raise Unavailable("the disk is full")

        async def find(self, tenant, names):
            raise Unavailable("the disk is full")

    async with client(Upstream(Stream(events())), Dead()) as kept:
        with caplog.at_level(logging.WARNING, "thoughtline"):
            reply = await kept.post(URL, **asked(stream=True))
    assert reply.content == b"".join(events())
    assert "the disk is full" in caplog.text


# -- what has no history ---------------------------------------------------------------------------


def test_everything_else_goes_straight_on():
    """Also a body that is made while it is sent, and one that no dialect can read."""
    seen = []

    def answer(request):
        seen.append((request.method, request.url.path, request.read()))
        return httpx2.Response(200, text="fine")

    mount = Transport("memory://", inner=httpx2.MockTransport(answer))
    with httpx2.Client(transport=mount, base_url="https://api.openai.com") as kept:
        assert kept.get("/v1/models").text == "fine"
        assert kept.post("/v1/files", content=iter([b"a", b"b"])).text == "fine"
        assert kept.post("/v1/chat/completions", content=b'{"model":').text == "fine"
    assert seen == [
        ("GET", "/v1/models", b""),
        ("POST", "/v1/files", b"ab"),
        ("POST", "/v1/chat/completions", b'{"model":'),
    ]


# -- without an event loop -------------------------------------------------------------------------


class Plain(httpx2.BaseTransport):
    """An inner transport that knows no loop."""

    def __init__(self):
        self.threads, self.closed = set(), False

    def handle_request(self, request):
        self.threads.add(threading.current_thread().name)
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, content=iter(events()))

    def close(self):
        self.closed = True


def running():
    return [t for t in threading.enumerate() if t.name == "thoughtline-transport"]


def test_a_plain_inner_transport_is_called_in_threads():
    inner = Plain()
    with httpx2.Client(transport=Transport("memory://", inner=inner)) as kept:
        with kept.stream("POST", URL, **asked(stream=True)) as reply:
            assert b"".join(reply.iter_raw()) == b"".join(events())
        assert threading.current_thread().name not in inner.threads
    assert inner.closed


def test_what_is_raised_on_the_loop_is_raised_here():
    error = httpx2.ConnectError("no route")
    kept = httpx2.Client(transport=Transport("memory://", inner=Upstream(error)))
    with kept, pytest.raises(httpx2.ConnectError) as caught:
        kept.post(URL, **asked())
    assert caught.value is error


def test_the_thread_starts_with_the_first_request_and_ends_with_the_last_user():
    mount = Transport("memory://", inner=Upstream(Stream(events())))
    assert not running()
    kept = httpx2.Client(transport=mount)
    kept.post(URL, **asked(stream=True))
    (thread,) = running()
    del mount, kept
    gc.collect()
    thread.join(10)
    assert not running()


def test_closed_is_closed():
    mount = Transport("memory://", inner=Upstream(Stream(events())))
    with httpx2.Client(transport=mount) as kept:
        kept.post(URL, **asked(stream=True))
    mount.close()
    with pytest.raises(RuntimeError, match="closed"):
        mount.handle_request(httpx2.Request("POST", URL, **asked()))


def test_many_threads_share_one(sims):
    url = sims.url("deepseek") + "/chat/completions"
    replies = {}
    with httpx2.Client(transport=Transport("memory://", policy="deepseek"), timeout=30) as kept:

        def one(number):
            replies[number] = talk(kept, url, 4, opening=f"thread {number}")

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    audits = {talked[-1].headers["x-sim-thoughts"] for talked in replies.values()}
    assert audits == {"exact=3; altered=0; missing=0; misplaced=0; foreign=0"}

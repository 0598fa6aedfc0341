"""One request through a transport: chunks, errors, and callers who leave."""

import asyncio

import httpx2
import pytest

from support.gateway_server import RecordingObserver
from support.loop_clock import settled
from support.transports import (
    KEY,
    URL,
    Stream,
    Upstream,
    asked,
    client,
    events,
    only_turn,
)
from thoughtline.stores.memory import MemoryStore


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


async def test_the_end_waits_for_the_commit_and_nothing_else_does():
    class Slow(MemoryStore):
        asked, release = asyncio.Event(), asyncio.Event()

        async def append(self, batch):
            self.asked.set()
            await self.release.wait()
            return await super().append(batch)

    store = Slow()
    async with client(Upstream(Stream(events())), store, commit_wait=60) as kept:
        async with kept.stream("POST", URL, **asked(stream=True)) as reply:
            chunks = reply.aiter_raw()
            early = [await anext(chunks) for _ in events()[:-1]]
            last = asyncio.ensure_future(anext(chunks))
            await store.asked.wait()
            await settled()
            assert not last.done()
            store.release.set()
            assert [*early, await last] == events()
        assert (await only_turn(store)).outcome == "completed"


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
    assert (await only_turn(store)).outcome == "failed"


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
        asked, cancelled = asyncio.Event(), False

        async def handle_async_request(self, request):
            Never.asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                Never.cancelled = True

    async with client(Never()) as kept:
        asking = asyncio.ensure_future(kept.post(URL, **asked()))
        await Never.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert Never.cancelled


async def test_closing_lets_go_of_open_responses():
    stream, store, notes = (
        Stream(events() * 50, gate=asyncio.Event()),
        MemoryStore(),
        RecordingObserver(),
    )
    inner = Upstream(stream)
    kept = client(inner, store, observer=notes)
    reply = await kept.send(kept.build_request("POST", URL, **asked(stream=True)), stream=True)
    await anext(reply.aiter_raw())
    await kept.aclose()
    assert stream.closed and inner.closed
    assert (499, "the client left") in notes.records

"""A stream as a plain wire, and the same requests over HTTP."""

import json

from support.websocket_client import SocketTurnLoop
from thoughtline.dialects.sse import SseParser
from thoughtline.testing import serving, simulator
from thoughtline.wires.base import Outbound, read_up_to
from thoughtline.wires.websocket.continuation import SendReason
from thoughtline.wires.websocket.response import ResponseState
from wires.websocket.simulated import clean, kinds, wired


async def test_without_a_websocket_the_same_goes_over_http(sims):
    async with wired() as wire:
        talker = SocketTurnLoop(
            sims.url("deepseek-responses"), wire, say="http", model="deepseek-v4-flash"
        )
        await talker.turns_of(4)
        assert talker.answer.sent.transport == "http"
        assert talker.answer.sent.plan.reason is SendReason.UNAVAILABLE
        assert talker.answer.state is ResponseState.COMPLETED
        assert not talker.answer.commit()
        assert clean(sims["deepseek-responses"])


async def test_a_stream_looks_like_any_other_wire(sims):
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="plain").turns_of(2)
        adapter = wire.at(talker.position())
        async with adapter.send(talker.outbound()) as inbound:
            assert inbound.status == 200
            assert dict(inbound.headers)["content-type"] == "text/event-stream"
            events = [
                e.data for e in SseParser().feed(b"".join([c async for c in inbound.chunks()]))
            ]
        assert kinds(events)[-1] == "response.completed"
        assert adapter.sent.plan.reason is SendReason.CONTINUED
        assert adapter.commit()
        assert wire.main.continuation.baseline is not None


async def test_a_refusal_looks_like_one_over_http(sims):
    async with wired() as wire:
        talker = SocketTurnLoop(sims.url("openai"), wire, model="no-such-model")
        async with wire.at(talker.position()).send(talker.outbound()) as inbound:
            assert inbound.status == 400
            assert (
                json.loads(await read_up_to(inbound, 1 << 16))["error"]["code"] == "model_not_found"
            )


async def test_a_wrong_key_is_answered_in_the_providers_words(sims):
    sim = simulator("openai", account="the right one")
    with serving(sim) as served:
        async with wired() as wire:
            talker = SocketTurnLoop(served.url("openai"), wire, key="a wrong one")
            await talker.turn()
            assert talker.answer.status == 401
            assert "Incorrect API key" in json.loads(talker.shown[0])["error"]["message"]


async def test_a_body_that_asks_for_no_stream_gets_one_over_http(sims):
    async with wired() as wire:
        body = json.dumps({"model": "deepseek-v4-flash", "input": "hi", "store": False}).encode()
        headers = [("authorization", "Bearer k")]
        url = sims.url("deepseek-responses") + "/responses"
        outbound = Outbound(method="POST", url=url, headers=headers, body=body)
        talker = SocketTurnLoop(sims.url("deepseek-responses"), wire)
        async with wire.send(outbound, talker.position()) as answer:
            assert kinds([event async for event in answer])[-1] == "response.completed"

"""The WebSocket wire against strict simulated servers: only new items are sent, and HTTP steps in."""

from itertools import pairwise

import pytest

from support.websocket_client import SocketTurnLoop
from thoughtline.errors import WireError
from thoughtline.testing import FrozenClock, serving
from thoughtline.wires.websocket.connection import UpgradeRefused, WebSocketConnector
from thoughtline.wires.websocket.continuation import SendReason
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions
from wires.websocket.simulated import clean, counted, wired


@pytest.mark.parametrize("name", ["openai", "openai-ws", "codex", "xai"])
async def test_after_the_first_request_only_new_items_are_sent(sims, name):
    model = "grok-4.5" if name == "xai" else "gpt-5.6"
    async with wired() as wire:
        talker = SocketTurnLoop(sims.url(name), wire, say=f"go {name}", model=model)
        for number in range(12):
            await talker.turn()
            expected = SendReason.CONTINUED if number else SendReason.NO_BASELINE
            assert talker.answer.sent.plan.reason is expected
            assert number == 0 or clean(sims[name])
        assert sims[name].requests[-1].audit.exact == 16 - 1  # one thought each, some turns two
        assert wire.stats.reasons == {SendReason.NO_BASELINE: 1, SendReason.CONTINUED: 11}
        assert wire.stats.size < wire.stats.full_size / 5
        assert talker.answer.sent.size == len(sims[name].requests[-1].request.body)


@pytest.mark.slow
async def test_a_hundred_turns_cost_a_few_hundredths_of_full_sends():
    """At most 3 %, and as much for each quarter of the session: a line, no curve."""
    marks = [0]
    with serving("openai") as own:
        wire = counted()
        talker = SocketTurnLoop(own.url("openai"), wire, say="a hundred times " + "x" * 600)
        for _ in range(4):
            for _ in range(25):
                await talker.turn()
            marks.append(wire.stats.size)
        quarters = [after - before for before, after in pairwise(marks)]
        assert wire.stats.size <= 0.03 * wire.stats.full_size
        assert max(quarters) <= 1.5 * min(quarters)
        await wire.close()


async def test_a_changed_field_or_an_edited_history_goes_out_whole(sims):
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="fields").turns_of(3)
        talker.system = "be verbose"
        await talker.turn()
        assert str(talker.answer.sent.plan) == "fields_changed(instructions)"
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.CONTINUED
        del talker.turns[-1]
        talker.heard = talker.turns.pop().input
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.BRANCH_CHANGED
        assert clean(sims["openai"])


async def test_a_warm_up_is_gone_on_from(sims):
    async with wired() as wire:
        talker = SocketTurnLoop(sims.url("openai"), wire, say="warm")
        assert await wire.warm(talker.outbound(), talker.position())
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.CONTINUED
        assert sims["openai"].requests[-1].json["input"] == []
        await talker.turn()
        assert clean(sims["openai"])


async def test_a_refused_upgrade_is_believed_for_a_while_and_then_tried_again(sims):
    clock = FrozenClock()
    statuses = [426, 426]
    connected = []

    async def connect(url, headers):
        connected.append(url)
        if statuses:
            raise UpgradeRefused(statuses.pop())
        return await WebSocketConnector()(url, headers)

    async with wired(clock=clock, connect=connect) as wire:
        talker = SocketTurnLoop(sims.url("openai"), wire, say="upgrade")
        seen = []
        for seconds in (0, 10, 300, 10, 300, 0):
            clock.advance(seconds)
            await talker.turn()
            seen.append((talker.answer.sent.transport, len(connected)))
        assert seen == [
            ("http", 1),
            ("http", 1),
            ("http", 2),
            ("http", 2),
            ("websocket", 3),
            ("websocket", 3),
        ]
        assert talker.answer.sent.plan.reason is SendReason.CONTINUED
        assert clean(sims["openai"])


async def test_cooldowns_grow_with_failures_and_end_with_a_success(sims):
    clock = FrozenClock()
    sim = sims["openai"]
    async with wired(clock=clock) as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="rests").turns_of(1)
        sim.fail_next("cut:1", times=2)
        await talker.turn()
        assert [sent.transport for sent in talker.attempts] == [
            "websocket",
            "websocket",
            "http",
        ]
        await talker.turn()
        assert [sent.transport for sent in talker.attempts] == ["http"]
        clock.advance(6)
        sim.fail_next("cut:1")
        await talker.turn()
        assert [sent.transport for sent in talker.attempts] == ["websocket", "http"]
        clock.advance(6)
        await talker.turn()
        assert talker.answer.sent.transport == "http"
        clock.advance(6)
        await talker.turn()
        assert talker.answer.sent.transport == "websocket"
        assert wire.breaker.failures == 0
        assert clean(sim)


async def test_without_any_way_out_it_tries_a_few_times_and_fails():
    connected = []

    async def connect(url, headers):
        connected.append(url)
        raise WireError("nobody there")

    wire = ResponsesWire(connect=connect, options=WebSocketOptions(retry_delay=0.0))
    with pytest.raises(WireError, match="nobody there"):
        await SocketTurnLoop("http://127.0.0.1:9/v1", wire).turn()
    assert len(connected) == 4
    await wire.close()


async def test_everything_that_goes_out_is_told(sims):
    told = []
    async with wired(on_send=told.append) as wire:
        await SocketTurnLoop(sims.url("openai"), wire, say="watch").turns_of(3)
    assert [str(sent.plan) for sent in told] == ["no_baseline", "continued", "continued"]
    assert [sent.transport for sent in told] == ["websocket"] * 3
    assert told[0].size == told[0].full_size
    assert told[2].size < told[2].full_size

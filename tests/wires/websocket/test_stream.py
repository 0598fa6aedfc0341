"""Faults and forks: nothing is lost, shown twice or missing from the context, whatever breaks."""

import asyncio
import json

import pytest

from support.waiting import eventually
from support.websocket_client import SocketTurnLoop
from thoughtline.errors import WireError
from thoughtline.testing import serving, simulator
from thoughtline.wires.websocket.continuation import SendReason
from thoughtline.wires.websocket.response import ResponseState
from thoughtline.wires.websocket.wire import WebSocketOptions
from wires.websocket.simulated import QUIET, clean, kinds, wired

# --- Faults ---------------------------------------------------------------------------------------


async def boundaries(sims, name="openai"):
    """How many messages the third turn of a conversation has."""
    sims[name].emitted.clear()  # how many thoughts there were decides how the next one looks
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url(name), wire, say="count").turns_of(3)
        return len(talker.shown)


@pytest.fixture
def plain():
    """A simulator whose answers to the same turn are as long as one another."""
    with serving(simulator("openai", realistic=False)) as served:
        yield served


@pytest.mark.parametrize("fault", ["cut", "garbage"])
async def test_broken_at_every_message_boundary(plain, fault):
    """Before any output the request is sent again unnoticed; after it the turn fails, once."""
    count = await boundaries(plain)
    assert count > 10
    sim = plain["openai"]
    for at in range(count + 1):
        sim.emitted.clear()
        async with wired() as wire:
            talker = await SocketTurnLoop(plain.url("openai"), wire, say=f"{fault} {at}").turns_of(
                2
            )
            sim.fail_next(f"{fault}:{at}")
            broke = False
            try:
                await talker.turn()
            except WireError:
                broke = True
            readable = [event for event in talker.shown if event.endswith(b"}")]
            told = kinds(readable)
            assert told.count("response.created") <= 1
            numbers = [json.loads(event)["sequence_number"] for event in readable]
            assert numbers == list(range(len(numbers))), "shown twice, or a hole in it"
            if fault == "cut":
                assert broke == (QUIET < at < count)
                assert not broke or len(told) == at
            else:
                assert not broke
            if not broke:
                assert told[-1] == "response.completed"
            await talker.turn()  # the same again after a failure, else the next one
            assert talker.answer.state is ResponseState.COMPLETED
            if broke:
                assert talker.answer.sent.plan.reason is SendReason.RECONNECTED
            assert clean(sim)


async def test_an_error_instead_of_an_answer(sims):
    sim = sims["openai"]
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="error").turns_of(2)
        sim.fail_next("500")
        await talker.turn()  # the continuation is refused, the whole is not
        assert [str(sent.plan) for sent in talker.attempts] == ["continued", "error"]
        assert talker.answer.state is ResponseState.COMPLETED
        assert clean(sim)
        sim.fail_next("500", times=2)
        await talker.turn()
        assert (talker.answer.status, kinds(talker.shown)) == (500, ["error"])
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.ERROR
        assert talker.answer.state is ResponseState.COMPLETED
        assert clean(sim)
        sim.fail_next("429")
        await talker.turn()  # nothing would be gained by asking again at once
        assert talker.answer.status == 429
        assert len(talker.attempts) == 1


async def test_the_servers_limit_is_reached():
    now = [1000.0]
    sim = simulator("openai", clock=lambda: now[0])
    with serving(sim) as served:
        async with wired() as wire:
            talker = await SocketTurnLoop(served.url("openai"), wire).turns_of(2)
            now[0] += 3601
            await talker.turn()
            assert [str(sent.plan) for sent in talker.attempts] == [
                "continued",
                "connection_limit",
            ]
            assert clean(sim)
            await talker.turn()
            assert talker.answer.sent.plan.reason is SendReason.CONTINUED


async def test_a_server_that_forgot(sims):
    sim = sims["openai"]
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="forget").turns_of(3)
        sim.sockets[-1].lanes[None].latest = None
        before = len(sim.sockets)
        await talker.turn()
        assert [str(sent.plan) for sent in talker.attempts] == ["continued", "not_found"]
        assert kinds(talker.shown).count("response.created") == 1
        assert len(sim.sockets) == before  # the connection is as good as ever
        assert clean(sim)


@pytest.mark.parametrize("at", [0, 1, 2, 3, 8])
async def test_a_server_that_falls_silent(sims, at, loop_clock):
    async with wired(options=WebSocketOptions(idle_timeout=60.0)) as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say=f"stall {at}").turns_of(1)
        sims["openai"].fail_next(f"stall:{at}")
        turn = asyncio.create_task(talker.turn())
        await eventually(lambda: not sims["openai"]._faults)
        await eventually(lambda: at <= QUIET or len(talker.shown) == at)
        await loop_clock.advance(60.0)
        if at <= QUIET:
            await turn
            assert [str(s.plan) for s in talker.attempts] == ["continued", "reconnected"]
        else:
            with pytest.raises(WireError, match="silent"):
                await turn
            assert len(talker.shown) == at
            await talker.turn()
        assert talker.answer.state is ResponseState.COMPLETED
        assert clean(sims["openai"])


async def test_leaving_early_closes_the_connection(sims):
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="cancel").turns_of(1)
        before = len(sims["openai"].sockets)
        await talker.turn(leave=5)
        assert talker.answer.state is ResponseState.OPEN
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.CANCELLED
        assert len(sims["openai"].sockets) == before + 1
        assert clean(sims["openai"])


async def test_a_task_that_is_cancelled_while_it_waits_leaves_nothing_behind(sims):
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="cancelled").turns_of(1)
        sims["openai"].fail_next("stall:1")
        task = asyncio.ensure_future(talker.turn())
        await eventually(lambda: len(wire.stats.reasons) >= 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.CANCELLED
        assert clean(sims["openai"])


# --- Forks ----------------------------------------------------------------------------------------


async def test_a_fork_goes_on_in_a_stream_of_its_own(sims):
    sim = sims["openai-ws"]
    async with wired(options=WebSocketOptions(stream_ids=True)) as wire:
        main = await SocketTurnLoop(sims.url("openai-ws"), wire.main, say="fork").turns_of(3)
        sockets = len(sim.sockets)
        forks = [main.branch(wire.fork()) for _ in range(3)]
        await asyncio.gather(*(fork.turn() for fork in forks[:2]))
        assert [fork.answer.sent.plan.reason for fork in forks[:2]] == [SendReason.CONTINUED] * 2
        await main.turn()
        assert main.answer.sent.plan.reason is SendReason.CONTINUED
        await asyncio.gather(main.turn(), *(fork.turn() for fork in forks))
        assert [one.answer.sent.plan.reason for one in (main, *forks)] == [
            SendReason.CONTINUED,
            SendReason.CONTINUED,
            SendReason.CONTINUED,
            SendReason.SOURCE_ADVANCED,
        ]
        assert len(sim.sockets) == sockets
        assert all(clean(sim) for _ in forks)


async def test_a_source_waits_until_its_fork_is_under_way(sims):
    sim = sims["openai-ws"]
    async with wired(options=WebSocketOptions(stream_ids=True)) as wire:
        main = await SocketTurnLoop(sims.url("openai-ws"), wire.main, say="order").turns_of(2)
        fork = main.branch(wire.fork())
        await asyncio.gather(fork.turn(), main.turn())
        assert fork.answer.sent.plan.reason is SendReason.CONTINUED
        assert main.answer.sent.plan.reason is SendReason.CONTINUED
        order = [record.json.get("stream_id") for record in sim.requests[-2:]]
        assert order == ["fork-1", None]


@pytest.mark.parametrize("stream_ids", [True, False])
async def test_where_a_server_knows_no_streams_a_fork_gets_a_connection(sims, stream_ids):
    sim = sims["openai"]
    async with wired(options=WebSocketOptions(stream_ids=stream_ids)) as wire:
        main = await SocketTurnLoop(
            sims.url("openai"), wire.main, say=f"no streams {stream_ids}"
        ).turns_of(2)
        fork = main.branch(wire.fork())
        await fork.turn()
        assert fork.answer.sent.plan.reason is SendReason.STREAM_UNAVAILABLE
        assert clean(sim)
        await asyncio.gather(fork.turn(), main.turn())
        assert fork.answer.sent.plan.reason is SendReason.CONTINUED
        assert (
            main.answer.sent.plan.full is stream_ids
        )  # its response was taken for the fork's parent
        await asyncio.gather(fork.turn(), main.turn())
        assert main.answer.sent.plan.reason is SendReason.CONTINUED
        assert wire.stats.requests == (8 if stream_ids else 7)


async def test_leaving_a_stream_does_not_disturb_the_others(sims):
    async with wired(options=WebSocketOptions(stream_ids=True)) as wire:
        main = await SocketTurnLoop(
            sims.url("openai-ws"), wire.main, say="leave a stream"
        ).turns_of(2)
        fork = main.branch(wire.fork())
        async with fork.lane.send(fork.outbound(), fork.position()) as answer:
            running = asyncio.ensure_future(main.turn())
            await answer.__aiter__().__anext__()
            await eventually(lambda: len(wire.stats.reasons) >= 2 and wire.stats.requests >= 4)
        await running
        assert main.answer.state is ResponseState.COMPLETED
        await fork.turn()
        assert fork.answer.state is ResponseState.COMPLETED


@pytest.mark.timeout(60)
async def test_a_stream_whose_end_came_unread_is_free_when_it_is_left(sims):
    """Nobody waits for an end that others have read already."""
    async with wired(options=WebSocketOptions(stream_ids=True)) as wire:
        main = await SocketTurnLoop(sims.url("openai-ws"), wire.main, say="leave it late").turns_of(
            2
        )
        fork = main.branch(wire.fork())
        async with fork.lane.send(fork.outbound(), fork.position()) as answer:
            await anext(aiter(answer))
            await main.turns_of(2)  # reads for both: all of the fork's answer is here
            before = wire.stats.requests
            running = asyncio.ensure_future(main.turn())
            await eventually(lambda: wire.stats.requests != before)
        await fork.turn()
        await running
        assert fork.answer.state is ResponseState.COMPLETED
        assert (fork.answer.sent.transport, fork.answer.sent.plan.reason) == (
            "websocket",
            SendReason.CANCELLED,
        )
        await main.turn()
        assert main.answer.sent.plan.reason is SendReason.CONTINUED

"""The WebSocket wire against strict simulated servers, over real sockets: nothing is lost, nothing
is shown twice, and nothing of the context is missing, whatever breaks."""

import asyncio
import contextlib
import json
from itertools import pairwise

import pytest

from talkers import Talker
from thoughtline.dialects.sse import Splitter
from thoughtline.errors import WireError
from thoughtline.testing import FrozenClock, serving, simulator
from thoughtline.wires.answers import State
from thoughtline.wires.base import Outbound, beginning
from thoughtline.wires.connections import Dialling, Refused
from thoughtline.wires.continuation import Reason
from thoughtline.wires.fallback import over_http
from thoughtline.wires.http import HttpWire
from thoughtline.wires.websocket import Options, ResponsesWire

QUIET = 2  # events before any output: created, in_progress
CLEAN = "altered=0; missing=0; misplaced=0; foreign=0"


@pytest.fixture(scope="module")
def sims():
    lanes = simulator("openai-ws")
    with serving("openai", lanes, "codex", "xai", "azure", "deepseek-responses") as served:
        for name in ("openai", "openai-ws", "codex"):
            remember_sockets(served[name])
        yield served


def remember_sockets(sim):
    """Keep the server's side of every connection, so that a test can look into its memory."""
    connect, sim.sockets = sim.connect, []

    def connecting(request):
        opened = connect(request)
        sim.sockets.append(opened)
        return opened

    sim.connect = connecting


@contextlib.asynccontextmanager
async def wired(**how):
    """A wire with a way out over HTTP."""
    http = HttpWire()
    wire = ResponsesWire(fallback=over_http(http, Splitter), **how)
    try:
        yield wire
    finally:
        await wire.close()
        await http.close()


def kinds(shown):
    return [json.loads(event)["type"] for event in shown]


def clean(sim):
    """What the server says of the thoughts it got back with the last request."""
    audit = sim.requests[-1].audit
    return str(audit).endswith(CLEAN) and audit.exact


# --- Continuation --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "openai-ws", "codex", "xai"])
async def test_after_the_first_request_only_new_items_are_sent(sims, name):
    model = "grok-4.5" if name == "xai" else "gpt-5.6"
    async with wired() as wire:
        talker = Talker(sims.url(name), wire, say=f"go {name}", model=model)
        for number in range(12):
            await talker.turn()
            expected = Reason.CONTINUED if number else Reason.NO_BASELINE
            assert talker.answer.sent.plan.reason is expected
            assert number == 0 or clean(sims[name])
        assert sims[name].requests[-1].audit.exact == 16 - 1  # one thought each, some turns two
        assert wire.tally.reasons == {Reason.NO_BASELINE: 1, Reason.CONTINUED: 11}
        assert wire.tally.size < wire.tally.whole / 5
        assert talker.answer.sent.size == len(sims[name].requests[-1].request.body)


@pytest.mark.slow
async def test_a_hundred_turns_cost_a_few_hundredths_of_full_sends():
    """At most 3 %, and as much for each quarter of the session: a line, no curve."""
    marks = [0]
    with serving("openai") as own:
        wire = ResponsesWire()
        talker = Talker(own.url("openai"), wire, say="a hundred times " + "x" * 600)
        for _ in range(4):
            for _ in range(25):
                await talker.turn()
            marks.append(wire.tally.size)
        quarters = [after - before for before, after in pairwise(marks)]
        assert wire.tally.size <= 0.03 * wire.tally.whole
        assert max(quarters) <= 1.5 * min(quarters)
        await wire.close()


async def test_seals_that_come_with_the_last_event_only_are_no_hindrance(sims):
    sim = simulator("openai", late=True)
    with serving(sim) as late:
        async with wired() as wire:
            talker = await Talker(late.url("openai"), wire).turns_of(5)
            assert talker.answer.sent.plan.reason is Reason.CONTINUED
            assert clean(sim)


async def test_a_changed_field_or_an_edited_history_goes_out_whole(sims):
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="fields").turns_of(3)
        talker.system = "be verbose"
        await talker.turn()
        assert str(talker.answer.sent.plan) == "fields_changed(instructions)"
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.CONTINUED
        del talker.turns[-1]
        talker.heard = talker.turns.pop().input
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.BRANCH_CHANGED
        assert clean(sims["openai"])


async def test_another_account_gets_another_connection_and_a_renewed_token_does_not(sims):
    url = sims.url("openai")
    async with wired() as wire:
        before = len(sims["openai"].sockets)
        talker = await Talker(url, wire, say="accounts").turns_of(2)
        position, talker.position = talker.position, lambda: same
        same = position()
        talker.key = "key-one-renewed"  # the same account, says the guard
        await talker.turn(commit=False)
        assert len(sims["openai"].sockets) == before + 1
        other = Talker(url, wire, say="another account", key="key-two")
        await other.turn()
        assert other.answer.sent.plan.reason is Reason.GUARD_CHANGED or other.answer.sent.plan.full
        assert len(sims["openai"].sockets) == before + 2
        assert sims["openai"].requests[-1].account == "key-two"


async def test_what_is_not_committed_is_not_gone_on_from(sims):
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="uncommitted").turns_of(1)
        await talker.turn(commit=False)
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.UNCOMMITTED
        assert clean(sims["openai"])


async def test_a_warm_up_is_gone_on_from(sims):
    async with wired() as wire:
        talker = Talker(sims.url("openai"), wire, say="warm")
        assert await wire.warm(talker.outbound(), talker.position())
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.CONTINUED
        assert sims["openai"].requests[-1].json["input"] == []
        await talker.turn()
        assert clean(sims["openai"])


# --- Faults ---------------------------------------------------------------------------------------


async def boundaries(sims, name="openai"):
    """How many messages the third turn of a conversation has."""
    sims[name].emitted.clear()  # how many thoughts there were decides how the next one looks
    async with wired() as wire:
        talker = await Talker(sims.url(name), wire, say="count").turns_of(3)
        return len(talker.shown)


@pytest.mark.parametrize("fault", ["cut", "garbage"])
async def test_broken_at_every_message_boundary(sims, fault):
    """Before any output the request is sent again unnoticed; after it the turn fails, once."""
    count = await boundaries(sims)
    assert count > 10
    sim = sims["openai"]
    for at in range(count + 1):
        sim.emitted.clear()
        async with wired() as wire:
            talker = await Talker(sims.url("openai"), wire, say=f"{fault} {at}").turns_of(2)
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
            assert talker.answer.state is State.COMPLETED
            if broke:
                assert talker.answer.sent.plan.reason is Reason.RECONNECTED
            assert clean(sim)


async def test_an_error_instead_of_an_answer(sims):
    sim = sims["openai"]
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="error").turns_of(2)
        sim.fail_next("500")
        await talker.turn()  # the continuation is refused, the whole is not
        assert [str(sent.plan) for sent in talker.answer.attempts] == ["continued", "error"]
        assert talker.answer.state is State.COMPLETED
        assert clean(sim)
        sim.fail_next("500", times=2)
        await talker.turn()
        assert (talker.answer.status, kinds(talker.shown)) == (500, ["error"])
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.ERROR
        assert talker.answer.state is State.COMPLETED
        assert clean(sim)
        sim.fail_next("429")
        await talker.turn()  # nothing would be gained by asking again at once
        assert talker.answer.status == 429
        assert len(talker.answer.attempts) == 1


async def test_the_servers_limit_is_reached():
    now = [1000.0]
    sim = simulator("openai", clock=lambda: now[0])
    with serving(sim) as served:
        async with wired() as wire:
            talker = await Talker(served.url("openai"), wire).turns_of(2)
            now[0] += 3601
            await talker.turn()
            assert [str(sent.plan) for sent in talker.answer.attempts] == [
                "continued",
                "connection_limit",
            ]
            assert clean(sim)
            await talker.turn()
            assert talker.answer.sent.plan.reason is Reason.CONTINUED


async def test_a_server_that_forgot(sims):
    sim = sims["openai"]
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="forget").turns_of(3)
        sim.sockets[-1].lanes[None].latest = None
        before = len(sim.sockets)
        await talker.turn()
        assert [str(sent.plan) for sent in talker.answer.attempts] == ["continued", "not_found"]
        assert kinds(talker.shown).count("response.created") == 1
        assert len(sim.sockets) == before  # the connection is as good as ever
        assert clean(sim)


@pytest.mark.parametrize(
    ("reason", "pass_time"),
    [
        (Reason.SUSPENDED, lambda clock: setattr(clock, "_wall", clock.wall() + 900)),
        (Reason.AGED, lambda clock: clock.advance(55 * 60)),
    ],
)
async def test_a_machine_that_slept_and_a_connection_that_aged(sims, reason, pass_time):
    clock = FrozenClock()
    async with wired(clock=clock) as wire:
        talker = await Talker(sims.url("openai"), wire, say=reason.value).turns_of(2)
        before = len(sims["openai"].sockets)
        pass_time(clock)
        await talker.turn()
        assert [sent.plan.reason for sent in talker.answer.attempts] == [reason]
        assert len(sims["openai"].sockets) == before + 1
        assert clean(sims["openai"])


@pytest.mark.parametrize("at", [0, 1, 2, 3, 8])
async def test_a_server_that_falls_silent(sims, at):
    async with wired(options=Options(idle_timeout=0.3)) as wire:
        talker = await Talker(sims.url("openai"), wire, say=f"stall {at}").turns_of(1)
        sims["openai"].fail_next(f"stall:{at}")
        if at <= QUIET:
            await talker.turn()
            assert [str(s.plan) for s in talker.answer.attempts] == ["continued", "reconnected"]
        else:
            with pytest.raises(WireError, match="silent"):
                await talker.turn()
            assert len(talker.shown) == at
            await talker.turn()
        assert talker.answer.state is State.COMPLETED
        assert clean(sims["openai"])


async def test_leaving_early_closes_the_connection(sims):
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="cancel").turns_of(1)
        before = len(sims["openai"].sockets)
        await talker.turn(leave=5)
        assert talker.answer.state is State.OPEN
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.CANCELLED
        assert len(sims["openai"].sockets) == before + 1
        assert clean(sims["openai"])


async def test_a_task_that_is_cancelled_while_it_waits_leaves_nothing_behind(sims):
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="cancelled").turns_of(1)
        sims["openai"].fail_next("stall:1")
        task = asyncio.ensure_future(talker.turn())
        while len(wire.tally.reasons) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await talker.turn()
        assert talker.answer.sent.plan.reason is Reason.CANCELLED
        assert clean(sims["openai"])


# --- HTTP, and back -------------------------------------------------------------------------------


async def test_without_a_websocket_the_same_goes_over_http(sims):
    async with wired() as wire:
        talker = Talker(sims.url("deepseek-responses"), wire, say="http", model="deepseek-v4-flash")
        await talker.turns_of(4)
        assert talker.answer.sent.transport == "http"
        assert talker.answer.sent.plan.reason is Reason.UNAVAILABLE
        assert talker.answer.state is State.COMPLETED
        assert not talker.answer.commit()
        assert clean(sims["deepseek-responses"])


async def test_a_refused_upgrade_is_believed_for_a_while_and_then_tried_again(sims):
    clock = FrozenClock()
    statuses = [426, 426]
    dialled = []

    async def dial(url, headers):
        dialled.append(url)
        if statuses:
            raise Refused(statuses.pop())
        return await Dialling()(url, headers)

    async with wired(clock=clock, dial=dial) as wire:
        talker = Talker(sims.url("openai"), wire, say="upgrade")
        seen = []
        for seconds in (0, 10, 300, 10, 300, 0):
            clock.advance(seconds)
            await talker.turn()
            seen.append((talker.answer.sent.transport, len(dialled)))
        assert seen == [
            ("http", 1),
            ("http", 1),
            ("http", 2),
            ("http", 2),
            ("websocket", 3),
            ("websocket", 3),
        ]
        assert talker.answer.sent.plan.reason is Reason.CONTINUED
        assert clean(sims["openai"])


async def test_repeated_failures_rest_longer_each_time_and_are_forgiven(sims):
    clock = FrozenClock()
    sim = sims["openai"]
    async with wired(clock=clock) as wire:
        talker = await Talker(sims.url("openai"), wire, say="rests").turns_of(1)
        sim.fail_next("cut:1", times=2)
        await talker.turn()
        assert [sent.transport for sent in talker.answer.attempts] == [
            "websocket",
            "websocket",
            "http",
        ]
        await talker.turn()
        assert [sent.transport for sent in talker.answer.attempts] == ["http"]
        clock.advance(6)
        sim.fail_next("cut:1")
        await talker.turn()
        assert [sent.transport for sent in talker.answer.attempts] == ["websocket", "http"]
        clock.advance(6)
        await talker.turn()
        assert talker.answer.sent.transport == "http"
        clock.advance(6)
        await talker.turn()
        assert talker.answer.sent.transport == "websocket"
        assert wire.health.failures == 0
        assert clean(sim)


async def test_without_any_way_out_it_tries_a_few_times_and_fails():
    dialled = []

    async def dial(url, headers):
        dialled.append(url)
        raise WireError("nobody there")

    wire = ResponsesWire(dial=dial, options=Options(pause=0.0))
    with pytest.raises(WireError, match="nobody there"):
        await Talker("http://127.0.0.1:9/v1", wire).turn()
    assert len(dialled) == 4
    await wire.close()


async def test_a_server_that_is_not_there_is_a_wire_error():
    wire = ResponsesWire(options=Options(attempts=1))
    with pytest.raises(WireError, match=r"no WebSocket to http://127\.0\.0\.1:9/v1/responses"):
        await Talker("http://127.0.0.1:9/v1", wire).turn()
    await wire.close()


# --- Forks ----------------------------------------------------------------------------------------


async def test_a_fork_goes_on_in_a_lane_of_its_own(sims):
    sim = sims["openai-ws"]
    async with wired(options=Options(lanes=True)) as wire:
        main = await Talker(sims.url("openai-ws"), wire.main, say="fork").turns_of(3)
        sockets = len(sim.sockets)
        forks = [main.branch(wire.fork()) for _ in range(3)]
        await asyncio.gather(*(fork.turn() for fork in forks[:2]))
        assert [fork.answer.sent.plan.reason for fork in forks[:2]] == [Reason.CONTINUED] * 2
        await main.turn()
        assert main.answer.sent.plan.reason is Reason.CONTINUED
        await asyncio.gather(main.turn(), *(fork.turn() for fork in forks))
        assert [one.answer.sent.plan.reason for one in (main, *forks)] == [
            Reason.CONTINUED,
            Reason.CONTINUED,
            Reason.CONTINUED,
            Reason.SOURCE_ADVANCED,
        ]
        assert len(sim.sockets) == sockets
        assert all(clean(sim) for _ in forks)


async def test_a_source_waits_until_its_fork_is_under_way(sims):
    sim = sims["openai-ws"]
    async with wired(options=Options(lanes=True)) as wire:
        main = await Talker(sims.url("openai-ws"), wire.main, say="order").turns_of(2)
        fork = main.branch(wire.fork())
        await asyncio.gather(fork.turn(), main.turn())
        assert fork.answer.sent.plan.reason is Reason.CONTINUED
        assert main.answer.sent.plan.reason is Reason.CONTINUED
        order = [record.json.get("stream_id") for record in sim.requests[-2:]]
        assert order == ["fork-1", None]


@pytest.mark.parametrize("lanes", [True, False])
async def test_where_a_server_knows_no_lanes_a_fork_gets_a_connection(sims, lanes):
    sim = sims["openai"]
    async with wired(options=Options(lanes=lanes)) as wire:
        main = await Talker(sims.url("openai"), wire.main, say=f"laneless {lanes}").turns_of(2)
        fork = main.branch(wire.fork())
        await fork.turn()
        assert fork.answer.sent.plan.reason is Reason.LANE_UNAVAILABLE
        assert clean(sim)
        await asyncio.gather(fork.turn(), main.turn())
        assert fork.answer.sent.plan.reason is Reason.CONTINUED
        assert main.answer.sent.plan.full is lanes  # its response was taken for the fork's parent
        await asyncio.gather(fork.turn(), main.turn())
        assert main.answer.sent.plan.reason is Reason.CONTINUED
        assert wire.tally.requests == (8 if lanes else 7)


async def test_leaving_a_lane_does_not_disturb_the_others(sims):
    async with wired(options=Options(lanes=True)) as wire:
        main = await Talker(sims.url("openai-ws"), wire.main, say="leave a lane").turns_of(2)
        fork = main.branch(wire.fork())
        async with fork.lane.send(fork.outbound(), fork.position()) as answer:
            running = asyncio.ensure_future(main.turn())
            await answer.__aiter__().__anext__()
            while len(wire.tally.reasons) < 2 or wire.tally.requests < 4:
                await asyncio.sleep(0)
        await running
        assert main.answer.state is State.COMPLETED
        await fork.turn()
        assert fork.answer.state is State.COMPLETED


@pytest.mark.timeout(60)
async def test_a_lane_whose_end_came_unread_is_free_when_it_is_left(sims):
    """Nobody waits for an end that others have read already."""
    async with wired(options=Options(lanes=True)) as wire:
        main = await Talker(sims.url("openai-ws"), wire.main, say="leave it late").turns_of(2)
        fork = main.branch(wire.fork())
        async with fork.lane.send(fork.outbound(), fork.position()) as answer:
            await anext(aiter(answer))
            await main.turns_of(2)  # reads for both: all of the fork's answer is here
            before = wire.tally.requests
            running = asyncio.ensure_future(main.turn())
            while wire.tally.requests == before:
                await asyncio.sleep(0)
        await fork.turn()
        await running
        assert fork.answer.state is State.COMPLETED
        assert (fork.answer.sent.transport, fork.answer.sent.plan.reason) == (
            "websocket",
            Reason.CANCELLED,
        )
        await main.turn()
        assert main.answer.sent.plan.reason is Reason.CONTINUED


# --- Behind the plain port ------------------------------------------------------------------------


async def test_a_lane_looks_like_any_other_wire(sims):
    async with wired() as wire:
        talker = await Talker(sims.url("openai"), wire, say="plain").turns_of(2)
        placed = wire.at(talker.position())
        async with placed.send(talker.outbound()) as inbound:
            assert inbound.status == 200
            assert dict(inbound.headers)["content-type"] == "text/event-stream"
            events = [
                e.data for e in Splitter().feed(b"".join([c async for c in inbound.chunks()]))
            ]
        assert kinds(events)[-1] == "response.completed"
        assert placed.sent.plan.reason is Reason.CONTINUED
        assert placed.commit()
        assert wire.main.continuation.baseline is not None


async def test_a_refusal_looks_like_one_over_http(sims):
    async with wired() as wire:
        talker = Talker(sims.url("openai"), wire, model="no-such-model")
        async with wire.at(talker.position()).send(talker.outbound()) as inbound:
            assert inbound.status == 400
            assert (
                json.loads(await beginning(inbound, 1 << 16))["error"]["code"] == "model_not_found"
            )


async def test_a_wrong_key_is_answered_in_the_providers_words(sims):
    sim = simulator("openai", account="the right one")
    with serving(sim) as served:
        async with wired() as wire:
            talker = Talker(served.url("openai"), wire, key="a wrong one")
            await talker.turn()
            assert talker.answer.status == 401
            assert "Incorrect API key" in json.loads(talker.shown[0])["error"]["message"]


async def test_a_body_that_asks_for_no_stream_gets_one_over_http(sims):
    async with wired() as wire:
        body = json.dumps({"model": "deepseek-v4-flash", "input": "hi", "store": False}).encode()
        headers = [("authorization", "Bearer k")]
        url = sims.url("deepseek-responses") + "/responses"
        outbound = Outbound(method="POST", url=url, headers=headers, body=body)
        talker = Talker(sims.url("deepseek-responses"), wire)
        async with wire.send(outbound, talker.position()) as answer:
            assert kinds([event async for event in answer])[-1] == "response.completed"


async def test_everything_that_goes_out_is_told(sims):
    told = []
    async with wired(watch=told.append) as wire:
        await Talker(sims.url("openai"), wire, say="watch").turns_of(3)
    assert [str(sent.plan) for sent in told] == ["no_baseline", "continued", "continued"]
    assert [sent.transport for sent in told] == ["websocket"] * 3
    assert told[0].size == told[0].whole
    assert told[2].size < told[2].whole

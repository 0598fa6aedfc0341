"""What a response is continued from, and when it is not."""

from support.websocket_client import SocketTurnLoop
from thoughtline.testing import serving, simulator
from thoughtline.wires.websocket.continuation import SendReason
from wires.websocket.simulated import clean, wired


async def test_seals_that_come_with_the_last_event_only_are_no_hindrance(sims):
    sim = simulator("openai", late=True)
    with serving(sim) as late:
        async with wired() as wire:
            talker = await SocketTurnLoop(late.url("openai"), wire).turns_of(5)
            assert talker.answer.sent.plan.reason is SendReason.CONTINUED
            assert clean(sim)


async def test_what_is_not_committed_is_not_gone_on_from(sims):
    async with wired() as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say="uncommitted").turns_of(1)
        await talker.turn(commit=False)
        await talker.turn()
        assert talker.answer.sent.plan.reason is SendReason.UNCOMMITTED
        assert clean(sims["openai"])

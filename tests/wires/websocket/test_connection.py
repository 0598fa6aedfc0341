"""When a connection is used, readapter, and given up."""

import pytest
from websockets.asyncio.server import serve

from support.websocket_client import SocketTurnLoop
from thoughtline.errors import WireError
from thoughtline.testing import FrozenClock
from thoughtline.wires.websocket.connection import WebSocketConnector
from thoughtline.wires.websocket.continuation import SendReason
from thoughtline.wires.websocket.wire import ResponsesWire, WebSocketOptions
from wires.websocket.simulated import clean, wired


async def test_another_account_gets_another_connection_and_a_renewed_token_does_not(sims):
    url = sims.url("openai")
    async with wired() as wire:
        before = len(sims["openai"].sockets)
        talker = await SocketTurnLoop(url, wire, say="accounts").turns_of(2)
        position, talker.position = talker.position, lambda: same
        same = position()
        talker.key = "key-one-renewed"  # the same account, says the guard
        await talker.turn(commit=False)
        assert len(sims["openai"].sockets) == before + 1
        other = SocketTurnLoop(url, wire, say="another account", key="key-two")
        await other.turn()
        assert (
            other.answer.sent.plan.reason is SendReason.DESTINATION_CHANGED
            or other.answer.sent.plan.full
        )
        assert len(sims["openai"].sockets) == before + 2
        assert sims["openai"].requests[-1].account == "key-two"


@pytest.mark.parametrize(
    ("reason", "pass_time"),
    [
        (SendReason.SUSPENDED, lambda clock: setattr(clock, "_wall", clock.wall() + 900)),
        (SendReason.AGED, lambda clock: clock.advance(55 * 60)),
    ],
)
async def test_a_machine_that_slept_and_a_connection_that_aged(sims, reason, pass_time):
    clock = FrozenClock()
    async with wired(clock=clock) as wire:
        talker = await SocketTurnLoop(sims.url("openai"), wire, say=reason.value).turns_of(2)
        before = len(sims["openai"].sockets)
        pass_time(clock)
        await talker.turn()
        assert [sent.plan.reason for sent in talker.attempts] == [reason]
        assert len(sims["openai"].sockets) == before + 1
        assert clean(sims["openai"])


async def test_why_a_server_closes_is_told_and_not_logged():
    async def close(socket):
        await socket.close(1011, "I thought too much")

    async with serve(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        socket = await WebSocketConnector()(f"http://127.0.0.1:{port}", [])
        with pytest.raises(WireError, match="I thought too much") as broken:
            await socket.receive()
        await socket.close()
    assert broken.value.log_reason == "websocket_closed_1011"


async def test_a_server_that_is_not_there_is_a_wire_error():
    wire = ResponsesWire(options=WebSocketOptions(max_attempts=1))
    with pytest.raises(WireError, match=r"no WebSocket to http://127\.0\.0\.1:9/v1/responses"):
        await SocketTurnLoop("http://127.0.0.1:9/v1", wire).turn()
    await wire.close()

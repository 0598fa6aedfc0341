"""Whoever writes to a client that reads slowly waits for it."""

import asyncio

from thoughtline.gateway.server.flow import LazyFlowControl


async def test_nobody_waits_for_a_client_that_reads():
    flow = LazyFlowControl(asyncio.Transport())
    await flow.drain()
    flow.pause_writing()
    flow.resume_writing()
    await flow.drain()


async def test_all_who_wait_go_on_together_and_wait_again():
    flow, gone_on = LazyFlowControl(asyncio.Transport()), []

    async def write(name):
        await flow.drain()
        gone_on.append(name)

    for _ in range(2):
        flow.pause_writing()
        writing = [asyncio.ensure_future(write(name)) for name in "ab"]
        await asyncio.sleep(0)
        assert gone_on == []
        flow.resume_writing()
        await asyncio.gather(*writing)
        assert gone_on == ["a", "b"]
        gone_on.clear()

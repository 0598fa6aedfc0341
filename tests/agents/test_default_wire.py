"""The wire of a log that was given none."""

import pytest

from thoughtline.agents.default_wire import DefaultWire
from thoughtline.errors import WireError
from thoughtline.wires.base import Outbound


async def test_a_simulated_provider_is_asked_in_this_process():
    wire = DefaultWire()
    body = b'{"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}'
    url = "sim://deepseek/v1/chat/completions"
    for _ in range(2):
        asked = Outbound(method="POST", url=url, headers=(), body=body)
        async with wire.send(asked) as answer:
            assert answer.status == 200
    await wire.close()


async def test_every_other_is_asked_over_http():
    wire = DefaultWire()
    with pytest.raises(WireError):
        async with wire.send(Outbound(method="GET", url="http://127.0.0.1:9/", headers=())):
            pass
    await wire.close()

"""One canonical form for every dialect: what is captured in one is found from any other."""

import itertools
import json

import pytest

from thoughtline.cli.conversation import SimulatedConversation
from thoughtline.dialects import DIALECTS
from thoughtline.log import keys
from thoughtline.log.parts import Thought
from thoughtline.log.turns import Turn
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import simulator

PROVIDERS = {
    "chat": "vllm",
    "responses": "xai",
    "messages": "deepseek-anthropic",
    "gemini": "gemini",
}


@pytest.mark.parametrize(("here", "there"), [*itertools.permutations(DIALECTS, 2)])
async def test_captured_in_one_found_from_another(here, there):
    """A response read by one dialect's reader is recognised in another dialect's request."""
    sim, store = simulator(PROVIDERS[here]), MemoryStore()
    talk = SimulatedConversation(sim, model=sim.models()[0], store=store)
    await talk.run(7)
    stripped = [
        Turn(input=t.input, output=tuple(p for p in t.output if not isinstance(p, Thought)))
        for t in talk.turns
    ]
    echoed = DIALECTS[there].read(DIALECTS[there].write(stripped, model="m"))
    names, _ = keys.rolling_keys(echoed.turns)
    found = await store.find("tenant", [n.full for n in names if n])
    assert len(found) == len(talk.turns)


def test_a_picture_is_a_picture_everywhere():
    data = "iVBORw0KGgo="
    chat = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    messages = [{"type": "image", "source": source}]
    gemini = [{"inlineData": {"mimeType": "image/png", "data": data}}]
    bodies = [
        ("chat", {"messages": [{"role": "user", "content": chat}]}),
        ("messages", {"messages": [{"role": "user", "content": messages}]}),
        ("gemini", {"contents": [{"role": "user", "parts": gemini}]}),
    ]
    inputs = [
        DIALECTS[name].read(json.dumps(body).encode()).turns[0].input for name, body in bodies
    ]
    assert len({blob.digest for (blob,) in inputs}) == 1

"""Items that only set something between the turns of a Responses conversation."""

import json

import pytest

from support.gateway import InProcessGateway, SimWire
from thoughtline.testing import simulator

UPDATE = {"type": "configuration_update", "reasoning": {"effort": "low"}}


@pytest.mark.parametrize("behind", [True, False])
async def test_they_do_not_change_what_stands_before_them(behind):
    sim = simulator("openai")
    gateway = InProcessGateway(SimWire(sim), "openai")
    history = [{"role": "user", "content": "Question 0"}]
    for n in range(5):
        asked = {"model": "gpt-5.6", "store": False, "input": history}
        answer = await gateway.post("/v1/responses", asked)
        assert answer.status == 200, answer.body
        said = [item for item in answer.json["output"] if item["type"] != "reasoning"]
        question = {"role": "user", "content": f"Question {n + 1}"}
        history += [*said, *([UPDATE, question] if behind else [question, UPDATE])]
    told = sim.requests[-1].audit
    assert (told.exact >= 4, told.clean) == (True, True)
    sent = json.loads(gateway.wire.sent[-1].body)["input"]
    assert sum(item.get("type") == "configuration_update" for item in sent) == 4

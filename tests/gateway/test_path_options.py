"""Options in a path: names and an effort for the requests to one base URL."""

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire

SAID = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
ASKED = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}
PATH = "/v1/chat/completions"


@pytest.mark.parametrize("name", ["deepseek-v4-pro", "gpt-5.6"])
async def test_an_effort_is_asked_for_under_any_name(name):
    wire = ScriptedWire(Answer(200, SAID))
    gateway = InProcessGateway(wire, "deepseek")
    path = f"/u/up;gpt-*=deepseek-v4-pro;effort=high{PATH}"
    answer = await gateway.post(path, {**ASKED, "model": name})
    assert answer.status == 200
    (sent,) = wire.bodies
    assert (sent["model"], sent["reasoning_effort"]) == ("deepseek-v4-pro", "high")
    said = answer.header("x-thoughtline-model")
    assert said == (None if name == sent["model"] else "gpt-5.6>up/deepseek-v4-pro")


async def test_an_effort_that_there_is_not_is_refused():
    gateway = InProcessGateway(ScriptedWire(Answer(200, SAID)))
    answer = await gateway.post(f"/u/up;effort=hihg{PATH}", ASKED)
    assert answer.status == 400 and "did you mean 'high'" in answer.json["error"]["message"]

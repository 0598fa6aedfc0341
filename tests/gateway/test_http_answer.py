"""What a client is answered where its upstream breaks off before the client has any of it."""

from contextlib import asynccontextmanager

from support.gateway import Answer, InProcessGateway, ScriptedWire
from support.proxied import body
from support.translating_gateway import TranslatingGateway
from thoughtline.errors import WireError

ASKED = body([{"role": "user", "content": "Hi"}])


class CutAnswer(Answer):
    """Begins, and is cut."""

    async def chunks(self):
        yield self.body
        raise WireError("the connection was closed")


class CuttingWire(ScriptedWire):
    """Hangs up in the middle of every answer."""

    @asynccontextmanager
    async def send(self, request):
        yield CutAnswer(body=b"{")


async def test_the_answer_names_its_turn_and_says_that_the_gateway_refused():
    gateway = InProcessGateway(CuttingWire())
    answer = await gateway.post("/v1/chat/completions", ASKED)
    assert (answer.status, answer.json["error"]["code"]) == (502, "upstream_broke_off")
    replay = answer.header("x-thoughtline-replay")
    assert replay.startswith("restored=0; ")
    assert replay.endswith("; refused=upstream_broke_off")
    [started] = await gateway.events("turn_started")
    assert answer.header("x-thoughtline-turn") == started.id


async def test_so_does_one_that_is_told_in_another_dialect():
    gateway = TranslatingGateway("claude")
    gateway.proxy.wire = CuttingWire()
    answer = await gateway.post("/v1/chat/completions", {**ASKED, "model": gateway.model})
    assert answer.status == 502
    assert answer.header("x-thoughtline-replay").endswith("; refused=upstream_broke_off")


async def test_an_error_under_200_is_the_providers_and_no_refusal_of_the_gateway():
    gateway = TranslatingGateway("claude")
    gateway.proxy.wire = ScriptedWire(Answer(200, {"error": {"message": "out of order"}}))
    answer = await gateway.post("/v1/chat/completions", {**ASKED, "model": gateway.model})
    assert (answer.status, answer.json["error"]["message"]) == (502, "out of order")
    assert "refused" not in answer.header("x-thoughtline-replay")

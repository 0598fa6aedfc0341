"""A turn of every dialect while it runs, through the real walk: seen piece by piece, then stored."""

from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from rooms import Answer, Rooms, SimWire
from thoughtline.durations import spans, state
from thoughtline.inspector.live import Live
from thoughtline.sessions import Session
from thoughtline.testing import Request, simulator

ASKED = {
    "deepseek": (
        "/v1/chat/completions",
        {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]},
    ),
    "claude": (
        "/v1/messages",
        {
            "model": "claude-opus-4-8",
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [{"role": "user", "content": "hi"}],
        },
    ),
    "openai": ("/v1/responses", {"model": "gpt-5.2", "input": "hi", "store": False}),
    "gemini": (
        "/v1beta/models/{model}:streamGenerateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        },
    ),
}
POLICIES = {"claude": "anthropic"}


class Pieces(Answer):
    """An answer in the pieces that the provider sends, with a look after each."""

    def __init__(self, reply, look):
        super().__init__(reply.status, reply.body, reply.headers)
        self._pieces, self._look = list(reply.chunks), look

    async def chunks(self):
        for piece in self._pieces:
            yield piece
            self._look()


class Watched(SimWire):
    def __init__(self, sim):
        super().__init__(sim)
        self.look = None

    @asynccontextmanager
    async def send(self, request):
        place = urlsplit(request.url)
        head = {name.lower(): value for name, value in request.headers}
        reply = self.sim.answer(Request("POST", place.path, head, request.body, place.query))
        yield Pieces(reply, self.look)


@pytest.mark.parametrize("name", ASKED)
async def test_a_running_turn(name):
    wire = Watched(simulator(name))
    rooms = Rooms(wire, POLICIES.get(name, name))
    live, views = Live(rooms.proxy.exchanges), []
    wire.look = lambda: views.append([turn for _, turn in live.turns()])
    path, body = ASKED[name]
    if name == "gemini":
        path = path.replace("{model}", wire.sim.models()[0])
    else:
        body = {**body, "model": wire.sim.models()[0], "stream": True}
    answer = await rooms.post(path, body)
    assert answer.status == 200, answer.body
    (session,) = await rooms.store.sessions()
    stored = Session(session.session).extend(await rooms.store.read(session.session)).turns[-1]
    running = [view[0] for view in views if view]
    assert {turn.id for turn in running} == {stored.id}
    assert {turn.session for turn in running} == {session.session}
    states = [[state(span, running=True) for span in spans(turn)] for turn in running]
    assert ["open"] in states  # somebody who looked saw it think
    starts = {span.at for turn in running for span in spans(turn)}
    assert starts == {span.at for span in spans(stored)}
    assert live.turns() == []  # and now it is written


async def test_a_whole_answer_has_nothing_to_see_before_it_is_there():
    wire = Watched(simulator("deepseek"))
    rooms = Rooms(wire, "deepseek")
    live, views = Live(rooms.proxy.exchanges), []
    wire.look = lambda: views.append([turn for _, turn in live.turns()])
    await rooms.post(*ASKED["deepseek"])
    assert [turn.output for view in views for turn in view] == [()] * len(views)
    assert live.turns() == []

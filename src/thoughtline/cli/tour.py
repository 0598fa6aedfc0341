"""The tour: conversations to look at, held through a real gateway with strict simulated models.

A client that drops every thought asks; the gateway, its store and what it decides are those of
`thoughtline serve`. Only time is made up: it passes as it would, but nobody waits for it. What an
earlier tour has left is replaced.
"""

from __future__ import annotations

import io
import os
import secrets
import time
from typing import Any, NamedTuple

from msgspec.structs import replace

from thoughtline.agents.simulated import PREFIX, SimWire, upstream
from thoughtline.cli.conversation import stripped
from thoughtline.cli.tour_stories import STORIES, Question, Story
from thoughtline.clock import uuid7
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import ToolSpec
from thoughtline.engine.capture import output_parts
from thoughtline.errors import RunFailed
from thoughtline.gateway.app import Gateway
from thoughtline.gateway.build import build
from thoughtline.gateway.settings import AccessSettings, ClientSettings, Secret, Settings
from thoughtline.log.parts import Origin, Part, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.testing import FrozenClock, Piece, Say, Simulator, simulator
from thoughtline.testing.sims.heard import listen

CLIENT = "the tour"
"""The client's name. The settings allow none with a space, so that no other client has it."""
TENANT = f"client:{CLIENT}"
_APART = 300.0
"""Seconds from the beginning of one conversation to that of the next."""
_READS, _WORKS = 25.0, 1.5
"""Seconds that a user takes to read and write, and a tool to work."""

SHOWN = {
    "openai": {
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }
}
"""What the client asks for so that a thought can be read, where it cannot by default."""
TOOLS = tuple(
    ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": {wants: {"type": "string"}}},
    )
    for name, description, wants in (
        ("read_file", "Read a text file.", "path"),
        ("search", "Search all files.", "query"),
        ("run", "Run a command.", "command"),
    )
)


class Visited(NamedTuple):
    """One conversation of the tour, as it lies in the store."""

    shows: str
    session: str


class TourClock(FrozenClock):
    """A clock that is told how time passes; its ids are as unique as any."""

    def new_id(self) -> str:
        return uuid7(int(self.wall() * 1000), os.urandom(10))

    async def pause(self, seconds: float) -> None:
        """Let time pass without waiting for it."""
        self.advance(seconds)

    def reach(self, wall: float) -> None:
        """Move on to this time of day, if it is not past."""
        self.advance(max(0.0, wall - self.wall()))


class TourWire(SimWire):
    """The wire to models that tell the stories."""

    def __init__(self, clock: TourClock) -> None:
        super().__init__(told, clock.pause)
        self.clock = clock
        self._seed = 0

    def change_keys(self) -> None:
        """Let every provider seal with another key from now on."""
        self._seed += 1
        self._sims.clear()

    def _simulator(self, name: str) -> Simulator:
        serial = int(self.clock.wall())
        return simulator(name, script=told, serials=False, seed=self._seed, exchanges=serial)


async def tour(settings: Settings) -> list[Visited]:
    """Hold the conversations; afterwards they lie in the store of these settings."""
    begin = time.time() - _APART * len(STORIES)
    clock = TourClock(wall=begin, mono=time.monotonic_ns())
    key = secrets.token_hex()
    access = AccessSettings(clients={CLIENT: ClientSettings(key=Secret(key))})
    wire = TourWire(clock)
    gateway = build(
        replace(settings, access=access),
        clock=clock,
        simulated=lambda model: upstream(model, wire=wire),
        log=io.StringIO(),
    )
    visited = []
    try:
        await gateway.proxy.store.purge(tenant=TENANT)
        for number, story in enumerate(STORIES):
            clock.reach(begin + number * _APART)
            conversation = _Conversation(gateway, wire, story, key)
            for question in story.questions:
                await conversation.ask(question)
            visited.append(Visited(story.shows, conversation.session))
    finally:
        await gateway.close()
    return visited


def told(turn: int, sim: Simulator) -> tuple[Piece, ...]:
    """The script of the models: what the story has for this question and what came back so far."""
    heard = listen(sim.now.request.body)
    results = 0
    for question in (one for story in STORIES for one in story.questions):
        if question.text == heard.asked:
            for answer in question.rounds:
                if results == len(heard.answered):
                    return answer.pieces
                results += len(answer.results)
    return (Say(f"There is no more to this story than {turn} answers."),)


class _Conversation:
    """One story and its client, who keeps no thought."""

    def __init__(self, gateway: Gateway, wire: TourWire, story: Story, key: str) -> None:
        self._gateway = gateway
        self._wire = wire
        self._clock = wire.clock
        self._key = key
        self._model = story.model
        self._turns: list[Turn] = []
        self._asked = 0  # turns before the last question
        self.session = ""

    async def ask(self, question: Question) -> None:
        """Ask, run the tools, and read the answer."""
        self._model = question.model or self._model
        if question.new_keys:
            self._wire.change_keys()
        if question.instead:
            del self._turns[self._asked :]
        self._asked = len(self._turns)
        given: list[Part] = [Text(text=question.text)]
        for answer in question.rounds:
            turn = await self._say(given)
            given = [
                Result(call=call.id, name=call.name, content=result)
                for call, result in zip(turn.calls, answer.results, strict=True)
            ]
            self._clock.advance(_WORKS if given else _READS)

    async def _say(self, parts: list[Part]) -> Turn:
        sim = self._model.removeprefix(PREFIX)
        dialect = DIALECTS[simulator(sim).dialect]
        self._turns.append(Turn(input=tuple(parts)))
        body = dialect.write(
            [stripped(turn) for turn in self._turns],
            model=self._model,
            system="You are a careful engineer. Be brief.",
            tools=TOOLS,
            stream=True,
            fields=SHOWN.get(sim),
        )
        path, _, query = dialect.request_path(self._model, stream=True).partition("?")
        sent = [dialect.credential(self._key), *dialect.request_headers]
        status, headers, answer = await post(self._gateway, path, query, dict(sent), body)
        if status != 200:
            raise RunFailed(f"{self._model} answered {status}: {answer.decode('utf-8', 'replace')}")
        self.session = headers.get("x-thoughtline-session", self.session)
        origin = Origin(
            dialect=dialect.name, provider=sim, endpoint="", account="", model=self._model
        )
        reader = dialect.reader(stream=True, clock=self._clock, origin=origin, sent=0)
        output = tuple(output_parts([*reader.feed(answer), *reader.close()]))
        self._turns[-1] = replace(self._turns[-1], output=output)
        return self._turns[-1]


async def post(
    gateway: Gateway, path: str, query: str, headers: dict[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Send one request to a gateway in this process: status, headers and body of its answer."""
    sent = headers | {"host": "127.0.0.1", "content-type": "application/json"}
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
    }
    start: dict[str, Any] = {}
    chunks: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        else:
            chunks.append(message.get("body", b""))

    await gateway(scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], answered, b"".join(chunks)

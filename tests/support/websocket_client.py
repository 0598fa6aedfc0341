"""A turn loop in small over a Responses wire: fold, send, read, record."""

from thoughtline.clock import SystemClock
from thoughtline.dialects.params import ToolSpec
from thoughtline.dialects.responses import Responses
from thoughtline.dialects.responses.reader import ResponsesReader
from thoughtline.engine.capture import output_parts
from thoughtline.log.parts import Call, Origin, Result, Text
from thoughtline.log.turns import Turn
from thoughtline.wires.base import Outbound
from thoughtline.wires.websocket.continuation import Destination, LogPosition

RESPONSES = Responses()
TOOLS = [ToolSpec(name=name) for name in ("read_file", "run", "search")]


class SocketTurnLoop:
    """One branch of a session."""

    def __init__(self, url, lane, *, say="go", key="key-one", model="gpt-5.6", turns=()):
        self.url, self.lane, self.key, self.model = url, lane, key, model
        self.turns = list(turns)
        self.heard = (Text(text=say),)
        self.system = "be brief"
        self.shown = []  # events of the last answer
        self.answer = None
        self.attempts = []  # all that was sent for the last answer, where the wire counts that
        self.count = 0

    def branch(self, lane):
        """Another one that goes on from here."""
        other = SocketTurnLoop(self.url, lane, key=self.key, model=self.model, turns=self.turns)
        other.heard = (*self.heard, Text(text="elsewhere"))
        other.count = 1000 * (self.count + 1)
        return other

    def outbound(self):
        body = RESPONSES.write(
            [*self.turns, Turn(input=self.heard)],
            model=self.model,
            system=self.system,
            tools=TOOLS,
        )
        headers = [("authorization", f"Bearer {self.key}"), ("content-type", "application/json")]
        return Outbound(method="POST", url=f"{self.url}/responses", headers=headers, body=body)

    def position(self):
        path = [turn.id for turn in self.turns]
        return LogPosition(
            destination=Destination(endpoint=self.url, account=self.key, model=self.model),
            turn=f"t{self.count}",
            parent=path[-1] if path else "",
            ancestors=frozenset(path),
        )

    async def turn(self, *, commit=True, leave=None):
        """Send what is to be said, and record the answer if it is complete."""
        self.count += 1
        self.shown = []
        reader = ResponsesReader(stream=True, clock=SystemClock(), origin=Origin(), sent=0)
        stats = getattr(getattr(self.lane, "wire", self.lane), "stats", None)
        before = len(stats.sent) if stats else 0
        async with self.lane.send(self.outbound(), self.position()) as self.answer:
            self.attempts = stats.sent[before:] if stats else []
            async for event in self.answer:
                self.shown.append(event)
                if len(self.shown) == leave:
                    break
            if commit:
                self.answer.commit()
        told = [happening for event in self.shown for happening in reader.event(event)]
        told += reader.close()
        if self.answer.state.value == "completed":
            self.record(told)
        return self.answer

    async def turns_of(self, count):
        for _ in range(count):
            await self.turn()
        return self

    def record(self, told):
        parts = output_parts(told)
        made = Turn(input=self.heard, output=tuple(parts), id=f"t{self.count}")
        self.turns.append(made)
        calls = [part for part in parts if isinstance(part, Call)]
        results = tuple(Result(content="ok", call=call.id) for call in calls)
        self.heard = results or (Text(text=f"and then? {self.count}"),)

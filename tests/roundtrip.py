"""A client that throws every thought away, talking to a simulated provider, with or without us.

The client is the dialect's own writer over turns whose thoughts were stripped; the judge is the
simulator, which knows every thought it ever emitted and says what came back of them.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.clock import Clock
from thoughtline.dialects.base import Dialect, Tool
from thoughtline.dialects.chat import Chat
from thoughtline.events import (
    AssistantMessage,
    Happening,
    Reasoning,
    ToolCall,
    TurnEnded,
)
from thoughtline.exchanges import Exchange, begin
from thoughtline.parts import Call, Origin, Part, Result, Text, Thought
from thoughtline.policies import lookup
from thoughtline.guards import Target
from thoughtline.replay import NOTHING, Limits
from thoughtline.stores.base import Store
from thoughtline.testing import Reply, Request, Simulator
from thoughtline.turns import Turn

SCHEMA = {"type": "object", "properties": {}}
TOOLS = [Tool(name=name, description=name, parameters=SCHEMA) for name in ("read_file", "run", "search")]
CREDENTIALS = {"messages": "x-api-key", "gemini": "x-goog-api-key"}


class Refused(Exception):
    """The provider said no."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{reply.status}: {reply.body[:500]!r}")
        self.reply = reply


def strip(turn: Turn) -> Turn:
    """A turn as a careless client keeps it."""
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))


class Conversation:
    """One conversation of a stripping client with one provider."""

    def __init__(
        self,
        simulator: Simulator,
        dialect: Dialect,
        *,
        policy: str,
        model: str,
        store: Store | None = None,
        account: str = "key-1",
        tenant: str = "tenant",
        stream: bool = True,
        fields: dict | None = None,
        clock: Clock | None = None,
        limits: Limits = NOTHING,
        keep: bool = False,
        tools: Sequence[Tool] = TOOLS,
    ) -> None:
        self.simulator, self.dialect, self.store = simulator, dialect, store
        self.policy, self.model, self.account, self.tenant = policy, model, account, tenant
        self.stream, self.fields, self.clock, self.limits = stream, fields or {}, clock, limits
        self.keep, self.tools = keep, tools
        self.turns: list[Turn] = []
        self.exchanges: list[Exchange] = []
        self.replies: list[Reply] = []

    @property
    def target(self) -> Target:
        return Target(
            policy=lookup(self.policy, self.dialect.name, self.model),
            origin=Origin(
                dialect=self.dialect.name,
                provider=self.policy,
                endpoint=f"sim://{self.simulator.provider}",
                account=self.account,
                model=self.model,
                asked=self.model,
            ),
        )

    def body(self) -> bytes:
        turns = self.turns if self.keep else [strip(turn) for turn in self.turns]
        return self.dialect.write(
            turns, model=self.model, system="Be brief.", tools=self.tools, stream=self.stream, fields=self.fields
        )

    async def turn(self, parts: Sequence[Part]) -> Turn:
        """Say something (or answer calls), get the model's output."""
        self.turns.append(Turn(input=tuple(parts)))
        body = self.body()
        exchange = None
        if self.store is not None:
            exchange = await begin(
                body,
                dialect=self.dialect,
                target=self.target,
                tenant=self.tenant,
                store=self.store,
                clock=self.clock,
                stream=self.stream,
                limits=self.limits,
            )
            self.exchanges.append(exchange)
            body = exchange.body
        reply = self.simulator.answer(Request("POST", self.path(), self.headers(), body))
        self.replies.append(reply)
        if reply.status != 200:
            self.turns.pop()
            raise Refused(reply)
        happenings: list[Happening] = []
        if exchange is not None:
            for chunk in reply.chunks:
                happenings += exchange.feed(chunk)
            await exchange.finish()
        reader = self.dialect.reader(
            stream=self.stream, clock=self.clock or _Clock(), origin=self.target.origin, sent=0
        )
        happenings = [h for chunk in reply.chunks for h in reader.feed(chunk)] + reader.close()
        output: list[Part] = []
        for happening in happenings:
            match happening:
                case Reasoning():
                    output.append(happening.thought)
                case AssistantMessage():
                    output += happening.parts
                case ToolCall():
                    output.append(happening.call)
                case TurnEnded():
                    assert happening.outcome == "completed", happening
        self.turns[-1] = replace(self.turns[-1], output=tuple(output))
        return self.turns[-1]

    async def run(self, exchanges: int, opening: str = "Please fix the bug in a.txt") -> None:
        """Talk for this many exchanges: results for calls, a new question after a plain answer."""
        parts: list[Part] = [Text(text=opening)]
        for number in range(exchanges):
            turn = await self.turn(parts)
            calls = [p for p in turn.output if isinstance(p, Call)]
            parts = [
                Result(call=c.id, name=c.name, content=f"result {number}.{i}\n")
                for i, c in enumerate(calls)
            ]
            parts = parts or [Text(text=f"and now step {number}?")]

    def path(self) -> str:
        base = self.simulator.base_path
        if self.dialect.name == "gemini":
            verb = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
            return f"{base}/models/{self.model}:{verb}"
        return base + {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}[self.dialect.name]

    def headers(self) -> dict[str, str]:
        name = CREDENTIALS.get(self.dialect.name)
        credential = {name: self.account} if name else {"authorization": f"Bearer {self.account}"}
        return {**credential, "content-type": "application/json", "anthropic-version": "2023-06-01"}


class _Clock:
    def wall(self) -> float:
        return 0.0

    def mono(self) -> int:
        return 0

    def new_id(self) -> str:
        return "x"


CHAT = Chat()

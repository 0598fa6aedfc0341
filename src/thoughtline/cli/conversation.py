"""A careless client in conversation with a simulated provider, with Thoughtline between or not.

The client is the dialect's own writer over turns whose thoughts were thrown away. The judge is the
simulator, which knows every thought it ever emitted and says in its reply what came back of them.
The demo shows such conversations to people; the tests hold them with every provider.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from thoughtline.capture import output
from thoughtline.clock import Clock, SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.base import Tool
from thoughtline.errors import ThoughtlineError
from thoughtline.events import TurnEnded
from thoughtline.exchanges import Exchange, begin
from thoughtline.guards import Target
from thoughtline.parts import Origin, Part, Result, Text, Thought
from thoughtline.policies import lookup
from thoughtline.replay import NOTHING, Limits
from thoughtline.stores.base import Store
from thoughtline.testing import Reply, Request, Simulator
from thoughtline.turns import Turn

TOOLS = tuple(
    Tool(name=name, description=name, parameters={"type": "object", "properties": {}})
    for name in ("read_file", "run", "search")
)
POLICIES = {
    "deepseek-v3.2": "deepseek",
    "deepseek-anthropic": "deepseek",
    "deepseek-responses": "deepseek",
    "kimi-k3": "kimi",
    "gemini-compat": "gemini",
    "claude": "anthropic",
    "claude-bound": "anthropic",
    "openai-ws": "openai",
}
"""Which policy row stands for a simulated provider, where the names differ."""

FIELDS: dict[str, dict[str, Any]] = {
    "claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "claude-bound": {"thinking": {"type": "adaptive"}},
}
"""What a client sets to make a model think, where it does not by itself."""


class Refused(ThoughtlineError):
    """The provider refused the request."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{reply.status}: {reply.body.decode('utf-8', 'replace')}")
        self.reply = reply


class Conversation:
    """One conversation with one simulated provider; `store` None: nothing stands between."""

    def __init__(
        self,
        simulator: Simulator,
        *,
        model: str,
        store: Store | None = None,
        account: str = "a key",
        tenant: str = "tenant",
        stream: bool = True,
        keep: bool = False,
        tools: Sequence[Tool] = TOOLS,
        fields: Mapping[str, Any] | None = None,
        limits: Limits = NOTHING,
        clock: Clock | None = None,
    ) -> None:
        self.simulator = simulator
        self.dialect = DIALECTS[simulator.dialect]
        self.model = model
        self.store = store
        self.account = account
        self.tenant = tenant
        self.stream = stream
        self.keep = keep  # a client that keeps its thoughts after all
        self.tools = tools
        self.fields = FIELDS.get(simulator.provider) if fields is None else fields
        self.limits = limits
        self.clock = clock or SystemClock()
        self.turns: list[Turn] = []
        self.exchanges: list[Exchange] = []
        self.replies: list[Reply] = []

    @property
    def target(self) -> Target:
        """Where the requests go."""
        name = self.simulator.provider
        policy = POLICIES.get(name, name)
        return Target(
            policy=lookup(policy, self.dialect.name, self.model),
            origin=Origin(
                dialect=self.dialect.name,
                provider=policy,
                endpoint=f"sim://{name}",
                account=self.account,
                model=self.model,
                asked=self.model,
            ),
        )

    async def run(self, exchanges: int, opening: str = "Please mend a.txt") -> None:
        """Talk for this many exchanges: results for calls, a new question after an answer."""
        said: list[Part] = [Text(text=opening)]
        for number in range(exchanges):
            turn = await self.say(said)
            said = [
                Result(call=call.id, name=call.name, content=f"result {number}.{index}\n")
                for index, call in enumerate(turn.calls)
            ]
            said = said or [Text(text=f"And then, after {number}?")]

    async def say(self, parts: Sequence[Part]) -> Turn:
        """One exchange; raises `Refused` when the provider says no."""
        self.turns.append(Turn(input=tuple(parts)))
        body = self.request()
        exchange = await self._begin(body) if self.store is not None else None
        if exchange is not None:
            body = exchange.body
        reply = self.simulator.answer(
            Request("POST", self.path(), self.headers(), body, "alt=sse" if self.stream else "")
        )
        self.replies.append(reply)
        if reply.status != 200:
            self.turns.pop()
            raise Refused(reply)
        if exchange is not None:
            for chunk in reply.chunks:
                exchange.feed(chunk)
            await exchange.finish()
        self.turns[-1] = replace(self.turns[-1], output=self._output(reply))
        return self.turns[-1]

    def request(self) -> bytes:
        """The body as the client writes it."""
        turns = self.turns if self.keep else [stripped(turn) for turn in self.turns]
        return self.dialect.write(
            turns,
            model=self.model,
            system="Be brief.",
            tools=self.tools,
            stream=self.stream,
            fields=self.fields,
        )

    async def _begin(self, body: bytes) -> Exchange:
        exchange = await begin(
            self.dialect.read(body),
            dialect=self.dialect,
            target=self.target,
            tenant=self.tenant,
            store=self.store,  # type: ignore[arg-type]
            clock=self.clock,
            stream=self.stream,
            limits=self.limits,
        )
        self.exchanges.append(exchange)
        return exchange

    def _output(self, reply: Reply) -> tuple[Part, ...]:
        reader = self.dialect.reader(
            stream=self.stream, clock=self.clock, origin=self.target.origin, sent=0
        )
        told = [h for chunk in reply.chunks for h in reader.feed(chunk)] + reader.close()
        for happening in told:
            if isinstance(happening, TurnEnded) and happening.outcome != "completed":
                raise ThoughtlineError(f"the turn {happening.outcome}: {happening.reason}")
        return tuple(output(told))

    def path(self) -> str:
        """Where the provider listens."""
        base = self.simulator.base_path
        match self.dialect.name:
            case "gemini":
                verb = "streamGenerateContent" if self.stream else "generateContent"
                return f"{base}/models/{self.model}:{verb}"
            case "chat":
                return f"{base}/chat/completions"
            case name:
                return f"{base}/{name}"

    def headers(self) -> dict[str, str]:
        """Headers with the credential where this dialect's clients put it."""
        credential = {
            "messages": {"x-api-key": self.account, "anthropic-version": "2023-06-01"},
            "gemini": {"x-goog-api-key": self.account},
        }.get(self.dialect.name, {"authorization": f"Bearer {self.account}"})
        return {**credential, "content-type": "application/json"}


def stripped(turn: Turn) -> Turn:
    """A turn as a careless client keeps it."""
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))

"""A client that drops thoughts talks with a simulated provider, with or without Thoughtline.

The client writes its requests with the dialect's own writer, from turns without thoughts. The
simulator knows every thought it emitted and says in its reply which of them came back. The demo
shows such conversations to people; the tests hold them with every provider.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.params import ToolSpec
from thoughtline.engine.caller import Incoming, Unobserved
from thoughtline.engine.capture import output_parts
from thoughtline.engine.exchange import Engine, Exchange
from thoughtline.engine.routes import unversioned
from thoughtline.errors import RunFailed, ThoughtlineError
from thoughtline.log.events import TurnEnded
from thoughtline.log.parts import Origin, Part, Result, Text, Thought
from thoughtline.log.turns import Turn
from thoughtline.providers.contracts import find_policy
from thoughtline.replay.guard import Target
from thoughtline.stores.base import Store
from thoughtline.testing import Reply, Request, Simulator

TOOLS = tuple(
    ToolSpec(name=name, description=name, parameters={"type": "object", "properties": {}})
    for name in ("read_file", "run", "search")
)


class ProviderRefused(ThoughtlineError):
    """The provider refused the request."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{reply.status}: {reply.body.decode('utf-8', 'replace')}")
        self.reply = reply


class SimulatedConversation:
    """One conversation with one simulated provider; without a `store`, Thoughtline is not used."""

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
    ) -> None:
        self.simulator = simulator
        self.dialect = DIALECTS[simulator.dialect]
        self.model = model
        self.account = account
        self.tenant = tenant
        self.stream = stream
        self.keep = keep  # the client sends thoughts back itself
        self._clock = SystemClock()
        self._engine: Engine | None = None
        if store is not None:
            self._engine = Engine(store, observer=Unobserved(), clock=self._clock)
        self.turns: list[Turn] = []
        self.exchanges: list[Exchange] = []
        self.replies: list[Reply] = []

    @property
    def target(self) -> Target:
        """Where the requests go."""
        name = self.simulator.provider
        policy = POLICIES.get(name, name)
        return Target(
            policy=find_policy(policy, self.dialect.name, self.model),
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
        parts: list[Part] = [Text(text=opening)]
        for number in range(exchanges):
            turn = await self.say(parts)
            parts = [
                Result(call=call.id, name=call.name, content=f"result {number}.{index}\n")
                for index, call in enumerate(turn.calls)
            ]
            parts = parts or [Text(text=f"And then, after {number}?")]

    async def say(self, parts: Sequence[Part]) -> Turn:
        """One exchange; raises `ProviderRefused` when the provider says no."""
        self.turns.append(Turn(input=tuple(parts)))
        body = self.request()
        exchange = await self._begin(self._engine, body) if self._engine is not None else None
        if exchange is not None:
            body = exchange.decision.body
        reply = self.simulator.answer(
            Request("POST", self.path(), self.headers(), body, "alt=sse" if self.stream else "")
        )
        self.replies.append(reply)
        if reply.status != 200:
            self.turns.pop()
            raise ProviderRefused(reply)
        if exchange is not None and self._engine is not None:
            for chunk in reply.chunks:
                exchange.recording.feed(chunk)
            await self._engine.writer.write(exchange.recording)
        self.turns[-1] = replace(self.turns[-1], output=self._output(reply))
        return self.turns[-1]

    def request(self) -> bytes:
        """The body as the client writes it."""
        turns = self.turns if self.keep else [stripped(turn) for turn in self.turns]
        return self.dialect.write(
            turns,
            model=self.model,
            system="Be brief.",
            tools=TOOLS,
            stream=self.stream,
            fields=FIELDS.get(self.simulator.provider),
        )

    async def _begin(self, engine: Engine, body: bytes) -> Exchange:
        request = replace(self.dialect.read(body), stream=self.stream)
        incoming = Incoming(
            request=request, dialect=self.dialect, target=self.target, tenant=self.tenant
        )
        exchange = await engine.begin(incoming)
        exchange.record()
        self.exchanges.append(exchange)
        return exchange

    def _output(self, reply: Reply) -> tuple[Part, ...]:
        reader = self.dialect.reader(
            stream=self.stream, clock=self._clock, origin=self.target.origin, sent=0
        )
        events = [e for chunk in reply.chunks for e in reader.feed(chunk)] + reader.close()
        for event in events:
            if isinstance(event, TurnEnded) and event.outcome != "completed":
                raise RunFailed(f"the turn {event.outcome}: {event.reason}")
        return tuple(output_parts(events))

    def path(self) -> str:
        """Where the provider listens."""
        path = unversioned(self.dialect.request_path(self.model, stream=self.stream))
        return self.simulator.base_path + path.partition("?")[0]

    def headers(self) -> dict[str, str]:
        """Headers with the credential where this dialect's clients put it."""
        credential = self.dialect.credential(self.account)
        sent = [credential, *self.dialect.request_headers, ("content-type", "application/json")]
        return dict(sent)


def stripped(turn: Turn) -> Turn:
    """A turn without its thoughts, as a careless client keeps it."""
    return replace(turn, output=tuple(p for p in turn.output if not isinstance(p, Thought)))

"""A client of one dialect talks with a simulated provider of another.

Requests and answers are translated, and every thought goes back though the client keeps none.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from thoughtline.cli.conversation import TOOLS, ProviderRefused, SimulatedConversation, stripped
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.answer_blocks import AnswerBlocks
from thoughtline.dialects.answers import AnswerEnd, stop_reason
from thoughtline.engine.caller import Incoming
from thoughtline.engine.capture import output_parts
from thoughtline.engine.exchange import Engine, Exchange
from thoughtline.engine.translated_source import translated
from thoughtline.engine.turn_ids import client_call_id
from thoughtline.log.events import Outcome, TurnEnded
from thoughtline.log.handles import Handles
from thoughtline.log.parts import Part
from thoughtline.log.turns import Turn
from thoughtline.log.usage import Usage
from thoughtline.stores.base import Store
from thoughtline.testing import Reply, Request, Simulator


class TranslatedConversation(SimulatedConversation):
    """One conversation; `speaks` is the client's dialect."""

    def __init__(self, simulator: Simulator, *, model: str, speaks: str, store: Store) -> None:
        super().__init__(simulator, model=model, store=store)
        self.client = DIALECTS[speaks]
        self._handles = Handles(b"demo")

    async def say(self, parts: Sequence[Part]) -> Turn:
        """One exchange; raises `ProviderRefused` when the provider says no."""
        self.turns.append(Turn(input=tuple(parts)))
        asked = self.client.write(
            [stripped(turn) for turn in self.turns], model=self.model, tools=TOOLS
        )
        engine = self._engine
        assert engine is not None  # noqa: S101 (there is a store)
        exchange = await self._begin(engine, asked)
        body, query = exchange.decision.body, "alt=sse"
        reply = self.simulator.answer(Request("POST", self.path(), self.headers(), body, query))
        self.replies.append(reply)
        if reply.status != 200:
            self.turns.pop()
            raise ProviderRefused(reply)
        answer = self._answer(exchange, reply)
        await engine.writer.write(exchange.recording)
        self.turns[-1] = replace(self.turns[-1], output=self._heard(answer))
        return self.turns[-1]

    async def _begin(self, engine: Engine, body: bytes) -> Exchange:
        asked = Incoming(
            request=self.client.read(body),
            dialect=self.client,
            target=self.target,
            tenant=self.tenant,
            received=self._clock.mono(),
        )
        incoming = await translated(
            asked, self.dialect, self._handles, store=engine.store, clock=self._clock
        )
        exchange = await engine.begin(incoming)
        exchange.record()
        self.exchanges.append(exchange)
        return exchange

    def _answer(self, exchange: Exchange, reply: Reply) -> bytes:
        """The reply in the client's dialect."""
        translation, recording = exchange.incoming.translation, exchange.recording
        assert translation is not None  # noqa: S101 (`translated` made it)
        turn = recording.turn
        writer = self.client.answer_writer(translation.head(turn, created=0))
        blocks = AnswerBlocks(translation.names, lambda nth: client_call_id(turn, nth))
        told = writer.start()
        for chunk in reply.chunks:
            told += writer.write(blocks.feed(recording.feed(chunk)))
        told += writer.write([*blocks.feed(recording.close()), *blocks.end(complete=True)])
        ended = recording.capture.ended or TurnEnded(outcome=Outcome.ABORTED)
        stop = stop_reason(ended, called=blocks.called)
        return told + writer.finish(AnswerEnd(stop=stop, usage=ended.usage or Usage()))

    def _heard(self, answer: bytes) -> tuple[Part, ...]:
        reader = self.client.reader(
            stream=True, clock=self._clock, origin=self.target.origin, sent=0
        )
        return tuple(output_parts([*reader.feed(answer), *reader.close()]))

"""Pairs of conversations that look alike, played through a gateway, and what crossed between them.

Both say the same words and get the same visible answers, each with thoughts of its own. What tells
them apart is drawn at random: a session hint, call ids, item ids, seals, or that one began before the
gateway was there. A client shows what it has of that in every request, or hides parts of it in some;
one of the two may have begun with other words, and have taken those of the other one since.
"""

import random
import re
from contextvars import ContextVar

import msgspec
from msgspec.structs import replace

from support.gateway import InProcessGateway, SimWire, TurnClient
from support.translating_gateway import THINKING
from thoughtline.agents.simulated import FIELDS, POLICIES
from thoughtline.clock import SystemClock
from thoughtline.dialects import DIALECTS
from thoughtline.dialects.thoughts import opaque_values
from thoughtline.engine.capture import output_parts
from thoughtline.log.parts import Call, Origin, Result, Text, Thought
from thoughtline.testing import simulator

PROVIDERS = (
    "deepseek", "kimi-k3", "glm", "minimax", "openrouter", "vllm", "claude", "claude-bound",
    "deepseek-anthropic", "openai", "azure", "xai", "deepseek-responses", "gemini", "gemini-vertex",
)  # fmt: skip
WORDS = ("Mend it.", "Go on.", "And now?", "Well?", "Thanks.")
WITHOUT_RANDOM_IDS = ("kimi-k3", "gemini", "gemini-vertex")
"""Their calls have counted ids, or none: only a hint tells their conversations apart."""
_speaker: ContextVar[str] = ContextVar("speaker")


class WatchedWire(SimWire):
    """Remembers for which conversation each thought was made, and what it was sent in."""

    def __init__(self, sim, provider):
        super().__init__(sim)
        self.provider = provider
        self.owners = {}  # what a thought is known by → the conversations that it was made for
        self.crossed = []
        self.refused = []
        self._reader = DIALECTS[sim.dialect].reader

    def send(self, request):
        speaker, text = _speaker.get(), request.body.decode()
        for mark in [mark for mark, owners in self.owners.items() if speaker not in owners]:
            if mark in text:
                self.crossed.append((speaker, mark, text))
        return self._sent(request, speaker)

    def _sent(self, request, speaker):
        return _Noted(super().send(request), self, speaker)

    def note(self, speaker, body):
        """Remember whose thoughts an answer has."""
        reader = self._reader(stream=False, clock=SystemClock(), origin=Origin(), sent=0)
        for part in output_parts([*reader.feed(body), *reader.close()]):
            for mark in self._marks(part) if isinstance(part, Thought) else ():
                self.owners.setdefault(mark, set()).add(speaker)

    def _marks(self, thought):
        sealed = opaque_values(thought.carrier, msgspec.json.decode(thought.raw))
        return [*re.findall(rf"{self.provider}-\d+-\d+", thought.text), *filter(None, sealed)]


class _Noted:
    """One request to the simulator, whose answer is noted."""

    def __init__(self, sent, wire, speaker):
        self._sent, self._wire, self._speaker = sent, wire, speaker

    async def __aenter__(self):
        answer = await self._sent.__aenter__()
        if answer.status == 200:
            self._wire.note(self._speaker, answer.body)
        else:
            self._wire.refused.append((self._speaker, answer.body))
        return answer

    async def __aexit__(self, *error):
        return await self._sent.__aexit__(*error)


class LookAlike(TurnClient):
    """A client that loses thoughts and, where it is told to, what tells its turns from others'."""

    def __init__(self, name, draw, gateway, provider, *, hint, hides, speaks=""):
        sim = gateway.wire.sim
        super().__init__(
            gateway, speaks or sim.dialect, gateway.model if speaks else sim.models()[0],
            keep=draw.random() < 0.3, fields=THINKING[speaks] if speaks else FIELDS.get(provider),
            headers={"x-thoughtline-session": name} if hint else {},
        )  # fmt: skip
        self.name, self.draw, self.hides = name, draw, hides
        self.renamed = {}
        self.copied = ()  # turns of another one, whose thoughts it shows at times for its own

    def body(self):
        lived, self.turns = self.turns, [*map(self._echo, self._mixed_up())]
        try:
            return super().body()
        finally:
            self.turns = lived

    def _mixed_up(self):
        """Its turns, some with the thoughts that another one has in their places."""
        turns = list(self.turns)
        for place, (own, other) in enumerate(zip(self.turns, self.copied, strict=False)):
            if self.draw.random() < 0.5:
                said = [part for part in own.output if not isinstance(part, Thought)]
                turns[place] = replace(own, output=(*other.thoughts, *said))
        return turns

    def _echo(self, turn):
        output = [self._shown(part) for part in turn.output]
        heard = [self._heard(part) for part in turn.input]
        return replace(turn, input=tuple(heard), output=tuple(output))

    def _shown(self, part):
        if isinstance(part, Call) and "call ids" in self.hides:
            return replace(part, id=self._counted(part.id), item="")
        if isinstance(part, Call) and "item ids" in self.hides:
            return replace(part, item="")
        if isinstance(part, Text) and "item ids" in self.hides:
            return replace(part, id="")
        return part

    def _heard(self, part):
        if isinstance(part, Result) and "call ids" in self.hides:
            return replace(part, call=self._counted(part.call))
        return part

    def _counted(self, id):
        return self.renamed.setdefault(id, f"call_{len(self.renamed)}") if id else id

    def next(self):
        """Results for its calls, else the words that every conversation says here."""
        calls = self.turns[-1].calls if self.turns else ()
        said = [Result(call=call.id, name=call.name, content="ok") for call in calls]
        questions = sum(not any(isinstance(p, Result) for p in turn.input) for turn in self.turns)
        return said or [Text(text=WORDS[questions % len(WORDS)])]

    async def step(self, *, past=False):
        """One exchange: through a gateway, or past all of them."""
        _speaker.set(self.name)
        answer = await self.say(*self.next(), direct=past)
        if past and answer.status == 200:
            self.gateway.wire.note(self.name, answer.body)
        return answer


class Pair:
    """Two conversations over one simulated provider, on one or more gateways with one store."""

    def __init__(self, seed, provider, stores):
        self.draw = draw = random.Random(seed)
        self.seed, self.provider = seed, provider
        sim = simulator(provider, serials=False, seed=seed)
        self.wire = WatchedWire(sim, provider)
        policy = POLICIES.get(provider, provider)
        self.gateways = [InProcessGateway(self.wire, policy, store=store) for store in stores]
        only_hints = provider in WITHOUT_RANDOM_IDS
        hints = draw.choice([(True, True)] + [(True, False), (False, False)] * (not only_hints))
        hides = [self._hides(hint) for hint in hints]
        self.clients = [
            LookAlike(f"pair-{provider}-{seed}-{name}", draw, self.gateways[0], provider, hint=hint, hides=hidden)
            for name, hint, hidden in zip("ab", hints, hides, strict=True)
        ]  # fmt: skip

    def _hides(self, hint):
        """What a client hides. One without a hint shows its ids: else nothing tells it apart."""
        if not hint:
            return frozenset()
        return frozenset(
            self.draw.choice([(), ("item ids",), ("call ids",), ("call ids", "item ids")])
        )

    async def run(self, exchanges=8):
        """Talk on in turns, in any order, at any gateway; return what crossed."""
        second = self.clients[1]
        began_past = second.keep and self.draw.random() < 0.5  # its own thoughts tell it apart
        moved = self.draw.random() < 0.5
        if began_past:
            await second.step(past=True)
        if moved:  # it begins with words of its own, and takes the other one's later on
            words = Text(text="<reminder>in your own time</reminder> Mend it.")
            if second.turns:
                second.turns[0] = replace(second.turns[0], input=(words,))
            else:
                _speaker.set(second.name)
                await second.say(words)
        for _ in range(exchanges):
            client = self.draw.choice(self.clients)
            client.gateway = self.draw.choice(self.gateways)
            if moved and client is second and self.draw.random() < 0.4 and second.turns:
                second.turns[0] = replace(second.turns[0], input=(Text(text=WORDS[0]),))
            await client.step()
        return self.wire.crossed

"""Conversations with a simulated provider, walked in whole and from their settled beginnings."""

import asyncio
import json
from contextlib import contextmanager
from copy import copy

from msgspec.structs import replace

from support.clients import client
from support.gateway import InProcessGateway, SimWire
from thoughtline.agents import simulated
from thoughtline.clock import SystemClock
from thoughtline.engine.capture import Capture
from thoughtline.engine.exchange import Engine
from thoughtline.log.decisions import count_kinds, mark, tally, word_counts
from thoughtline.log.events import (
    AssistantMessage,
    Outcome,
    Quarantined,
    Reasoning,
    TurnEnded,
    draft,
)
from thoughtline.log.parts import Carrier, Text, Thought
from thoughtline.stores.base import Batch, EntryFilter
from thoughtline.stores.cached import CachedStore
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Reply, simulator

FIELDS = simulated.FIELDS | {"codex": {"instructions": "Be brief."}}
"""What a client sets to make a model think, or to be let in."""


# -- one request, both ways ------------------------------------------------------------------------


class BothWays(Engine):
    """An engine that walks each resumed request in whole as well, and compares."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.prefixes.min_size = 0
        self.reused = 0
        self.whole = []  # why

    async def begin(self, incoming):
        exchange = await super().begin(incoming)
        if exchange.incoming.resumed is None:
            self.whole.append(str(exchange.walked_whole))
            return exchange
        whole = await self._walk(replace(await self.in_whole(incoming), owner=None))
        assert_same(exchange.decision, whole.decision)
        self.reused += 1
        return exchange


def assert_same(reused, whole):
    """Both decisions send, note and write down the same."""
    one, other = reused.replay_plan, whole.replay_plan
    assert one.decisions == other.decisions
    assert reused.body == whole.body
    assert reused.altered == whole.altered
    assert reused.original.body == whole.original.body
    assert one.parent == other.parent
    assert (one.skipped, one.skipped_before) == (other.skipped, other.skipped_before)
    assert one.fields == other.fields
    assert reused.overrides == whole.overrides
    assert reused.unpatchable == whole.unpatchable
    assert reused.lookup_error == whole.lookup_error
    assert mark(one.decisions, one.first_mark) == mark(other.decisions)
    assert tally(one.decisions) == tally(other.decisions)
    assert one.kinds() == other.kinds() == count_kinds(other.decisions)
    assert word_counts(one.kinds()) == word_counts(other.kinds())
    tail = len(reused.path.turns)
    assert reused.path.settled + tail == len(whole.path.turns)
    assert reused.path.turns == whole.path.turns[-tail:]
    assert reused.path.keys == whole.path.keys[-tail:]
    assert reused.path.prefixes == whole.path.prefixes[-tail:]
    assert reused.path.hints == whole.path.hints
    assert reused.path.unique_hints == whole.path.unique_hints
    said = (Text(text="And so on."),)
    keys = [copy(made.path.rolling_key).keys_for(said) for made in (reused, whole)]
    assert keys[0] == keys[1]
    assert _written(reused) == _written(whole)


class _FixedClock(SystemClock):
    """The same ids and times, in the same order."""

    def __init__(self):
        self.ids = 0

    def new_id(self):
        self.ids += 1
        return f"id-{self.ids}"

    def wall(self):
        return 1_000.0


def _written(decision):
    """The batch that would be written for an answer."""
    capture = Capture(
        path=decision.path,
        replay_plan=decision.replay_plan,
        origin=decision.target.origin,
        tenant="t",
        clock=_FixedClock(),
    )
    thought = Thought(carrier=Carrier.REASONING_CONTENT, raw='"Hm."', text="Hm.")
    said = AssistantMessage(parts=(Text(text="And so on."),))
    capture.take([Reasoning(thought=thought), said, TurnEnded(outcome=Outcome.COMPLETED)])
    return capture.finish()


# -- conversations ---------------------------------------------------------------------------------


class Talk:
    """One client's conversation through a gateway; `settled` bytes are kept of its beginnings."""

    def __init__(self, runner, name, *, settled=64 << 20, policy=None, echo="strip", seed=1):
        self.runner = runner
        self.sim = simulator(name, seed=seed)
        own = policy or simulated.POLICIES.get(name, name)
        store = CachedStore(MemoryStore())
        self.gateway = InProcessGateway(SimWire(self.sim), own, store=store, prefix_bytes=settled)
        self.key = "key-one"
        self.spelling = bytes  # what becomes of each body
        self.prompts = 0
        fields = {"stream": True} if name == "codex" else {}
        self.client = client(
            self.sim.dialect,
            self._post,
            base=self.sim.base_path,
            model=self.sim.models()[0],
            echo=echo,
            **FIELDS.get(name, {}),
            **fields,
        )

    def _post(self, request):
        head = {**request.headers, "authorization": f"Bearer {self.key}"}
        body = self.spelling(request.body)
        posting = self.gateway.post(request.path, body, head, query=request.query)
        answer = self.runner.run(posting)
        return Reply(status=answer.status, headers=dict(answer.headers), chunks=(answer.body,))

    @property
    def engine(self):
        return self.gateway.proxy.engine

    @property
    def sent(self):
        return [request.body for request in self.gateway.wire.sent]

    # -- what may happen in a conversation

    def turn(self):
        self.client.turn()

    def retry(self):
        """The answer got lost: the same request once more."""
        self.client.send()
        self.client.turn()

    def fork(self):
        """The client goes back, and says something else."""
        history = self.client.history
        self.client.history = [*history[: max(1, len(history) // 2)], self.client.user("Or else?")]
        self.client.turn()

    def regenerate(self):
        """The last answer is asked for again, then the conversation goes on from the first."""
        kept = list(self.client.history)
        self.client.history = kept[:-2] or kept
        self.client.turn()
        self.client.history = kept
        self.client.turn()

    def edit(self):
        """An old message is changed."""
        self.client.history[0] = self.client.user("Something else altogether.")
        self.client.turn()

    def echo_otherwise(self):
        modes = ["keep", "strip", "respell"]
        at = modes.index(self.client.echo)
        self.client.echo = modes[(at + 1) % len(modes)]
        self.client.turn()

    def other_model(self):
        models = self.sim.models()
        at = models.index(self.client.model)
        self.client.model = models[(at + 1) % len(models)]
        self.client.turn()

    def no_tools(self):
        self.client.tools = not self.client.tools
        self.client.turn()

    def other_system(self):
        """What stands in front of the history, or behind it, changes."""
        self.client.body = {**self.client.body, "system": "Another prompt."}
        self.client.turn()

    def system_behind(self):
        """From here on, the system prompt stands behind the history; later it changes there."""
        self.prompts += 1
        prompt = f"Prompt {self.prompts}."

        def behind(body):
            document = json.loads(body)
            document.pop("system", None)
            return json.dumps({**document, "system": prompt}).encode()

        self.spelling = behind
        self.client.turn()

    def other_client(self):
        """Somebody else asks the very same."""
        self.key = "key-two"
        self.client.send()
        self.key = "key-one"

    def respaced(self):
        """From here on, the client writes its JSON with more space."""
        self.spelling = lambda body: body.replace(b",{", b", {").replace(b"[{", b"[\n {")
        self.client.turn()

    def key_twice(self):
        """A body that has its history twice: which one counts is not for us to say."""
        before, self.spelling = self.spelling, lambda body: body[:-1] + b"," + body[1:]
        self.client.send()
        self.spelling = before

    def history_twice(self):
        """The same with another history, which is the end of the first."""

        def twice(body):
            member = next(name for name in (b"messages", b"input", b"contents") if name in body)
            whole = json.loads(body)[member.decode()]
            end = json.dumps(whole[-3:]).encode()
            return body[:-1] + b',"%b":%b}' % (member, end)

        before, self.spelling = self.spelling, twice
        self.client.send()
        self.spelling = before

    def marked(self):
        """The client marks what is to be cached, each time in its last two messages."""

        def mark_last(body):
            document = json.loads(body)
            for message in (document.get("messages") or [])[-2:]:
                message["cache_control"] = {"type": "ephemeral"}
            return json.dumps(document).encode()

        self.spelling = mark_last
        self.client.turn()

    def cleared(self):
        self.gateway.store.clear()

    def forget(self):
        self._change_turn(1, lambda entry: self.gateway.store.forget(EntryFilter(turn=entry.turn)))

    def erase(self, nth=5):
        self._change_turn(nth, lambda entry: self.gateway.store.erase(EntryFilter(turn=entry.turn)))

    def purge(self):
        sessions = self.runner.run(self.gateway.store.sessions())
        for summary in sessions[:1]:
            self.runner.run(self.gateway.store.purge(session=summary.session))

    def quarantine(self):
        async def write(entry):
            body = Quarantined(turn=entry.turn, thoughts=(0,), reason="refused")
            fact = draft(body, id=SystemClock().new_id(), parent=entry.turn, at=0.0)
            batch = Batch(session=entry.session, tenant=entry.tenant, drafts=(fact,))
            await self.gateway.store.append(batch)

        self._change_turn(7, write)

    def _change_turn(self, nth, change):
        """Change what is kept of the nth thought, from the last one on, or of the first."""
        entries = self.runner.run(self.gateway.store.entries(limit=50))
        for entry in entries[:nth][-1:]:
            self.runner.run(change(entry))


STEPS = tuple(
    name for name, one in vars(Talk).items() if not name.startswith("_") and callable(one)
)
"""What may happen in a conversation, by name."""


@contextmanager
def talks(name, **options):
    """A conversation in which beginnings are settled, and its twin in which none is."""
    with asyncio.Runner() as runner:
        yield Talk(runner, name, **options), Talk(runner, name, settled=0, **options)

"""What the library's tests share: simulated providers as providers, tools, and an oracle.

The judge of a request is its simulator: it compares every thought that came back with what it
emitted. `expected` says, by rules of its own and from what the simulator emitted, how many may.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import thoughtline
from thoughtline.agents.simulated import FIELDS, POLICIES, SimWire
from thoughtline.log.parts import Call, Result, Text
from thoughtline.providers.contracts import find_policy
from thoughtline.testing import simulator

FORBIDDING = {"deepseek-r1"}  # accepts no thought back, whoever sends it


async def read_file(path: str, n: float = 1.0) -> str:
    """Read a text file.

    Args:
        path: where it is.
        n: how many lines.
    """
    return f"{n} lines of {path}\n"


def run(command: str, cwd: str = ".") -> dict[str, str]:
    """Run a command."""
    return {"ran": command, "in": cwd}


def search(query: str, limit: int = 3, all: bool = False) -> list[str]:  # noqa: A002 (the model's word)
    """Search for something."""
    return [query] * min(limit, 2)


TOOLS = (read_file, run, search)


def wired(*sims) -> SimWire:
    """A wire that ends in these simulators."""
    wire = SimWire()
    wire._sims.update({sim.provider: sim for sim in sims})
    return wire


class Held:
    """A wire whose answers stop after so many chunks, until they are let go on."""

    def __init__(self, inner, chunks: int) -> None:
        self.inner, self.chunks = inner, chunks
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self.left = 0  # answers that were not read to their end

    @asynccontextmanager
    async def send(self, request):
        async with self.inner.send(request) as inbound:
            yield _HeldAnswer(self, inbound)

    async def close(self):
        await self.inner.close()


class _HeldAnswer:
    def __init__(self, wire, inbound) -> None:
        self.wire, self.inbound = wire, inbound
        self.status, self.headers = inbound.status, inbound.headers

    async def chunks(self):
        done = False
        try:
            number = 0
            async for chunk in self.inbound.chunks():
                if number == self.wire.chunks:
                    self.wire.reached.set()
                    await self.wire.go.wait()
                number += 1
                yield chunk
            done = True
        finally:
            self.wire.left += not done


def provider(sim, model: str = "", *, base_url: str = "", **more) -> thoughtline.Provider:
    """A simulator as a provider."""
    name = sim.provider
    said = {
        "key": "a key",
        "options": FIELDS.get(name, {}),
        "policy": POLICIES.get(name, name),
        "retries": 0,
    }
    return thoughtline.Provider(
        name,
        model=model or sim.models()[0],
        base_url=base_url or f"sim://{name}",
        dialect=sim.dialect,
        **(said | more),
    )


@asynccontextmanager
async def talking(
    name: str,
    *,
    url: str = "memory://",
    tools=TOOLS,
    script=None,
    permit=None,
    max_exchanges=50,
    held: int | None = None,
    **more,
) -> AsyncIterator[tuple[thoughtline.Chat, object]]:
    """A chat with one simulated provider, and the simulator."""
    sim = simulator(name, script=script)
    wire = wired(sim) if held is None else Held(wired(sim), held)
    async with thoughtline.open(url, wire=wire, secret=b"secret") as log:
        chat = await log.create(
            provider=provider(sim, **more),
            tools=tools,
            system="Be brief.",
            permit=permit,
            max_exchanges=max_exchanges,
        )
        yield chat, sim


# -- the oracle ----------------------------------------------------------------------------------


def serial(sim, turn) -> str:
    """The exchange of the simulator that a turn was; empty for one of another provider."""
    said = ["".join(p.text for p in turn.output if isinstance(p, Text))]
    said += [p.arguments for p in turn.output if isinstance(p, Call)]
    found = re.search(rf"{re.escape(sim.provider)}-{sim.seed}-\d{{4,}}", " ".join(said))
    return found[0] if found else ""


def expected(sim, turns, model: str) -> tuple[int, int]:
    """How many thoughts a request to this model brings back, of these turns, and how many not."""
    policy = find_policy(POLICIES.get(sim.provider, sim.provider), sim.dialect, model)
    exact = missing = 0
    for turn in turns:
        count = sum(e.serial == serial(sim, turn) for e in sim.emitted)
        sealed = any(thought.sealed for thought in turn.thoughts)
        binds = policy.binds if sealed else policy.plain
        may = "model" not in binds or turn.target.asked == model
        if sim.provider in FORBIDDING:
            may = False
        exact, missing = exact + count * may, missing + count * (not may)
    return exact, missing


def check(sim, turns, model: str = "") -> None:
    """The last request of a path brought back every thought that may go back, and no other."""
    name = f"req-{serial(sim, turns[-1])}"
    [record] = [r for r in sim.requests if r.reply.headers["x-request-id"] == name]
    assert record.reply.status == 200
    audit = record.audit
    assert (audit.altered, audit.misplaced, audit.foreign) == (0, 0, 0), audit
    want = expected(sim, turns[:-1], model or turns[-1].target.asked)
    assert (audit.exact, audit.missing) == want, (audit, want)


async def lines_of(log, session, **options):
    return [line async for line in log.export_lines(session, **options)]


MIDDLE = {"gemini": 1}  # chunks that are in the middle of an answer; 9 for the others


STRICT = ("deepseek", "claude", "openai", "gemini", "mistral")


each_strict = pytest.mark.parametrize("name", STRICT)


def accepted(sim):
    return [r.reply.status for r in sim.requests] == [200] * len(sim.requests)


def results(answer):
    return [p for turn in answer.turns for p in turn.input if isinstance(p, Result)]

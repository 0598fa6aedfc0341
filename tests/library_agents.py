"""What the library's tests share: simulated providers as providers, tools, and an oracle.

The judge of a request is its simulator: it compares every thought that came back with what it
emitted. `expected` says, by rules of its own and from what the simulator emitted, how many may.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import thoughtline
from thoughtline.cli.conversation import FIELDS, POLICIES
from thoughtline.cli.simulated import SimWire
from thoughtline.parts import Call, Text
from thoughtline.policies import lookup
from thoughtline.testing import simulator

POLICY_OF = {**POLICIES, "gemini-vertex": "gemini"}
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


class Nowhere:
    """A wire that must not be used."""

    def send(self, request):
        raise AssertionError(f"nobody was to be asked: {request.url}")

    async def close(self):
        pass


def wired(*sims) -> SimWire:
    """A wire that ends in these simulators."""
    wire = SimWire(Nowhere())
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
        "policy": POLICY_OF.get(name, name),
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
    most=50,
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
            most=most,
        )
        yield chat, sim


# -- the oracle ----------------------------------------------------------------------------------


def serial(sim, turn) -> str:
    """The exchange of the simulator that a turn was; empty for one of another provider."""
    said = [
        p.text if isinstance(p, Text) else p.arguments
        for p in turn.output
        if isinstance(p, Text | Call)
    ]
    found = re.search(rf"{re.escape(sim.provider)}-{sim.seed}-\d{{4,}}", " ".join(said))
    return found[0] if found else ""


def expected(sim, turns, model: str) -> tuple[int, int]:
    """How many thoughts a request to this model brings back, of these turns, and how many not."""
    policy = lookup(POLICY_OF.get(sim.provider, sim.provider), sim.dialect, model)
    exact = missing = 0
    unbroken = True
    for turn in reversed(turns):
        count = sum(e.serial == serial(sim, turn) for e in sim.emitted)
        sealed = any(thought.sealed for thought in turn.thoughts)
        binds = policy.binds if sealed else policy.plain
        may = "model" not in binds or turn.target.asked == model
        if policy.prefix:
            unbroken = may = unbroken and may
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

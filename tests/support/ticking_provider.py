"""Simulated providers whose time passes as they speak: every chunk takes a while."""

import asyncio
from contextlib import asynccontextmanager

import thoughtline
from thoughtline.agents.simulated import FIELDS, POLICIES, SimWire
from thoughtline.testing import FrozenClock, simulator


class Ticking(SimWire):
    """A wire to simulators; the clock goes on with every chunk, and may be stopped at one."""

    def __init__(self, *sims, clock, seconds):
        super().__init__()
        self._sims.update({sim.provider: sim for sim in sims})
        self.clock, self.seconds = clock, seconds

    @asynccontextmanager
    async def send(self, request):
        async with super().send(request) as inbound:
            yield _Slow(inbound, self)

    async def close(self):
        pass


class _Slow:
    def __init__(self, inbound, wire):
        self.inbound, self.wire = inbound, wire
        self.status, self.headers = inbound.status, inbound.headers

    async def chunks(self):
        async for chunk in self.inbound.chunks():
            self.wire.clock.advance(self.wire.seconds)
            await asyncio.sleep(0)
            yield chunk


async def read_file(path: str) -> str:
    """Read a text file."""
    return f"the text of {path}"


@asynccontextmanager
async def ticking(
    name, *, script=None, seconds=0.7, tools=(read_file,), options=None, sim=None, **more
):
    """A chat with a simulated provider, on a clock that its chunks drive."""
    sim, clock = simulator(name, script=script, **(sim or {})), FrozenClock()
    wire = Ticking(sim, clock=clock, seconds=seconds)
    provider = thoughtline.Provider(
        name,
        model=sim.models()[0],
        base_url=f"sim://{name}",
        dialect=sim.dialect,
        key="a key",
        options=options or FIELDS.get(name, {}),
        policy=POLICIES.get(name, name),
        retries=0,
    )
    async with thoughtline.open("memory://", wire=wire, clock=clock, secret=b"secret") as log:
        yield await log.create(provider=provider, tools=tools, **more)

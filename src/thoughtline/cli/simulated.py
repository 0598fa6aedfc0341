"""The built-in simulated providers as upstreams, for people who try things out offline.

A model `sim/NAME` or `sim/NAME/MODEL` goes to the simulator of that name, in this process; any
other wire carries the rest. Nothing here is on the way of a request to a real provider.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlsplit

from thoughtline.cli.conversation import POLICIES
from thoughtline.errors import WireError
from thoughtline.gateway.upstreams import Upstream
from thoughtline.testing import PROVIDERS, Reply, Request, Simulator, simulator
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire

SCHEME = "sim"


def upstream(model: str) -> Upstream | None:
    """The simulated upstream that a model's name asks for."""
    name = model.removeprefix("sim/").partition("/")[0]
    if name not in PROVIDERS:
        return None
    return Upstream(name="sim", base_url=f"{SCHEME}://{name}", policy=POLICIES.get(name, name))


def models() -> list[str]:
    """Names that a client may ask for."""
    return [f"sim/{name}/{model}" for name in PROVIDERS for model in simulator(name).models()]


class _Answer:
    """A simulator's reply as a response."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.headers: Headers = list(reply.headers.items())

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._reply.chunks:
            yield chunk
        if self._reply.ending != "whole":
            raise WireError("the upstream's answer broke off")

    async def read(self, limit: int) -> bytes:
        return self._reply.body[:limit]


class SimWire:
    """A wire that ends in this process for `sim://…`, and goes on outside for everything else."""

    def __init__(self, outside: Wire) -> None:
        self._outside = outside
        self._sims: dict[str, Simulator] = {}

    def send(self, request: Outbound) -> AbstractAsyncContextManager[Inbound]:
        """To the simulator that the URL names, or outside."""
        if not request.url.startswith(f"{SCHEME}://"):
            return self._outside.send(request)
        return self._answer(request)

    @asynccontextmanager
    async def _answer(self, request: Outbound) -> AsyncIterator[Inbound]:
        url = urlsplit(request.url)
        name = url.netloc
        if name not in self._sims:
            self._sims[name] = simulator(name)
        headers = {key.lower(): value for key, value in request.headers}
        headers.setdefault("authorization", "Bearer anybody")  # no key is needed here
        asked = Request(request.method, url.path, headers, request.body, url.query)
        yield _Answer(self._sims[name].answer(asked))

    async def close(self) -> None:
        """Let go of what is outside."""
        await self._outside.close()

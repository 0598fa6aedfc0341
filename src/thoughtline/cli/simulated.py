"""The built-in simulated providers as upstreams, for people who try things out offline.

A model `sim/NAME` or `sim/NAME/MODEL` goes to the simulator of that name, in this process; any
other wire carries the rest. The simulator is asked for the model without our prefix, and a path
that it does not speak is answered with the one that it does. Nothing here is on the way of a
request to a real provider.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import quote, unquote, urlsplit

from thoughtline import splice
from thoughtline.cli.conversation import POLICIES
from thoughtline.errors import Unreadable, WireError
from thoughtline.gateway.routes import parse
from thoughtline.gateway.upstreams import Upstream
from thoughtline.policies import Override
from thoughtline.testing import PROVIDERS, Reply, Request, Simulator, simulator
from thoughtline.testing.sims.base import json_reply
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire

SCHEME = "sim"
PREFIX = "sim/"
_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
}


def upstream(model: str, overrides: tuple[Override, ...] = ()) -> Upstream | None:
    """The simulated upstream that a model's name asks for."""
    name, _, rest = model.removeprefix(PREFIX).partition("/")
    if name not in PROVIDERS:
        return None
    return Upstream(
        name="sim",
        base_url=f"{SCHEME}://{name}",
        policy=POLICIES.get(name, name),
        overrides=overrides,
        served=rest or simulator(name).models()[0],
    )


def models() -> list[str]:
    """Names that a client may ask for."""
    return [f"sim/{name}/{model}" for name in PROVIDERS for model in simulator(name).models()]


class _Answer:
    """A simulator's reply as a response: what was read of it does not come again."""

    def __init__(self, reply: Reply) -> None:
        self._chunks = list(reply.chunks)
        self._ending = reply.ending
        self.status = reply.status
        self.headers: Headers = [(name.lower(), value) for name, value in reply.headers.items()]

    async def chunks(self) -> AsyncIterator[bytes]:
        while self._chunks:
            yield self._chunks.pop(0)
        if self._ending != "whole":
            raise WireError("the upstream's answer broke off")


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
        sim = self._sims[name]
        headers = {key.lower(): value for key, value in request.headers}
        headers.setdefault("authorization", "Bearer anybody")  # no key is needed here
        headers.setdefault("anthropic-version", "2023-06-01")  # nor what only SDKs send
        asked = Request(request.method, url.path, headers, request.body, url.query)
        yield _Answer(_elsewhere(sim, asked) or sim.answer(_plain(sim, asked)))

    async def close(self) -> None:
        """Let go of what is outside."""
        await self._outside.close()


def _elsewhere(sim: Simulator, asked: Request) -> Reply | None:
    """What to say to somebody who asks in a dialect that this simulator does not speak."""
    spoken = parse(asked.method, asked.path).dialect
    if spoken in ("", sim.dialect):
        return None
    path = _PATHS[sim.dialect].format(model=f"sim%2F{sim.provider}")
    others = [name for name in PROVIDERS if simulator(name).dialect == spoken]
    text = (
        f"the model sim/{sim.provider} is not served at {asked.path}; it is at {path}, "
        f"and the simulated providers here are: {', '.join(others)}"
    )
    return json_reply(404, {"error": {"message": text, "type": "not_found_error"}})


def _plain(sim: Simulator, asked: Request) -> Request:
    """The request with the model as the simulator knows it."""
    before, models, after = asked.path.partition("/models/")
    if models:
        model, colon, verb = unquote(after).partition(":")
        path = f"{before}{models}{quote(_served(sim, model))}{colon}{verb}"
        return Request(asked.method, path, asked.headers, asked.body, asked.query)
    try:
        place = splice.members(asked.body)["model"]
        model = splice.loads(asked.body[place.value : place.end])
    except (Unreadable, KeyError):
        return asked
    if not isinstance(model, str) or _served(sim, model) == model:
        return asked
    body = asked.body[: place.value] + splice.dumps(_served(sim, model)) + asked.body[place.end :]
    return Request(asked.method, asked.path, asked.headers, body, asked.query)


def _served(sim: Simulator, model: str) -> str:
    name, _, rest = model.removeprefix(PREFIX).partition("/")
    return (rest or sim.models()[0]) if name == sim.provider else model

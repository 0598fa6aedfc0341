"""The built-in simulated providers as upstreams, for people who try things out offline.

A model `sim/NAME` or `sim/NAME/MODEL` goes to the simulator of that name, in this process. The
simulator is asked for the model without the prefix, and a path that it does not speak is answered
with the one that it does. Only upstreams made here have the wire of this module: a request to a
real provider does not pass through it.

The models of `assistants` answer like an assistant, and take their time to think; those of a plain
`SimWire` follow the script for tests, at once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from thoughtline.agents.provider import Provider
from thoughtline.dialects import DIALECTS, splice
from thoughtline.engine.endpoints import Upstream
from thoughtline.engine.routes import parse
from thoughtline.errors import Unreadable, WireError
from thoughtline.providers.known_providers import SCHEME
from thoughtline.providers.overrides import Override
from thoughtline.testing import PROVIDERS, Reply, Request, Script, Simulator, simulator
from thoughtline.testing.sims.assistant import assistant_script
from thoughtline.testing.sims.base import json_reply
from thoughtline.testing.sims.thinking_time import pauses
from thoughtline.wires.base import Headers, Inbound, Outbound, Wire
from thoughtline.wires.http import HttpWire

PREFIX = "sim/"
STRICT = "THOUGHTLINE_INTERNAL_STRICT_SIMULATORS"
"""The variable that has all models follow the script for tests, in every process."""

Pause = Callable[[float], Awaitable[None]]
POLICIES = {
    "deepseek-v3.2": "deepseek",
    "deepseek-anthropic": "deepseek",
    "deepseek-responses": "deepseek",
    "glm-anthropic": "glm",
    "kimi-k3": "kimi",
    "gemini-compat": "gemini",
    "gemini-vertex": "gemini",
    "claude": "anthropic",
    "claude-bound": "anthropic",
    "openai-ws": "openai",
}
"""Which policy row stands for a simulated provider, where the names differ."""

_SIMULATORS = {"claude": "claude-bound", "claude-4-5": "claude"}
"""Generations of a model: the present one has the plain name, the one before has its version."""
_PLAIN = {simulator: name for name, simulator in _SIMULATORS.items()}

FIELDS: dict[str, dict[str, Any]] = {
    "claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "claude-bound": {"thinking": {"type": "adaptive"}},
}
"""What a client sets to make a model think, where it does not by itself."""


def upstream(
    model: str, overrides: tuple[Override, ...] = (), wire: Wire | None = None
) -> Upstream | None:
    """The simulated upstream that a model's name asks for; `wire` is what leads to it."""
    name, _, rest = model.removeprefix(PREFIX).partition("/")
    name = _SIMULATORS.get(name, name)
    if name not in PROVIDERS:
        return None
    return Upstream(
        name="sim",
        base_url=f"{SCHEME}{name}",
        policy=POLICIES.get(name, name),
        overrides=overrides,
        identity="credential",  # nobody checks a token here
        served=rest or simulator(name).models()[0],
        dialects=(simulator(name).dialect,),
        wire=wire,
    )


def provider(
    name: str,
    model: str = "",
    *,
    options: dict[str, Any] | None = None,
    policy: str = "",
    key: str = "",
) -> Provider:
    """A simulated provider for the library; raises `ValueError` for one that does not exist."""
    sim = simulator(_SIMULATORS.get(name, name))
    return Provider(
        plain_name(sim.provider),
        model=model or sim.models()[0],
        key=key,
        base_url=f"{SCHEME}{sim.provider}",
        dialect=sim.dialect,
        policy=policy or POLICIES.get(sim.provider, sim.provider),
        options=FIELDS.get(sim.provider, {}) | (options or {}),
    )


def wire_to(provider: Provider, simulators: Wire | None = None) -> Wire:
    """The wire to a provider of the library: into this process if it is simulated, else HTTP."""
    if not provider.base_url.startswith(SCHEME):
        return HttpWire()
    return simulators or SimWire()


def assistants(pause: Pause = asyncio.sleep) -> SimWire:
    """The wire to simulated models that answer like an assistant; `pause` lets time pass."""
    if os.environ.get(STRICT):
        return SimWire()
    return SimWire(assistant_script, pause)


def at_once() -> Wire:
    """The wire to the same models, which take no time: programs and their tests use it."""
    return SimWire(assistant_script)


def models() -> dict[str, str]:
    """Names that a client may ask for, one per simulated provider, and the dialect of each."""
    return {f"{PREFIX}{plain_name(name)}": simulator(name).dialect for name in PROVIDERS}


def plain_name(simulator: str) -> str:
    """The name that people ask for, of a simulator."""
    return _PLAIN.get(simulator, simulator)


class _Answer:
    """A simulator's reply as a response whose chunks are read once."""

    def __init__(self, reply: Reply, pause: Pause | None) -> None:
        self._chunks = list(reply.chunks)
        self._pauses = pauses(reply.chunks) if pause else []
        self._pause = pause
        self._ending = reply.ending
        self.status = reply.status
        self.headers: Headers = [(name.lower(), value) for name, value in reply.headers.items()]

    async def chunks(self) -> AsyncIterator[bytes]:
        while self._chunks:
            if self._pause and self._pauses:
                await self._pause(self._pauses.pop(0))
            yield self._chunks.pop(0)
        if self._ending != "whole":
            raise WireError("the upstream's answer broke off")


class SimWire:
    """The wire to simulated providers: `sim://NAME/…` is answered in this process.

    Their models follow the script, by default the one for tests. With a `pause`, thoughts and
    answers take the time that they would take.
    """

    def __init__(self, script: Script | None = None, pause: Pause | None = None) -> None:
        self._script = script
        self._pause = pause
        self._sims: dict[str, Simulator] = {}

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Inbound]:
        """Ask the simulator that the URL names."""
        url = urlsplit(request.url)
        name = url.netloc
        if not request.url.startswith(SCHEME):
            raise WireError(f"{url.scheme}://{name} is not a simulated provider")
        if name not in self._sims:
            self._sims[name] = self._simulator(name)
        sim = self._sims[name]
        headers = {key.lower(): value for key, value in request.headers}
        headers.setdefault("authorization", "Bearer anybody")  # no key is needed here
        headers.setdefault("anthropic-version", "2023-06-01")  # nor what only SDKs send
        asked = Request(request.method, url.path, headers, request.body, url.query)
        reply = _other_dialect(sim, asked) or sim.answer(_without_prefix(sim, asked))
        yield _Answer(reply, self._pause if reply.status == 200 else None)

    def _simulator(self, name: str) -> Simulator:
        if self._script is None:
            return simulator(name)
        # Ids are not those of the last run, whose conversations are in the log.
        begun = int(time.time())
        return simulator(name, script=self._script, serials=False, exchanges=begun)

    async def close(self) -> None:
        """There is nothing to close."""


def _other_dialect(sim: Simulator, asked: Request) -> Reply | None:
    """The 404 for a request in a dialect that this simulator does not speak."""
    spoken = parse(asked.method, asked.path).dialect
    if spoken in ("", sim.dialect):
        return None
    model = f"{PREFIX}{plain_name(sim.provider)}"
    path = DIALECTS[sim.dialect].request_path(quote(model, safe=""), stream=False)
    others = [name.removeprefix(PREFIX) for name, dialect in models().items() if dialect == spoken]
    text = (
        f"the model {model} is not served at {asked.path}; it is at {path}, "
        f"and the simulated providers here are: {', '.join(others)}"
    )
    return json_reply(404, {"error": {"message": text, "type": "not_found_error"}})


def _without_prefix(sim: Simulator, asked: Request) -> Request:
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
    return (rest or sim.models()[0]) if _SIMULATORS.get(name, name) == sim.provider else model

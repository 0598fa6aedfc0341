"""One exchange of the engine without a caller, for tests that look at its decision."""

import json

from msgspec.structs import replace

from thoughtline.dialects import DIALECTS
from thoughtline.engine.caller import Incoming, Unobserved
from thoughtline.engine.exchange import Engine, EngineOptions
from thoughtline.engine.normalise import Normalised
from thoughtline.log.parts import Origin
from thoughtline.providers.contracts import find_policy
from thoughtline.replay.guard import Target
from thoughtline.replay.plan import NO_LIMITS
from thoughtline.testing import FrozenClock

CLOCK = FrozenClock()
"""Each exchange begins a second after the one before."""


async def begin(
    request,
    *,
    dialect,
    target,
    tenant,
    store,
    stream=None,
    hints=(),
    limits=NO_LIMITS,
    **normalised,
):
    """Look up and decide, as it stands: nothing is normalised but what is said here."""
    CLOCK.advance(1)
    options = EngineOptions(limits=limits)
    engine = Engine(store, observer=Unobserved(), options=options, clock=CLOCK)
    request = request if stream is None else replace(request, stream=stream)
    incoming = Incoming(
        request=request,
        dialect=dialect,
        target=target,
        tenant=tenant,
        hints=tuple(hints),
        normalised=Normalised(request=request, **normalised),
    )
    exchange = await engine.begin(incoming)
    exchange.record()
    return exchange


async def finish(store, exchange, reason=""):
    """Write the turn of an exchange."""
    batch = exchange.recording.finish(reason)
    return await store.append(batch)


def message(text, **more):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def target(policy, dialect, model):
    origin = Origin(
        dialect=dialect,
        provider=policy,
        endpoint=f"https://{policy}",
        account="a",
        model=model,
        asked=model,
    )
    return Target(policy=find_policy(policy, dialect, model), origin=origin)


async def asked(store, dialect, where, body, hints=()):
    raw = json.dumps(body).encode()
    codec = DIALECTS[dialect]
    return await begin(
        codec.read(raw),
        dialect=codec,
        target=where,
        tenant="t",
        store=store,
        stream=False,
        hints=hints,
    )


async def answered(store, dialect, where, body, answer, hints=()):
    exchange = await asked(store, dialect, where, body, hints)
    exchange.recording.feed(json.dumps(answer).encode())
    await finish(store, exchange)
    return exchange

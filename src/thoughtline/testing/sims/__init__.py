"""Strict simulated providers: each enforces what the real one enforces, in its own words.

    sim = simulator("deepseek")
    reply = sim.answer(Request("POST", "/v1/chat/completions", headers, body))
    reply.headers["x-sim-thoughts"]   # exact=5; altered=0; missing=0; misplaced=0; foreign=0

Every family of dialects has a module with its own `PROVIDERS`; this one joins them. Independent of
the rest of Thoughtline, so that it can be its judge.
"""

from __future__ import annotations

from typing import Any

from thoughtline.errors import did_you_mean
from thoughtline.testing.sims import chat, gemini, messages, responses
from thoughtline.testing.sims.base import Factory, Script, Simulator

PROVIDERS: dict[str, Factory] = {
    **chat.PROVIDERS,
    **responses.PROVIDERS,
    **messages.PROVIDERS,
    **gemini.PROVIDERS,
}
"""Name → what builds its simulator; the first part of the path in `thoughtline sim`."""


def simulator(
    name: str,
    *,
    script: Script | None = None,
    serials: bool = True,
    seed: int = 0,
    account: str | None = None,
    **options: Any,
) -> Simulator:
    """Build the simulator of this name.

    Args:
        name: a key of `PROVIDERS`.
        script: what the model does; the default one uses tools, thinks and talks.
        serials: whether visible output is unique; without, all conversations look alike.
        seed: equal seeds give equal seals.
        account: the only credential accepted; any when None.
        options: what this provider's simulator offers beyond.
    """
    factory = PROVIDERS.get(name)
    if factory is None:
        hint = did_you_mean(name, PROVIDERS, f"known: {', '.join(PROVIDERS)}")
        raise ValueError(f"no simulated provider is called {name!r}; {hint}")
    return factory(script=script, serials=serials, seed=seed, account=account, **options)

"""Keys that change: a function gives the credential of each request, and the account stays."""

import asyncio

import pytest

import thoughtline
from support.agents import TOOLS
from thoughtline.agents.provider import resolve
from thoughtline.agents.simulated import SimWire
from thoughtline.testing import simulator
from thoughtline.testing.sims.tokens import make_token

SECRET = b"of the provider"


class Tokens:
    """Gives another token of the same subject each time."""

    def __init__(self, subject="alice"):
        self.subject, self.given = subject, []

    def __call__(self):
        self.given.append(make_token(SECRET, self.subject, iat=len(self.given)))
        return self.given[-1]


def logged_in(name="openai", **more):
    """A simulated provider that checks its tokens, and the wire to it."""
    sim, wire = simulator(name, token_secret=SECRET, **more), SimWire()
    wire._sims[sim.provider] = sim
    return sim, wire


def asked(sim, **said):
    return thoughtline.Provider(
        "openai", model=sim.models()[0], base_url=f"sim://{sim.provider}/v1", **said
    )


async def conversed(wire, *providers):
    """One run with each of the providers, in one chat."""
    async with thoughtline.open(wire=wire) as log:
        chat = await log.create(provider=providers[0], tools=TOOLS)
        for provider in providers:
            answer = await chat.use(provider).run("go on")
            assert answer.outcome == "completed", answer.reason
        return chat.turns


async def asynchronous(tokens):
    await asyncio.sleep(0)
    return tokens()


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_each_request_has_a_fresh_key_and_the_account_stays(kind):
    sim, wire = logged_in()
    tokens = Tokens()
    key = tokens if kind == "sync" else lambda: asynchronous(tokens)
    turns = await conversed(wire, *[asked(sim, key=key)] * 2)
    shown = [record.request.headers["authorization"] for record in sim.requests]
    assert shown == [f"Bearer {token}" for token in tokens.given]
    assert len(set(shown)) == len(shown) > 2
    assert len({turn.target.account for turn in turns}) == 1
    assert turns[0].target.account
    assert sim.requests[-1].audit.clean
    assert sim.requests[-1].audit.exact >= 1


async def test_a_named_account_stays_when_the_key_is_another():
    sim, wire = logged_in(name="openai")
    keys = [Tokens()(), make_token(SECRET, "alice", iat=99)]
    turns = await conversed(wire, *(asked(sim, key=key, account="alice") for key in keys))
    assert len({turn.target.account for turn in turns}) == 1
    assert "alice" not in turns[0].target.account  # a keyed hash, as of a credential
    assert sim.requests[-1].audit.clean
    assert sim.requests[-1].audit.exact >= 1


async def test_another_account_does_not_get_sealed_thoughts():
    sim, wire = logged_in()
    alice, bob = (asked(sim, key=Tokens(name), account=name) for name in ("alice", "bob"))
    await conversed(wire, alice, bob)
    first = next(record.audit for record in sim.requests if record.account == "bob")
    assert (first.exact, first.foreign) == (0, 0)
    assert not any(record.audit.foreign for record in sim.requests)


def refused():
    raise OSError("no network")


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (refused, "the key of provider 'openai' could not be obtained: OSError: no network"),
        (lambda: None, "the key of provider 'openai' is a NoneType; expected text"),
        (lambda: " ", "the key of provider 'openai' is empty"),
        (lambda: "two\nlines", "the key of provider 'openai' has characters"),
    ],
)
async def test_a_key_that_cannot_be_had_is_an_error_that_says_so(key, said):
    sim, wire = logged_in()
    with pytest.raises(thoughtline.ThoughtlineError, match=said):
        await conversed(wire, asked(sim, key=key))
    assert sim.requests == []


def test_a_key_is_never_shown():
    tokens = Tokens()
    provider = thoughtline.Provider("openai", model="m", key=tokens, account="alice")
    shown = f"{provider!r} {resolve(provider, {})!r}"
    assert "Tokens" not in shown
    assert "alice" not in shown

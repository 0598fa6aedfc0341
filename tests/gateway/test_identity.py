"""A renewed token stays the same tenant and account, and nobody can pose as another by claiming to be.

The simulated providers check the tokens' signatures, as the real ones do; the gateway cannot.
"""

import pytest

from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.failed_requests import failed_requests
from thoughtline.stores.memory import MemoryStore
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.spelling import write
from thoughtline.testing.sims.tokens import make_token

SECRET = b"of the provider"
ACCOUNT = "chatgpt-account-id"
HOSTS = {
    "kimi": "https://api.moonshot.ai",
    "deepseek": "https://api.deepseek.com",
    "openai": "https://api.openai.com",
    "codex": "https://chatgpt.com",
}
"""Where providers check tokens; what stands elsewhere may take any."""


def gateway_over(name, policy, *, auth=None, sim=None, **upstream):
    """A gateway over a provider that checks its tokens."""
    sim = sim or simulator(name, token_secret=SECRET)
    gateway = InProcessGateway(SimWire(sim), policy, store=MemoryStore())
    gateway.proxy.auth = auth or Auth(b"secret" * 8)
    home = {"name": "up", "base_url": HOSTS.get(policy, "http://sim"), "policy": policy}
    given = {**home, **upstream}
    gateway.proxy.directory = Directory([Upstream(**given)])
    gateway.sim = sim
    return gateway


class Talk:
    """A client that keeps no thoughts, and whose credential changes."""

    def __init__(self, gateway, *, key, headers=None):
        self.gateway = gateway
        sim, row = gateway.sim, getattr(gateway.sim, "row", None)
        self.talker = talker_of(
            sim.dialect,
            sim,
            model=sim.models()[0],
            echo="strip",
            key=key,
            stream=getattr(row, "streamed", False),
        )
        self.more = headers or {}

    async def turn(self, key=None, **headers):
        talker = self.talker
        head = {"authorization": f"Bearer {key or talker.key}", **talker.headers, **self.more}
        head |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.gateway.post(talker.path, write(talker.request()), head)
        if answer.status == 200:
            made = Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,))
            talker.absorb(made)
        return answer

    @property
    def audit(self):
        return self.gateway.sim.requests[-1].audit


def token(subject="alice", n=1, secret=SECRET, **claims):
    return make_token(secret, subject, iat=n, **claims)


@pytest.mark.parametrize(
    ("name", "policy"), [("kimi-k3", "kimi"), ("deepseek", "deepseek"), ("openai", "openai")]
)
async def test_a_renewed_token_is_the_same_tenant_and_account(name, policy):
    gateway = gateway_over(name, policy)
    talk = Talk(gateway, key=token(n=1))
    for n in range(1, 5):
        answer = await talk.turn(key=token(n=n, jti=f"token-{n}"))
        assert answer.status == 200, answer.body
    assert talk.audit.exact >= 3
    assert talk.audit.clean
    (session,) = await gateway.store.sessions(limit=10)
    assert session.session == answer.header("x-thoughtline-session")


async def test_an_account_header_names_tenant_and_account_of_an_opaque_token():
    sim = simulator("codex", account_header=ACCOUNT)
    gateway = gateway_over("codex", "codex", sim=sim)
    talk = Talk(gateway, key="first", headers={ACCOUNT: "acct-1"})
    for n in range(4):
        answer = await talk.turn(key=f"opaque-{n}")
        assert answer.status == 200, answer.body
    assert (talk.audit.exact >= 3, talk.audit.clean) == (True, True)
    talk.more = {ACCOUNT: "acct-2"}
    await talk.turn(key="opaque-4")
    assert talk.audit.exact == 0


async def test_two_people_of_one_account_are_two_tenants():
    """A ChatGPT workspace is one account; the subject of the token is the person."""
    gateway = gateway_over("codex", "codex")
    alice = Talk(gateway, key=token("alice"), headers={ACCOUNT: "team"})
    await alice.turn()
    await alice.turn()
    bob = Talk(gateway, key=token("bob"), headers={ACCOUNT: "team"})
    bob.talker.history = list(alice.talker.history)
    await bob.turn()
    tenants = {session.tenant for session in await gateway.store.sessions(limit=10)}
    assert len(tenants) == 2
    assert bob.audit.exact == 0


# -- posing as another ---------------------------------------------------------------------------


async def conversed(gateway, key=None):
    """A conversation of Alice's, with thoughts in the log."""
    alice = Talk(gateway, key=key or token("alice"))
    for _ in range(3):
        assert (await alice.turn()).status == 200
    return alice


def posing(gateway, alice, key, headers=None):
    """Somebody who knows what Alice and the model said, word for word."""
    other = Talk(gateway, key=key, headers=headers)
    other.talker.history = list(alice.talker.history)
    return other


async def test_a_forged_token_learns_nothing():
    gateway = gateway_over("kimi-k3", "kimi")
    alice = await conversed(gateway)
    (before,) = await gateway.store.sessions(limit=10)
    forger = posing(gateway, alice, token("alice", secret=b"made up"))
    answer = await forger.turn()
    assert answer.status == 401
    told = {name for name, _ in answer.headers if name.startswith("x-thoughtline")}
    assert told == {"x-thoughtline-replay", "x-thoughtline-request"}  # it failed, and no more
    assert answer.header("x-thoughtline-replay") == "withheld=identity"
    await gateway.proxy.failed.settled()
    ((_, failed),) = await failed_requests(gateway.store)
    assert (failed.session, failed.turn, failed.replay) == ("", "", {})
    after = {s.session: s.events for s in await gateway.store.sessions(limit=10)}
    assert after[before.session] == before.events
    assert len(after) == 2  # that one, and where failed requests are kept


@pytest.mark.parametrize("policy", ["vllm", "sglang", "llamacpp", "ollama", "lmstudio", "generic"])
async def test_where_nobody_checks_tokens_a_subject_is_no_proof(policy):
    """These servers accept whatever they are shown."""
    sim = simulator("vllm")
    gateway = gateway_over("vllm", policy, sim=sim)
    alice = await conversed(gateway)
    forger = posing(gateway, alice, token("alice", secret=b"made up"))
    assert (await forger.turn()).status == 200
    assert forger.audit.exact == forger.audit.foreign == 0
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2


async def test_a_proxy_in_a_providers_name_may_take_any_token():
    """`[upstreams.kimi]` with another address is not Kimi, whatever its policy."""
    gateway = gateway_over("kimi-k3", "kimi", sim=simulator("kimi-k3"), base_url="http://localhost")
    alice = await conversed(gateway)
    forger = posing(gateway, alice, token("alice", secret=b"made up"))
    assert (await forger.turn()).status == 200
    assert forger.audit.exact == forger.audit.foreign == 0
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2


async def test_an_upstream_with_a_key_of_its_own_checks_no_token():
    sim = simulator("kimi-k3", account="ours")
    gateway = gateway_over("kimi-k3", "kimi", sim=sim, key="ours")
    alice = await conversed(gateway)
    forger = posing(gateway, alice, token("alice", secret=b"made up"))
    await forger.turn()
    assert forger.audit.exact == 0
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2


async def test_configured_headers_that_replace_the_token_check_none_either():
    sim = simulator("kimi-k3", account="ours")
    gateway = gateway_over("kimi-k3", "kimi", sim=sim, headers={"Authorization": "Bearer ours"})
    alice = await conversed(gateway)
    forger = posing(gateway, alice, token("alice", secret=b"made up"))
    await forger.turn()
    assert forger.audit.exact == 0


async def test_a_second_credential_may_be_the_one_that_counts():
    """An upstream that looks at `x-api-key` first never sees the forged token."""
    gateway = gateway_over("kimi-k3", "kimi", sim=simulator("kimi-k3"))
    alice = await conversed(gateway)
    forged = token("alice", secret=b"made up")
    forger = posing(gateway, alice, forged, headers={"x-api-key": "my own"})
    await forger.turn()
    assert forger.audit.exact == 0
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2


async def test_an_account_header_counts_where_the_provider_checks_it():
    gateway = gateway_over("deepseek", "deepseek", sim=simulator("deepseek"))
    alice = await conversed(gateway, key="alice's key")
    alice.more = {ACCOUNT: "alice"}
    await alice.turn()
    other = posing(gateway, alice, "another key", headers={ACCOUNT: "alice"})
    await other.turn()
    assert other.audit.exact == 0


async def test_a_subject_of_one_provider_is_nobody_at_another():
    gateway = gateway_over("kimi-k3", "kimi")
    alice = await conversed(gateway)
    gateway.proxy.directory = Directory(
        [Upstream(name="up", base_url="http://sim", policy="deepseek")]
    )
    await alice.turn()
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2


async def test_settings_may_forbid_it_and_allow_it():
    """`identity = "credential"` for a provider, `identity = "token"` for a server that checks."""
    gateway = gateway_over("kimi-k3", "kimi", identity="credential")
    talk = Talk(gateway, key=token(n=1))
    await talk.turn(key=token(n=1))
    await talk.turn(key=token(n=2))
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 2
    gateway = gateway_over("vllm", "vllm", identity="token")
    talk = Talk(gateway, key=token(n=1))
    await talk.turn(key=token(n=1))
    await talk.turn(key=token(n=2))
    assert talk.audit.exact == 1


# -- a header of the operator's ------------------------------------------------------------------


async def test_a_configured_header_names_the_tenant():
    auth = Auth(b"secret" * 8, identity_header="X-Forwarded-User")
    gateway = gateway_over("kimi-k3", "kimi", auth=auth, sim=simulator("kimi-k3"))
    talk = Talk(gateway, key="first", headers={"x-forwarded-user": "alice"})
    for n in range(3):
        await talk.turn(key=f"key-{n}")
    assert (talk.audit.exact, talk.audit.clean) == (2, True)
    bob = posing(gateway, talk, "key-2", headers={"x-forwarded-user": "bob"})
    await bob.turn()
    assert bob.audit.exact == 0
    nobody = posing(gateway, talk, "key-2")
    await nobody.turn()
    assert nobody.audit.exact == 0
    for sent in gateway.wire.sent:  # it is said to this gateway, and to nobody else
        assert "x-forwarded-user" not in dict(sent.headers)


def test_a_client_key_is_the_tenant_whatever_else_is_said():
    auth = Auth(b"s" * 32, clients={"alice": "her key"}, identity_header="x-user")
    headers = [(b"authorization", b"Bearer her key"), (b"x-user", b"bob")]
    assert auth.authenticate(headers, "").tenant == "client:alice"


def test_a_header_that_comes_twice_names_nobody():
    auth = Auth(b"s" * 32, identity_header="x-user")
    key = (b"authorization", b"Bearer k")
    alone = auth.authenticate([key], "")
    named = auth.authenticate([key, (b"x-user", b"bob")], "")
    twice = auth.authenticate([key, (b"x-user", b"bob"), (b"x-user", b"alice")], "")
    assert named.tenant != alone.tenant == twice.tenant


def test_no_credential_can_be_spelled_like_an_identity():
    auth = Auth(b"s" * 32, identity_header="x-user")
    named = auth.authenticate([(b"x-user", b"bob")], "")
    for spelled in ("bob", "x-user\nbob", "x-user\0bob"):
        assert auth.fingerprint(spelled) != named.tenant


# -- one credential, several accounts ------------------------------------------------------------------


@pytest.mark.parametrize("header", ["openai-organization", "openai-project", "x-goog-user-project"])
@pytest.mark.parametrize("key", ["sk-one", None], ids=["key", "token"])
async def test_the_account_that_is_chosen_makes_the_tenant(header, key):
    gateway = gateway_over("openai", "openai", sim=simulator("openai"))
    alice = Talk(gateway, key=key or token("alice"), headers={header: "org-1"})
    for _ in range(3):
        assert (await alice.turn()).status == 200
    assert alice.audit.exact >= 1
    alice.more = {header: "org-2"}
    await alice.turn()
    assert alice.audit.exact == alice.audit.foreign == 0
    alice.more = {}
    await alice.turn()
    assert alice.audit.exact == 0
    assert len({session.tenant for session in await gateway.store.sessions(limit=10)}) == 3


@pytest.mark.parametrize("by", ["client", "setting"])
async def test_the_account_that_is_chosen_is_another_account_of_the_configured_key(by):
    """Seals are bound to their account; thoughts of another one are not sent."""
    sim = simulator("openai", account="ours")
    auth = Auth(b"secret" * 8, clients={"alice": "key-of-alice"})
    gateway = gateway_over("openai", "openai", sim=sim, auth=auth, key="ours")
    alice = Talk(gateway, key="key-of-alice", headers={"openai-project": "one"})
    for _ in range(3):
        assert (await alice.turn()).status == 200
    assert alice.audit.exact >= 1
    if by == "client":
        alice.more = {"openai-project": "two"}
    else:
        given = {"key": "ours", "headers": {"OpenAI-Project": "two"}, "policy": "openai"}
        home = Upstream(name="up", base_url=HOSTS["openai"], **given)
        gateway.proxy.directory = Directory([home])
    await alice.turn()
    assert alice.audit.exact == 0

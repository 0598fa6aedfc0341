"""What the tests with real SDKs share: two ways to a strict provider, tools, and a judge.

A client reaches a simulated provider through a gateway (a process of its own, on a port) or by
itself with our transport in its HTTP client. Either way it talks until the model has answered
three questions, which takes nine turns: parallel calls, text beside calls, lone calls and plain
answers. The judge is the provider: it must not have refused anything, and every thought that it
emitted must have come back, byte for byte, in every request.
"""

import importlib
import warnings

import httpx2
import pytest

from support import gateway_server as gateways
from thoughtline.testing import PROVIDERS, simulator
from thoughtline.testing.sims.script import default_script
from thoughtline.transports import AsyncTransport, Transport

KEY = "sk-a-real-looking-key"
QUESTIONS = ("Please mend a.txt.", "Now look for the others.", "And once more, from the top?")
TURNS = 9  # a question takes three of them
FORBIDDING = {"deepseek-r1"}  # takes no thought back
_TAMED = "gemini gemini-vertex claude claude-bound deepseek-anthropic deepseek kimi-k3 openai"
TAME = {f"{name}-tame": name for name in _TAMED.split()}
"""Providers that say nothing with U+2028 in it, for clients that take it for the end of a line."""
POLICIES = gateways.POLICIES | {
    name: gateways.POLICIES.get(like, like) for name, like in TAME.items()
}
THINKING = {
    "claude": {"type": "enabled", "budget_tokens": 2048},
    "claude-tame": {"type": "enabled", "budget_tokens": 2048},
    "claude-bound": {"type": "adaptive"},
}
"""What makes a model of the Messages API think, where it does not by itself."""

ALIASES = {"claude": "claude-that-thinks", "claude-tame": "claude-that-thinks-tamely"}
"""Names under which clients of other dialects ask for models that think only when they are told."""


def providers(dialect, *, without=(), tame=False):
    """The names of the simulated providers that speak a dialect."""
    names = [n for n in PROVIDERS if simulator(n).dialect == dialect and n not in without]
    tamed = {like: name for name, like in TAME.items()} if tame else {}
    return [tamed.get(name, name) for name in names]


def tame(turn, sim):
    """What the model does by default, without the line separator."""
    return tuple(
        piece._replace(text=piece.text.replace("\u2028", " ")) if hasattr(piece, "text") else piece
        for piece in default_script(turn, sim)
    )


def sdk(name):
    """A client library, or a skipped test that says how to get it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            pytest.skip(f"{error.name} is not installed; `make clients` installs it")


class Way:
    """How a client reaches the provider."""

    def __init__(self, sims, name, test):
        self.sims, self.name, self.test = sims, name, test
        self.sim = sims[name]
        self.model = self.sim.models()[0]
        self._seen = len(self.sim.requests)
        self._open = []

    @property
    def alias(self):
        """What a client of another dialect asks for."""
        return ALIASES.get(self.name, self.model)

    def http(self):
        """An HTTP client for the SDK; None: its own will do."""
        transport = self._sync()
        if transport is None:
            return None
        self._open.append(httpx2.Client(transport=transport, timeout=60))
        return self._open[-1]

    def ahttp(self):
        """The same for an SDK on an event loop."""
        self._open.append(httpx2.AsyncClient(transport=self._async(), timeout=60))
        return self._open[-1]

    def close(self):
        for made in self._open:
            if isinstance(made, httpx2.Client):
                made.close()

    async def aclose(self):
        for made in self._open:
            if isinstance(made, httpx2.AsyncClient):
                await made.aclose()

    @property
    def policy(self):
        return POLICIES.get(self.name, self.name)

    def ask(self, number):
        """A question; the first one makes the conversation like no other."""
        return f"{QUESTIONS[number]} ({self.test})" if number == 0 else QUESTIONS[number]

    @property
    def records(self):
        """What the provider has received since the test began."""
        return [r for r in self.sim.requests[self._seen :] if r.request.method == "POST"]

    def judge(self, *, turns=TURNS):
        """Nothing was refused, nothing was lost."""
        records = self.records
        assert [r.reply.status for r in records] == [200] * turns, [
            r.reply.body[:300] for r in records if r.reply.status != 200
        ]
        audits = [r.audit for r in records]
        if self.name in FORBIDDING:
            assert all(a.exact == a.altered == a.misplaced == a.foreign == 0 for a in audits)
            return
        assert all(audit.clean for audit in audits), [str(audit) for audit in audits]
        last = records[-1]
        emitted = [e for e in self.sim.emitted if e.marker == last.marker and e.turn < turns - 1]
        assert last.audit.exact == len(emitted) >= 6, str(last.audit)


class ByGateway(Way):
    """Through the port of a gateway; the client has nothing but another base URL."""

    gateway = ""

    @property
    def root(self):
        return f"{self.gateway}/u/{self.name}"

    @property
    def url(self):
        return f"{self.root}/v1"

    def _sync(self):
        return None  # whatever the SDK makes for itself

    def _async(self):
        return httpx2.AsyncHTTPTransport()


class ByTransport(Way):
    """Straight to the provider, with the transport in the client's HTTP client."""

    @property
    def root(self):
        return self.sims.root(self.name)

    @property
    def url(self):
        return self.sims.url(self.name)

    def _sync(self):
        return Transport("memory://", policy=self.policy)

    def _async(self):
        return AsyncTransport("memory://", policy=self.policy)


# -- the tools of every client -------------------------------------------------------------------


def read_file(path: str, n: float) -> str:
    """Read the first lines of a file."""
    return f"{path}: {n} lines of “text”\n"


def run(command: str, cwd: str) -> str:
    """Run a command."""
    return f"$ {command}\nok in {cwd}\n"


def search(query: str, limit: int, all: bool) -> str:  # noqa: A002
    """Search in all files."""
    return f"{limit} of {query}, all={all}"


TOOLS = {tool.__name__: tool for tool in (read_file, run, search)}
SCHEMAS = {
    "read_file": {"path": "string", "n": "number"},
    "run": {"command": "string", "cwd": "string"},
    "search": {"query": "string", "limit": "integer", "all": "boolean"},
}


def schema(name):
    """The JSON schema of a tool's arguments."""
    types = SCHEMAS[name]
    return {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in types.items()},
        "required": list(types),
    }

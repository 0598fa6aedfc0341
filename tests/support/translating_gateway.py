"""A gateway that translates, in front of a simulated provider, and clients of other dialects."""

import asyncio
from itertools import product

from support.clients import client
from support.gateway import InProcessGateway, SimWire
from support.translation import read
from thoughtline.engine.endpoints import Directory, Upstream
from thoughtline.engine.routes import parse
from thoughtline.gateway.auth import Auth
from thoughtline.gateway.proxy import Proxy
from thoughtline.log.parts import Call
from thoughtline.testing import Reply, simulator

PROVIDERS = {
    "deepseek": ("chat", "deepseek", "deepseek-v4-pro"),
    "kimi-k3": ("chat", "kimi", "kimi-k3"),
    "glm": ("chat", "glm", "glm-5.2"),
    "minimax": ("chat", "minimax", "MiniMax-M2.7"),
    "mistral": ("chat", "mistral", "magistral-medium-latest"),
    "vllm": ("chat", "vllm", "zai-org/GLM-4.7"),  # a name with a slash
    "openai": ("responses", "openai", "gpt-5.6"),
    "claude": ("messages", "anthropic", "claude-sonnet-4-5"),
    "claude-bound": ("messages", "anthropic", "claude-opus-5-5"),
    "gemini": ("gemini", "gemini", "gemini-3-pro-preview"),
}
"""Simulated providers: the dialect, the policy and the model that a client asks for."""

DIALECTS = ("chat", "responses", "messages", "gemini")
PAIRS = [
    (speaks, name) for speaks, name in product(DIALECTS, PROVIDERS) if speaks != PROVIDERS[name][0]
]


class TranslatingGateway(InProcessGateway):
    """A gateway whose upstream speaks one dialect only."""

    def __init__(self, name, *, store=None, sim=None, wire=None, **options):
        dialect, policy, self.model = PROVIDERS[name]
        self.sim = simulator(name, **(sim or {})) if wire is None else wire.sim
        self.answers = []
        super().__init__(wire or SimWire(self.sim), policy, store=store, **options)
        base = getattr(self.sim, "base_path", "")
        self.proxy.directory = Directory(
            [
                Upstream(
                    name="up",
                    base_url=f"http://sim{base}",
                    policy=policy,
                    dialects=(dialect,),
                )
            ]
        )

    def client(self, dialect, **options):
        """A client of this gateway, which asks for some thinking."""
        options = {**THINKING[dialect], **options}
        return client(dialect, self._answer, model=self.model, base=BASES[dialect], **options)

    def _answer(self, request):
        path = request.path + (f"?{request.query}" if request.query else "")
        answer = asyncio.run(self._post(path, request))
        stream = b'"stream":true' in request.body.replace(b" ", b"") or "stream" in request.path
        dialect = parse("POST", request.path).dialect
        self.answers.append({"dialect": dialect, "body": answer.body, "stream": stream})
        return Reply(status=answer.status, headers=dict(answer.headers), chunks=(answer.body,))

    async def _post(self, path, request):
        place, _, query = path.partition("?")
        return await self.post(place, request.body, dict(request.headers), query=query)

    def restart(self):
        """Begin anew with the same store and the same secret."""
        old = self.proxy
        self.proxy = Proxy(
            auth=Auth(b"secret" * 8),
            directory=old.directory,
            store=self.store,
            wire=self.wire,
            observer=self.notes,
            options=old.options,
        )

    @property
    def client_call_ids(self):
        """The ids of all calls that clients were given, answer by answer."""
        found = []
        for told in self.answers:
            parts = read(told["dialect"], told["body"], stream=told["stream"])
            found += [part.id for part in parts if isinstance(part, Call)]
        return found

    @property
    def records(self):
        """What the simulator has written down, request by request."""
        return self.sim.requests


THINKING = {
    "chat": {"reasoning_effort": "high"},
    "responses": {"reasoning": {"effort": "high"}},
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 20000}},
    "gemini": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 20000}}},
}
BASES = {"chat": "/v1", "responses": "/v1", "messages": "/v1", "gemini": "/v1beta"}

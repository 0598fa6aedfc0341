"""Hosts of other people's models, known by name: what they emit goes back as they take it."""

import pytest

from support.clients import client as talker_of
from support.gateway import InProcessGateway, SimWire
from thoughtline.testing import Reply, simulator
from thoughtline.testing.sims.spelling import write

HOSTED = [
    ("opencode-go", "deepseek"),  # DeepSeek's rule comes through: opencode#28890
    ("opencode-go", "kimi-k3"),
    ("opencode-go", "mimo"),
    ("opencode-go", "glm"),
    ("opencode-go", "claude"),  # its Messages endpoint wants the signature: oh-my-pi#10486
    ("nebius", "glm"),
    ("nebius", "kimi-k3"),
    ("deepinfra", "glm"),
    ("deepinfra", "deepseek-v3.2"),
    ("sambanova", "minimax"),  # thoughts in the content, between <think> tags
    ("sambanova", "glm"),
    ("bedrock", "claude"),
    ("bedrock", "claude-bound"),
    ("bedrock", "openai"),
    ("vertex", "claude-bound"),
    ("vertex", "gemini"),
    ("vertex", "gemini-compat"),
    ("azure", "claude"),
    ("azure", "claude-bound"),
    ("openrouter", "claude"),
    ("openrouter", "openai"),
    ("vercel", "claude-bound"),
    ("vercel", "openai"),
    ("vercel", "openrouter"),
    ("cloudflare", "claude"),
    ("cloudflare", "openai"),
    ("cloudflare", "kimi-k3"),
    ("hunyuan", "kimi-k3"),  # Tencent's hub has other labs' models, with their rules
    ("hunyuan", "glm"),
    ("doubao", "glm"),
    ("longcat", "glm"),
    ("baseten", "glm"),
    ("nvidia", "glm"),
    ("novita", "deepseek-v3.2"),
    ("chutes", "glm"),
    ("huggingface", "groq"),
    ("huggingface", "kimi-k3"),
    ("mimo", "mimo"),
    ("mimo", "deepseek-anthropic"),
    ("meta", "openai"),
]
FIELDS = {
    "claude": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "claude-bound": {"thinking": {"type": "adaptive"}},
}


@pytest.mark.parametrize(("policy", "served"), HOSTED)
async def test_thoughts_go_back_as_the_model_behind_the_host_wants_them(policy, served):
    sim = simulator(served)
    gateway = InProcessGateway(SimWire(sim), policy)
    talker = talker_of(
        sim.dialect, sim, model=sim.models()[0], echo="strip", **FIELDS.get(served, {})
    )
    for _ in range(4):
        head = {"authorization": f"Bearer {talker.key}", **talker.headers}
        answer = await gateway.post(talker.path, write(talker.request()), head)
        assert answer.status == 200, answer.body
        talker.absorb(Reply(status=200, headers=dict(answer.headers), chunks=(answer.body,)))
    audit = sim.requests[-1].audit
    assert audit.exact >= 2  # the chat shape of Gemini signs nothing but calls
    assert audit.clean
    assert len(gateway.wire.sent) == 4  # none of them was refused and sent again

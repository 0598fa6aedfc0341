"""How hard a model is to think, said as its provider wants it, up to the nearest step it knows."""

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, scripted_gateway

ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}
ADAPTIVE = {"thinking": {"type": "adaptive", "display": "summarized"}}
LOW = "effort=none"

ROWS = [
    ("deepseek", "chat", "deepseek-v4-pro", "low", {**ON, "reasoning_effort": "high"}, ""),
    ("deepseek", "chat", "deepseek-v4-pro", "xhigh", {**ON, "reasoning_effort": "max"}, ""),
    ("deepseek", "chat", "deepseek-v4-pro", "none", OFF, ""),
    ("kimi", "chat", "kimi-k3", "medium", {"reasoning_effort": "high"}, ""),
    ("kimi", "chat", "kimi-k3", "none", {}, LOW),
    ("kimi", "chat", "kimi-k2.6", "none", OFF, ""),
    ("glm", "chat", "glm-5.2", "medium", {**ON, "reasoning_effort": "high"}, ""),
    ("glm", "chat", "glm-4.7", "medium", ON, ""),
    ("minimax", "chat", "MiniMax-M2.7", "none", {}, LOW),
    ("qwen", "chat", "qwen4-max", "high", {"enable_thinking": True}, ""),
    ("hunyuan", "chat", "hy3", "medium", {"reasoning_effort": "high"}, ""),
    ("mistral", "chat", "mistral-medium", "low", {"reasoning_effort": "high"}, ""),
    ("mistral", "chat", "mistral-medium", "none", {"reasoning_effort": "none"}, ""),
    ("openrouter", "chat", "x/y", "max", {"reasoning": {"effort": "xhigh"}}, ""),
    (
        "openai",
        "responses",
        "gpt-5.6",
        "low",
        {"reasoning": {"effort": "low", "summary": "auto"}},
        "",
    ),
    (
        "anthropic",
        "messages",
        "claude-opus-5-5",
        "xhigh",
        {**ADAPTIVE, "output_config": {"effort": "max"}},
        "",
    ),
    (
        "anthropic",
        "messages",
        "claude-sonnet-4-5",
        "medium",
        {"thinking": {"type": "enabled", "budget_tokens": 8192}},
        "",
    ),
    (
        "gemini",
        "gemini",
        "gemini-3-pro-preview",
        "max",
        {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "high"}},
        "",
    ),
    (
        "gemini",
        "gemini",
        "gemini-2.5-pro",
        "low",
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}},
        "",
    ),
]
MEMBERS = ("thinking", "reasoning_effort", "reasoning", "enable_thinking", "output_config")


@pytest.mark.parametrize(("policy", "speaks", "model", "effort", "fields", "left"), ROWS)
def test_an_effort_is_said_as_the_provider_wants_it(policy, speaks, model, effort, fields, left):
    gateway = scripted_gateway(Answer(500, b"{}"), speaks=speaks, policy=policy)
    if speaks == "responses":
        body = {"model": model, "messages": [{"role": "user", "content": "Go."}]}
        path, body = "/v1/chat/completions", {**body, "reasoning_effort": effort}
    else:
        body = {"model": model, "input": "Go.", "reasoning": {"effort": effort}}
        path = "/v1/responses"
    answer = ask(gateway, path, body)
    sent = gateway.wire.bodies[0]
    sent = {**sent, **sent.get("generationConfig", {})}
    assert {n: sent[n] for n in (*MEMBERS, "thinkingConfig") if n in sent} == fields
    assert answer.header("x-thoughtline-translated").partition("; left=")[2] == left


def test_no_effort_stays_none():
    gateway = scripted_gateway(Answer(500, b"{}"), policy="deepseek")
    ask(gateway, "/v1/responses", {"model": "deepseek-v4-pro", "input": "Go."})
    assert not set(MEMBERS) & gateway.wire.bodies[0].keys()

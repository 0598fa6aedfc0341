"""How hard a model is to think, said as its provider wants it, up to the nearest step it knows."""

import pytest

from support.gateway import Answer
from support.scripted_upstream import ask, scripted_gateway
from support.translating_gateway import TranslatingGateway
from support.translation import blocks_of

ON, OFF = {"thinking": {"type": "enabled"}}, {"thinking": {"type": "disabled"}}
ADAPTIVE = {"thinking": {"type": "adaptive", "display": "summarized"}}
LOW = "effort=none"
KEPT = {"thinking": {"type": "enabled", "clear_thinking": False}}  # GLM's earlier thoughts are read

ROWS = [
    ("deepseek", "chat", "deepseek-v4-pro", "low", {**ON, "reasoning_effort": "high"}, ""),
    ("deepseek", "chat", "deepseek-v4-pro", "xhigh", {**ON, "reasoning_effort": "max"}, ""),
    ("deepseek", "chat", "deepseek-v4-pro", "none", OFF, ""),
    ("kimi", "chat", "kimi-k3", "medium", {"reasoning_effort": "high"}, ""),
    ("kimi", "chat", "kimi-k3", "none", {}, LOW),
    ("kimi", "chat", "kimi-k2.6", "none", OFF, ""),
    ("glm", "chat", "glm-5.2", "medium", {**KEPT, "reasoning_effort": "high"}, ""),
    ("glm", "chat", "glm-4.7", "medium", KEPT, ""),
    ("glm", "chat", "glm-5.3", "medium", {**KEPT, "reasoning_effort": "high"}, ""),
    ("glm", "chat", "glm-5.3-flash", "low", {**KEPT, "reasoning_effort": "low"}, ""),
    ("glm", "chat", "glm-5.3", "none", KEPT, LOW),
    ("deepseek", "chat", "deepseek-v4.1-flash", "low", {**ON, "reasoning_effort": "low"}, ""),
    ("doubao", "chat", "doubao-seed-2.1", "max", {**ON, "reasoning_effort": "high"}, ""),
    (
        "openai",
        "responses",
        "gpt-6-astra",
        "xhigh",
        {"reasoning": {"effort": "xhigh", "summary": "auto"}},
        "",
    ),
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
        {**ADAPTIVE, "output_config": {"effort": "xhigh"}},
        "",
    ),
    (
        "anthropic",
        "messages",
        "claude-opus-4-6",
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


def asked(client, model, **members):
    """A request of a client's dialect: its path and its body."""
    turn = {"role": "user", "content": "Go."}
    match client:
        case "chat":
            return "/v1/chat/completions", {"model": model, "messages": [turn], **members}
        case "responses":
            return "/v1/responses", {"model": model, "input": "Go.", **members}
        case "messages":
            body = {"model": model, "max_tokens": 32000, "messages": [turn], **members}
            return "/v1/messages", body
    body = {"contents": [{"role": "user", "parts": [{"text": "Go."}]}], **members}
    return f"/v1beta/models/{model}:generateContent", body


def sent_members(gateway):
    """How the request that went upstream says how hard to think."""
    sent = gateway.wire.bodies[-1]
    sent = {**sent, **sent.get("generationConfig", {})}
    return {name: sent[name] for name in (*MEMBERS, "thinkingConfig") if name in sent}


@pytest.mark.parametrize(("policy", "speaks", "model", "effort", "fields", "left"), ROWS)
def test_an_effort_is_said_as_the_provider_wants_it(policy, speaks, model, effort, fields, left):
    gateway = scripted_gateway(Answer(500, b"{}"), speaks=speaks, policy=policy)
    if speaks == "responses":
        path, body = asked("chat", model, reasoning_effort=effort)
    else:
        path, body = asked("responses", model, reasoning={"effort": effort})
    answer = ask(gateway, path, body)
    assert sent_members(gateway) == fields
    assert answer.header("x-thoughtline-translated").partition("; left=")[2] == left


# -- asked to think, and not how hard ------------------------------------------------------------

THINK = {
    "chat": [
        {"thinking": {"type": "enabled"}},
        {"enable_thinking": True},
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"reasoning": {"enabled": True}},
        {"include_reasoning": True},
    ],
    "responses": [
        {"reasoning": {"summary": "auto"}},
        {"reasoning": {"effort": None, "summary": "detailed"}},
        {"reasoning": {"generate_summary": "concise"}},
    ],
    "messages": [
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "between_tools"}},
    ],
    "gemini": [
        {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}},
        {"generation_config": {"thinking_config": {"include_thoughts": True}}},
    ],
}
"""Ways in which the clients of a dialect ask for thoughts without an effort."""
SHOWN = {"includeThoughts": True}
THINKING = [
    ("deepseek", "chat", "deepseek-v4-pro", ON),
    ("kimi", "chat", "kimi-k3", {}),
    ("kimi", "chat", "kimi-k2.6", {"thinking": {"type": "enabled", "keep": "all"}}),
    ("glm", "chat", "glm-5.2", KEPT),
    ("minimax", "chat", "MiniMax-M2.7", {}),
    ("qwen", "chat", "qwen4-max", {"enable_thinking": True}),
    ("mistral", "chat", "mistral-medium", {"reasoning_effort": "high"}),
    ("openrouter", "chat", "x/y", {"reasoning": {"enabled": True}}),
    ("generic", "chat", "m", {}),
    ("openai", "responses", "o4-mini", {"reasoning": {"summary": "auto"}}),
    ("openai", "responses", "gpt-5.2", {"reasoning": {"effort": "medium", "summary": "auto"}}),
    ("anthropic", "messages", "claude-opus-5-5", ADAPTIVE),
    ("anthropic", "messages", "claude-opus-4-7", ADAPTIVE),
    (
        "anthropic",
        "messages",
        "claude-sonnet-4-5",
        {"thinking": {"type": "enabled", "budget_tokens": 8192}},
    ),
    ("gemini", "gemini", "gemini-3-pro-preview", {"thinkingConfig": SHOWN}),
    ("gemini", "gemini", "gemini-2.5-flash", {"thinkingConfig": SHOWN | {"thinkingBudget": -1}}),
]
"""Endpoints, and what makes them think."""


@pytest.mark.parametrize("client", THINK)
@pytest.mark.parametrize(("policy", "speaks", "model", "fields"), THINKING)
def test_asked_to_think_is_asked_to_think(policy, speaks, model, fields, client):
    if client == speaks:
        return
    gateway = scripted_gateway(Answer(500, b"{}"), speaks=speaks, policy=policy)
    for members in THINK[client]:
        answer = ask(gateway, *asked(client, model, **members))
        assert sent_members(gateway) == fields
        assert "left=" not in answer.header("x-thoughtline-translated")


@pytest.mark.parametrize(
    ("members", "limit"),
    [({"tool_choice": "required"}, 32000), ({}, 1024)],
    ids=["a forced tool", "a small limit"],
)
@pytest.mark.parametrize(
    ("reasoning", "left"), [({"summary": "auto"}, "thinking"), ({"effort": "low"}, "effort=low")]
)
def test_where_claude_cannot_think_it_is_said(reasoning, left, members, limit):
    gateway = scripted_gateway(Answer(500, b"{}"), speaks="messages", policy="anthropic")
    tools = [{"type": "function", "name": "run", "parameters": {"type": "object"}}]
    body = {"tools": tools, "reasoning": reasoning, "max_output_tokens": limit, **members}
    answer = ask(gateway, *asked("responses", "claude-sonnet-4-5", **body))
    assert sent_members(gateway) == {}
    assert answer.header("x-thoughtline-translated") == f"responses>messages; left={left}"


@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_a_claude_that_thinks_unasked_shows_it(client):
    gateway = scripted_gateway(Answer(500, b"{}"), speaks="messages", policy="anthropic")
    ask(gateway, *asked(client, "claude-sonnet-5-5"))
    assert sent_members(gateway) == ADAPTIVE


@pytest.mark.parametrize("provider", ["claude", "claude-bound"])
@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_claude_thinks_for_a_program_with_its_defaults(client, provider):
    gateway = TranslatingGateway(provider)
    for members in THINK[client]:
        path, body = asked(client, gateway.model, **members)
        answer = ask(gateway, path, body)
        assert answer.status == 200, answer.body
        kinds = [kind for kind, _ in blocks_of(client, answer.body, stream=False)]
        assert "thought" in kinds


def test_a_chat_client_that_wants_no_thoughts_is_shown_none():
    gateway = TranslatingGateway("claude")
    for members in ({"include_reasoning": False}, {"reasoning": {"exclude": True}}):
        body = {**members, "reasoning_effort": "high"}
        told = ask(gateway, *asked("chat", gateway.model, **body)).json["choices"][0]["message"]
        assert "reasoning_content" not in told
        assert "thinking" in sent_members(gateway)


@pytest.mark.parametrize(
    "members",
    [{"thinking_budget": 8192}, {"reasoning": {"max_tokens": 8000}}],
)
def test_a_budget_of_a_chat_client_is_an_effort(members):
    gateway = scripted_gateway(Answer(500, b"{}"), speaks="responses", policy="openai")
    ask(gateway, *asked("chat", "gpt-5.6", **members))
    assert sent_members(gateway) == {"reasoning": {"effort": "medium", "summary": "auto"}}


def test_no_effort_stays_none():
    gateway = scripted_gateway(Answer(500, b"{}"), policy="deepseek")
    ask(gateway, "/v1/responses", {"model": "deepseek-v4-pro", "input": "Go."})
    assert not set(MEMBERS) & gateway.wire.bodies[0].keys()

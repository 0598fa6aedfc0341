"""The table: every name users may write, and the contracts by family."""

import pytest

from thoughtline.log.quirks import Need, Scope
from thoughtline.providers.contracts import ROWS, find_policy, policy_names, preferred_dialect

PUBLIC = [
    "openai",
    "codex",
    "azure",
    "xai",
    "anthropic",
    "bedrock",
    "gemini",
    "deepseek",
    "deepseek-r1",
    "kimi",
    "mimo",
    "glm",
    "minimax",
    "qwen",
    "hunyuan",
    "stepfun",
    "mistral",
    "openrouter",
    "groq",
    "cerebras",
    "fireworks",
    "together",
    "siliconflow",
    "nebius",
    "deepinfra",
    "sambanova",
    "opencode-go",
    "vllm",
    "sglang",
    "llamacpp",
    "ollama",
    "lmstudio",
    "copilot",
    "baseten",
    "chutes",
    "cloudflare",
    "doubao",
    "github-models",
    "huggingface",
    "longcat",
    "meta",
    "novita",
    "nvidia",
    "perplexity",
    "vercel",
    "vertex",
    "generic",
]


def test_every_public_name_has_a_row():
    assert policy_names() == sorted(PUBLIC)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.name}-{row.dialect}-{row.models[0]}")
def test_a_row_is_sound(row):
    if row.name not in ("generic", "copilot"):
        assert row.source, "a row cites where it is documented or was seen"
    carries_nothing = row.need in (Need.FORBIDDEN, Need.NONE)
    assert bool(row.reads) != carries_nothing
    if row.lost:
        assert row.need is Need.REQUIRED
    if row.need is Need.REQUIRED:
        assert row.lost or row.off, "a demand needs a way out when a thought is lost"


@pytest.mark.parametrize(
    ("name", "dialect", "model", "need", "scope", "lost"),
    [
        # api-docs.deepseek.com/guides/thinking_mode#tool-calls; hermes-agent#17341 on " "
        ("deepseek", "chat", "deepseek-v4-pro", Need.REQUIRED, Scope.ALL, '" "'),
        ("deepseek", "chat", "deepseek-v4-flash", Need.REQUIRED, Scope.ALL, '""'),
        # continue#10193
        ("deepseek", "chat", "deepseek-v3.2", Need.REQUIRED, Scope.CALLS, '""'),
        # the rule is the model's, so it holds on its other endpoint too; rikkahub#1690
        ("deepseek", "responses", "deepseek-v4-pro", Need.REQUIRED, Scope.ALL, ""),
        # names of the old API that the current one answers with V4
        ("deepseek", "chat", "deepseek-reasoner", Need.REQUIRED, Scope.ALL, '""'),
        ("deepseek", "chat", "deepseek-chat", Need.REQUIRED, Scope.ALL, '""'),
        # it takes what clients of other hosts send, too
        ("xai", "chat", "grok-4.5", Need.RECOMMENDED, Scope.ALL, ""),
        ("deepseek", "chat", "deepseek-r1", Need.FORBIDDEN, Scope.ALL, ""),
        # deer-flow#3043: only messages with tool calls are checked
        ("kimi", "chat", "kimi-k2.6", Need.REQUIRED, Scope.CALLS, '""'),
        # freellmapi#1070: the key is the contract, not the model
        ("groq", "chat", "deepseek-v4", Need.RECOMMENDED, Scope.ALL, ""),
        ("cerebras", "chat", "zai-glm-4.7", Need.RECOMMENDED, Scope.ALL, ""),
        # developers.openai.com/api/docs/guides/reasoning: Chat Completions has no carrier
        ("openai", "chat", "gpt-5.6", Need.NONE, Scope.ALL, ""),
        # opencode#3077: expected `thinking`, in the running loop
        ("anthropic", "messages", "claude-sonnet-4-5-20250929", Need.REQUIRED, Scope.LOOP, ""),
        # thinking-troubleshooting: adaptive models take a history without thinking
        ("anthropic", "messages", "claude-opus-5", Need.RECOMMENDED, Scope.LOOP, ""),
        # pydantic-ai#3881: first call of a step, Gemini 3 on
        ("gemini", "gemini", "gemini-3-pro", Need.REQUIRED, Scope.FIRST_CALL, '"skip_thought_signature_validator"'),
        ("gemini", "gemini", "gemini-2.5-pro", Need.RECOMMENDED, Scope.FIRST_CALL, ""),
        # oh-my-pi#9086
        ("bedrock", "messages", "amazon.nova-pro", Need.FORBIDDEN, Scope.ALL, ""),
        # inspect_ai#4079: DeepSeek behind a router keeps its rule
        ("openrouter", "chat", "deepseek/deepseek-v4", Need.REQUIRED, Scope.ALL, '" "'),
        # pi-ai catalogue: the plan wants a thought in each message, `""` will do
        ("kimi", "chat", "k3-256k", Need.REQUIRED, Scope.ALL, '""'),
        ("kimi", "chat", "kimi-for-coding-highspeed", Need.REQUIRED, Scope.CALLS, '""'),
        ("kimi", "chat", "kimi-k3.1-pro", Need.REQUIRED, Scope.CALLS, '""'),
        ("deepseek", "chat", "deepseek-v4.1-flash-1017", Need.REQUIRED, Scope.ALL, '""'),
        ("hunyuan", "chat", "kimi-k2.6", Need.REQUIRED, Scope.CALLS, '""'),
        ("vertex", "gemini", "gemini-4-argon", Need.REQUIRED, Scope.FIRST_CALL, '"skip_thought_signature_validator"'),
        ("vertex", "chat", "google/gemini-3.8-flash", Need.REQUIRED, Scope.FIRST_CALL, '{"google":{"thought_signature":"skip_thought_signature_validator"}}'),
        ("vertex", "chat", "deepseek-ai/deepseek-v3.2-maas", Need.RECOMMENDED, Scope.ALL, ""),
        ("nobody", "chat", "deepseek-v4-pro", Need.RECOMMENDED, Scope.ALL, ""),
    ],
)  # fmt: skip
def test_contracts(name, dialect, model, need, scope, lost):
    row = find_policy(name, dialect, model)
    assert (row.need, row.scope, row.lost) == (need, scope, lost)


def test_a_model_name_alone_decides_nothing():
    rows = {
        find_policy(name, "chat", "deepseek-v4-pro").need
        for name in ("deepseek", "groq", "openai", "generic")
    }
    assert len(rows) == 3


def test_prefix_binding_is_a_matter_of_the_family():
    bound = (
        "claude-opus-5-5",
        "claude-sonnet-5-5-20260901",
        "claude-haiku-5-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-mythos-5-1",  # platform.claude.com whats-new-fable-5-2
        "claude-mythos-5-2",
    )
    free = ("claude-opus-4-5", "claude-sonnet-4-6", "claude-mythos-5", "claude-opus-5")
    for host, before in CLAUDE_HOSTS.items():
        assert all(find_policy(host, "messages", before + model).prefix for model in bound)
        assert not any(find_policy(host, "messages", before + model).prefix for model in free)
    assert find_policy("bedrock", "messages", "us.anthropic.claude-opus-5-5-v1").prefix


CLAUDE_HOSTS = {
    "anthropic": "",
    "bedrock": "global.anthropic.",
    "vertex": "",
    "azure": "",
    "vercel": "anthropic/",
    "cloudflare": "anthropic/",
}


@pytest.mark.parametrize(("host", "before"), [*CLAUDE_HOSTS.items(), ("openrouter", "anthropic/")])
def test_claude_has_its_rows_at_every_host(host, before):
    def row(model):
        return find_policy(host, "messages", before + model)

    assert all(row(model).signed for model in ("claude-fable-5-2", "claude-sonnet-4-5"))
    assert row("claude-opus-5.5").scope is Scope.LOOP
    assert not row("claude-mythos-5-2").takes.thinking_off
    assert "xhigh" in row("claude-opus-4-8").takes.efforts
    assert row("claude-opus-4-6").need is Need.REQUIRED
    assert row("claude-sonnet-5.5").prefix is (host != "openrouter")  # it claims not to check it


def test_a_deployment_of_any_name_is_taken_for_claude():
    assert find_policy("azure", "messages", "my-deployment").signed


def test_sealed_items_have_rows_where_responses_are_spoken():
    for name in ("bedrock", "openrouter", "vercel", "cloudflare", "meta"):
        assert find_policy(name, "responses", "openai/gpt-6-sol").stateless


SPOKEN = dict.fromkeys(("openai", "codex", "azure", "xai"), "responses")
SPOKEN |= {"anthropic": "messages", "bedrock": "messages", "gemini": "gemini"}
SPOKEN |= {"meta": "responses", "vertex": "gemini"}


@pytest.mark.parametrize("name", [*PUBLIC, "unheard-of"])
def test_a_provider_has_a_dialect_to_begin_with(name):
    assert preferred_dialect(name) == SPOKEN.get(name, "chat")

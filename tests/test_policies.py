"""The table: every name users may write, the contracts by family, and refusals with a remedy."""

import pytest

from thoughtline.policies import Need, Override, Scope, infer, lookup, names, observed
from thoughtline.policies.remedies import SYMPTOMS, Remedy, diagnose
from thoughtline.policies.table import ROWS

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
    "vllm",
    "sglang",
    "llamacpp",
    "ollama",
    "lmstudio",
    "copilot",
    "generic",
]


def test_every_public_name_has_a_row():
    assert names() == sorted(PUBLIC)


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
        # a name of the old API that the current one answers with V4
        ("deepseek", "chat", "deepseek-reasoner", Need.REQUIRED, Scope.ALL, '" "'),
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
        ("nobody", "chat", "deepseek-v4-pro", Need.RECOMMENDED, Scope.ALL, ""),
    ],
)  # fmt: skip
def test_contracts(name, dialect, model, need, scope, lost):
    row = lookup(name, dialect, model)
    assert (row.need, row.scope, row.lost) == (need, scope, lost)


def test_a_model_name_alone_decides_nothing():
    rows = {
        lookup(name, "chat", "deepseek-v4-pro").need
        for name in ("deepseek", "groq", "openai", "generic")
    }
    assert len(rows) == 3


def test_prefix_binding_is_a_matter_of_the_family():
    bound = (
        "claude-opus-5-5",
        "claude-sonnet-5-5-20260901",
        "claude-haiku-5-5",
        "claude-fable-5-1",
    )
    free = ("claude-opus-4-5", "claude-sonnet-4-6", "claude-mythos-5-1", "claude-opus-5")
    assert all(lookup("anthropic", "messages", model).prefix for model in bound)
    assert not any(lookup("anthropic", "messages", model).prefix for model in free)
    assert lookup("bedrock", "messages", "us.anthropic.claude-opus-5-5-v1").prefix


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.deepseek.com/v1", "deepseek"),
        ("https://api.deepseek.com/anthropic", "deepseek"),
        ("https://API.OpenAI.com/v1", "openai"),
        ("https://chatgpt.com/backend-api/codex", "codex"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://api.moonshot.cn/v1", "kimi"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        ("https://us-central1-aiplatform.googleapis.com", "gemini"),
        ("http://127.0.0.1:8000/v1", "generic"),
        ("https://api.deepseek.com.evil.example", "generic"),
        ("not a url", "generic"),
    ],
)
def test_inference_from_the_host(url, name):
    assert infer(url) == name


# -- refusals ------------------------------------------------------------------------------------

REFUSALS = [
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", Remedy.RESTORE_ALL),
    ("The `content[].thinking` in the thinking mode must be passed back to the API.", Remedy.RESTORE_ALL),
    ("The `reasoning_text` in the thinking mode must be passed back to the API.", Remedy.RESTORE_ALL),
    ("Missing `reasoning_content` field in the assistant message at message index 3.", Remedy.RESTORE_ALL),
    ("messages[51]: assistant message with tool_calls must include reasoning_content", Remedy.RESTORE_ALL),
    ("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", Remedy.RESTORE_CALLS),
    ("'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]", Remedy.RENAME),
    ("messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported", Remedy.RENAME),
    ("User messages cannot contain reasoning content. Please remove the reasoning content and try again.", Remedy.DROP_REASONING),
    ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", Remedy.DROP_ITEM),
    ("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.", Remedy.PAIR_OR_ANONYMISE),
    ("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", Remedy.SEND_SEALED),
    ("Duplicate item found with id rs_1. Remove duplicate items from your input and try again.", Remedy.DEDUPLICATE),
    ("The encrypted content gAAA could not be verified.", Remedy.DROP_SEALED),
    ("Could not decrypt the provided encrypted_content.", Remedy.DROP_SEALED),
    ("Could not decode the compaction blob.", Remedy.DROP_SEALED),
    ("Previous response with id 'resp_abc' not found.", Remedy.REPLAY_IN_FULL),
    ("X-OpenAI-Internal-Codex-Responses-Lite requires `reasoning.context` to be `all_turns`.", Remedy.SET_ALL_TURNS),
    ("Store must be set to false", Remedy.SET_STORE_FALSE),
    ("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", Remedy.DROP_BLOCK),
    ("messages.1.content.0: Invalid `signature` in `thinking` block", Remedy.STRIP_SIGNED),
    ("messages.1.content.0.thinking.signature: Field required", Remedy.STRIP_SIGNED),
    ("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", Remedy.RESTORE_EXACT),
    ("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", Remedy.RESTORE_OR_OFF),
    ("Function call is missing a thought_signature in functionCall parts.", Remedy.SIGN_OR_BYPASS),
    ("function call `default_api:x` in the 12. content block is missing a `thought_signature`.", Remedy.SIGN_OR_BYPASS),
    ("Unable to submit request because Thought signature is not valid", Remedy.RESIGN),
    ("Corrupted thought signature.", Remedy.RESIGN),
    ("Tool call id was functions.ls:0 but must be a-z, A-Z, 0-9, with a length of 9.", Remedy.NINE_CHARACTERS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "remedy"), REFUSALS)
@pytest.mark.parametrize("key", ["message", "param", "detail"])
def test_a_refusal_is_diagnosed_wherever_the_text_stands(text, remedy, key):
    import json

    assert diagnose(400, json.dumps({"error": {key: text}}).encode()) is remedy
    nested = {"error": {"metadata": {"raw": json.dumps({"error": {"message": text}})}}}
    assert diagnose(400, json.dumps(nested).encode()) is remedy


def test_what_is_not_about_reasoning_is_passed_on():
    assert diagnose(400, b'{"error":{"message":"model not found"}}') is None
    assert diagnose(500, b"must be passed back to the API") is None
    assert diagnose(429, b"must be passed back to the API") is None
    assert diagnose(400, b"\xff\xfe not text") is None


def test_every_symptom_can_be_met():
    for symptom in SYMPTOMS:
        assert diagnose(400, " ".join(symptom.texts).encode()) is not None


# -- what was observed elsewhere -----------------------------------------------------------------

KIMI = {"policy": "kimi", "dialect": "chat"}
HERE = {"name": "kimi", "model": "kimi-k2.6", "endpoint": "https://api.moonshot.ai/"}


@pytest.mark.parametrize(
    ("said", "field", "then"),
    [
        ({"off": ("thinking", "0")}, "off", ("thinking", "0")),
        ({"off": ()}, "off", None),  # it cannot be switched off
        ({"lost": ""}, "lost", ""),
        ({"need": Need.SOFT}, "need", Need.SOFT),
        ({"endpoint": "https://api.moonshot.ai", "lost": '" "'}, "lost", '" "'),
    ],
)
def test_what_was_observed_changes_its_field_and_no_other(said, field, then):
    row = lookup("kimi", "chat", "kimi-k2.6")
    made = observed(row, [Override(**KIMI, **said)], **HERE)
    assert getattr(row, field) != then and getattr(made, field) == then
    others = set(row.__struct_fields__) - {field}
    assert all(getattr(made, name) == getattr(row, name) for name in others)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"policy": "glm"},
        {"dialect": "messages"},
        {"models": ("kimi-k3*",)},
        {"endpoint": "https://proxy"},
    ],
)
def test_what_was_observed_elsewhere_changes_nothing(elsewhere):
    row = lookup("kimi", "chat", "kimi-k2.6")
    assert observed(row, [Override(**KIMI | elsewhere, lost='"x"')], **HERE) is row

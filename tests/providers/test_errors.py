"""What a refusal means, in the words of each provider."""

import pytest

from thoughtline.providers.errors import ERROR_RULES, Strategy, diagnose

REFUSALS = [
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", Strategy.RESTORE_ALL),
    ("The `content[].thinking` in the thinking mode must be passed back to the API.", Strategy.RESTORE_ALL),
    ("The `reasoning_text` in the thinking mode must be passed back to the API.", Strategy.RESTORE_ALL),
    ("Missing `reasoning_content` field in the assistant message at message index 3.", Strategy.RESTORE_ALL),
    ("messages[51]: assistant message with tool_calls must include reasoning_content", Strategy.RESTORE_ALL),
    ("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", Strategy.RESTORE_CALLS),
    ("'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]", Strategy.RENAME),
    ("messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is unsupported", Strategy.RENAME),
    ("User messages cannot contain reasoning content. Please remove the reasoning content and try again.", Strategy.DROP_REASONING),
    ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", Strategy.DROP_ITEM),
    ("Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.", Strategy.PAIR_OR_ANONYMISE),
    ("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.", Strategy.SEND_SEALED),
    ("Duplicate item found with id rs_1. Remove duplicate items from your input and try again.", Strategy.DEDUPLICATE),
    ("The encrypted content gAAA could not be verified.", Strategy.DROP_SEALED),
    ("Could not decrypt the provided encrypted_content.", Strategy.DROP_SEALED),
    ("Could not decode the compaction blob.", Strategy.DROP_SEALED),
    ("Previous response with id 'resp_abc' not found.", Strategy.REPLAY_IN_FULL),
    ("X-OpenAI-Internal-Codex-Responses-Lite requires `reasoning.context` to be `all_turns`.", Strategy.SET_ALL_TURNS),
    ("Store must be set to false", Strategy.SET_STORE_FALSE),
    ("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.", Strategy.DROP_BLOCK),
    ("messages.1.content.0: Invalid `signature` in `thinking` block", Strategy.STRIP_SIGNED),
    ("messages.1.content.0.thinking.thinking: Field required", Strategy.STRIP_SIGNED),
    ("Referenced reasoning item rs_1 was not found or has expired", Strategy.SEND_SEALED),
    ("Item of type 'message' was provided without its required preceding item of type 'reasoning'.", Strategy.PAIR_OR_ANONYMISE),
    ("Invalid `previous_response_id`.", Strategy.REPLAY_IN_FULL),
    ("previous response anchor expired", Strategy.REPLAY_IN_FULL),
    ("codex_previous_response_stale", Strategy.REPLAY_IN_FULL),
    ("this encrypted item was not issued to this caller", Strategy.DROP_SEALED),
    ("conflicting authenticated continuation identities", Strategy.DROP_SEALED),
    ("Reasoning input is not enabled for this model", Strategy.DROP_REASONING),
    ("Gemini models require OpenRouter reasoning details to be preserved in each request.", Strategy.SIGN_OR_BYPASS),
    ("messages.1.content.0.thinking.signature: Field required", Strategy.STRIP_SIGNED),
    ("`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.", Strategy.RESTORE_EXACT),
    ("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", Strategy.RESTORE_OR_OFF),
    ("Function call is missing a thought_signature in functionCall parts.", Strategy.SIGN_OR_BYPASS),
    ("function call `default_api:x` in the 12. content block is missing a `thought_signature`.", Strategy.SIGN_OR_BYPASS),
    ("Unable to submit request because Thought signature is not valid", Strategy.RESIGN),
    ("Corrupted thought signature.", Strategy.RESIGN),
    ("Tool call id was functions.ls:0 but must be a-z, A-Z, 0-9, with a length of 9.", Strategy.SHORT_CALL_IDS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "strategy"), REFUSALS)
@pytest.mark.parametrize("key", ["message", "param", "detail"])
def test_a_refusal_is_diagnosed_wherever_the_text_stands(text, strategy, key):
    import json

    assert diagnose(400, json.dumps({"error": {key: text}}).encode()) is strategy
    nested = {"error": {"metadata": {"raw": json.dumps({"error": {"message": text}})}}}
    assert diagnose(400, json.dumps(nested).encode()) is strategy


def test_what_is_not_about_reasoning_is_passed_on():
    assert diagnose(400, b'{"error":{"message":"model not found"}}') is None
    assert diagnose(500, b"must be passed back to the API") is None
    assert diagnose(429, b"must be passed back to the API") is None
    assert diagnose(400, b"\xff\xfe not text") is None


def test_every_error_rule_can_be_met():
    for _, _, *texts in ERROR_RULES:
        assert diagnose(400, " ".join(texts).encode()) is not None

"""What to do when a provider refuses a thought: its error text → one action, as data.

These refusals are deterministic: repeating the same body repeats them. So a strategy is applied
once, and only if the body really changes. Texts are matched as lower-cased substrings
of the whole error body, since providers put them in `message`, `param`, `detail` or `metadata.raw`.
The order matters: DeepSeek's text contains `reasoning_content`, so demands come before refusals.
"""

from enum import StrEnum


class Strategy(StrEnum):
    """What to change before trying once more."""

    RESTORE_ALL = "restore_all"  # every output, else the shortest value, else thinking off
    RESTORE_CALLS = "restore_calls"  # the same for outputs with calls
    RENAME = "rename"  # send it as `reasoning`, or not at all
    DROP_REASONING = "drop_reasoning"
    DROP_ITEM = "drop_item"  # the dangling item it names
    PAIR_OR_ANONYMISE = "pair_or_anonymise"  # put the item back, else take the ids off
    SEND_SEALED = "send_sealed"  # with its blob, else without its id, else not at all
    DEDUPLICATE = "deduplicate"
    DROP_SEALED = "drop_sealed"  # all encrypted items and the ids of what they led to
    REPLAY_IN_FULL = "replay_in_full"  # forget the previous response, send everything
    RECONNECT = "reconnect"
    SET_ALL_TURNS = "set_all_turns"  # reasoning.context
    SET_STORE_FALSE = "set_store_false"
    DROP_FIELD = "drop_field"  # a request parameter this endpoint does not take
    DROP_BLOCK = "drop_block"  # ask the provider to skip blocks bound elsewhere, for good
    STRIP_SIGNED = "strip_signed"  # the named block and all after it, for good
    RESTORE_EXACT = "restore_exact"  # else strip the turn's thinking and close the loop
    RESTORE_OR_OFF = "restore_or_off"  # else thinking off, else flatten the loop
    SIGN_OR_BYPASS = "sign_or_bypass"
    RESIGN = "resign"  # strip old signatures, bypass on the running steps
    SHORT_CALL_IDS = "nine_characters"  # map tool call ids
    KEEP_IDS = "keep_ids"  # sealed items go with their ids after all
    SUMMARISE = "summarise"  # a reasoning item has a summary, if only an empty one
    DROP_INCLUDE = "drop_include"  # it was we who asked for encrypted content
    DROP_COMPACTION = "drop_compaction"  # a compacted history that it cannot read
    DROP_CONFIGURATION = "drop_configuration"  # items that change settings on the way
    DROP_FALLBACKS = "drop_fallbacks"  # marks of a change of model, and the thoughts before them
    DROP_BARE_THOUGHTS = "drop_bare_thoughts"  # answers of nothing but a thought
    DROP_SAMPLING = "drop_sampling"  # temperature and its like
    DROP_WEB_SEARCH = "drop_web_search"
    NAME_BETA = "name_beta"  # of the controls that a request makes use of
    MOVE_EFFORT = "move_effort"  # the effort is said in another member
    NEAREST_VALUE = "nearest_value"  # of those that the refusal lists
    TAKE_OUT = "take_out"  # a key that it names, and that only we put in; in any words


ErrorRule = tuple[Strategy, str, *tuple[str, ...]]
"""What to do, where the error was seen, and the texts that must all be present."""

ERROR_RULES: tuple[ErrorRule, ...] = (
    (Strategy.RESTORE_ALL, "modelparams.dev#29", "must be passed back to the api"),
    (Strategy.RESTORE_ALL, "continue#10193", "missing `reasoning_content` field in the assistant"),
    (Strategy.RESTORE_ALL, "Reasonix#6173", "must include reasoning_content"),
    (
        Strategy.RESTORE_CALLS,
        "deer-flow#3043",
        "reasoning_content is missing in assistant tool call",
    ),
    (Strategy.RENAME, "freellmapi#1070", "reasoning_content' is unsupported"),
    (Strategy.RENAME, "qwen-code#11045", "reasoning_content: property", "is unsupported"),
    (Strategy.RENAME, "jan#8136", "property 'reasoning", "is unsupported"),
    (Strategy.RENAME, "kilocode#10375", "assistant.reasoning", "is unsupported"),
    (Strategy.RENAME, "docs.mistral.ai", "extra_forbidden", "reasoning"),
    (Strategy.DROP_REASONING, "oh-my-pi#9086", "cannot contain reasoning content"),
    (Strategy.DROP_REASONING, "Mirai-Gpt-Plugin#4", "remove the reasoning_content"),
    (Strategy.DROP_REASONING, "mistral conversations#402", "reasoning input is not enabled"),
    (Strategy.DROP_REASONING, "forgecode#1853", "when thinking is disabled", "cannot contain"),
    (Strategy.DROP_ITEM, "continue#8933", "without its required following item"),
    (Strategy.PAIR_OR_ANONYMISE, "continue#10018", "without its required 'reasoning' item"),
    (Strategy.SEND_SEALED, "openclaw#21782", "items are not persisted when"),
    (Strategy.SEND_SEALED, "pi#5524", "item with id '", "not found"),
    (Strategy.SEND_SEALED, "bifrost#6465", "referenced reasoning item", "not found or has expired"),
    (
        Strategy.PAIR_OR_ANONYMISE,
        "openai-node#1791",
        "without its required preceding item of type 'reasoning'",
    ),
    (Strategy.DEDUPLICATE, "vercel/ai#15492", "duplicate item found with id"),
    (Strategy.DROP_SEALED, "codex#8145", "invalid_encrypted_content"),
    (Strategy.DROP_SEALED, "codex#8145", "encrypted content", "could not be verified"),
    (Strategy.DROP_SEALED, "sub2api#4535", "could not decrypt the provided encrypted_content"),
    (Strategy.DROP_SEALED, "grok2api#688", "could not decode the compaction blob"),
    (Strategy.DROP_SEALED, "opencode#48918", "not issued to this caller"),
    (
        Strategy.DROP_SEALED,
        "opencode#48942",
        "conflicting authenticated continuation identities",
    ),
    (Strategy.DROP_COMPACTION, "codex#45401", 'item type "compaction" is not supported'),
    (Strategy.DROP_COMPACTION, "codex#45401", "'compaction' item type is not supported"),
    (
        Strategy.DROP_CONFIGURATION,
        "OpenRouter cookbook (pro mode)",
        "'configuration_update' item type is not supported",
    ),
    (
        Strategy.REPLAY_IN_FULL,
        "developers.openai.com websocket-mode",
        "previous_response_not_found",
    ),
    (Strategy.REPLAY_IN_FULL, "developers.openai.com websocket-mode", "previous response with id"),
    (Strategy.REPLAY_IN_FULL, "codex-lb#1818", "invalid `previous_response_id`"),
    (Strategy.REPLAY_IN_FULL, "gajae-code#731", "previous response anchor expired"),
    (Strategy.REPLAY_IN_FULL, "codex-lb#1818", "codex_previous_response_stale"),
    (
        Strategy.RECONNECT,
        "developers.openai.com websocket-mode",
        "websocket_connection_limit_reached",
    ),
    (Strategy.SET_ALL_TURNS, "codex#33496", "requires `reasoning.context`"),
    (Strategy.SET_STORE_FALSE, "codex#26173", "store must be set to false"),
    (Strategy.DROP_FIELD, "ChatMock#103", "unsupported parameter: max_output_tokens"),
    (Strategy.DROP_FIELD, "any-llm#1241", "reasoning prompt mode is not enabled"),
    (Strategy.DROP_FIELD, "any-llm#1241", "reasoning_effort", "is not supported for this model"),
    (Strategy.DROP_FIELD, "litellm (Bedrock)", "the background parameter is not supported"),
    (Strategy.DROP_WEB_SEARCH, "litellm (Bedrock)", "web search is not supported for this request"),
    (Strategy.DROP_SAMPLING, "copilot-sdk#1557", "temperature is deprecated for this model"),
    (Strategy.DROP_SAMPLING, "MinusPod 2.101", "temperature: extra inputs are not permitted"),
    (Strategy.DROP_SAMPLING, "MinusPod 2.101", "top_p: extra inputs are not permitted"),
    (Strategy.DROP_SAMPLING, "MinusPod 2.101", "top_k: extra inputs are not permitted"),
    (Strategy.NAME_BETA, "litellm#41203", "block_binding: extra inputs are not permitted"),
    (Strategy.MOVE_EFFORT, "opencode#48195", "unknown parameter: 'reasoning_effort'"),
    (Strategy.MOVE_EFFORT, "eca#609", "unknown parameter: 'reasoning'"),
    (
        Strategy.DROP_FALLBACKS,
        "claude-code#66760",
        "input tag 'fallback' found using 'type' does not match",
    ),
    (
        Strategy.DROP_BARE_THOUGHTS,
        "hermes-agent#105780",
        "does not support assistant message prefill",
    ),
    (Strategy.DROP_BLOCK, "pydantic-ai#7984", "bound to a different conversation"),
    (Strategy.STRIP_SIGNED, "hermes-agent#24401", "invalid `signature` in `thinking`"),
    (Strategy.STRIP_SIGNED, "nagobot#21", "invalid signature in thinking block"),
    (Strategy.STRIP_SIGNED, "oh-my-pi#10486", "signature: field required"),
    (Strategy.STRIP_SIGNED, "CPA#2723", "thinking.thinking: field required"),
    (Strategy.STRIP_SIGNED, "hermes-agent#24401", "invalid `data` in `redacted_thinking`"),
    (
        Strategy.RESTORE_EXACT,
        "claude-code#63203",
        "blocks in the latest assistant message cannot be modified",
    ),
    (Strategy.RESTORE_OR_OFF, "opencode#3077", "expected `thinking` or `redacted_thinking`"),
    (Strategy.SIGN_OR_BYPASS, "5ire#405", "missing a thought_signature"),
    (Strategy.SIGN_OR_BYPASS, "pydantic-ai#3881", "missing a `thought_signature`"),
    (
        Strategy.SIGN_OR_BYPASS,
        "MassGen#624",
        "gemini models require openrouter reasoning details to be preserved",
    ),
    (Strategy.RESIGN, "Roo#11716", "thought signature", "not valid"),
    (Strategy.RESIGN, "Antigravity-Manager#3342", "thought signature", "invalid"),
    (Strategy.RESIGN, "opencode#4832", "thought signature", "corrupted"),
    (Strategy.SHORT_CALL_IDS, "opencode#1680", "tool call id was"),
    (Strategy.SUMMARISE, "Agora#141", "missing required field `summary`"),
    (Strategy.SUMMARISE, "Agora#141", "missing required parameter: 'input[", "].summary'"),
    (Strategy.DROP_INCLUDE, "pydantic-ai#2865", "encrypted content is not supported"),
    (Strategy.KEEP_IDS, "codex#3528", "missing required parameter: 'input[", "].id'"),
    (Strategy.KEEP_IDS, "hermes-agent#63257", "invalid_payload"),
)


REFUSED_MEMBERS: tuple[tuple[str, str], ...] = (
    ("reasoning prompt mode", "prompt_mode"),
    ("the background parameter", "background"),
    ("reasoning_effort", "reasoning_effort"),
)
"""Texts of refusals, and the member of a request that they are about where they do not name it."""
SAMPLING = ("temperature", "top_p", "top_k")


def diagnose(status: int, body: bytes) -> Strategy | None:
    """The strategy for a refusal, or None when it is not about reasoning."""
    if not 400 <= status < 500 or status == 429:
        return None
    text = body[:65536].decode("utf-8", "replace").lower().replace('\\"', '"')
    for strategy, _, *texts in ERROR_RULES:
        if all(part in text for part in texts):
            return strategy
    return None

"""What to do when a provider refuses a thought: its error text → one action, as data.

These refusals are deterministic: repeating the same body repeats them. So a remedy is applied once,
on the evidence, and only if the body really changes. Texts are matched as lower-cased substrings
of the whole error body, since providers put them in `message`, `param`, `detail` or `metadata.raw`.
The order matters: DeepSeek's text contains `reasoning_content`, so demands come before refusals.
"""

from enum import StrEnum

from msgspec import Struct


class Remedy(StrEnum):
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
    NINE_CHARACTERS = "nine_characters"  # map tool call ids
    KEEP_IDS = "keep_ids"  # sealed items go with their ids after all
    SUMMARISE = "summarise"  # a reasoning item has a summary, if only an empty one
    DROP_INCLUDE = "drop_include"  # it was we who asked for encrypted content


class Symptom(Struct, frozen=True):
    """Texts that must all be present, and what they call for."""

    texts: tuple[str, ...]
    remedy: Remedy
    source: str = ""


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(("must be passed back to the api",), Remedy.RESTORE_ALL, "modelparams.dev#29"),
    Symptom(
        ("missing `reasoning_content` field in the assistant",),
        Remedy.RESTORE_ALL,
        "continue#10193",
    ),
    Symptom(("must include reasoning_content",), Remedy.RESTORE_ALL, "Reasonix#6173"),
    Symptom(
        ("reasoning_content is missing in assistant tool call",),
        Remedy.RESTORE_CALLS,
        "deer-flow#3043",
    ),
    Symptom(("reasoning_content' is unsupported",), Remedy.RENAME, "freellmapi#1070"),
    Symptom(("reasoning_content: property", "is unsupported"), Remedy.RENAME, "qwen-code#11045"),
    Symptom(("property 'reasoning", "is unsupported"), Remedy.RENAME, "jan#8136"),
    Symptom(("assistant.reasoning", "is unsupported"), Remedy.RENAME, "kilocode#10375"),
    Symptom(("extra_forbidden", "reasoning"), Remedy.RENAME, "docs.mistral.ai"),
    Symptom(("cannot contain reasoning content",), Remedy.DROP_REASONING, "oh-my-pi#9086"),
    Symptom(("remove the reasoning_content",), Remedy.DROP_REASONING, "Mirai-Gpt-Plugin#4"),
    Symptom(
        ("when thinking is disabled", "cannot contain"), Remedy.DROP_REASONING, "forgecode#1853"
    ),
    Symptom(("without its required following item",), Remedy.DROP_ITEM, "continue#8933"),
    Symptom(("without its required 'reasoning' item",), Remedy.PAIR_OR_ANONYMISE, "continue#10018"),
    Symptom(("items are not persisted when",), Remedy.SEND_SEALED, "openclaw#21782"),
    Symptom(("item with id 'rs_", "not found"), Remedy.SEND_SEALED, "pi#5524"),
    Symptom(("duplicate item found with id",), Remedy.DEDUPLICATE, "vercel/ai#15492"),
    Symptom(("invalid_encrypted_content",), Remedy.DROP_SEALED, "codex#8145"),
    Symptom(("encrypted content", "could not be verified"), Remedy.DROP_SEALED, "codex#8145"),
    Symptom(
        ("could not decrypt the provided encrypted_content",), Remedy.DROP_SEALED, "sub2api#4535"
    ),
    Symptom(("could not decode the compaction blob",), Remedy.DROP_SEALED, "grok2api#688"),
    Symptom(
        ("previous_response_not_found",),
        Remedy.REPLAY_IN_FULL,
        "developers.openai.com websocket-mode",
    ),
    Symptom(
        ("previous response with id",),
        Remedy.REPLAY_IN_FULL,
        "developers.openai.com websocket-mode",
    ),
    Symptom(
        ("websocket_connection_limit_reached",),
        Remedy.RECONNECT,
        "developers.openai.com websocket-mode",
    ),
    Symptom(("requires `reasoning.context`",), Remedy.SET_ALL_TURNS, "codex#33496"),
    Symptom(("store must be set to false",), Remedy.SET_STORE_FALSE, "codex#26173"),
    Symptom(("unsupported parameter: max_output_tokens",), Remedy.DROP_FIELD, "ChatMock#103"),
    Symptom(("bound to a different conversation",), Remedy.DROP_BLOCK, "pydantic-ai#7984"),
    Symptom(("invalid `signature` in `thinking`",), Remedy.STRIP_SIGNED, "hermes-agent#24401"),
    Symptom(("invalid signature in thinking block",), Remedy.STRIP_SIGNED, "nagobot#21"),
    Symptom(("signature: field required",), Remedy.STRIP_SIGNED, "oh-my-pi#10486"),
    Symptom(("invalid `data` in `redacted_thinking`",), Remedy.STRIP_SIGNED, "hermes-agent#24401"),
    Symptom(
        ("blocks in the latest assistant message cannot be modified",),
        Remedy.RESTORE_EXACT,
        "claude-code#63203",
    ),
    Symptom(
        ("expected `thinking` or `redacted_thinking`",), Remedy.RESTORE_OR_OFF, "opencode#3077"
    ),
    Symptom(("missing a thought_signature",), Remedy.SIGN_OR_BYPASS, "5ire#405"),
    Symptom(("missing a `thought_signature`",), Remedy.SIGN_OR_BYPASS, "pydantic-ai#3881"),
    Symptom(("thought signature", "not valid"), Remedy.RESIGN, "Roo#11716"),
    Symptom(("thought signature", "invalid"), Remedy.RESIGN, "Antigravity-Manager#3342"),
    Symptom(("thought signature", "corrupted"), Remedy.RESIGN, "opencode#4832"),
    Symptom(("tool call id was",), Remedy.NINE_CHARACTERS, "opencode#1680"),
    Symptom(("missing required field `summary`",), Remedy.SUMMARISE, "Agora#141"),
    Symptom(("missing required parameter: 'input[", "].summary'"), Remedy.SUMMARISE, "Agora#141"),
    Symptom(("encrypted content is not supported",), Remedy.DROP_INCLUDE, "pydantic-ai#2865"),
    Symptom(("missing required parameter: 'input[", "].id'"), Remedy.KEEP_IDS, "codex#3528"),
    Symptom(("invalid_payload",), Remedy.KEEP_IDS, "hermes-agent#63257"),
)


def diagnose(status: int, body: bytes) -> Remedy | None:
    """The remedy for a refusal, or None when it is not about reasoning."""
    if not 400 <= status < 500 or status == 429:
        return None
    text = body[:65536].decode("utf-8", "replace").lower().replace('\\"', '"')
    for symptom in SYMPTOMS:
        if all(part in text for part in symptom.texts):
            return symptom.remedy
    return None

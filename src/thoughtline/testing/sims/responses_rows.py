"""The servers that speak the Responses API, and what each of them wants: data, no behaviour.

OpenAI seals its reasoning items and checks which item belongs to which; the Codex backend is the
same without storage; xAI seals and checks little else; DeepSeek sends its thoughts in the open and
wants one before each call. Every row cites where its rule was seen.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from thoughtline.testing.sims.seals import Style

Shape: TypeAlias = Literal["openai", "xai", "deepseek"]
Sockets: TypeAlias = Literal["none", "single", "lanes"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one server does differently."""

    summary: str
    """What it enforces, in one sentence."""
    models: tuple[str, ...]
    """The models it lists."""
    families: tuple[str, ...]
    """What the name of a model it serves begins with."""
    paths: tuple[str, ...] = ("/v1/responses", "/responses")
    shape: Shape = "openai"
    """The shape of its errors."""
    style: Style | None = "openai"
    """How a thought is sealed; None when it is sent as text."""
    pairing: bool = True
    """A reasoning item and the item that was generated after it need one another."""
    stateless: bool = False
    """Nothing can be stored: `store` must be false, and said."""
    streamed: bool = False
    """Answers as a stream only."""
    unsupported: tuple[str, ...] = ()
    """Parameters that it refuses."""
    asked: bool = False
    """The blob is only given to those who `include` it."""
    late: bool = False
    """The blob is null in `output_item.done`, and there in `response.completed`."""
    alias: bool = False
    """The done event calls its item `output_item`."""
    named: bool = False
    """The error about a blob names the item, not the blob's two ends."""
    sockets: Sockets = "none"
    extras: bool = False
    """Frames of its own are mixed into a WebSocket's."""


_GPT = ("gpt-5.6", "gpt-5.6-codex", "gpt-5.3-codex", "gpt-5", "gpt-6-astra")

OPENAI = Row(
    summary="Sealed reasoning items of this account, each with the item generated after it.",
    models=_GPT,
    families=("gpt-", "o1", "o3", "o4", "codex-"),
    sockets="single",
)

ROWS: dict[str, Row] = {
    "openai": OPENAI,
    # developers.openai.com/api/docs/guides/websocket-mode: `stream_id` lanes came later, and other
    # servers that speak the protocol do not have them.
    "openai-ws": msgspec.structs.replace(
        OPENAI, summary="As openai, with lanes and steering on its WebSocket.", sockets="lanes"
    ),
    # github.com/earendil-works/pi/issues/4256: the blob is null in the done event.
    "azure": msgspec.structs.replace(
        OPENAI,
        summary="As openai, but the blob must be asked for and comes with the last event.",
        asked=True,
        late=True,
    ),
    # github.com/openai/codex/issues/26173 (store), ChatMock#103 (max_output_tokens),
    # openai/codex/issues/35334 (the error names the item), codex-rs responses_websocket.rs
    # (frames of its own).
    "codex": msgspec.structs.replace(
        OPENAI,
        summary="As openai, but store must be false and the answer is always a stream.",
        paths=("/backend-api/codex/responses", "/codex/responses", *OPENAI.paths),
        stateless=True,
        streamed=True,
        unsupported=("max_output_tokens",),
        named=True,
        extras=True,
    ),
    # docs.x.ai; github.com/Wei-Shaw/sub2api/issues/4535 and grok2api#688 for the errors.
    "xai": Row(
        summary="Sealed reasoning items of this account, unaltered and with their summary.",
        models=("grok-4.5", "grok-4", "grok-code-fast-1"),
        families=("grok-",),
        shape="xai",
        style="xai",
        pairing=False,
        asked=True,
        sockets="single",
    ),
    # api-docs.deepseek.com/guides/responses_api; rikkahub#1690: a reasoning item before
    # each function_call.
    "deepseek-responses": Row(
        summary="With tools, a reasoning_text must stand before each call and message.",
        models=("deepseek-v4-flash", "deepseek-v4-pro"),
        families=("deepseek-",),
        shape="deepseek",
        style=None,
        pairing=False,
    ),
}

LITE_HEADER = "x-openai-internal-codex-responses-lite"
"""Asks the Codex backend for a path that wants all turns (github.com/openai/codex/issues/33496)."""
LITE = "X-OpenAI-Internal-Codex-Responses-Lite requires `reasoning.context` to be `all_turns`."

NOT_STORED = "Store must be set to false"
NOT_STREAMED = "Stream must be set to true"

# github.com/continuedev/continue/issues/8933 and #10018, openai/openai-agents-python#1611.
UNFOLLOWED = "Item '{id}' of type 'reasoning' was provided without its required following item."
UNPAIRED = (
    "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{pair}'."
)
# github.com/openclaw/openclaw/issues/21782.
NOT_PERSISTED = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again"
    " with `store` set to true, or remove this item from your input."
)
NOT_FOUND = "Item with id '{id}' not found."
# github.com/vercel/ai/issues/15492.
DUPLICATE = (
    "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
)
# github.com/openai/codex/issues/8145, with the tail that Wei-Shaw/sub2api#3038 shows.
UNVERIFIED = (
    "The encrypted content {name} could not be verified."
    " Reason: Encrypted content could not be decrypted or parsed."
)
NO_RESPONSE = "Previous response with id '{id}' not found."
NO_OUTPUT = "No tool output found for function call {id}."
NO_CALL = "No tool call found for function call output with call_id {id}."

XAI_UNREADABLE = (
    "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified"
    " encrypted_content from a previous response."
)
# grok2api#688: also the answer when `summary` is missing beside the blob.
XAI_COMPACTION = (
    "Could not decode the compaction blob. Ensure it is unmodified from the compact response."
)
DEEPSEEK_MISSING = "The `reasoning_text` in the thinking mode must be passed back to the API."

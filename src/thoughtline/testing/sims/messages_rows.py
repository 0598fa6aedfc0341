"""The servers that speak the Messages API, their models, and their words: data, no behaviour.

Older Claude models sign the text of a thought for their own family and want it back while a tool
is being used. Newer ones bind it to the account, the model and everything that was said before.
DeepSeek signs nothing and wants a thought wherever a tool was used.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Binding: TypeAlias = Literal["text", "prefix", "none"]


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model and what it accepts (platform.claude.com/docs, thinking-troubleshooting)."""

    name: str
    family: str
    """Whose thoughts these are."""
    reads: tuple[str, ...]
    """Whose thoughts it can read."""
    kinds: tuple[str, ...] = ("enabled", "disabled")
    """Values of `thinking.type`."""
    thinks: bool = False
    """Thinks without being asked."""
    binds: bool = False
    """A thought is only valid behind the same prefix."""
    forced: bool = True
    """Can be forced to use a tool."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one server does differently."""

    summary: str
    models: tuple[Model, ...]
    binding: Binding
    paths: tuple[str, ...] = ("/v1/messages",)
    demands: bool = True
    """Turns that use a tool must bring a thought back, where nothing is signed."""
    switched: bool = False
    """Thoughts from before the last question are read where `clear_thinking` is false."""
    anthropic: bool = True
    """Its errors have Anthropic's shape, it asks for Anthropic's headers, and knows all params."""


_BOTH = ("enabled", "adaptive", "disabled")


def _older(name: str, family: str, kinds: tuple[str, ...] = ("enabled", "disabled")) -> Model:
    return Model(name=name, family=family, reads=(family,), kinds=kinds)


# platform.claude.com/docs/en/build-with-claude/preserved-thinking, "Switching models".
_NEWER = ("opus-5-5", "opus-5")
_BOUND = (
    Model(
        name="claude-opus-5-5",
        family="opus-5-5",
        reads=_NEWER,
        kinds=("adaptive",),
        thinks=True,
        binds=True,
    ),
    Model(
        name="claude-fable-5-1",
        family="fable-5-1",
        reads=("fable-5-1", *_NEWER),
        kinds=("adaptive",),
        thinks=True,
        binds=True,
        forced=False,
    ),
    Model(
        name="claude-sonnet-5-5",
        family="sonnet-5-5",
        reads=("sonnet-5-5",),
        kinds=("adaptive", "between_tools"),
        thinks=True,
        binds=True,
    ),
    Model(
        name="claude-haiku-5-5",
        family="haiku-5-5",
        reads=("haiku-5-5",),
        kinds=("adaptive", "disabled"),
        thinks=True,
        binds=True,
    ),
    Model(
        name="claude-opus-5",
        family="opus-5",
        reads=("opus-5",),
        kinds=("adaptive", "disabled"),
        thinks=True,
    ),
)

ROWS: dict[str, Row] = {
    "claude": Row(
        summary="Signed thinking blocks come back, unaltered, while tools are being used.",
        models=(
            _older("claude-sonnet-4-5", "sonnet"),
            _older("claude-opus-4-5", "opus"),
            _older("claude-haiku-4-5", "haiku"),
            _older("claude-opus-4-7", "opus", ("adaptive", "disabled")),
            _older("claude-opus-4-6", "opus", _BOTH),
            _older("claude-sonnet-4-6", "sonnet", _BOTH),
        ),
        binding="text",
    ),
    "claude-bound": Row(
        summary="A thinking block is valid behind the very system, tools and messages it followed.",
        models=_BOUND,
        binding="prefix",
    ),
    "deepseek-anthropic": Row(
        summary="Turns that use a tool must bring back a thinking block; it is not verified.",
        models=tuple(
            Model(
                name=name,
                family="deepseek",
                reads=("deepseek",),
                kinds=_BOTH,
                thinks=True,
            )
            for name in ("deepseek-v4-flash", "deepseek-v4-pro")
        ),
        binding="none",
        paths=("/v1/messages", "/anthropic/v1/messages"),
        anthropic=False,
    ),
    # umans-gate 0.3.24; docs.z.ai/guides/capabilities/thinking-mode.
    "glm-anthropic": Row(
        summary="Rejects nothing; reads thoughts of earlier turns only with `clear_thinking`.",
        models=tuple(
            Model(name=name, family="glm", reads=("glm",), kinds=_BOTH, thinks=True)
            for name in ("glm-5.2", "glm-4.7")
        ),
        binding="none",
        paths=("/v1/messages", "/api/anthropic/v1/messages"),
        demands=False,
        switched=True,
        anthropic=False,
    ),
}

CONTROLS = "thinking-binding-controls-2026-08-01"
"""The beta that lets a request say what happens to a thought that does not fit."""
EFFORT = ("mid-conversation-output-config-2026-07-01", "per-turn-control-2026-07-01")
"""Betas that let a system message set the effort (can1357/oh-my-pi#14746; Claude Code 2.1.325)."""

# anomalyco/opencode#3077, mastra-ai/mastra#7799.
EXPECTED = (
    "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`."
    " When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    " (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you"
    " include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
    " Please consult our documentation at"
    " https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
# anthropics/claude-code#63203.
MODIFIED = (
    "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be"
    " modified. These blocks must remain as they were in the original response."
)
# NousResearch/hermes-agent#24401; nothing follows.
INVALID = "{path}: Invalid `signature` in `thinking` block"
INVALID_DATA = "{path}: Invalid `data` in `redacted_thinking` block"
# pydantic/pydantic-ai#7984; then a sentence for people.
BOUND = (
    "{path}: Invalid `signature` in `thinking` block. The block is bound to a different"
    " conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to"
    ' "drop_block".'
)
BOUND_HINT = f" The field needs the `anthropic-beta: {CONTROLS}` header."
BOUND_WHY = {
    "system": " The `system` prompt differs from when this block was created.",
    "tools": " The `tools` differ from when this block was created.",
    "messages": " Content before this block differs from when it was created.",
    "gap": (
        " The `thinking` block that preceded this one when it was created is missing from this"
        " request."
    ),
}
# forgecode#1853.
FINAL = (
    "{path}: When thinking is disabled, an `assistant` message in the final position cannot contain"
    " `{kind}`."
)
UNSUPPORTED = '"thinking.type.{kind}" is not supported for this model.'
USE_ADAPTIVE = (
    ' Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)
NOT_ADAPTIVE = "adaptive thinking is not supported on this model"
# oh-my-pi#333.
FORCED = "Thinking may not be enabled when tool_choice forces tool use."
NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user"
    " message."
)
UNANSWERED = (
    "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after:"
    " {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next"
    " message."
)
UNASKED = (
    "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block"
    " must have a corresponding `tool_use` block in the previous message."
)
TWICE = (
    "{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id:"
    " {id}"
)
EMPTY = (
    "messages.{at}: all messages must have non-empty content except for the optional final"
    " assistant message"
)
# anthropics/claude-code#60947 and #73821; platform.claude.com mid-conversation-system-messages.
SYSTEM_UNKNOWN = "role 'system' is not supported on this model"
_ANYWHERE = "; the directive-only form (content: [] with output_config) is accepted at any position"
SYSTEM_FIRST = (
    "messages.{at}: use the top-level 'system' parameter for the initial system prompt" + _ANYWHERE
)
SYSTEM_FOLLOW = (
    "messages.{at}: role 'system' must follow a 'user' message or an 'assistant' message ending in"
    " a server tool result" + _ANYWHERE
)
SYSTEM_PRECEDE = (
    "messages.{at}: role 'system' must precede an 'assistant' message or end the array" + _ANYWHERE
)
SYSTEM_EMPTY = "messages.{at}: system content must contain at least one block"
SYSTEM_BLOCKS = (
    "messages.{at}: role 'system' supports text, tool_addition, and tool_removal blocks only"
)
# decolua/9router#2397.
DEEPSEEK_MISSING = "The `content[].thinking` in the thinking mode must be passed back to the API."

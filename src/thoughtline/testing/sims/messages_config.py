"""How a Messages request wants the model to think, and whether this model can.

What each model accepts is in its row: older ones are switched on with a budget, newer ones are
adaptive and refuse to be told. `block_binding` says what happens to thoughts that do not fit any
more, and only exists for those who send its beta header.
"""

from __future__ import annotations

from typing import Any

import msgspec

from thoughtline.testing.sims.messages_input import Call, expect
from thoughtline.testing.sims.messages_rows import (
    CONTROLS,
    FORCED,
    NO_PREFILL,
    NOT_ADAPTIVE,
    UNSUPPORTED,
    USE_ADAPTIVE,
    Row,
)
from thoughtline.testing.sims.problems import Problem

_INTEGER, _OBJECT = "a valid integer", "a valid dictionary"
KINDS = ("adaptive", "between_tools", "disabled", "enabled")
BEHAVIOURS = ("error", "drop_block")
LEAST_BUDGET = 1024


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """How the model thinks in this exchange."""

    on: bool
    shown: bool
    """The text of thoughts is shown, not only signed."""
    behaviour: str | None
    """What happens to a thought whose prefix changed, if the request says so."""
    reported: bool
    """The answer lists what was dropped."""


def configure(call: Call, row: Row, betas: str) -> Config:
    """Read and check everything about thinking.

    Raises:
        Problem: this model does not think like that.
    """
    model = call.model
    reported = CONTROLS in [beta.strip() for beta in betas.split(",")]
    thinking: dict[str, Any] | None = call.body.get("thinking")
    if row.binding == "prefix" and call.messages[-1].role == "assistant":
        raise Problem(400, NO_PREFILL)
    if thinking is None:
        _forced(call, model.thinks and "enabled" in model.kinds and row.anthropic)
        return Config(on=model.thinks, shown=not model.binds, behaviour=None, reported=reported)
    kind = _kind(thinking, call)
    if kind == "enabled" and row.anthropic:
        _budget(thinking, call)
    _forced(call, kind == "enabled" and row.anthropic)
    behaviour = _behaviour(thinking, kind, reported and row.binding == "prefix")
    display = thinking.get("display") or ("omitted" if model.binds else "summarized")
    # DeepSeek's API has no `display` (api-docs.deepseek.com/guides/anthropic_api): it is ignored.
    return Config(
        on=kind != "disabled",
        shown=display != "omitted" or not row.anthropic,
        behaviour=behaviour,
        reported=reported,
    )


def _kind(thinking: dict[str, Any], call: Call) -> str:
    if "type" not in thinking:
        raise Problem(400, "thinking.type: Field required")
    kind = thinking["type"]
    if not isinstance(kind, str) or kind not in KINDS:
        tags = ", ".join(f"'{tag}'" for tag in KINDS)
        raise Problem(
            400,
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected"
            f" tags: {tags}",
        )
    if kind in call.model.kinds:
        return kind
    if kind == "adaptive":
        raise Problem(400, NOT_ADAPTIVE)
    raise Problem(400, UNSUPPORTED.format(kind=kind) + USE_ADAPTIVE)


def _budget(thinking: dict[str, Any], call: Call) -> None:
    path = "thinking.enabled.budget_tokens"
    if "budget_tokens" not in thinking:
        raise Problem(400, f"{path}: Field required")
    budget = thinking["budget_tokens"]
    expect(budget, _INTEGER, path)
    if budget < LEAST_BUDGET:
        raise Problem(400, f"{path}: Input should be greater than or equal to {LEAST_BUDGET}")
    if budget >= call.body.get("max_tokens", budget + 1):
        raise Problem(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")


def _forced(call: Call, enabled: bool) -> None:
    choice = call.body.get("tool_choice") or {}
    if choice.get("type") in ("any", "tool") and (enabled or not call.model.forced):
        raise Problem(400, FORCED)


def _behaviour(thinking: dict[str, Any], kind: str, allowed: bool) -> str | None:
    path = f"thinking.{kind}.block_binding"
    if "block_binding" not in thinking:
        return None
    # Wei-Shaw/sub2api#6677: without the beta header the field does not exist.
    if not allowed or kind not in ("adaptive", "enabled"):
        raise Problem(400, f"{path}: Extra inputs are not permitted")
    binding = thinking["block_binding"]
    expect(binding, _OBJECT, path)
    behaviour: str | None = binding.get("prefix_mismatch_behavior")
    if behaviour is not None and behaviour not in BEHAVIOURS:
        where = f"{path}.prefix_mismatch_behavior"
        raise Problem(400, f"{where}: Input should be 'error' or 'drop_block'")
    return behaviour

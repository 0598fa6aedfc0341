"""What Chat Completions providers insist on: one function per rule, in the provider's words.

A check looks at a request of sound shape (`Case`) and gives a `Refusal`, or None when it has
nothing to say. Rules that differ by provider only in a text or a scope are made by a function that
takes these; the rows of `chat_rows` list which rules hold where, with the source of each.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from thoughtline.testing.sims.chat_errors import Refusal, detail
from thoughtline.testing.sims.chat_sealed import BYPASS, canonical, signature_of
from thoughtline.testing.sims.chat_view import Message, View, calls_of
from thoughtline.testing.sims.seals import Style


class Case(NamedTuple):
    """A request to be judged."""

    view: View
    thinking: bool
    """Whether the model thinks in this request."""
    genuine: Callable[[str, Style, str | None], bool]
    """Was this sealed here, for this account (and over these claims)?"""
    siblings: Callable[[str], int]
    """How many thoughts were emitted together with this one; 0 when it is not known."""
    silent: Callable[[int], bool]
    """Whether the nth assistant message was answered here, and without a thought."""


Check: TypeAlias = Callable[[Case], Refusal | None]


# Thoughts that must come back


def all_turns(text: str, key: str = "reasoning_content", *, blank: str = "pro") -> Check:
    """Every assistant message must have the key, when the request has tools.

    One that was answered without a thought needs none. A model whose name contains `blank` takes no
    empty string in place of another's (hermes-agent#17341: Pro wants `" "`).
    """

    def check(case: Case) -> Refusal | None:
        if not (case.thinking and case.view.tools):
            return None
        strict = blank in case.view.model.lower()
        for nth, (_, message) in enumerate(case.view.assistants()):
            value = message.get(key)
            if (value is None or (strict and value == "")) and not case.silent(nth):
                return Refusal(400, text)
        return None

    return check


def call_turns(text: str, key: str = "reasoning_content", *, loop: bool = False) -> Check:
    """Every assistant message with tool calls must have the key; `{index}` names the message.

    With `loop` only those since the last user message.
    """

    def check(case: Case) -> Refusal | None:
        start = case.view.loop if loop else 0
        for at, message in case.view.assistants():
            if case.thinking and at >= start and calls_of(message) and message.get(key) is None:
                return Refusal(400, text.format(index=at))
        return None

    return check


def signed_steps(case: Case) -> Refusal | None:
    """Gemini 3: the first call of each step of the current turn is signed (5ire#405)."""
    if "gemini-3" not in case.view.model:
        return None
    start = case.view.loop
    for at, message in case.view.assistants():
        calls = calls_of(message)
        for call in calls:
            signature = signature_of(call)
            if signature and not _passes(signature, case):
                broken = _base64(signature) is None
                return Refusal(400, _BROKEN_SIGNATURE if broken else _FOREIGN_SIGNATURE)
        if at >= start and calls and not signature_of(calls[0]):
            name, position = calls[0]["function"]["name"], _position(case.view.messages, at)
            return Refusal(400, _NO_SIGNATURE.format(name=name, position=position))
    return None


_NO_SIGNATURE = (
    "Function call is missing a thought_signature in functionCall parts. This is required for "
    "tools to work correctly, and missing thought_signature may lead to degraded model "
    "performance. Additional data, function call `default_api:{name}` , position {position}. "
    "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_BROKEN_SIGNATURE = "Corrupted thought signature."  # opencode#4832
_FOREIGN_SIGNATURE = "Invalid thought signature."  # Antigravity-Manager#3342


def _passes(signature: str, case: Case) -> bool:
    if signature in BYPASS or _base64(signature) in [value.encode() for value in BYPASS]:
        return True
    return case.genuine(signature, "gemini", None)


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _position(messages: list[Message], index: int) -> int:
    """Gemini counts contents from 1: no system messages, tool results of a step as one."""
    said: list[str] = [message["role"] for message in messages[: index + 1]]
    roles = [role for role in said if role not in ("system", "developer")]
    merged = sum(a == b == "tool" for a, b in itertools.pairwise(roles))
    return len(roles) - merged


# Sealed values that must be unchanged


def sealed_details(case: Case) -> Refusal | None:
    """OpenRouter: what an Anthropic upstream says to edited or foreign details (nagobot#21)."""
    last = max((at for at, _ in case.view.assistants()), default=-1)
    for at, message in case.view.assistants():
        details = message.get("reasoning_details")
        ours = [d for d in details if isinstance(d, dict)] if isinstance(details, list) else []
        for place, item in enumerate(ours):
            if not _detail_is_genuine(item, case):
                said = f"messages.{at}.content.{place}: Invalid `signature` in `thinking` block"
                return _upstream("Anthropic", said)
        if at == last and ours and not _is_whole(ours, case):
            return _upstream("Anthropic", f"messages.{at}.content: {_MODIFIED}")
    return None


_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


def _is_whole(details: list[dict[str, Any]], case: Case) -> bool:
    """All that were emitted, in their order."""
    indexes = [item.get("index") for item in details]
    emitted = case.siblings(canonical(details[0])) or len(details)
    return indexes == list(range(emitted))


def _detail_is_genuine(item: dict[str, Any], case: Case) -> bool:
    kind, text = item.get("type"), item.get("text")
    if kind == "reasoning.encrypted":
        data = item.get("data")
        return isinstance(data, str) and case.genuine(data, "claude", None)
    signature = item.get("signature")
    if kind != "reasoning.text" or not isinstance(signature, str) or not isinstance(text, str):
        return False
    return case.genuine(signature, "claude", text)


def _upstream(provider: str, message: str, **extra: Any) -> Refusal:
    inner = {"type": "invalid_request_error", "message": message, **extra}
    return Refusal(400, {"type": "error", "error": inner}, kind=provider)


def via(prefix: str, provider: str, rule: Check) -> Check:
    """A router: for models of this prefix another provider's rule holds, and its words."""

    def check(case: Case) -> Refusal | None:
        found = rule(case) if case.view.model.startswith(prefix) else None
        if found is None or found.kind is not None:
            return found
        return _upstream(provider, found.message, param=None, code="invalid_request_error")

    return check


def sealed_opaque(case: Case) -> Refusal | None:
    """Copilot: an opaque value that was not sealed here (openclaw#90093)."""
    for _, message in case.view.assistants():
        opaque = message.get("reasoning_opaque")
        if isinstance(opaque, str) and not case.genuine(opaque, "claude", None):
            text = f"The encrypted content {opaque[:4]}... could not be verified."
            return Refusal(400, text, code="invalid_encrypted_content")
    return None


# Thoughts that must not come back


def no_thoughts(text: str, key: str = "reasoning_content") -> Check:
    """No message may carry the key."""

    def check(case: Case) -> Refusal | None:
        if any(message.get(key) is not None for message in case.view.messages):
            return Refusal(400, text)
        return None

    return check


FOREIGN_KEYS = ("reasoning_content", "reasoning_details", "reasoning_text", "reasoning_opaque")


def unsupported(text: str, joint: str) -> Check:
    """No assistant message may carry another provider's key; `{at}` and `{key}` name it."""

    def check(case: Case) -> Refusal | None:
        found = [
            text.format(at=at, key=key)
            for at, message in case.view.assistants()
            for key in FOREIGN_KEYS
            if key in message
        ]
        return Refusal(400, joint.join(found)) if found else None

    return check


def unsupported_body(*keys: str) -> Check:
    """Cerebras: parameters of other providers (opencode#6648)."""

    def check(case: Case) -> Refusal | None:
        found = [
            f"body.{k}: property 'body.{k}' is unsupported" for k in keys if k in case.view.body
        ]
        return Refusal(400, "\n".join(found)) if found else None

    return check


def no_extras(case: Case) -> Refusal | None:
    """Mistral: any key it does not know, in any message (crush#1590, litellm#30835)."""
    details = [
        detail(
            "extra_forbidden",
            ("messages", at, message["role"], key),
            "Extra inputs are not permitted",
            value,
        )
        for at, message in enumerate(case.view.messages)
        for key, value in message.items()
        if key not in _MISTRAL_KEYS[message["role"]]
    ]
    if "max_completion_tokens" in case.view.body:  # eca#231
        value = case.view.body["max_completion_tokens"]
        path = ("max_completion_tokens",)
        details.append(detail("extra_forbidden", path, "Extra inputs are not permitted", value))
    return Refusal(422, {"detail": details}) if details else None


_MISTRAL_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "prefix"},
    "tool": {"role", "content", "tool_call_id", "name"},
}


def typed(*keys: str) -> Check:
    """A carrier is text or null, never anything else."""

    def check(case: Case) -> Refusal | None:
        for at, message in case.view.assistants():
            for key in keys:
                if not isinstance(message.get(key), str | None):
                    text = f"Invalid type for 'messages[{at}].{key}': expected a string."
                    return Refusal(400, text, param=f"messages[{at}].{key}", code="invalid_type")
        return None

    return check

"""One response of a Responses server in the making, and the error bodies it may get instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thoughtline.testing.sims.base import Exchange
from thoughtline.testing.sims.faults import Fault
from thoughtline.testing.sims.problems import Problem
from thoughtline.testing.sims.responses_input import Create, Item
from thoughtline.testing.sims.responses_oddities import Out
from thoughtline.testing.sims.responses_rows import Shape
from thoughtline.testing.sims.spelling import Fragment
from thoughtline.testing.sims.values import decode

_TYPES = {429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}
_XAI_CODES = {401: "unauthenticated", 404: "not-found", 429: "resource-exhausted", 500: "internal"}


class Answer(msgspec.Struct, kw_only=True):
    """One response in the making."""

    id: str
    exchange: Exchange
    create: Create
    whole: tuple[Item, ...]
    """The conversation that was answered."""
    outs: list[Out]
    shell: dict[str, Any]
    """The response object without what changes: status, output, usage."""
    prompt: tuple[int, int]
    fault: Fault | None = None

    def response(self, status: str, outs: Sequence[Out] = (), reason: str = "") -> dict[str, Any]:
        """The response object with these items."""
        usage = None if status == "in_progress" else self._usage(outs)
        return {
            **self.shell,
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": [Fragment(out.raw.decode()) for out in outs],
            "usage": usage,
        }

    def remembered(self, outs: Sequence[Out]) -> tuple[Item, ...]:
        """The conversation with these items at its end."""
        raws = [out.raw for out in outs]
        return (
            *(item._replace(where="") for item in self.whole),
            *(Item(raw, decode(raw)) for raw in raws),
        )

    def _usage(self, outs: Sequence[Out]) -> dict[str, Any]:
        prompt, cached = self.prompt
        size = sum(len(out.raw) for out in outs) // 4
        thought = sum(len(out.raw) for out in outs if out.kind == "reasoning") // 4
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": size,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + size,
        }


def shell(name: str, created: float, create: Create) -> dict[str, Any]:
    """A response object that has only begun."""
    body = create.body
    # developers.openai.com/api/docs/guides/reasoning: the effective value is echoed.
    late = create.model.startswith(("gpt-5.6", "gpt-6"))
    context = create.context if create.context not in (None, "auto") else None
    reasoning = {
        "effort": create.effort or "medium",
        "summary": (body.get("reasoning") or {}).get("summary"),
        "context": context or ("all_turns" if late else "current_turn"),
    }
    return {
        "id": name,
        "object": "response",
        "created_at": int(created),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": create.model,
        "output": [],
        "parallel_tool_calls": create.parallel,
        "previous_response_id": create.previous,
        "reasoning": reasoning,
        "store": create.store,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "usage": None,
        "metadata": body.get("metadata") or {},
    }


def numbered(data: dict[str, Any], at: int) -> dict[str, Any]:
    """An event with its number in the stream."""
    return {"type": data["type"], "sequence_number": at, **data}


def envelope(shape: Shape, problem: Problem) -> dict[str, Any]:
    """An error body."""
    status, message, code = problem.status, problem.message, problem.code
    if problem.kind == "detail":
        return {"detail": message}
    if shape == "xai":
        return {"code": code or _XAI_CODES.get(status, "invalid-argument"), "error": message}
    kind = problem.kind or _TYPES.get(status, "invalid_request_error")
    if code is None and (shape == "deepseek" or status in _TYPES):
        code = kind
    return {"error": {"message": message, "type": kind, "param": problem.param, "code": code}}


def unauthorised(shape: Shape, key: str) -> dict[str, Any]:
    """The error body for no credential, or for a wrong one."""
    if key:
        message = (
            f"Incorrect API key provided: {key[:4]}***. You can find your API key at"
            " https://platform.openai.com/account/api-keys."
        )
    else:
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization"
            " header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
    code = None if shape == "xai" or not key else "invalid_api_key"
    return envelope(shape, Problem(401, message, code=code))

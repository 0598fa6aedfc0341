"""Mid-turn steering: user input for a response that is still being written, over a WebSocket.

The input is acknowledged, waits for the next boundary between two items, and then goes into a
response that the server starts by itself; or, when the client owes a tool result, into the one that
the client starts. The rules are those of developers.openai.com/api/docs/guides/steering.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from thoughtline.testing.sims.responses_input import Item
from thoughtline.testing.sims.responses_oddities import Out

MOST_PENDING = 8
"""How many may wait for one response; the real number is not documented."""
FAMILY = "gpt-6"
_KEYS = {"type", "previous_response_id", "input"}
_MESSAGE_KEYS = {"type", "role", "content"}
_CONTENT = ("input_text", "input_image", "input_file")


class Steer(NamedTuple):
    """One accepted submission."""

    id: str
    parent: str
    input: Any

    @property
    def items(self) -> tuple[Item, ...]:
        """What it adds to the conversation."""
        given = self.input
        if isinstance(given, str):
            given = [{"type": "message", "role": "user", "content": given}]
        return tuple(
            Item(msgspec.json.encode(one), one, f"input[{at}]") for at, one in enumerate(given)
        )


def fault_of(body: dict[str, Any]) -> str:
    """What is wrong with a `response.steer` frame by itself; nothing when it is good."""
    extra = sorted(set(body) - _KEYS)
    if extra:
        return f"Unknown parameter: '{extra[0]}'."
    if not isinstance(body.get("previous_response_id"), str):
        return "Missing required parameter: 'previous_response_id'."
    given = body.get("input")
    if isinstance(given, str) and given:
        return ""
    if isinstance(given, list) and given and all(_is_message(one) for one in given):
        return ""
    return "The 'input' field must be a string or a non-empty array of user messages."


def accepted(steer: Steer) -> dict[str, Any]:
    """The server owns the input now."""
    return {"type": "response.steer.accepted", "steer": _name(steer)}


def pending(steer: Steer, outs: list[Out]) -> dict[str, Any]:
    """The client has to send the results of its tools first."""
    required = [
        {
            "type": "function_call_output",
            "call_id": out.value["call_id"],
            "name": out.value["name"],
        }
        for out in outs
        if out.kind == "function_call"
    ]
    return {
        "type": "response.steer.pending",
        "steer": _name(steer),
        "reason": "required_input",
        "required_input": required,
    }


def failed(body: dict[str, Any], code: str, message: str) -> dict[str, Any]:
    """The input comes back to the client."""
    return {
        "type": "response.steer.failed",
        "error": {"type": "invalid_request_error", "code": code, "message": message},
        "steer": {
            "previous_response_id": body.get("previous_response_id"),
            "input": body.get("input"),
        },
    }


def _name(steer: Steer) -> dict[str, str]:
    return {"id": steer.id, "previous_response_id": steer.parent}


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or set(value) - _MESSAGE_KEYS:
        return False
    if value.get("role") != "user" or value.get("type", "message") != "message":
        return False
    content = value.get("content")
    if isinstance(content, str):
        return bool(content)
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(part, dict) and part.get("type") in _CONTENT for part in content)

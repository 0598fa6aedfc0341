"""What Chat Completions providers insist on in tool calls and their results.

Rules like those of `chat_checks`, but not about thoughts: the form of ids, calls that are answered,
results that belong to a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from thoughtline.testing.sims.chat_checks import Case, Check
from thoughtline.testing.sims.chat_errors import Refusal
from thoughtline.testing.sims.chat_view import Message, calls_of
from thoughtline.testing.sims.values import decode, encode


def nine_alphanumerics(case: Case) -> Refusal | None:
    """Mistral: the form of a tool-call id (opencode#1680, zed#53034)."""
    for id in _ids(case.view.messages):
        if not re.fullmatch("[a-zA-Z0-9]{9}", id):
            text = f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
            return Refusal(400, text, kind="invalid_function_call", code="3280")
    return None


def _ids(messages: list[Message]) -> Iterator[str]:
    for message in messages:
        yield from (call["id"] for call in calls_of(message))
        if message["role"] == "tool":
            yield message["tool_call_id"]


def answered(unanswered: str, orphan: str) -> Check:
    """Every call is answered before anything else is said, and every result answers a call."""

    def check(case: Case) -> Refusal | None:
        waiting: list[str] = []
        for message in [*case.view.messages, {"role": "end"}]:
            if message["role"] == "tool":
                if message["tool_call_id"] not in waiting:
                    return Refusal(400, orphan.format(id=message["tool_call_id"]))
                waiting.remove(message["tool_call_id"])
            elif waiting:
                return Refusal(400, unanswered.format(ids=", ".join(waiting)))
            else:
                waiting = [call["id"] for call in calls_of(message)]
        return None

    return check


def known_results(text: str) -> Check:
    """Every tool result names a call that came before."""

    def check(case: Case) -> Refusal | None:
        seen: set[str] = set()
        for message in case.view.messages:
            if message["role"] == "tool" and message["tool_call_id"] not in seen:
                return Refusal(400, text.format(id=message["tool_call_id"]))
            seen |= {call["id"] for call in calls_of(message)}
        return None

    return check


def json_arguments(text: str) -> Check:
    """The arguments of every call are JSON."""

    def check(case: Case) -> Refusal | None:
        for _, message in case.view.assistants():
            for call in calls_of(message):
                try:
                    decode(call["function"]["arguments"].encode())
                except ValueError:
                    return Refusal(400, text.format(id=call["id"]))
        return None

    return check


def function_tools(case: Case) -> Refusal | None:
    """DeepSeek: no other type of tool (9router#3952)."""
    for at, tool in enumerate(case.view.body.get("tools") or []):
        if (kind := tool.get("type")) != "function":
            said = f"tools[{at}].type: unknown variant `{kind}`, expected `function`"
            where = f"at line 1 column {len(encode(case.view.body))}"
            text = f"Failed to deserialize the JSON body into the target type: {said} {where}"
            return Refusal(400, text)
    return None


def string_results(text: str) -> Check:
    """The content of a tool message is one string, no parts."""

    def check(case: Case) -> Refusal | None:
        tools = [m for m in case.view.messages if m["role"] == "tool"]
        broken = any(not isinstance(m.get("content"), str) for m in tools)
        return Refusal(400, text) if broken else None

    return check

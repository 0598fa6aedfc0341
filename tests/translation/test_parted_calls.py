"""Clients that send each of several calls with its own result right behind it, in every dialect.

The provider gets the one output that it made, with its thoughts, whatever dialect it speaks.
"""

from itertools import product

import pytest

from support.gateway import audit, statuses
from support.translating_gateway import DIALECTS, TranslatingGateway

NAMES = ("deepseek", "mistral", "openai", "claude", "claude-bound", "gemini")


def paired(calls, results, key):
    """Each call, and behind it what it gave; a list of two or none per call."""
    told = {result[key[1]]: result for result in results}
    return [(call, told[call[key[0]]]) for call in calls if call[key[0]] in told]


def chat(entries):
    results = [one for one in entries if one["role"] == "tool"]
    for entry in entries:
        calls = entry.get("tool_calls") or ()
        if entry["role"] == "tool":
            continue
        if not calls:
            yield entry
        for nth, (call, result) in enumerate(paired(calls, results, ("id", "tool_call_id"))):
            first = {} if nth else entry
            yield {**first, "role": "assistant", "content": None, "tool_calls": [call]} | (
                {} if nth else {"content": entry.get("content")}
            )
            yield result


def responses(entries):
    results = [one for one in entries if one.get("type") == "function_call_output"]
    for entry in entries:
        if entry.get("type") == "function_call":
            yield from paired([entry], results, ("call_id", "call_id"))[0]
        elif entry.get("type") != "function_call_output":
            yield entry


def messages(entries):
    blocks = [b for one in entries for b in one["content"] if isinstance(b, dict)]
    results = [block for block in blocks if block["type"] == "tool_result"]
    for entry in entries:
        content = entry["content"]
        said = content if isinstance(content, str) else [b for b in content if b not in results]
        calls = [b for b in content if isinstance(b, dict) and b["type"] == "tool_use"]
        if said and not calls:
            yield {**entry, "content": said}
        beside = [block for block in said if block not in calls]
        for call, result in paired(calls, results, ("id", "tool_use_id")):
            yield {**entry, "content": [*beside, call]}
            yield {"role": "user", "content": [result]}
            beside = []


def gemini(entries):
    for at, entry in enumerate(entries):
        calls = [part for part in entry["parts"] if "functionCall" in part]
        if len(calls) < 2:
            if not (at and _calls(entries[at - 1]) > 1):
                yield entry
            continue
        beside = [part for part in entry["parts"] if part not in calls]
        for call, result in zip(calls, entries[at + 1]["parts"], strict=True):
            yield {**entry, "parts": [*beside, call]}
            yield {"role": "user", "parts": [result]}
            beside = []


def _calls(entry):
    return sum("functionCall" in part for part in entry["parts"])


PARTED = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}


def parted_client(gateway, speaks, *, strips):
    def echo(entries):
        sent = list(PARTED[speaks](entries))
        parted.append(len(sent) > len(entries) or sent != entries)
        left = [client.strip(entry) if strips else entry for entry in sent]
        return [entry for entry in left if entry is not None]

    parted = []
    bound = {"thinking": {"type": "adaptive"}} if gateway.model == "claude-opus-5-5" else {}
    client = gateway.client(speaks, echo=echo, **(bound if speaks == "messages" else {}))
    return client, parted


@pytest.mark.parametrize("strips", [True, False], ids=["strip", "keep"])
@pytest.mark.parametrize(("speaks", "name"), [*product(DIALECTS, NAMES)])
def test_every_thought_goes_to_the_output_that_it_led_to(speaks, name, strips):
    gateway = TranslatingGateway(name)
    client, parted = parted_client(gateway, speaks, strips=strips)
    for _ in range(10):
        reply = client.turn()
        assert reply.status == 200, reply.body
        assert "missed=0" in reply.headers["x-thoughtline-replay"]
    assert any(parted)
    assert set(statuses(gateway)) == {200}
    assert "altered=0; missing=0; misplaced=0; foreign=0" in audit(gateway)

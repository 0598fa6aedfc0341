"""Clients that want to be shown no thoughts: they get the seal alone, and nothing is lost."""

import json

import pytest

from support.clients import load
from support.scripted_upstream import events
from support.translating_gateway import TranslatingGateway

OMITTED = {"thinking": {"type": "enabled", "budget_tokens": 20000, "display": "omitted"}}
EXCLUDED = {
    "generationConfig": {"thinkingConfig": {"thinkingBudget": 20000, "includeThoughts": False}}
}


def talk(gateway, dialect, options, *, stream):
    talker = gateway.client(dialect, stream=stream, echo="keep", **options)
    talker.talk(5)
    assert all(record.audit.clean for record in gateway.records)
    assert gateway.records[-1].audit.exact >= 4
    return [
        [load(entry) for entry in talker.history],
        *(told["body"].decode() for told in gateway.answers),
    ]


class Told:
    """An answer's body, for the reader of events."""

    def __init__(self, body):
        self.body = body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", ["deepseek", "openai", "gemini"])
def test_a_messages_client_gets_empty_blocks_with_a_signature(provider, stream):
    gateway = TranslatingGateway(provider)
    history, *_ = talk(gateway, "messages", OMITTED, stream=stream)
    said = [
        block for entry in history if entry["role"] == "assistant" for block in entry["content"]
    ]
    thoughts = [block for block in said if "thinking" in block["type"]]
    assert len(thoughts) >= 4
    assert {(block["type"], block["thinking"]) for block in thoughts} == {("thinking", "")}
    assert all(block["signature"] for block in thoughts)
    if not stream:
        return
    for told in gateway.answers:
        kinds = [event.get("delta", {}).get("type") for event in events(Told(told["body"]))]
        assert "thinking_delta" not in kinds
        assert "signature_delta" in kinds


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", ["deepseek", "openai", "claude"])
def test_a_gemini_client_gets_signatures_alone(provider, stream):
    gateway = TranslatingGateway(provider)
    history, *told = talk(gateway, "gemini", EXCLUDED, stream=stream)
    assert not any('"thought":true' in body.replace(" ", "") for body in told)
    assert "thoughtSignature" in json.dumps(history)


def test_a_client_that_does_not_say_so_sees_them():
    gateway = TranslatingGateway("deepseek")
    talker = gateway.client("messages", echo="keep")
    talker.talk(2)
    said = [entry for entry in map(load, talker.history) if entry["role"] == "assistant"]
    assert any(block.get("thinking") for entry in said for block in entry["content"])

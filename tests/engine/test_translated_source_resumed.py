"""Histories that a program wrote to a file and read again: Gemini CLI resumes a session so."""

import pytest

from support.translating_gateway import TranslatingGateway

TURNS = 8


def resumed(contents):
    """Texts are joined and trimmed, thoughts and signatures gone, every result is told twice."""
    return [content | {"parts": _resumed(content["parts"])} for content in contents]


def _resumed(parts):
    shown = [part for part in parts if not part.get("thought")]
    text = "".join(part.get("text", "") for part in shown).strip()
    others = [
        {key: part[key] for key in part.keys() & {"functionCall", "functionResponse"}}
        for part in shown
        if "text" not in part
    ]
    told_twice = any("functionResponse" in part for part in others)
    return [{"text": text}] * bool(text) + others * (2 if told_twice else 1)


@pytest.mark.parametrize("provider", ["deepseek", "kimi-k3", "openai", "claude", "claude-bound"])
def test_a_resumed_history_brings_every_thought_back(provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client("gemini", stream=True, echo="keep")
    talker.talk(3)
    talker.echo = resumed
    assert talker.run(TURNS - 3).status == 200
    audits = [str(record.audit) for record in gateway.records if not record.audit.clean]
    assert audits == []
    assert gateway.records[-1].audit.exact >= TURNS - 1


@pytest.mark.parametrize("provider", ["deepseek", "openai", "claude"])
def test_a_result_whose_call_is_lost_is_left_out(provider):
    gateway = TranslatingGateway(provider)
    talker = gateway.client("gemini", echo="keep")
    talker.talk(4)
    talker.echo = lambda contents: [contents[0], *contents[2:]]
    reply = talker.turn()
    assert reply.status == 200, reply.body
    assert "result_without_call" in reply.headers["x-thoughtline-translated"]


def test_items_that_nobody_knows_are_refused():
    """Going on without the calls would be another conversation."""
    gateway = TranslatingGateway("deepseek")
    talker = gateway.client("responses")
    talker.talk(1)
    talker.echo = lambda items: [
        {"type": "item_reference", "id": item["id"][::-1]}
        if item.get("type") == "function_call"
        else item
        for item in items
    ]
    reply = talker.turn()
    assert reply.status == 400
    assert b"item_reference" in reply.body
    assert len(gateway.records) == 1

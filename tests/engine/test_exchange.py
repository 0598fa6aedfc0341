"""One exchange, without a caller."""

import json

import pytest

from support.engine import answered, asked, message, target
from thoughtline.stores.memory import MemoryStore


@pytest.mark.parametrize(
    ("home", "policy", "model", "kept"),
    [
        ("openai", "openai", "gpt-5.6", True),
        ("openai", "xai", "grok-4.5", False),
        ("generic", "generic", "gpt-5.6", False),  # nobody knows whether it wants them
        ("xai", "xai", "gpt-5.6", False),
    ],
)
async def test_the_phase_of_a_message_comes_back(home, policy, model, kept):
    store, home = MemoryStore(), target(home, "responses", "gpt-5.6")
    said = [{"role": "user", "content": "go"}]
    output = [
        message("first I look", id="msg_1", phase="commentary"),
        message("done", id="msg_2", phase="final_answer"),
    ]
    reply = {"id": "resp_1", "model": "gpt-5.6", "status": "completed", "output": output}
    await answered(store, "responses", home, {"model": "gpt-5.6", "input": said}, reply)

    there, after = target(policy, "responses", model), {"role": "user", "content": "go on"}
    bare = [message("first I look"), message("done")]
    exchange = await asked(
        store, "responses", there, {"model": model, "input": [*said, *bare, after]}
    )
    sent = json.loads(exchange.decision.body)["input"]
    wanted = ["commentary", "final_answer"] if kept else [None, None]
    assert [item.get("phase") for item in sent[1:3]] == wanted
    exact = {"model": model, "input": [*said, *output, after]}
    if kept:  # nothing lost, nothing touched
        exchange = await asked(store, "responses", there, exact)
        assert exchange.decision.body == json.dumps(exact).encode()


async def test_an_exchange_says_nothing_of_its_talk_when_it_is_printed():
    where = target("deepseek", "chat", "deepseek-v4-pro")
    body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "a secret"}]}
    exchange = await asked(MemoryStore(), "chat", where, body)
    shown = (exchange, exchange.decision, exchange.recording, exchange.recording.capture)
    for value in shown:
        assert "secret" not in repr(value) + str(value)

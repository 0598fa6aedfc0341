"""Metrics, log lines and spans: all of the numbers, none of the words."""

import asyncio
import io
import json

import pytest

from stores.samples import turn
from support.built_gateway import KEY, BuiltGateway, converse, metrics
from support.gateway import Answer, ScriptedWire, TurnClient
from support.telemetry import chatty
from thoughtline.errors import Conflict, Unavailable, WireError
from thoughtline.gateway.telemetry import (
    Telemetry,
    open_log,
)
from thoughtline.log.parts import Text
from thoughtline.stores.memory import MemoryStore

SIMS = {
    "deepseek": ("chat", "deepseek"),
    "openai": ("responses", "openai"),
    "claude": ("messages", "anthropic"),
    "gemini": ("gemini", "gemini"),
}
"""Simulator → its dialect and policy."""

THINKING = {"claude": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
"""What has to be asked for, where models do not think by themselves."""


# -- nothing that was said -----------------------------------------------------------------------


@pytest.mark.parametrize("sim", SIMS)
async def test_logs_of_a_whole_conversation_hold_no_thought_no_body_and_no_key(sim):
    dialect, policy = SIMS[sim]
    built = BuiltGateway(chatty(policy), sim=sim)
    model = built.sim.models()[0]
    head = {"authorization": f"Bearer {KEY}", "x-api-key": KEY, "x-goog-api-key": KEY}
    fields = THINKING.get(sim)
    client = TurnClient(built.gateway(), dialect, model, keep=False, headers=head, fields=fields)
    await client.say(Text(text="question-canary"))
    for _ in range(5):
        await client.say(*client.next())
    await built.proxy.drain(1)
    await asyncio.sleep(0)  # lines are written when the loop comes round
    text = built.lines.getvalue()
    assert len(built.events("request")) == 6
    assert all(line["status"] == 200 for line in built.events("request"))
    secrets = [KEY, "canary"]
    for spoken in client.turns:
        for part in (*spoken.input, *spoken.output):
            secrets += [
                getattr(part, field)
                for field in ("text", "raw", "arguments", "content")
                if len(getattr(part, field, "")) > 8
            ]
    assert len(secrets) > 14
    assert any(spoken.thoughts for spoken in client.turns)
    for secret in secrets:
        assert secret not in text
        assert json.dumps(secret)[1:-1] not in text
    page, _ = built.telemetry.metrics.page()
    assert not [secret for secret in secrets if secret.encode() in page]


async def test_nor_when_things_go_wrong():
    refusal = Answer(400, {"error": {"message": "I do not like question-canary"}})
    fatal = Answer(500, {"error": {"message": "answer-canary"}})

    def gone(request):
        raise WireError("cannot reach http://sim/v1?key=secret-canary&x=1: refused")

    built = BuiltGateway(chatty(), wire=ScriptedWire(refusal, fatal, gone, gone))
    gateway = built.gateway()
    body = {"model": "m", "messages": [{"role": "user", "content": "question-canary"}]}
    head = {"authorization": f"Bearer {KEY}"}
    answers = [await gateway.post("/v1/chat/completions", body, head) for _ in range(3)]
    answers.append(await gateway.post("/v1/nothing", body, head | {"x-thoughtline-replay": "off"}))
    await asyncio.sleep(0)  # lines are written when the loop comes round
    assert [a.status for a in answers] == [400, 500, 502, 502]
    lines = built.events("request")
    assert [(line["status"], line["outcome"]) for line in lines] == [
        (400, "refused"),
        (500, "failed"),
        (502, "refused"),
        (502, "refused"),
    ]
    assert [line["level"] for line in lines] == ["info", "warning", "warning", "warning"]
    assert "canary" not in built.lines.getvalue()


# -- lines ---------------------------------------------------------------------------------------


def test_one_line_per_request():
    built = BuiltGateway(chatty(level="info"))
    with built.client() as client:
        answers = converse(client, 3)
        client.post("/u/up/v1/embeddings", json={})
        client.post("/u/nobody/v1/embeddings", json={})
    lines = built.events("request")
    assert len(lines) == 5
    third, passed, refused = lines[2:]
    assert third["session"] == answers[2].headers["x-thoughtline-session"]
    assert third["turn"] == answers[2].headers["x-thoughtline-turn"]
    assert third["tenant"] == built.proxy.auth.fingerprint(KEY)
    assert (third["upstream"], third["provider"], third["dialect"]) == ("up", "deepseek", "chat")
    assert (third["status"], third["outcome"], third["restored"]) == (200, "completed", 2)
    assert (third["model"], third["stream"], third["thoughts"]) == ("deepseek-v4-pro", False, 1)
    assert third["input_tokens"] > third["reasoning_tokens"] > 0
    assert 0 < third["added_seconds"] < third["seconds"] < 10
    assert passed["outcome"] == "passed"
    assert (refused["outcome"], refused["reason"]) == ("refused", "unknown_upstream")
    assert refused["upstream"] == ""  # what a client makes up is no label


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sim", ["openrouter", "copilot"])
async def test_a_thought_under_two_keys_is_counted_once(sim):
    built = BuiltGateway(chatty(sim, level="info"), sim=sim)
    gateway = built.gateway()
    said = [{"role": "user", "content": "hello"}]
    body = {"model": built.sim.models()[0], "messages": said, "stream": True}
    head = {"authorization": f"Bearer {KEY}"}
    assert (await gateway.post("/v1/chat/completions", body, head)).status == 200
    await built.proxy.drain(1)
    await asyncio.sleep(0)  # lines are written when the loop comes round
    [line] = built.events("request")
    assert len({body.thought.carrier for body in await gateway.facts("reasoning")}) > 1
    assert line["thoughts"] == 1
    page = built.telemetry.metrics.page()[0].decode()
    values = [entry for entry in page.splitlines() if entry.startswith("thoughtline_thought_")]
    count = next(v for v in values if v.startswith("thoughtline_thought_seconds_count"))
    total = next(v for v in values if v.startswith("thoughtline_thought_seconds_sum"))
    assert float(count.split()[-1]) == 1
    assert round(float(total.split()[-1]), 3) == line["thought_seconds"]


class Broken(MemoryStore):
    error = None

    async def append(self, batch):
        if self.error and batch.index:
            raise self.error
        return await super().append(batch)


@pytest.mark.parametrize(
    ("error", "fate"), [(Unavailable("disk"), "postponed"), (Conflict("no"), "lost")]
)
def test_what_could_not_be_written_is_reported(error, fate):
    store = Broken()
    built = BuiltGateway(chatty(), store=store)
    with built.client() as client:
        store.error = error
        assert converse(client, 1)[0].status_code == 200
        seen = metrics(client)
        store.error = None
    assert seen[f'thoughtline_unwritten_total{{fate="{fate}"}}'] == 1
    assert seen["thoughtline_store_trouble"] == (fate == "postponed")
    assert seen["thoughtline_store_backlog"] == (fate == "postponed")
    (line,) = built.events("write_failed")
    level = "warning" if fate == "postponed" else "error"
    assert (line["fate"], line["level"]) == (fate, level)


def test_a_turn_that_is_given_up_is_an_error_in_the_log():
    lines = io.StringIO()
    telemetry = Telemetry(log=open_log(style="json", stream=lines))
    telemetry.dropped(turn("s", "t1"), "too many turns wait")
    line = json.loads(lines.getvalue())
    assert (line["level"], line["session"], line["fate"]) == ("error", "s", "lost")


async def test_a_store_that_cannot_be_asked_leaves_a_gap_that_is_reported():
    class Mute(MemoryStore):
        async def find(self, tenant, names):
            raise Unavailable("the disk is gone")

    built = BuiltGateway(chatty(), store=Mute())
    gateway = built.gateway()
    history = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    answer = await gateway.post("/v1/chat/completions", {"model": "m", "messages": history})
    assert answer.status == 200
    (line,) = built.events("lookup_failed")
    assert line["reason"] == "the disk is gone"


async def test_recovery_is_counted():
    built = BuiltGateway(
        chatty(policy="openai"), sim="deepseek"
    )  # a row that is wrong about this one
    gateway = built.gateway()
    client = TurnClient(gateway, "chat", "deepseek-v4-pro", keep=False)
    await client.say(Text(text="hi"))
    await client.say(*client.next())
    recovered = built.events("recovered")
    assert [(line["strategy"], line["changed"]) for line in recovered] == [("restore_all", True)]
    page, _ = built.telemetry.metrics.page()
    assert (
        b'thoughtline_healed_total{changed="yes",provider="openai",remedy="restore_all"} 1.0'
        in page
    )


def test_what_the_model_did_not_get_is_counted_and_logged():
    built = BuiltGateway(chatty("openai", level="info"), sim="openai")
    history = [{"role": "user", "content": "hi"}]
    with built.client() as client:
        for user in ("ann", "bob"):
            asked = {"model": "gpt-5.6", "store": False, "safety_identifier": user}
            head = {"authorization": f"Bearer {KEY}"}
            answer = client.post("/v1/responses", json={**asked, "input": history}, headers=head)
            history += [item for item in answer.json()["output"] if item["type"] == "message"]
            history.append({"role": "user", "content": "go on"})
    first, second = built.events("request")
    withheld = second["unread"]
    assert "unread" not in first and withheld >= 1
    page, _ = built.telemetry.metrics.page()
    counted = f'thoughtline_unread_total{{provider="openai",reason="end_user"}} {withheld}.0'
    assert counted.encode() in page

"""Every answer says what became of the thoughts of its request."""

import json
import re
from pathlib import Path

import pytest

from support.gateway import Answer, InProcessGateway, ScriptedWire, gateway_with
from thoughtline.gateway.headers import PASSED_THROUGH, PassedThrough, replay_header
from thoughtline.log.decisions import ReplayWord
from thoughtline.replay.plan import ReplayPlan
from thoughtline.testing import simulator

PATH = "/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SAID = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("path", "body", "headers", "said"),
    [
        (PATH, ASKED, {}, "restored=0; missed=0; placeholder=0; dropped=0; corrected=0; exact=0; "),
        (PATH, ASKED, {"x-thoughtline-replay": "off"}, "passed=off"),
        (PATH, b"not json", {}, "passed=unreadable"),
        (PATH, b"{}", {"content-encoding": "gzip"}, "passed=unreadable"),
        ("/v1/embeddings", ASKED, {}, "passed=no_history"),
    ],
)
@pytest.mark.parametrize("status", [200, 404, 500])
async def test_every_answer_has_it(path, body, headers, said, status):
    gateway = InProcessGateway(ScriptedWire(Answer(status, SAID)))
    answer = await gateway.post(path, body, headers)
    assert answer.status == status
    assert answer.header("x-thoughtline-replay").startswith(said)


async def test_what_another_gateway_said_stays():
    told = {"content-type": "application/json", "x-thoughtline-replay": "restored=9"}
    gateway = InProcessGateway(ScriptedWire(Answer(400, SAID, told)))
    answer = await gateway.post(PATH, ASKED)
    assert answer.header("x-thoughtline-replay") == "restored=9"


def test_thinking_off_is_said():
    plan = ReplayPlan(decisions=(), fields={"thinking": b"{}"})
    assert replay_header(plan).endswith("; tied=0; thinking=off")
    words = re.findall(r"(\w+)=\d", replay_header(plan))
    assert set(words) == set(ReplayWord) - {"absent"}


def test_the_reference_says_the_same():
    page = Path(__file__).parents[2] / "docs/reference/replay-header.md"
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page.read_text("utf-8"), re.MULTILINE))
    assert set(PASSED_THROUGH) == set(PassedThrough)
    assert {reason: rows[reason] for reason in PassedThrough} == PASSED_THROUGH


@pytest.mark.parametrize("changed", ["system", "first"])
async def test_a_prefix_that_the_client_changed_is_told(changed):
    gateway = gateway_with("claude-bound", "anthropic")
    tools = [{"name": "run", "input_schema": {"type": "object"}}]
    asked = {"model": "claude-opus-5-5", "max_tokens": 4000, "thinking": {"type": "adaptive"}}
    asked |= {"model": simulator("claude-bound").models()[0], "tools": tools, "system": "Be brief."}
    history = [{"role": "user", "content": "<files>a.py</files>"}]
    for n in range(4):
        reply = await gateway.post("/v1/messages", {**asked, "messages": history})
        assert "prefix_changed" not in reply.header("x-thoughtline-replay")
        blocks = json.loads(reply.body)["content"]
        used = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in used]
        kept = [b for b in blocks if b["type"] not in ("thinking", "redacted_thinking")]
        history += [
            {"role": "assistant", "content": kept},
            {"role": "user", "content": results or f"Question {n + 1}"},
        ]
    if changed == "system":
        asked["system"] = "Be long."
    else:
        history[0] = {"role": "user", "content": "<files>a.py b.py</files>"}
    reply = await gateway.post("/v1/messages", {**asked, "messages": history})
    assert "; prefix_changed=1" in reply.header("x-thoughtline-replay")
